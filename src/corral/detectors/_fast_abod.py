"""FastABOD: how much the angles to the neighbours vary."""

from numbers import Integral
from typing import ClassVar

import numpy as np

from corral._sklearn_compat import Interval
from corral.detectors._neighbors import NeighborDetector, Neighborhoods

# Fourth powers of distances up to 2 to this power, and of their inverses, leave room
# in float64 for rows that are a million times nearer or farther.
_SAFE_EXPONENT = 120

_LARGEST = float(np.finfo(np.float64).max)


class FastABOD(NeighborDetector):
    r"""Angle-based outlier detection over the nearest neighbours.

    A row amid others sees them in all directions, a row outside of them in one. The
    angle-based outlier factor of row :math:`A` is the variance, over pairs
    :math:`B, C` of its :math:`k` nearest neighbours, of the scaled inner products

    .. math::

        a_{BC} = \frac{\langle \overline{AB}, \overline{AC} \rangle}
                      {\|\overline{AB}\|^2 \, \|\overline{AC}\|^2}

    with near pairs weighing more:

    .. math::

        \mathrm{ABOF}(A) = \frac{\sum w_{BC} \, a_{BC}^2}{\sum w_{BC}}
            - \left( \frac{\sum w_{BC} \, a_{BC}}{\sum w_{BC}} \right)^2,
        \qquad
        w_{BC} = \frac{1}{\|\overline{AB}\| \, \|\overline{AC}\|}

    Parameters
    ----------
    n_neighbors : int, default=20
        Number of neighbours :math:`k`, at least 3: two make one pair, which has no
        variance. As in scikit-learn's ``LocalOutlierFactor``; the experiments of [2]_
        use 50. With ``n_samples`` or more, all other rows are used, with a warning;
        that is ABOD without the approximation.
    n_outliers : int, default=None
        Number of outliers. Excludes ``contamination``.
    contamination : float, default=None
        Share of outliers, at most 0.5. 0.05 if both are None.
    n_jobs : int, default=None
        Number of threads. None means as many as BLAS may use here, -1 all cores.

    Attributes
    ----------
    outlier_scores_ : ndarray of shape (n_samples,)
        Minus the ABOF of each row, at most 0; higher is stranger.
    labels_ : ndarray of shape (n_samples,)
        -1 for the ``n_outliers_`` strangest rows, +1 for the others.
    n_outliers_ : int
        Number of outliers.
    offset_ : float
        Rows with ``score_samples`` below it are outliers.
    n_neighbors_ : int
        Number of neighbours in use.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X is a data frame with names.

    See Also
    --------
    LOF : Compares densities.
    COF : Compares chains of neighbours.

    Notes
    -----
    Outliers have a small ABOF, so ``score_samples``, where lower is stranger, is the
    ABOF itself. It spans many orders of magnitude: it goes with the inverse fourth
    power of the distances. Where the median distance to the neighbours is above 2**120
    or below 2**-120 (about 1e36 and 1e-36), such powers may leave the range of float64,
    and the ABOF is that of X divided by a power of two, the one near the median
    distance.

    After the search for neighbours, the time is in proportion to
    ``n_samples * n_neighbors**2 * n_features`` and the memory to
    ``n_samples * n_neighbors``; inner products are held for a few rows at a time. Of
    rows at equal distance, the first ones are neighbours.

    Differs from the paper: its formula, as printed, squares the weight together with
    :math:`a_{BC}` in the first sum, which makes no variance and may be negative. The
    variance that the text defines is used, with each weight once.

    A row has no angle to rows that are equal to it: such neighbours are left out of
    the pairs. Where fewer than three others remain, the row is in the thick of its own
    kind and gets the largest ABOF of the fit (0 if no row has one). Rows that are equal
    get the same score. Constant columns change nothing. Sparse rows are searched by
    brute force and give the same scores. A fit needs four rows.

    A row passed to ``predict`` that is equal to a row of the fit gets the score of
    that row. Any other is compared with its nearest rows of the fit.

    References
    ----------
    .. [1] H.-P. Kriegel, M. Schubert and A. Zimek, "Angle-Based Outlier Detection in
       High-dimensional Data", KDD 2008, pp. 444-452. https://doi.org/10.1145/1401890.1401946
    .. [2] H. Liu, J. Li, Y. Wu and Y. Fu, "Clustering with Outlier Removal", IEEE
       Transactions on Knowledge and Data Engineering 33(6), 2021.
       https://doi.org/10.1109/TKDE.2019.2954317

    Examples
    --------
    >>> import numpy as np
    >>> from corral.detectors import FastABOD
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> X[7] = [8.0, 8.0, 8.0]
    >>> detector = FastABOD(n_neighbors=10, n_outliers=1).fit(X)
    >>> np.flatnonzero(detector.labels_ == -1)
    array([7])
    >>> detector.predict([[0.0, 0.0, 0.0], [-9.0, 9.0, 0.0]])
    array([ 1, -1])
    """

    _parameter_constraints: ClassVar[dict] = {
        **NeighborDetector._parameter_constraints,
        "n_neighbors": [Interval(Integral, 3, None, closed="left")],
    }

    _fewest_neighbors = 3

    def __init__(
        self, n_neighbors=20, *, n_outliers=None, contamination=None, n_jobs=None
    ):
        self.n_neighbors = n_neighbors
        self.n_outliers = n_outliers
        self.contamination = contamination
        self.n_jobs = n_jobs

    def _fit_neighborhoods(self, found: Neighborhoods) -> np.ndarray:
        self._unit = choose_unit(found.distances, self._neighbors.scale)
        abof = self._neighbors.map_blocks(self._vary, found)
        self._largest = float(np.max(abof, initial=0.0, where=~np.isnan(abof)))
        return self._finish(abof)

    def _score_neighborhoods(self, X, found: Neighborhoods) -> np.ndarray:
        return self._finish(self._neighbors.map_blocks(self._vary, found, X))

    def _vary(self, rows, near: np.ndarray, distances: np.ndarray) -> np.ndarray:
        return angle_variances(rows, near, distances, self._unit)

    def _finish(self, abof: np.ndarray) -> np.ndarray:
        # Not the negative, so that zero stays zero.
        return 0.0 - np.where(np.isnan(abof), self._largest, abof)


