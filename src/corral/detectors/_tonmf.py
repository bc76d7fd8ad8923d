"""TONMF: documents that a few nonnegative topics do not explain."""

import warnings
from numbers import Integral, Real
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from corral._blocks import cut_rows, find_size
from corral._sklearn_compat import Interval
from corral._threads import use_threads
from corral._tiles import row_norms
from corral._validation import check_squares
from corral.detectors._base import Detector
from corral.detectors._principal import as_float64, multiply_rows, row_lengths

# A new row's coefficients count as found when a sweep moves what they explain by less
# than this share of the row; far below what could change a ranking.
_STILL = 1e-10
_MAX_SWEEPS = 2000

# Where topics are nearly alike, sweeps go far in tiny steps: after each so many, those
# rows that still move go on in one step as far as all of it leads.
_SWEEPS_PER_JUMP = 50
_RIDGE = 1e-8

# The residual comes from products, whose rounding is about 1e-16 of the row's square.
# Below this share of it, the residual is taken again, entry by entry.
_SMALL_RESIDUAL = 1e-6

# How many values a block of such dense residuals may hold: 8 MB of float64.
_BLOCK_VALUES = 2**20

# A topic whose square is below this share of the largest one carries only rounding.
_NEGLIGIBLE = np.finfo(np.float64).eps ** 2


