"""What the files hold: its grouping, and whether it is as published."""

import hashlib
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from corral.datasets._info import DatasetInfo


class Content(NamedTuple):
    """What the files of a data set hold.

    Attributes
    ----------
    rows : ndarray or csr_array of shape (n_samples, n_features)
        float64.
    classes : ndarray of shape (n_samples,)
        The source's class of each row, as text.
    """

    rows: Any
    classes: np.ndarray


def group_classes(info: DatasetInfo, classes: np.ndarray) -> np.ndarray:
    """Return the paper's grouping of the source's classes.

    Parameters
    ----------
    info : DatasetInfo
    classes : ndarray of shape (n_samples,)
        As text.

    Returns
    -------
    target : ndarray of shape (n_samples,)
        0 to n_clusters - 1; -1 for outliers.
    """
    clusters = info.cluster_classes or _largest(classes, info.n_clusters)
    target = np.full(len(classes), -1)
    for label, name in enumerate(clusters):
        target[classes == name] = label
    return target


def _largest(classes: np.ndarray, n_classes: int) -> np.ndarray:
    names, sizes = np.unique(classes, return_counts=True)
    return names[np.argsort(-sizes, kind="stable")[:n_classes]]


def verify_content(info: DatasetInfo, content: Content, place: str) -> np.ndarray:
    """Return the grouping, after counts and checksums were found right.

    Parameters
    ----------
    info : DatasetInfo
    content : Content
    place : str
        Where it was read, for the message.

    Returns
    -------
    target : ndarray of shape (n_samples,)
    """
    target = group_classes(info, content.classes)
    wrong = _wrong_counts(info, content, target) or _wrong_sums(info, content, target)
    if wrong:
        raise ValueError(
            f"{place} is not the data set {info.name!r} as published: {wrong}. "
            f"Remove it and get the original from {info.page}."
        )
    return target


def _wrong_counts(info: DatasetInfo, content: Content, target: np.ndarray) -> str:
    n_samples, n_features = content.rows.shape
    found = {
        "n_samples": n_samples,
        "rows with a class": len(content.classes),
        "n_features": n_features,
        "n_clusters": len(np.unique(target[target >= 0])),
        "n_outliers": np.count_nonzero(target == -1),
    }
    wanted = {name: getattr(info, name, info.n_samples) for name in found}
    return ", ".join(
        f"{name} is {found[name]} and should be {wanted[name]}"
        for name in found
        if found[name] != wanted[name]
    )


def _wrong_sums(info: DatasetInfo, content: Content, target: np.ndarray) -> str:
    found = {
        "rows": (sum_rows(content.rows), info.sha256_rows),
        "labels": (sum_labels(content.classes, target), info.sha256_labels),
    }
    return ", ".join(
        f"the sha256 of its {name} is {has} and should be {wanted}"
        for name, (has, wanted) in found.items()
        if wanted is not None and has != wanted
    )


def sum_rows(rows: Any) -> str:
    """Return the sha256 of the values, whatever file they came from.

    Parameters
    ----------
    rows : ndarray or csr_array of shape (n_samples, n_features)
        A sparse one has its indices in order and no stored zeros.

    Returns
    -------
    checksum : str
        Of shape, and then of values (float64) or CSR parts (int64, int64, float64), all
        with the lowest byte first.
    """
    parts = [np.array(rows.shape, dtype="<i8")]
    if sparse.issparse(rows):
        parts += [rows.indptr.astype("<i8"), rows.indices.astype("<i8")]
        parts += [rows.data.astype("<f8")]
    else:
        # The sum sees bytes, and -0.0 has others than 0.0.
        parts += [np.ascontiguousarray(rows, dtype="<f8") + 0.0]
    return _sha256(parts)


def sum_labels(classes: np.ndarray, target: np.ndarray) -> str:
    """Return the sha256 of the classes and their grouping.

    Classes count by the order in which they first occur, so the spelling of a class
    does not matter, but which rows share one does.

    Parameters
    ----------
    classes : ndarray of shape (n_samples,)
    target : ndarray of shape (n_samples,)

    Returns
    -------
    checksum : str
        Of two int64 arrays with the lowest byte first.
    """
    _, first, codes = np.unique(classes, return_index=True, return_inverse=True)
    ranks = np.argsort(np.argsort(first))
    return _sha256([ranks[codes].astype("<i8"), target.astype("<i8")])


def _sha256(parts: list[np.ndarray]) -> str:
    checksum = hashlib.sha256()
    for part in parts:
        checksum.update(part.data)
    return checksum.hexdigest()