def choose_unit(distances: np.ndarray, scale: float) -> float:
    """Return the length that distances are measured in, a power of two.

    Parameters
    ----------
    distances : ndarray of shape (n_rows, n_neighbors)
    scale : float
        What rows were multiplied by before distances were taken.

    Returns
    -------
    unit : float
        ``scale``, which undoes it, unless the median distance is extreme.
    """
    apart = distances[distances > 0]
    if len(apart) == 0:
        return scale
    exponent = int(np.frexp(np.median(apart))[1])
    is_extreme = abs(exponent - int(np.frexp(scale)[1])) > _SAFE_EXPONENT
    return float(np.ldexp(1.0, exponent)) if is_extreme else scale


def angle_variances(
    rows: np.ndarray, near: np.ndarray, distances: np.ndarray, length: float = 1.0
) -> np.ndarray:
    """Return the angle-based outlier factors of a block of rows.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
    near : ndarray of shape (n_rows, n_neighbors, n_columns)
        Their neighbours.
    distances : ndarray of shape (n_rows, n_neighbors)
    length : float, default=1.0
        The length that counts as one.

    Returns
    -------
    abof : ndarray of shape (n_rows,)
        NaN where fewer than three neighbours differ from the row.
    """
    is_apart = distances > 0
    # Lengths are taken in units of the shortest, so that no power of them overflows.
    # Neighbours that are equal to the row have weight zero.
    unit = np.min(distances, axis=1, initial=np.inf, where=is_apart)
    divisors = np.where(is_apart, distances, np.inf)
    inverses = np.where(is_apart, unit[:, None], 0.0) / divisors
    directions = near - rows[:, None, :]
    directions /= divisors[:, :, None]
    weights = inverses[:, :, None] * inverses[:, None, :]
    diagonal = np.arange(near.shape[1])
    weights[:, diagonal, diagonal] = 0.0
    products = directions @ directions.transpose(0, 2, 1)
    products *= weights
    total = weights.sum(axis=(1, 2))
    abof = np.full(len(rows), np.nan)
    usable = is_apart.sum(axis=1) >= 3
    total[~usable] = 1.0
    mean = np.einsum("ijk,ijk->i", weights, products) / total
    # The variance as a sum of squares, which cannot cancel to less than nothing.
    products -= mean[:, None, None]
    products *= products
    variance = np.einsum("ijk,ijk->i", weights, products) / total
    unit /= length
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        scaled = np.minimum(variance / unit**2 / unit**2, _LARGEST)
    # However near the neighbours are, no variance is none.
    scaled[variance == 0] = 0.0
    abof[usable] = scaled[usable]
    return abof