class TONMF(Detector):
    r"""Text outliers by nonnegative matrix factorisation with an outlier part.

    Documents are written as nonnegative mixtures of a few topics, and what does not
    fit is moved, document by document, to an outlier part. The score of a document is
    how much of it the topics leave unexplained.

    .. math::

        \min_{W \ge 0,\, H \ge 0,\, Z} \;
        \tfrac12 \lVert A - W H - Z \rVert_F^2
        + \alpha \sum_i \lVert z_i \rVert_2 + \beta \lVert H \rVert_1

    The columns :math:`a_i` of :math:`A = X^\top` are the documents, those of :math:`W`
    the topics, and those of :math:`Z` the outlier parts. Block coordinate descent sets
    one block at a time to its optimum, the others held. With
    :math:`\rho_i = \lVert a_i - W h_i \rVert` and :math:`B = A - Z`,

    .. math::

        z_i &= \max\bigl(0, 1 - \alpha / \rho_i\bigr) \, (a_i - W h_i), \\
        w_j &= \Bigl[ w_j + \frac{(B H^\top)_j - W (H H^\top)_j}{(H H^\top)_{jj}}
               \Bigr]_+, \\
        h^j &= \Bigl[ h^j + \frac{(W^\top B)^j - (W^\top W)^j H - \beta}
                                 {(W^\top W)_{jj}} \Bigr]_+ .

    Parameters
    ----------
    n_components : int, default=10
        Number of topics. No more than features are used: so many explain everything.
    alpha : float, default=10.0
        Weight :math:`\alpha` of the outlier part: a document has one if its residual is
        longer than this. It is in the units of X.
    beta : float, default=0.1
        Weight :math:`\beta` that makes the mixtures sparse.
    max_iter : int, default=200
        Rounds of block updates at most.
    tol : float, default=1e-4
        The descent ends when a round lowers the objective by less than this share of
        what it was at the start.
    n_outliers : int, default=None
        Number of outliers. Excludes ``contamination``.
    contamination : float, default=None
        Share of outliers, at most 0.5. 0.05 if both are None.
    random_state : int, RandomState instance or None, default=None
        Draws the topics and mixtures to start from.

    Attributes
    ----------
    components_ : ndarray of shape (n_topics, n_features)
        The topics, :math:`W^\top`.
    outlier_norms_ : ndarray of shape (n_samples,)
        Norm :math:`\lVert z_i \rVert` of each document's outlier part: the paper's
        score, ``max(0, outlier_scores_ - alpha)``.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        Objective at the start and after each round, with the best :math:`Z`.
    objective_ : float
        The last of them.
    n_iter_ : int
        Number of rounds.
    outlier_scores_ : ndarray of shape (n_samples,)
        Norm :math:`\rho_i` of what the topics leave of each document; higher is
        stranger.
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
    OPCA : Outliers by the principal direction they turn; takes negative values.
    sklearn.decomposition.NMF : The factorisation without an outlier part.

    Notes
    -----
    Cost: a round takes two products with X and
    O((n_samples + n_features) n_components^2) further steps. :math:`Z` is never stored:
    its columns are shares of the residual, so that memory stays at the values of X
    plus, at the peak, nine matrices of n_samples x n_components and three of
    n_features x n_components. Sparse rows stay sparse; integers and float32 are copied
    to float64.

    Scores: the paper ranks by :math:`\lVert z_i \rVert = \max(0, \rho_i - \alpha)`,
    which is 0 for every document with :math:`\rho_i \le \alpha`: for all of them where
    the rows have unit norm and :math:`\alpha \ge 1`. The score here is :math:`\rho_i`,
    which gives the same order without the ties. Long documents have long residuals:
    weigh the terms (tf-idf) or scale the rows to unit norm first if length should not
    count, and choose ``alpha`` to match.

    Each row is scored with the topics held: its mixture is solved for again, from 0,
    which is a convex problem with one residual. So a row of the fit has its score
    again, to the last bit and whatever other rows it is asked with, duplicates have
    equal scores, and a row of zeros has 0. The rows of the fit
    may be fewer than the topics; constant columns are terms like any other. A topic
    that nothing uses stays as it is.

    Moving length from :math:`H` to :math:`W` lowers the objective through :math:`\beta`
    and changes nothing else, so the problem has no optimum to reach, and the descent
    ends at ``tol`` or ``max_iter``. Where the topics are as many as the features and
    explain every row, this slow drift is all that is left to do: use fewer topics. What
    is found depends on ``random_state``.

    Differs from the paper: a round updates every topic once, where the authors' program
    runs several passes over :math:`W` and :math:`H` for each :math:`Z`; and entries may
    become exactly 0, which that program avoids. The scores are those with the topics
    held, as above.

    References
    ----------
    R. Kannan, H. Woo, C. C. Aggarwal and H. Park (2017). "Outlier Detection for Text
    Data." Proceedings of the SIAM International Conference on Data Mining, 489-497.
    https://doi.org/10.1137/1.9781611974973.55

    Examples
    --------
    >>> import numpy as np
    >>> from corral.detectors import TONMF
    >>> rng = np.random.default_rng(0)
    >>> topics = rng.poisson(2.0, size=(2, 12)) * 1.0
    >>> X = rng.dirichlet([1.0, 1.0], size=40) @ topics
    >>> X[7] = rng.permutation(X[7])
    >>> detector = TONMF(2, alpha=1.0, n_outliers=1, random_state=0).fit(X)
    >>> detector.predict(X[[6, 7]])
    array([ 1, -1])
    """

    _parameter_constraints: ClassVar[dict] = {
        **Detector._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "beta": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components=10,
        *,
        alpha=10.0,
        beta=0.1,
        max_iter=200,
        tol=1e-4,
        n_outliers=None,
        contamination=None,
        random_state=None,
    ):
        self.n_components = n_components
        self.alpha = alpha
        self.beta = beta
        self.max_iter = max_iter
        self.tol = tol
        self.n_outliers = n_outliers
        self.contamination = contamination
        self.random_state = random_state

    def _fit(self, X):
        X = as_float64(X)
        # The factors are narrow, and BLAS threads mostly wait for each other: measured
        # with two of them on a busy machine, a fit took five times as long.
        with use_threads(1):
            state, history = self._run_rounds(X)
        if not self._is_at_rest(history):
            self._warn_of_stop(history)
        self.components_ = np.ascontiguousarray(state.factors.topics.T)
        self.objective_history_ = np.array(history)
        self.objective_ = history[-1]
        self.n_iter_ = len(history) - 1
        # What the parameters are set to later is for another fit.
        self._alpha, self._beta = self.alpha, self.beta
        scores, n_moving = self._solve(X)
        _warn_of_moving(n_moving, stacklevel=5)
        self.outlier_norms_ = np.maximum(0.0, scores - self.alpha)
        return scores

    def _run_rounds(self, X) -> "tuple[State, list[float]]":
        """Return the last state and the objective from the start on."""
        squares = row_norms(X) ** 2
        n_topics = min(self.n_components, X.shape[1])
        state = draw_start(X, squares, n_topics, check_random_state(self.random_state))
        history = [state.objective(self.alpha, self.beta)]
        while len(history) <= self.max_iter:
            state = update(X, squares, state, self.alpha, self.beta)
            history.append(state.objective(self.alpha, self.beta))
            if self._is_at_rest(history):
                break
        return state, history

    def _is_at_rest(self, history: list[float]) -> bool:
        return history[-2] - history[-1] <= self.tol * history[0]

    def _score(self, X):
        scores, n_moving = self._solve(as_float64(X))
        _warn_of_moving(n_moving, stacklevel=4)
        return scores

    def _solve(self, X) -> tuple[np.ndarray, int]:
        """Return the scores and how many mixtures were still moving."""
        topics = self.components_.T
        with use_threads(1):
            products = Products(
                row_norms(X) ** 2, _multiply(X, topics), topics.T @ topics
            )
            mixtures, n_moving = solve_mixtures(products, self._alpha, self._beta)
            return _measure_residuals(X, topics, products, mixtures), n_moving

    def _read(self, X, *, reset: bool):
        X = super()._read(X, reset=reset)
        values = X.data if sparse.issparse(X) else X
        smallest = values.min(initial=0.0)
        if smallest < 0:
            raise ValueError(
                "Negative values in data passed to TONMF: the smallest value of X is "
                f"{smallest}, and all should be 0 or more. Use counts, tf-idf weights "
                "or features scaled to begin at 0."
            )
        check_squares(find_size(values), "value of X", is_fit=reset)
        return X

    def _warn_of_stop(self, history: list[float]) -> None:
        change = (history[-2] - history[-1]) / history[0]
        warnings.warn(
            f"The descent stopped at max_iter={self.max_iter} rounds; the last one "
            f"lowered the objective by {change:.1e} of its start, which is above "
            f"tol={self.tol}. Raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=5,
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


class Factors(NamedTuple):
    """The two factors of X, whose product ``mixtures @ topics.T`` stands for it.

    Attributes
    ----------
    topics : ndarray of shape (n_features, n_components)
        W of the paper.
    mixtures : ndarray of shape (n_samples, n_components)
        The transpose of H of the paper.
    """

    topics: np.ndarray
    mixtures: np.ndarray


class State(NamedTuple):
    """Factors, and how much they leave of each row.

    Attributes
    ----------
    factors : Factors
    residuals : ndarray of shape (n_samples,)
        Norm of each row's residual.
    """

    factors: Factors
    residuals: np.ndarray

    def objective(self, alpha: float, beta: float) -> float:
        """Return the objective with the best Z, which makes it a Huber loss."""
        long = np.maximum(0.0, self.residuals - alpha)
        short = self.residuals - long
        loss = 0.5 * short @ short + alpha * long.sum()
        return float(loss + beta * self.factors.mixtures.sum())


class Products(NamedTuple):
    """What is needed of the rows and the topics to solve for the mixtures.

    Attributes
    ----------
    squares : ndarray of shape (n_samples,)
        Squared norms of the rows.
    overlaps : ndarray of shape (n_samples, n_components)
        Products of the rows with the topics.
    gram : ndarray of shape (n_components, n_components)
        Products of the topics.
    """

    squares: np.ndarray
    overlaps: np.ndarray
    gram: np.ndarray

    def take(self, rows: np.ndarray) -> "Products":
        """Return those of some rows."""
        return Products(self.squares[rows], self.overlaps[rows], self.gram)

    def find_residuals(self, mixtures: np.ndarray) -> np.ndarray:
        """Return the norms of ``X - mixtures @ topics.T``, short ones roughly."""
        excess = 2.0 * self.overlaps - multiply_rows(mixtures, self.gram)
        found = self.squares - np.einsum("ij,ij->i", mixtures, excess)
        return np.sqrt(np.maximum(found, 0.0))


def draw_start(
    X, squares: np.ndarray, n_components: int, random_state: np.random.RandomState
) -> State:
    """Draw positive factors whose product has the size of X.

    Parameters
    ----------
    X : ndarray or CSR of shape (n_samples, n_features)
    squares : ndarray of shape (n_samples,)
        Squared norms of the rows.
    n_components : int
    random_state : RandomState

    Returns
    -------
    state : State
    """
    n_samples, n_features = X.shape
    # Then the mean of the products' sum over the topics is that of X.
    scale = 2.0 * np.sqrt(X.mean() / n_components)
    topics = scale * random_state.uniform(size=(n_features, n_components))
    mixtures = scale * random_state.uniform(size=(n_samples, n_components))
    products = Products(squares, X @ topics, topics.T @ topics)
    return State(Factors(topics, mixtures), products.find_residuals(mixtures))


def update(X, squares: np.ndarray, state: State, alpha: float, beta: float) -> State:
    r"""Set Z, each topic and each row of H to its optimum, in this order.

    Z is the share :math:`s_i` of each residual, so that with the old factors
    :math:`A - Z = A\,\mathrm{diag}(1 - s) + W H\,\mathrm{diag}(s)`, whose products with
    the factors need no matrix of the shape of A.

    Parameters
    ----------
    X : ndarray or CSR of shape (n_samples, n_features)
    squares : ndarray of shape (n_samples,)
        Squared norms of the rows.
    state : State
    alpha, beta : float

    Returns
    -------
    state : State
        A new one; the old is left as it is.
    """
    old = state.factors
    kept = _keep(state.residuals, alpha)[:, None]
    moved = 1.0 - kept
    shared = X.T @ (kept * old.mixtures)
    shared += old.topics @ (old.mixtures.T @ (moved * old.mixtures))
    topics = _sweep(old.topics, shared, old.mixtures.T @ old.mixtures, 0.0)
    overlaps = X @ topics
    shared = kept * overlaps
    shared += moved * (old.mixtures @ (old.topics.T @ topics))
    gram = topics.T @ topics
    mixtures = _sweep(old.mixtures, shared, gram, beta)
    # Where a topic is 0, its row of H only costs.
    mixtures[:, np.diag(gram) == 0] = 0.0
    residuals = Products(squares, overlaps, gram).find_residuals(mixtures)
    return State(Factors(topics, mixtures), residuals)


def _keep(residuals: np.ndarray, alpha: float) -> np.ndarray:
    """Return the share of each residual that is not moved to Z."""
    return alpha / np.maximum(residuals, alpha)


def _sweep(
    factor: np.ndarray,
    shared: np.ndarray,
    gram: np.ndarray,
    penalty: float | np.ndarray,
) -> np.ndarray:
    """Return the factor with each column, one after the other, at its optimum.

    Parameters
    ----------
    factor : ndarray of shape (n_rows, n_components)
    shared : ndarray of shape (n_rows, n_components)
        Products of the target with the other factor.
    gram : ndarray of shape (n_components, n_components)
        Products of the other factor with itself.
    penalty : float or ndarray of shape (n_rows,)
    """
    factor = factor.copy()
    for j in _used(gram):
        # Row by row, so that a row's last bit does not depend on the others.
        slope = shared[:, j] - np.einsum("ij,j->i", factor, gram[j]) - penalty
        factor[:, j] = np.maximum(factor[:, j] + slope / gram[j, j], 0.0)
    return factor


def _used(gram: np.ndarray) -> np.ndarray:
    """Return the topics that carry more than rounding."""
    diagonal = np.diag(gram)
    return np.flatnonzero(diagonal > _NEGLIGIBLE * diagonal.max())


def solve_mixtures(
    products: Products, alpha: float, beta: float
) -> tuple[np.ndarray, int]:
    r"""Solve for the mixture and the outlier part of each row, with the topics held.

    Coordinate descent on :math:`\frac12 \lVert a - W h - z \rVert^2
    + \alpha \lVert z \rVert + \beta \lVert h \rVert_1` from ``h = 0``. With the best z,
    the first two terms are a Huber loss of the residual's norm. A quadratic with the
    slope of the loss lies above it, and steps down on that one are longer than with z
    held, by ``residual / alpha``, and end at the same place.

    A row stops when a sweep no longer moves it, and does not depend on the others. Rows
    that take long make a step of Newton's method now and then.

    Parameters
    ----------
    products : Products
    alpha, beta : float

    Returns
    -------
    mixtures : ndarray of shape (n_samples, n_components)
    n_moving : int
        How many rows had not come to rest after the last sweep.
    """
    n_samples, n_components = products.overlaps.shape
    mixtures = np.zeros((n_samples, n_components))
    lengths = np.sqrt(np.diag(products.gram))
    moving = np.arange(n_samples)
    for i in range(1, _MAX_SWEEPS + 1):
        if not len(moving):
            break
        old, left = mixtures[moving], products.take(moving)
        # The quadratic is kept / 2 times the square, so the penalty weighs 1 / kept.
        penalty = beta / _keep(left.find_residuals(old), alpha)
        if i % _SWEEPS_PER_JUMP == 0:
            old = _jump(old, left, penalty)
            penalty = beta / _keep(left.find_residuals(old), alpha)
        new = _sweep(old, left.overlaps, left.gram, penalty)
        mixtures[moving] = new
        moves = (np.abs(new - old) * lengths).max(axis=1)
        moving = moving[moves > _STILL * np.sqrt(left.squares)]
    return mixtures, len(moving)


def _jump(mixtures: np.ndarray, products: Products, penalty: np.ndarray) -> np.ndarray:
    """Go to the optimum of the topics in use, or as far as all stay in use.

    A step of Newton's method on the quadratic of a sweep, with the zeros held.
    """
    n_rows, k = mixtures.shape
    # Keeps the step finite where topics in use are the same; it is then cut short.
    ridge = _RIDGE * np.diag(products.gram).max()
    result = mixtures.copy()
    step = max(1, _BLOCK_VALUES // k**2)
    for start in range(0, n_rows, step):
        rows = slice(start, start + step)
        held = mixtures[rows]
        used = held > 0
        slopes = products.overlaps[rows] - multiply_rows(held, products.gram)
        slopes = np.where(used, slopes - penalty[rows, None], 0.0)
        matrices = np.where(used[:, :, None] & used[:, None, :], products.gram, 0.0)
        matrices += np.eye(k) * np.where(used, ridge, 1.0)[:, None, :]
        moves = np.linalg.solve(matrices, slopes[:, :, None])[:, :, 0]
        falls = np.maximum(-moves, held)
        share = np.divide(held, falls, out=np.ones_like(held), where=falls > 0)
        share = share.min(axis=1)
        result[rows] = np.maximum(held + share[:, None] * moves, 0.0)
    return result


def _measure_residuals(
    X, topics: np.ndarray, products: Products, mixtures: np.ndarray
) -> np.ndarray:
    """Return the norms of ``X - mixtures @ topics.T``, short ones to full precision."""
    found = products.find_residuals(mixtures)
    small = np.flatnonzero(found < np.sqrt(_SMALL_RESIDUAL * products.squares))
    for part in cut_rows(len(small), _BLOCK_VALUES // X.shape[1]):
        rows = small[part]
        block = X[rows].toarray() if sparse.issparse(X) else X[rows]
        found[rows] = row_lengths(block - multiply_rows(mixtures[rows], topics))
    return found


def _multiply(X, topics: np.ndarray) -> np.ndarray:
    """Return ``X @ topics``, each row the same in any company."""
    if sparse.issparse(X):
        return X @ topics
    return multiply_rows(X, topics.T)


def _warn_of_moving(n_moving: int, stacklevel: int) -> None:
    if n_moving:
        warnings.warn(
            f"The mixtures of {n_moving} rows still moved after {_MAX_SWEEPS} sweeps; "
            "their scores are close to, but not at, the limit. Lower n_components, as "
            "topics that are nearly alike make slow work.",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
