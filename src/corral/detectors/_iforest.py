"""IForest: how soon random cuts set a row apart."""

from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from scipy import sparse
from sklearn.ensemble import IsolationForest

from corral._offsets import find_offsets, shift
from corral._row_book import as_kind
from corral._sklearn_compat import Interval, StrOptions
from corral._threads import count_threads
from corral.detectors._base import Detector
from corral.detectors._neighbors import limit

# Columns are scaled to this power of two: scikit-learn's trees work in single
# precision, which ends at 2**128, take differences of values, and do not cut where
# these are below 1e-7.
_EXPONENT = 120


class IForest(Detector):
    r"""Isolation forest, by scikit-learn.

    Each tree cuts a sample of :math:`\psi` rows at random, one feature at a time, until
    every row is alone; strange rows are alone soon. With the mean depth
    :math:`E\,h(x)` of a row over the trees and the mean depth :math:`c(\psi)` of a
    search that fails in a random binary tree:

    .. math::

        s(x) = 2^{-E\,h(x) / c(\psi)}

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees; the experiments of [2]_ use as many.
    n_outliers : int, default=None
        Number of outliers. Excludes ``contamination``.
    contamination : float, default=None
        Share of outliers, at most 0.5. 0.05 if both are None.
    max_samples : "auto", int or float, default="auto"
        Rows that each tree is grown from: their number, their share if a float, or
        256 but not more than there are if "auto". The experiments of [2]_ use 200.
    max_features : int or float, default=1.0
        Features that each tree is grown from: their number, or their share if a float.
    bootstrap : bool, default=False
        Whether rows are drawn with replacement.
    n_jobs : int, default=None
        Number of jobs, as in scikit-learn.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Attributes
    ----------
    outlier_scores_ : ndarray of shape (n_samples,)
        Score of each row, between 0 and 1; higher is stranger. Minus scikit-learn's
        ``score_samples``.
    labels_ : ndarray of shape (n_samples,)
        -1 for the ``n_outliers_`` strangest rows, +1 for the others.
    n_outliers_ : int
        Number of outliers.
    offset_ : float
        Rows with ``score_samples`` below it are outliers.
    estimator_ : IsolationForest
        Scikit-learn's fitted estimator, of columns that are times a power of two, and
        of large offsets less these.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X is a data frame with names.

    See Also
    --------
    sklearn.ensemble.IsolationForest : What this is made of.

    Notes
    -----
    The time is in proportion to ``n_estimators * n_samples * log(max_samples)``, and
    no distances are computed. Rows that are equal get the same score; among equal rows
    only, all scores are the same. A constant column is never cut. Sparse rows give the
    same scores as dense ones. Every row passed to ``predict``, of the fit or not, is
    scored in the same way. Scikit-learn warns if ``max_samples`` is above
    ``n_samples``, and takes all rows.

    Scikit-learn's trees see rows in single precision and take a column with values
    less than 1e-7 apart as constant. So a column whose median is more than 1000 times
    its median deviation is shifted by the median first. A column whose values are all
    below 2**-20 (about 1e-6) after that, or one of them above 2**120, is
    multiplied by a power of two. Cuts are uniform between the least and the largest
    value of a column, so neither changes what they are, up to rounding. Other columns
    are as scikit-learn would have them, and scores are equal to its own.

    References
    ----------
    .. [1] F. T. Liu, K. M. Ting and Z.-H. Zhou, "Isolation Forest", ICDM 2008,
       pp. 413-422. https://doi.org/10.1109/ICDM.2008.17
    .. [2] H. Liu, J. Li, Y. Wu and Y. Fu, "Clustering with Outlier Removal", IEEE
       Transactions on Knowledge and Data Engineering 33(6), 2021.
       https://doi.org/10.1109/TKDE.2019.2954317

    Examples
    --------
    >>> import numpy as np
    >>> from corral.detectors import IForest
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> X[7] = [6.0, 6.0]
    >>> detector = IForest(n_outliers=1, random_state=0).fit(X)
    >>> np.flatnonzero(detector.labels_ == -1)
    array([7])
    >>> detector.predict([[0.0, 0.0], [-9.0, 9.0]])
    array([ 1, -1])
    """

    _parameter_constraints: ClassVar[dict] = {
        **Detector._parameter_constraints,
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_samples": [
            StrOptions({"auto"}),
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
        ],
        "max_features": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
        ],
        "bootstrap": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_estimators=100,
        *,
        n_outliers=None,
        contamination=None,
        max_samples="auto",
        max_features=1.0,
        bootstrap=False,
        n_jobs=None,
        random_state=None,
    ):
        self.n_estimators = n_estimators
        self.n_outliers = n_outliers
        self.contamination = contamination
        self.max_samples = max_samples
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, X) -> np.ndarray:
        # Refuses 0 in the words that other detectors use.
        count_threads(self.n_jobs, 1)
        X = X.astype(np.float64)
        self._is_sparse = sparse.issparse(X)
        self._offsets = find_offsets(X)
        self._scales = _choose_scales(self._sizes(X))
        self.estimator_ = IsolationForest(
            n_estimators=self.n_estimators,
            max_samples=self.max_samples,
            max_features=self.max_features,
            bootstrap=self.bootstrap,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        ).fit(self._place(X))
        return self._score(X)

    def _score(self, X) -> np.ndarray:
        return -self.estimator_.score_samples(self._place(X))

    def _sizes(self, X) -> np.ndarray:
        """Return the largest size of each column, once it is shifted."""
        with np.errstate(over="ignore"):
            shifted = shift(X, self._offsets)
        sizes = abs(shifted).max(axis=0)
        sizes = sizes.toarray().ravel() if self._is_sparse else sizes
        return np.minimum(sizes, np.finfo(np.float64).max)

    def _place(self, X):
        """Return rows as scikit-learn gets them."""
        X = as_kind(X, is_sparse=self._is_sparse).astype(np.float64)
        with np.errstate(over="ignore"):
            X = shift(X, self._offsets)
            if self._is_sparse:
                X.data *= self._scales[X.indices]
            else:
                X *= self._scales
        # What is beyond all rows of the fit stays so, within single precision.
        return limit(X, 2.0 ** (_EXPONENT + 1))


def _choose_scales(sizes: np.ndarray) -> np.ndarray:
    """Return the power of two that brings each size to 2 to the power `_EXPONENT`."""
    exponents = np.where(sizes > 0, _EXPONENT - np.frexp(sizes)[1], 0)
    # The scales themselves have to be numbers of float64.
    return np.ldexp(1.0, np.minimum(exponents, 1000))
