"""LOF: the density at a row, compared with the density at its neighbours."""

from numbers import Integral
from typing import ClassVar

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.neighbors import LocalOutlierFactor

from corral._offsets import find_offsets, shift
from corral._row_book import RowBook, as_kind
from corral._sklearn_compat import Interval, StrOptions
from corral._threads import count_threads
from corral._tiles import level_rows
from corral.detectors._base import Detector
from corral.detectors._neighbors import (
    FAR,
    METRICS,
    choose_scale,
    count_neighbors,
    limit,
    measure_size,
    recall,
    weigh_neighbors,
)

# MiB that scikit-learn's search may take for distances where it computes them in
# blocks of rows, as for "cosine".
_WORKING_MEMORY = 64


class LOF(Detector):
    r"""Local outlier factor, by scikit-learn.

    A row is strange if its neighbours lie more densely than itself. With the distance
    :math:`d_k(o)` of a row to its :math:`k`-th neighbour and the reachability distance
    :math:`\mathrm{reach}(p, o) = \max(d_k(o), d(p, o))`:

    .. math::

        \mathrm{lrd}(p) = \Bigl( \tfrac{1}{k} \sum_{o \in N_k(p)}
            \mathrm{reach}(p, o) \Bigr)^{-1}, \qquad
        \mathrm{LOF}(p) = \frac{1}{k} \sum_{o \in N_k(p)}
            \frac{\mathrm{lrd}(o)}{\mathrm{lrd}(p)}

    Parameters
    ----------
    n_neighbors : int, default=20
        Number of neighbours :math:`k`, as in scikit-learn; the experiments of [2]_ use
        50. With ``n_samples`` or more, all other rows are used, with a warning.
    n_outliers : int, default=None
        Number of outliers. Excludes ``contamination``.
    contamination : float, default=None
        Share of outliers, at most 0.5. 0.05 if both are None.
    metric : {"euclidean", "manhattan", "cosine"}, default="euclidean"
        Distance between rows.
    n_jobs : int, default=None
        Number of jobs of the search for neighbours, as in scikit-learn.

    Attributes
    ----------
    outlier_scores_ : ndarray of shape (n_samples,)
        LOF of each row; near 1 for ordinary rows, higher is stranger. Minus
        scikit-learn's ``negative_outlier_factor_``.
    labels_ : ndarray of shape (n_samples,)
        -1 for the ``n_outliers_`` strangest rows, +1 for the others.
    n_outliers_ : int
        Number of outliers.
    offset_ : float
        Rows with ``score_samples`` below it are outliers.
    n_neighbors_ : int
        Number of neighbours in use.
    estimator_ : LocalOutlierFactor
        Scikit-learn's estimator, fitted with ``novelty=True``.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X is a data frame with names.

    See Also
    --------
    sklearn.neighbors.LocalOutlierFactor : What this is made of.
    COF : Compares chains of neighbours.
    LDOF : Compares distances.

    Notes
    -----
    Time and memory are those of scikit-learn's search for neighbours, which also
    decides between rows at equal distance. Scikit-learn adds 1e-10 to the mean
    reachability distance, so that rows which coincide with all their neighbours have a
    finite density; it warns where that happens. Constant columns change nothing.
    Sparse rows are searched by brute force and give the same scores. Groups more than
    some 1,000,000 times as far apart as neighbours are beyond brute force, which takes
    distances from products; it also serves dense rows of more than 15 columns.

    Scikit-learn gets the rows in double precision. Except for "cosine", a column whose
    median is more than 1000 times its median deviation is shifted by the median,
    because squared distances would lose their digits to such an offset. If all values
    are less than 2**-20 (about 1e-6) from the medians, or one is more than 2**480
    (about 3e144), X is multiplied by a power of two, because of the 1e-10 and because
    squares would be infinite. LOF depends on neither; ``estimator_`` knows the rows as
    they are then.

    Rows that are equal get the score of the first of them. A row passed to ``predict``
    that is equal to a row of the fit gets the score of that row; scikit-learn would
    take the row of the fit as its nearest neighbour. Any other row is compared with
    its nearest rows of the fit.

    References
    ----------
    .. [1] M. M. Breunig, H.-P. Kriegel, R. T. Ng and J. Sander, "LOF: Identifying
       Density-Based Local Outliers", SIGMOD 2000, pp. 93-104.
       https://doi.org/10.1145/342009.335388
    .. [2] H. Liu, J. Li, Y. Wu and Y. Fu, "Clustering with Outlier Removal", IEEE
       Transactions on Knowledge and Data Engineering 33(6), 2021.
       https://doi.org/10.1109/TKDE.2019.2954317

    Examples
    --------
    >>> import numpy as np
    >>> from corral.detectors import LOF
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> X[7] = [6.0, 6.0]
    >>> detector = LOF(n_outliers=1).fit(X)
    >>> np.flatnonzero(detector.labels_ == -1)
    array([7])
    >>> detector.predict([[0.0, 0.0], [-9.0, 5.0]])
    array([ 1, -1])
    """

    _parameter_constraints: ClassVar[dict] = {
        **Detector._parameter_constraints,
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "metric": [StrOptions(set(METRICS))],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        n_neighbors=20,
        *,
        n_outliers=None,
        contamination=None,
        metric="euclidean",
        n_jobs=None,
    ):
        self.n_neighbors = n_neighbors
        self.n_outliers = n_outliers
        self.contamination = contamination
        self.metric = metric
        self.n_jobs = n_jobs

    def _count_bytes(self, X) -> int:
        return weigh_neighbors(X, self.n_neighbors)

    def _fit(self, X) -> np.ndarray:
        # Refuses 0 in the words that other detectors use.
        count_threads(self.n_jobs, 1)
        self.n_neighbors_ = count_neighbors(self, X.shape[0], fewest=1)
        X = X.astype(np.float64)
        self._book = RowBook(X)
        self._is_sparse = sparse.issparse(X)
        self._offsets = find_offsets(X)
        self._scale = choose_scale(measure_size(X))
        lof = LocalOutlierFactor(
            n_neighbors=self.n_neighbors_,
            metric=self.metric,
            novelty=True,
            n_jobs=self.n_jobs,
        )
        with config_context(working_memory=_WORKING_MEMORY):
            self.estimator_ = lof.fit(self._place(X))
        scores = -self.estimator_.negative_outlier_factor_
        self._scores = scores[self._book.firsts]
        return self._scores[self._book.inverse]

    def _score(self, X) -> np.ndarray:
        return recall(self._book, self._scores, X, self._score_new)

    def _score_new(self, X) -> np.ndarray:
        with config_context(working_memory=_WORKING_MEMORY):
            return -self.estimator_.score_samples(self._place(X))

    def _place(self, X):
        """Return rows as scikit-learn gets them."""
        X = as_kind(X, is_sparse=self._is_sparse).astype(np.float64)
        if self.metric == "cosine":
            return level_rows(X)
        with np.errstate(over="ignore"):
            return limit(shift(X, self._offsets) * self._scale, FAR)
