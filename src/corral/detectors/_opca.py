"""Over-sampling PCA: how much a row turns the principal direction."""

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import eigh_tridiagonal
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from corral._blocks import ArrayRows
from corral._sklearn_compat import Interval, StrOptions
from corral._tiles import row_norms
from corral.detectors._base import Detector

# How many values a block of rows may hold, 8 MB of float64: small beside the rows, and
# large enough for the matrix products to run at full speed.
_BLOCK_VALUES = 2**20

# Lanczos: vectors kept between two restarts, restarts, and the residual, relative to
# the variance, at which the direction counts as found.
_KRYLOV_SIZE = 24
_MAX_RESTARTS = 100
_RESIDUAL = 1e-12

# What the vector of ones counts for at the start of the pass over the rows: little
# beside any row, and the number in the authors' program.
_START_WEIGHT = 1e-4

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
        How many outliers to find.
    contamination : float, default=None
        How many outliers to find, as a share of the rows. If neither is given, 0.05.
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
    Cost: the online form takes time in proportion to the values of X and keeps two
    vectors. It is one step of power iteration from ``direction_``, with :math:`r` in
    place of :math:`r / (1 + r)`, as the mean stays. The power form multiplies a
    direction per row with the covariance, many times. The covariance is written out
    where it is no larger than X; elsewhere a copy of X is kept and an iteration for
    all rows costs n_samples sweeps over it. Both forms work in blocks of 8 MB. Sparse
    rows stay sparse, as the mean is subtracted in the products; the power form makes
    one block of them dense at a time.

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
        cloud = _Cloud.of(X)
        self.mean_ = cloud.mean
        self.ratio_ = self.ratio
        if self.forgetting is not None:
            self.ratio_ = 1.0 / (len(cloud) * self.forgetting)
        self.direction_, self.explained_variance_ = _find_direction(
            cloud, check_random_state(self.random_state), self.method == "one_pass"
        )
        self._spread = None
        if self.method == "power":
            self._spread = _choose_spread(cloud)
        scores, self.n_iter_ = self._score_cloud(cloud)
        return scores

    def _score(self, X):
        return self._score_cloud(_Cloud.of(X, self.mean_))[0]

    def _score_cloud(self, cloud: "_Cloud") -> tuple[np.ndarray, int]:
        """Return the scores of the rows and the iterations of the slowest."""
        if self.explained_variance_ == 0.0:
            return np.zeros(len(cloud)), 1
        if self._spread is None:
            return self._score_online(cloud), 1
        return self._score_by_power(cloud, self._spread)

    def _score_online(self, cloud: "_Cloud") -> np.ndarray:
        # q = sum of y_i x_i is n lambda u, so only lengths along and across u matter.
        scores = np.empty(len(cloud))
        for rows in cloud.cut(cloud.shape[1]):
            along, across = cloud.split(rows, self.direction_)
            kept = self.explained_variance_ / self.ratio_ + along**2
            scores[rows] = _turn(kept, np.abs(along) * across)
        return scores

    def _score_by_power(
        self, cloud: "_Cloud", spread: "_Matrix | _Products"
    ) -> tuple[np.ndarray, int]:
        scores = np.empty(len(cloud))
        n_iter, n_moving = 0, 0
        # The products with X hold as many values per row as the fit has rows.
        for rows in cloud.cut(max(cloud.shape[1], spread.n_values)):
            deviations = cloud.read(rows)
            found = _iterate(self, spread, deviations)
            n_iter, n_moving = max(n_iter, found.n_iter), n_moving + found.n_moving
            along = found.directions @ self.direction_
            rest = found.directions - along[:, None] * self.direction_
            scores[rows] = _turn(np.abs(along), np.linalg.norm(rest, axis=1))
        if n_moving:
            warnings.warn(
                f"{n_moving} directions still moved more than tol={self.tol} after "
                f"max_iter={self.max_iter} power iterations; their scores are close "
                "to, but not at, the limit. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return scores, n_iter


class _Cloud:
    """Rows seen from a mean, dense or sparse, read in blocks.

    Attributes
    ----------
    X : ndarray or CSR of shape (n_samples, n_features), float64
    mean : ndarray of shape (n_features,)
    shape : tuple of (n_samples, n_features)
    """

    def __init__(self, X, mean: np.ndarray) -> None:
        self.X = X
        self.mean = mean
        self.shape: tuple[int, int] = X.shape

    @classmethod
    def of(cls, X, mean: np.ndarray | None = None) -> "_Cloud":
        """Return the rows of X; from their own mean if none is given."""
        X = ArrayRows(X).read(0, X.shape[0]).astype(np.float64, copy=False)
        if mean is None:
            mean = np.asarray(X.mean(axis=0)).ravel()
        return cls(X, mean)

    def __len__(self) -> int:
        return self.shape[0]

    def cut(self, n_values: int) -> list[slice]:
        """Cut the rows into blocks, for work that holds so many values per row."""
        step = max(1, _BLOCK_VALUES // n_values)
        return [
            slice(start, min(start + step, len(self)))
            for start in range(0, len(self), step)
        ]

    def read(self, rows: slice) -> np.ndarray:
        """Return the deviations of these rows, dense."""
        block = self.X[rows]
        if sparse.issparse(block):
            block = block.toarray()
        return block - self.mean

    def split(
        self, rows: slice, direction: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the deviation of each row along the direction, and across it.

        A row is worked on by itself, so it gets the same numbers in any block.
        """
        if not sparse.issparse(self.X):
            block = self.read(rows)
            along = np.einsum("ij,j->i", block, direction)
            block -= along[:, None] * direction
            return along, np.sqrt(np.einsum("ij,ij->i", block, block))
        block = self.X[rows]
        along = block @ direction - self.mean @ direction
        squares = block.multiply(block).sum(axis=1) - 2.0 * (block @ self.mean)
        squares = squares + self.mean @ self.mean - along**2
        return along, np.sqrt(np.maximum(squares, 0.0))

    def combine(self, weights: np.ndarray) -> np.ndarray:
        """Return sums of the deviations; weights of shape (n_samples, ...)."""
        # The second term is 0 but for rounding where the weights sum to 0.
        return self.X.T @ weights - np.multiply.outer(self.mean, weights.sum(axis=0))

    def project(self, vectors: np.ndarray) -> np.ndarray:
        """Return the deviations' products with vectors of shape (n_features, ...)."""
        return self.X @ vectors - self.mean @ vectors

    def spread(self, vectors: np.ndarray) -> np.ndarray:
        """Return the covariance times vectors of shape (n_features, ...)."""
        return self.combine(self.project(vectors)) / len(self)


class _Matrix:
    """The covariance written out.

    Called with directions of shape (n_rows, n_features), it returns their products,
    as does :class:`_Products`.

    Attributes
    ----------
    n_values : int
        How many values a product holds on the way, per direction.
    """

    def __init__(self, cloud: _Cloud) -> None:
        self.n_values = n_features = cloud.shape[1]
        self._matrix = np.zeros((n_features, n_features))
        for rows in cloud.cut(n_features):
            block = cloud.read(rows)
            self._matrix += block.T @ block
        self._matrix /= len(cloud)

    def __call__(self, directions: np.ndarray) -> np.ndarray:
        return directions @ self._matrix


class _Products:
    """The covariance left as two products with X; see :class:`_Matrix`."""

    def __init__(self, cloud: _Cloud) -> None:
        self.n_values = len(cloud)
        # A copy: the rows are needed for new ones after the caller has gone on.
        self._cloud = _Cloud(cloud.X.copy(), cloud.mean)

    def __call__(self, directions: np.ndarray) -> np.ndarray:
        return self._cloud.spread(directions.T).T


def _choose_spread(cloud: _Cloud) -> _Matrix | _Products:
    """Write the covariance out only where that takes less room than X."""
    n_samples, n_features = cloud.shape
    n_stored = cloud.X.nnz if sparse.issparse(cloud.X) else n_samples * n_features
    if n_features**2 <= n_stored:
        return _Matrix(cloud)
    return _Products(cloud)


def _find_direction(
    cloud: _Cloud, random_state: np.random.RandomState, in_one_pass: bool
) -> tuple[np.ndarray, float]:
    """Return the dominant principal direction and the variance along it.

    Both are 0 if the rows differ by no more than the rounding of their mean.
    """
    nothing = np.zeros(cloud.shape[1]), 0.0
    # A random sum of the deviations turns with the rows when they are rotated.
    start = cloud.combine(random_state.normal(size=len(cloud)))
    if not start.any():
        return nothing
    total = None
    if in_one_pass:
        direction, total = _run_one_pass(cloud)
    else:
        direction = _run_lanczos(cloud.spread, start)
    direction *= np.sign(direction[np.argmax(np.abs(direction))])
    projections = cloud.project(direction)
    rounding = 4.0 * np.finfo(np.float64).eps * row_norms(cloud.X).max()
    if projections.std() <= rounding:
        return nothing
    total = projections @ projections if total is None else total
    return direction, float(total) / len(cloud)


def _run_one_pass(cloud: _Cloud) -> tuple[np.ndarray, float]:
    """Update a direction with each row; return it and the sum of squares it met."""
    total = _START_WEIGHT
    direction = np.ones(cloud.shape[1])
    for rows in cloud.cut(cloud.shape[1]):
        for row in cloud.read(rows):
            projection = direction @ row
            total += projection**2
            # The same as keeping the sum of y x and dividing it by that of y^2.
            direction += (projection / total) * (row - projection * direction)
    return direction / np.linalg.norm(direction), total


def _run_lanczos(
    apply: Callable[[np.ndarray], np.ndarray], start: np.ndarray
) -> np.ndarray:
    """Return the dominant eigenvector of a positive semidefinite operator."""
    vector = start / np.linalg.norm(start)
    for _ in range(_MAX_RESTARTS):
        basis = [vector]
        diagonal: list[float] = []
        below: list[float] = []
        for _ in range(min(_KRYLOV_SIZE, len(start))):
            image = apply(basis[-1])
            diagonal.append(float(basis[-1] @ image))
            known = np.array(basis)
            # Twice, as one pass leaves a remainder where much is taken away.
            for _ in range(2):
                image = image - known.T @ (known @ image)
            below.append(float(np.linalg.norm(image)))
            if below[-1] <= _RESIDUAL * max(diagonal):
                break
            basis.append(image / below[-1])
        values, vectors = eigh_tridiagonal(diagonal, below[:-1])
        vector = np.array(basis[: len(diagonal)]).T @ vectors[:, -1]
        vector /= np.linalg.norm(vector)
        if below[-1] * abs(vectors[-1, -1]) <= _RESIDUAL * values[-1]:
            break
    return vector


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


def _iterate(
    model: OPCA, spread: _Matrix | _Products, deviations: np.ndarray
) -> _Iteration:
    """Find the dominant direction of the data with each row over-sampled."""
    weight = model.ratio_ / (1.0 + model.ratio_)
    directions = _start_directions(model, spread, deviations, weight)
    moving = np.arange(len(deviations))
    n_iter = 0
    while len(moving) and n_iter < model.max_iter:
        n_iter += 1
        old, rows = directions[moving], deviations[moving]
        pull = weight * np.einsum("ij,ij->i", rows, old)
        new = spread(old) + pull[:, None] * rows
        new /= np.linalg.norm(new, axis=1, keepdims=True)
        directions[moving] = new
        moving = moving[np.linalg.norm(new - old, axis=1) > model.tol]
    return _Iteration(directions, n_iter, len(moving))


def _start_directions(
    model: OPCA, spread: _Matrix | _Products, deviations: np.ndarray, weight: float
) -> np.ndarray:
    """Return the best direction in the plane of u and each row."""
    along = deviations @ model.direction_
    rest = deviations - along[:, None] * model.direction_
    across = np.linalg.norm(rest, axis=1)
    # Rows on the line of u, up to rounding, have no plane, and u as their answer.
    lengths = np.linalg.norm(deviations, axis=1)
    flat = across <= 8.0 * np.finfo(np.float64).eps * lengths
    across[flat] = 1.0
    rest /= np.where(along < 0, -across, across)[:, None]
    rest[flat] = 0.0
    # The covariance in the plane is a 2 x 2 matrix, whose off-diagonal entry is not
    # negative by the choice of sign above; half this angle leads to its eigenvector.
    inner = np.einsum("ij,ij->i", rest, spread(rest))
    first = model.explained_variance_ + weight * along**2
    second = inner + weight * across**2
    angles = 0.5 * np.arctan2(2.0 * weight * np.abs(along) * across, first - second)
    angles = np.where(flat, 0.0, np.maximum(angles, _MIN_LEAN))
    starts = np.cos(angles)[:, None] * model.direction_
    return starts + np.sin(angles)[:, None] * rest


def _turn(along: np.ndarray, across: np.ndarray) -> np.ndarray:
    """Return 1 minus the cosine of the angle with these two legs.

    Written so that small angles keep their digits; 0 where both legs are 0.
    """
    length = np.hypot(along, across)
    safe = np.where(length > 0, length, 1.0)
    return np.where(length > 0, across / safe * (across / (safe + along)), 0.0)
