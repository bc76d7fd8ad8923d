"""Over-sampling PCA: how much a row turns the principal direction."""

import warnings
from numbers import Integral, Real
from typing import ClassVar, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from corral._sklearn_compat import Interval, StrOptions
from corral.detectors._base import Detector
from corral.detectors._principal import (
    Cloud,
    FitCloud,
    Matrix,
    Products,
    as_float64,
    choose_spread,
    find_direction,
    row_lengths,
)

# A row whose direction starts out as u may have its answer elsewhere; a start that
# leans this much towards the row finds it.
_MIN_LEAN = 1e-3


class OPCA(Detector):
    r"""Over-sampling PCA: outliers turn the principal direction when repeated.

    The score of a row says how far the dominant principal direction of the data turns
    when the row is repeated until it makes up a share of them. A row that lies with
    the others hardly turns it.

    .. math::

        s(x_t) = 1 - \left| \frac{\langle \tilde u_t, u \rangle}
                                 {\lVert \tilde u_t \rVert \lVert u \rVert} \right|

    Here :math:`u` is the dominant direction of the rows and :math:`\tilde u_t` that of
    the rows with :math:`nr` further copies of :math:`x_t`. With the mean :math:`\mu`,
    the covariance :math:`\Sigma = \frac1n \sum_i \bar x_i \bar x_i^\top` and
    :math:`\bar x = x - \mu`, the copies give the covariance

    .. math::

        \tilde\Sigma_t
        = \frac{1}{1+r} \Bigl( \frac1n \sum_i x_i x_i^\top + r\, x_t x_t^\top \Bigr)
          - \tilde\mu_t \tilde\mu_t^\top
        = \frac{1}{1+r} \Bigl( \Sigma + \frac{r}{1+r} \bar x_t \bar x_t^\top \Bigr),
        \qquad
        \tilde\mu_t = \frac{\mu + r x_t}{1+r} .

    ``method="power"`` finds its dominant direction by power iteration.
    ``method="online"`` solves one least-squares problem instead, in which the
    projections :math:`y_i = u^\top \bar x_i` on the old direction stand for those on
    the new one:

    .. math::

        \tilde u_t
        = \arg\min_{v} \; \beta \sum_i \lVert \bar x_i - y_i v \rVert^2
          + \lVert \bar x_t - y_t v \rVert^2
        = \frac{\beta \sum_i y_i \bar x_i + y_t \bar x_t}
               {\beta \sum_i y_i^2 + y_t^2},
        \qquad \beta = \frac{1}{nr} .

    Parameters
    ----------
    ratio : float, default=0.1
        Over-sampling ratio :math:`r`: how many copies of a row are added, as a share of
        the rows of the fit.
    forgetting : float, default=None
        The same said by the weight :math:`\beta` that every other row has beside the
        over-sampled one. If given, it takes the place of ``ratio``, which becomes
        :math:`1 / (n \beta)`.
    method : {"online", "one_pass", "power"}, default="online"
        The least-squares update from the exact direction, the same from a direction
        that was itself found by such updates in one pass over the rows, or power
        iteration.
    max_iter : int, default=1000
        Power iterations for a row at most.
    tol : float, default=1e-8
        Power iteration ends when the direction, of length 1, moves less than this.
    n_outliers : int, default=None
        Number of outliers. Excludes ``contamination``.
    contamination : float, default=None
        Share of outliers, at most 0.5. 0.05 if both are None.
    random_state : int, RandomState instance or None, default=None
        Where the search for the dominant direction starts. It matters for the last
        digits, and where several directions have the largest variance.

    Attributes
    ----------
    direction_ : ndarray of shape (n_features,)
        Dominant principal direction, of length 1; its largest entry is positive. All
        zeros if the rows do not differ.
    explained_variance_ : float
        Variance of the rows along it; of ``method="one_pass"``, what it had summed up.
        It is 0 or infinite, and the scores are not, where it is beyond float64.
    mean_ : ndarray of shape (n_features,)
        Mean of the rows.
    ratio_ : float
        The over-sampling ratio used.
    n_iter_ : int
        Power iterations that the slowest row took; 1 for the other forms.
    outlier_scores_ : ndarray of shape (n_samples,)
        Score of each row, from 0 to 1; higher is stranger.
    labels_ : ndarray of shape (n_samples,)
        +1 for inliers and -1 for outliers.
    n_outliers_ : int
        Number of outliers.
    offset_ : float
        Rows with ``score_samples`` below it are outliers.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has them.

    See Also
    --------
    TONMF : A low-rank model of nonnegative rows.

    Notes
    -----
    Cost: the online form takes time in proportion to n_samples x n_features and keeps
    two vectors. It is one step of power iteration from ``direction_``, with :math:`r`
    in place of :math:`r / (1 + r)`, as the mean stays. The power form multiplies a
    direction per row with the covariance, many times. The covariance is written out
    where it is no larger than X; elsewhere a copy of X is kept and an iteration for
    all rows costs n_samples sweeps over it. Rows are worked on in blocks of 8 MB. The
    search for ``direction_`` leaves sparse rows sparse, on one copy of their values;
    to be scored, they are made dense a block at a time.

    A row has the same score, to the last bit, whatever other rows it is asked with.

    The method looks at one direction. A row that is far out along it does not turn it
    and has a score of 0; so does, in the online form, a row at a right angle to it,
    however far, as :math:`y_t = 0`. The power form sees such a row once it outweighs
    the direction. Outliers that make the dominant direction between them hide the
    same way.

    Units matter: standardise the features unless they are comparable. The scores do not
    change when the rows are moved, rotated or scaled as a whole. Duplicates have equal
    scores, and constant columns change nothing. If all rows are equal, there is no
    direction to turn and every score is 0. If several directions have the largest
    variance, any of them may be found, and the scores depend on it and so on
    ``random_state``.

    ``method="one_pass"`` is the online form as the paper runs it on a stream: starting
    from a vector of ones with a small weight, each row in turn updates :math:`u` by the
    formula above with :math:`\beta = 1`. The result depends on the order and the units
    of the rows. With ``forgetting=0.1`` it gives the numbers published for OPCA in the
    comparison of COR with other methods.

    Differs from the paper: by default, :math:`u` is computed to full precision by the
    Lanczos method, so the order of the rows does not matter. Power iteration starts
    from the best direction in the plane of :math:`u` and the row, not from :math:`u`,
    where it may rest although a better one exists.

    References
    ----------
    Y.-J. Lee, Y.-R. Yeh and Y.-C. F. Wang (2013). "Anomaly Detection via Online
    Oversampling Principal Component Analysis." IEEE Transactions on Knowledge and Data
    Engineering 25(7), 1460-1470. https://doi.org/10.1109/TKDE.2012.99

    Examples
    --------
    >>> import numpy as np
    >>> from corral.detectors import OPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 1)) * [3.0, 3.0] + rng.normal(0, 0.2, size=(100, 2))
    >>> X[7] = [6.0, -1.0]
    >>> detector = OPCA(n_outliers=1, random_state=0).fit(X)
    >>> detector.predict(X[[6, 7]])
    array([ 1, -1])
    """

    _parameter_constraints: ClassVar[dict] = {
        **Detector._parameter_constraints,
        "ratio": [Interval(Real, 0, None, closed="neither")],
        "forgetting": [Interval(Real, 0, None, closed="neither"), None],
        "method": [StrOptions({"online", "one_pass", "power"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        ratio=0.1,
        *,
        forgetting=None,
        method="online",
        max_iter=1000,
        tol=1e-8,
        n_outliers=None,
        contamination=None,
        random_state=None,
    ):
        self.ratio = ratio
        self.forgetting = forgetting
        self.method = method
        self.max_iter = max_iter
        self.tol = tol
        self.n_outliers = n_outliers
        self.contamination = contamination
        self.random_state = random_state

    def _fit(self, X):
        cloud = FitCloud(as_float64(X))
        self.mean_ = cloud.view.mean / cloud.view.scale
        self.ratio_ = self.ratio
        if self.forgetting is not None:
            self.ratio_ = 1.0 / (len(cloud) * self.forgetting)
        self.direction_, variance = find_direction(
            cloud,
            check_random_state(self.random_state),
            in_one_pass=self.method == "one_pass",
        )
        self.explained_variance_ = cloud.view.restore_square(variance)
        self._view = cloud.view
        settings = _Settings(self.direction_, variance, self.ratio_)
        self._form: _Online | _Power = _Online(settings)
        if self.method == "power" and variance > 0.0:
            spread = choose_spread(cloud)
            self._form = _Power(settings, spread, self.max_iter, self.tol)
        scores, self.n_iter_, n_moving = self._form.score(cloud)
        self._warn_of_moving(n_moving, stacklevel=5)
        return scores

    def _score(self, X):
        scores, _, n_moving = self._form.score(Cloud(as_float64(X), self._view))
        self._warn_of_moving(n_moving, stacklevel=4)
        return scores

    def _warn_of_moving(self, n_moving: int, stacklevel: int) -> None:
        if n_moving and isinstance(self._form, _Power):
            warnings.warn(
                f"{n_moving} directions still moved more than tol={self._form.tol} "
                f"after max_iter={self._form.max_iter} power iterations; their scores "
                "are close to, but not at, the limit. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=stacklevel,
            )


class _Settings(NamedTuple):
    """What both forms know of the fit.

    Attributes
    ----------
    direction : ndarray of shape (n_features,)
    variance : float
        Along the direction, as the view of the fit shows it.
    ratio : float
    """

    direction: np.ndarray
    variance: float
    ratio: float

    def split(self, deviations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the part of each row along the direction, and the rest of it."""
        along = np.einsum("ij,j->i", deviations, self.direction)
        return along, deviations - along[:, None] * self.direction


class _Scores(NamedTuple):
    """Scores of rows, iterations of the slowest, and how many had not come to rest."""

    scores: np.ndarray
    n_iter: int
    n_moving: int


class _Online(NamedTuple):
    """The least-squares update."""

    fit: _Settings

    def score(self, cloud: Cloud) -> _Scores:
        scores = np.zeros(len(cloud))
        if self.fit.variance == 0.0:
            return _Scores(scores, 1, 0)
        # q = sum of y_i x_i is n lambda u, so only lengths along and across u matter.
        for rows in cloud.cut(cloud.shape[1]):
            along, rest = self.fit.split(cloud.read(rows))
            kept = self.fit.variance / self.fit.ratio + along**2
            scores[rows] = _turn(kept, np.abs(along) * row_lengths(rest))
        return _Scores(scores, 1, 0)


class _Power(NamedTuple):
    """Power iteration on the covariance with each row over-sampled.

    Attributes
    ----------
    fit : _Settings
    spread : Matrix or Products
        The covariance of the fit.
    max_iter : int
    tol : float
    """

    fit: _Settings
    spread: Matrix | Products
    max_iter: int
    tol: float

    def score(self, cloud: Cloud) -> _Scores:
        scores = np.empty(len(cloud))
        n_iter, n_moving = 0, 0
        # The products with X hold as many values per row as the fit has rows.
        for rows in cloud.cut(max(cloud.shape[1], self.spread.n_values)):
            found = self._iterate(cloud.read(rows))
            n_iter, n_moving = max(n_iter, found.n_iter), n_moving + found.n_moving
            along, rest = self.fit.split(found.directions)
            scores[rows] = _turn(np.abs(along), row_lengths(rest))
        return _Scores(scores, n_iter, n_moving)

    def _iterate(self, deviations: np.ndarray) -> "_Iteration":
        """Find the dominant direction of the data with each row over-sampled."""
        weight = self.fit.ratio / (1.0 + self.fit.ratio)
        directions = self._start(deviations, weight)
        moving = np.arange(len(deviations))
        n_iter = 0
        while len(moving) and n_iter < self.max_iter:
            n_iter += 1
            old, rows = directions[moving], deviations[moving]
            pull = weight * np.einsum("ij,ij->i", rows, old)
            new = self.spread(old) + pull[:, None] * rows
            new /= row_lengths(new)[:, None]
            directions[moving] = new
            moving = moving[row_lengths(new - old) > self.tol]
        return _Iteration(directions, n_iter, len(moving))

    def _start(self, deviations: np.ndarray, weight: float) -> np.ndarray:
        """Return the best direction in the plane of u and each row."""
        along, rest = self.fit.split(deviations)
        across = row_lengths(rest)
        # Rows on the line of u, up to rounding, have no plane, and u as their answer.
        flat = across <= 8.0 * np.finfo(np.float64).eps * row_lengths(deviations)
        across[flat] = 1.0
        rest /= np.where(along < 0, -across, across)[:, None]
        rest[flat] = 0.0
        # The covariance in the plane is a 2 x 2 matrix, whose off-diagonal entry is
        # not negative by the choice of sign above; half this angle leads to its
        # eigenvector.
        inner = np.einsum("ij,ij->i", rest, self.spread(rest))
        first = self.fit.variance + weight * along**2
        second = inner + weight * across**2
        angles = 0.5 * np.arctan2(2.0 * weight * np.abs(along) * across, first - second)
        angles = np.where(flat, 0.0, np.maximum(angles, _MIN_LEAN))
        starts = np.cos(angles)[:, None] * self.fit.direction
        return starts + np.sin(angles)[:, None] * rest


class _Iteration(NamedTuple):
    """What power iteration found for a block of rows.

    Attributes
    ----------
    directions : ndarray of shape (n_rows, n_features)
    n_iter : int
    n_moving : int
        How many had not come to rest.
    """

    directions: np.ndarray
    n_iter: int
    n_moving: int


def _turn(along: np.ndarray, across: np.ndarray) -> np.ndarray:
    """Return 1 minus the cosine of the angle with these two legs.

    Written so that small angles keep their digits; 0 where both legs are 0.
    """
    length = np.hypot(along, across)
    safe = np.where(length > 0, length, 1.0)
    return np.where(length > 0, across / safe * (across / (safe + along)), 0.0)
