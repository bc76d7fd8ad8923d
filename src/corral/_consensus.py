"""How often rows lie together: the agreement of the partitions on pairs of rows."""

import narwhals.stable.v1 as nw
import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from corral._codes import one_hot_rows
from corral._partition_mixin import PartitionMixin


def consensus(model, X, rows, *, extra_partitions=None) -> np.ndarray:
    """Return in which share of the partitions two rows have the same label.

    Only partitions in which both rows have a label count. A label that was not there
    in the fit is none.

    Parameters
    ----------
    model : COR, CORDetector or KCC
        A fitted method that fuses partitions.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        Rows as the model takes them, from the fit or new.
    rows : array-like of int, of shape (n_rows,)
        The places of the rows to compare. Keep them few: the answer has a number for
        each pair.
    extra_partitions : array-like of shape (n_samples, n_extra), default=None
        Needed if they were given to fit.

    Returns
    -------
    shares : ndarray of shape (n_rows, n_rows)
        From 0 to 1; NaN where no partition has a label for both rows.
    """
    check_is_fitted(model)
    fuser = find_fuser(model)
    rows = np.asarray(rows)
    if rows.dtype.kind not in "iu":
        raise TypeError(
            f"rows has the type {rows.dtype}; it should hold the places of rows. Use "
            "np.flatnonzero to turn a mask into places."
        )
    if extra_partitions is not None:
        extra_partitions = take_rows(extra_partitions, rows)
    features, given = fuser._read(take_rows(X, rows), extra_partitions, reset=False)
    # The labels of a block are only valid until the next one is read.
    labels = fuser._look_up_rows(features, given, lambda labels, _: labels.copy())
    return share_of_agreement(labels, fuser._partitioner.book)


def share_of_agreement(labels: np.ndarray, book) -> np.ndarray:
    """Return the share of equal labels for each pair of label rows.

    Parameters
    ----------
    labels : ndarray of shape (n_rows, n_partitions)
        Slots, as in a code.
    book : CodeBook

    Returns
    -------
    shares : ndarray of shape (n_rows, n_rows)
    """
    one_hot = one_hot_rows(labels, book)[:, book.is_label]
    n_same = (one_hot @ one_hot.T).toarray()
    is_known = (labels < book.n_labels).astype(np.float64)
    n_both = is_known @ is_known.T
    return np.divide(n_same, n_both, out=np.full_like(n_both, np.nan), where=n_both > 0)


def find_fuser(model):
    """Return the estimator in a fitted model that knows the partitions."""
    found = model
    # A detector holds its estimator, and that may be a frozen one.
    while not isinstance(found, PartitionMixin):
        found = getattr(found, "estimator_", getattr(found, "estimator", None))
        if found is None:
            raise TypeError(
                f"{type(model).__name__} does not fuse partitions, so there is no "
                "agreement among them. Use COR, CORDetector or KCC."
            )
    return found


def take_rows(X, rows: np.ndarray):
    """Return some rows of an array, a sparse matrix or a data frame."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return frame[rows.tolist()].to_native()
    if sparse.issparse(X):
        return X.tocsr()[rows]
    return np.asarray(X)[rows]
