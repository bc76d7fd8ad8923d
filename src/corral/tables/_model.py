"""TableModel: a method with its encoder, from a user's table to labels."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from corral._profiles import Profile, profile_clusters, tell_apart
from corral._saving import SaveMixin
from corral.tables._arrow import need_arrow
from corral.tables._encoder import TableEncoder
from corral.tables._pieces import count_piece_rows, is_source, peek

# What a method may know beside labels and scores.
_PASSED_ON = ("nearest_labels_", "outlier_confidence_", "label_confidence_")


class TableModel(SaveMixin, BaseEstimator):
    """A method that takes tables.

    Parameters
    ----------
    estimator : estimator
        COR, or any method of :func:`corral.all_methods`. COR uses categories, each as
        a partition of its own, and takes missing cells as they are. Other methods use
        numbers only, and the median of the column for missing cells.

    columns : list of str, default=None
        Use these columns only. None means all.

    exclude : list of str, default=None
        Use all but these columns.

    id_column : str, default=None
        The column that names rows. It is kept aside.

    scale : {"auto", "standard", "robust", "none"}, default="auto"
        How numbers are scaled; see :class:`TableEncoder`.

    tfidf : bool, default=False
        Weigh the words of texts, or counts of words, by how rare they are.

    Attributes
    ----------
    encoder_ : TableEncoder
        What was done with the columns.
    estimator_ : estimator
        Fitted.
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, -1 for outliers; of a detector +1 and -1.
    outlier_scores_ : ndarray of shape (n_samples,)
        Higher is stranger.
    nearest_labels_ : ndarray of shape (n_samples,)
        Nearest cluster of each row, of outliers too. Absent if the method has none.
    outlier_confidence_, label_confidence_ : ndarray of shape (n_samples,)
        How sure it is that a row is set aside, and that its nearest cluster is the
        nearest; see :class:`COR`. Absent if the method does not know.

    See Also
    --------
    TableEncoder : What happens to the columns.
    corral.load : Read a model that ``save`` wrote.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa
    >>> from corral import COR
    >>> from corral.tables import TableModel
    >>> rng = np.random.default_rng(0)
    >>> size = np.concatenate([rng.normal(1, 0.1, 30), rng.normal(5, 0.1, 30), [90.0]])
    >>> table = pa.table({"size": size, "color": ["red"] * 30 + ["blue"] * 31})
    >>> model = TableModel(COR(n_clusters=2, n_outliers=1, random_state=0)).fit(table)
    >>> np.flatnonzero(model.labels_ == -1)
    array([60])
    >>> model.encoder_.kinds_
    {'size': 'number', 'color': 'category'}
    """

    # Set by fit: the medians that fill missing cells, and what clusters look like;
    # None for COR, which does without the one and has the other itself.
    _medians: np.ndarray | None
    _profile: Profile | None

    def __init__(
        self,
        estimator,
        *,
        columns=None,
        exclude=None,
        id_column=None,
        scale="auto",
        tfidf=False,
    ):
        self.estimator = estimator
        self.columns = columns
        self.exclude = exclude
        self.id_column = id_column
        self.scale = scale
        self.tfidf = tfidf

    def fit(self, table, y=None):
        """Encode a table and fit the method.

        Parameters
        ----------
        table : data frame, pyarrow.Table, sparse matrix, ndarray or source
            As :func:`read_table` gives it, or of pandas or polars. A source, which is
            read in pieces and never held in memory, is for COR only.
        y : Ignored
            Here because scikit-learn passes it.

        Returns
        -------
        self : TableModel
            The fitted model.
        """
        estimator, X = self._prepare(table)
        return self._adopt(estimator.fit(X), X)

    def _prepare(self, table):
        """Learn how to encode a table; return the method, not fitted, and its rows."""
        is_cor = _find_cor(self.estimator) is not None
        if is_source(table) and not is_cor:
            _refuse_source(self.estimator, table)
        encoder = TableEncoder(
            columns=self.columns,
            exclude=self.exclude,
            id_column=self.id_column,
            scale=self._choose_scale(),
            tfidf=self.tfidf,
            categories=is_cor,
        )
        X = encoder.fit_transform(table)
        _check_sparse(self.estimator, X)
        estimator = clone(self.estimator)
        if encoder.categorical_names_:
            _set_categories(estimator, encoder.categorical_names_)
        self._medians = None if is_cor else _find_medians(X)
        self.encoder_ = encoder
        return estimator, self._fill(X)

    def _adopt(self, estimator, X):
        """Take over a method that was fitted to the rows of ``_prepare``."""
        is_cor = _find_cor(estimator) is not None
        for name in _PASSED_ON:
            self.__dict__.pop(name, None)
        self.estimator_ = estimator
        self._set_results()
        self._profile = None if is_cor else _profile(X, self.estimator_, self.labels_)
        return self

    def predict(self, table):
        """Return the cluster of each row, -1 for outliers; of a detector +1 and -1.

        Parameters
        ----------
        table : data frame, pyarrow.Table, sparse matrix, ndarray or source
            With the columns of the fit; others are ignored.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return self._ask_all("predict", table)

    def score_samples(self, table):
        """Return how normal each row is; lower is stranger.

        Parameters
        ----------
        table : data frame, pyarrow.Table, sparse matrix, ndarray or source
            With the columns of the fit; others are ignored.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        return self._ask_all("score_samples", table)

    def explain(self, table, n_features=5):
        """Say what sets each row apart from its nearest cluster.

        Parameters
        ----------
        table : data frame, pyarrow.Table, sparse matrix or ndarray
            With the columns of the fit; others are ignored.
        n_features : int, default=5
            How many features to name.

        Returns
        -------
        reasons : data frame
            Of the library of the table, pyarrow's for matrices; a row for each row.
            COR's columns are those of ``COR.explain``. Other methods give ``score``,
            ``label``, ``nearest_label`` (not detectors, which compare with all rows
            that are not outliers), and ``feature_1``, ``difference_1`` and so on:
            differences from the cluster's mean in the cluster's spread.
        """
        if is_source(table):
            raise ValueError(
                f"explain needs rows in memory, but {table!r} is read in pieces. Give "
                "it some of them, as source.read(start, stop) gives them."
            )
        X = self.encode(table)
        cor = _find_cor(self.estimator_)
        if cor is not None:
            names = self.encoder_.feature_names_out_
            found = cor.explain(X, n_features=n_features, feature_names=names)
            reasons = _to_arrow(found)
            if cor is not self.estimator_:
                place = reasons.column_names.index("label")
                labels = need_arrow().array(self._ask("predict", X))
                reasons = reasons.set_column(place, "label", labels)
            return _like(reasons, table)
        columns = {
            "score": -self._ask("score_samples", X),
            "label": self._ask("predict", X),
        }
        nearest = self._find_nearest(X, columns["label"])
        if self._has_clusters:
            columns["nearest_label"] = nearest
        columns |= self._name_differences(X, nearest, n_features)
        return _like(need_arrow().table(columns), table)

    def encode(self, table):
        """Return a table as the method gets it.

        Parameters
        ----------
        table : data frame, pyarrow.Table, sparse matrix, ndarray or source
            With the columns of the fit; others are ignored. A source is for COR only.

        Returns
        -------
        X : ndarray, csr_array, pyarrow.Table or EncodedSource
            As of :meth:`TableEncoder.transform`, missing cells filled if need be.
        """
        check_is_fitted(self)
        if is_source(table) and _find_cor(self.estimator_) is None:
            _refuse_source(self.estimator_, table)
        return self._fill(self.encoder_.transform(table))

    def __sklearn_is_fitted__(self):
        return hasattr(self, "labels_")

    def _choose_scale(self) -> str:
        """Return the scale; numbers that may not be negative cannot be shifted."""
        tags = get_tags(self.estimator)
        is_auto = self.scale == "auto" and tags.input_tags.positive_only
        return "none" if is_auto else self.scale

    @property
    def _has_clusters(self) -> bool:
        return hasattr(self, "nearest_labels_")

    def _fill(self, X):
        """Put the medians of the fit into missing cells."""
        if self._medians is None or sparse.issparse(X):
            return X
        return np.where(np.isnan(X), self._medians, X)

    def _ask_all(self, method: str, table) -> np.ndarray:
        """Return answers for all rows; those of a source are asked for in pieces."""
        if not is_source(table):
            return self._ask(method, self.encode(table))
        check_is_fitted(self)
        X = self.encoder_.transform(table)
        is_sparse = sparse.issparse(peek(table))
        n_rows = count_piece_rows(table.shape[1], is_sparse=is_sparse)
        starts = range(0, X.shape[0], n_rows)
        blocks = (X.read(i, min(i + n_rows, X.shape[0])) for i in starts)
        return np.concatenate([self._ask(method, self._fill(each)) for each in blocks])

    def _ask(self, method: str, X) -> np.ndarray:
        if not hasattr(self.estimator_, method):
            raise ValueError(
                f"{type(self.estimator_).__name__} has no answer for rows that were "
                "not in the fit. Fit with these rows, or choose another method."
            )
        return getattr(self.estimator_, method)(X)

    def _set_results(self) -> None:
        """Take over the results of the method, whose names differ for CORDetector."""
        cor = _find_cor(self.estimator_)
        source = self.estimator_ if cor is None else cor
        self.labels_ = source.labels_
        self.outlier_scores_ = source.outlier_scores_
        if cor is not None and cor is not self.estimator_:
            self.labels_ = np.where(cor.labels_ == -1, -1, 1)
        for name in _PASSED_ON:
            if hasattr(source, name):
                setattr(self, name, getattr(source, name))

    def _find_nearest(self, X, labels: np.ndarray) -> np.ndarray:
        """Return the cluster to compare with; that of outliers by its mean."""
        assert self._profile is not None
        if not self._has_clusters:
            return np.zeros(X.shape[0], dtype=np.int32)
        nearest = labels.astype(np.int32)
        rows = np.flatnonzero(labels < 0)
        if len(rows):
            from sklearn.metrics import pairwise_distances_argmin

            found = pairwise_distances_argmin(X[rows], self._profile.centers)
            nearest[rows] = found
        return nearest

    def _name_differences(self, X, nearest: np.ndarray, n_features: int) -> dict:
        """Return the columns of features and differences."""
        assert self._profile is not None
        features, differences = tell_apart(X, nearest, self._profile, n_features)
        # The last is where -1, none, leads.
        names = np.array([*self.encoder_.feature_names_out_, None], dtype=object)
        columns: dict[str, Any] = {}
        for j in range(n_features):
            columns[f"feature_{j + 1}"] = need_arrow().array(
                names[features[:, j]], need_arrow().string()
            )
            columns[f"difference_{j + 1}"] = differences[:, j]
        return columns


def _find_cor(estimator):
    """Return the COR that an estimator is or holds, fitted if it is; None if none."""
    from corral import COR, CORDetector

    if isinstance(estimator, CORDetector):
        if hasattr(estimator, "estimator_"):
            return _find_cor(estimator.estimator_)
        return COR() if estimator.estimator is None else _find_cor(estimator.estimator)
    return estimator if isinstance(estimator, COR) else None


def _refuse_source(estimator, source) -> None:
    raise ValueError(
        f"{type(estimator).__name__} needs all rows in memory, but {source!r} is read "
        "in pieces. Choose COR, or read a sample of the rows, or all of them, with "
        "read_table."
    )


def _set_categories(estimator, names: list[str]) -> None:
    """Tell COR which columns are categories, inside a detector too."""
    from corral import COR, CORDetector

    cor = estimator
    if isinstance(estimator, CORDetector):
        if estimator.estimator is None:
            # As the detector itself would do it.
            estimator.set_params(estimator=COR(contamination=0.05))
        cor = estimator.estimator
    if cor.categorical_features is not None:
        raise ValueError(
            f"categorical_features={cor.categorical_features} should be None: a "
            "TableModel finds the categories of its table itself."
        )
    cor.set_params(categorical_features=names)


def _check_sparse(estimator, X) -> None:
    if sparse.issparse(X) and not get_tags(estimator).input_tags.sparse:
        raise ValueError(
            f"{type(estimator).__name__} takes no sparse rows, which tf-idf and sparse "
            "files give. Choose another method."
        )


def _find_medians(X) -> np.ndarray | None:
    """Return the median of each column over the cells that are there."""
    return None if sparse.issparse(X) else np.nanmedian(X, axis=0)


def _profile(X, estimator, labels: np.ndarray) -> Profile:
    """Describe the clusters, or all rows that are not outliers if there are none."""
    n_clusters = int(labels.max()) + 1
    if hasattr(estimator, "nearest_labels_") and n_clusters > 0:
        return profile_clusters(X, labels, n_clusters)
    inliers = np.where(labels < 0, -1, 0)
    if (inliers < 0).all():
        inliers[:] = 0
    return profile_clusters(X, inliers, 1)


def _to_arrow(frame):
    """Return any library's frame as a table of pyarrow."""
    import narwhals.stable.v1 as nw

    return nw.from_native(frame, eager_only=True).to_arrow()


def _like(found, table):
    """Return a table of pyarrow as one of the library that the user has."""
    import narwhals.stable.v1 as nw

    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame) or frame.implementation.is_pyarrow():
        return found
    arrow = nw.from_native(found, eager_only=True)
    if frame.implementation.is_polars():
        return arrow.to_polars()
    made = arrow.to_pandas()
    index = nw.maybe_get_index(frame)
    return made if index is None else made.set_axis(index, axis=0)
