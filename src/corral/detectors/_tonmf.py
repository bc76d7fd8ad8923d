"""TONMF: documents that a few nonnegative topics do not explain."""

import warnings
from numbers import Integral, Real
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from corral._blocks import ArrayRows
from corral._sklearn_compat import Interval
from corral._threads import use_threads
from corral._tiles import row_norms
from corral.detectors._base import Detector

# A new row's coefficients count as found when a sweep moves what they explain by less
# than this share of the row; far below what could change a ranking.
_STILL = 1e-10
_MAX_SWEEPS = 2000

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
        Number of topics.
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
        How many outliers to find.
    contamination : float, default=None
        How many outliers to find, as a share of the rows. If neither is given, 0.05.
    random_state : int, RandomState instance or None, default=None
        Draws the topics and mixtures to start from.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
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
    plus three matrices of (n_samples + n_features) x n_components. Sparse rows stay
    sparse; integers and float32 are copied to float64.

    Scores: the paper ranks by :math:`\lVert z_i \rVert = \max(0, \rho_i - \alpha)`,
    which is 0 for every document with :math:`\rho_i \le \alpha`: for all of them where
    the rows have unit norm and :math:`\alpha \ge 1`. The score here is :math:`\rho_i`,
    which gives the same order without the ties. Long documents have long residuals:
    weigh the terms (tf-idf) or scale the rows to unit norm first if length should not
    count, and choose ``alpha`` to match.

    Each row is scored with the topics held: its mixture is solved for again, from 0,
    which is a convex problem with one residual. So a row of the fit has its score
    again, duplicates have equal scores, and a row of zeros has 0. The rows of the fit
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
        X = _as_float64(X)
        # The factors are narrow, and BLAS threads mostly wait for each other: measured
        # with two of them on a busy machine, a fit took five times as long.
        with use_threads(1):
            state, history = self._descend(X)
        self.components_ = np.ascontiguousarray(state.factors.topics.T)
        self.objective_history_ = np.array(history)
        self.objective_ = history[-1]
        self.n_iter_ = len(history) - 1
        scores = self._score(X)
        self.outlier_norms_ = np.maximum(0.0, scores - self.alpha)
        return scores

    def _descend(self, X) -> "tuple[State, list[float]]":
        """Return the last state and the objective from the start on."""
        squares = row_norms(X) ** 2
        state = draw_start(
            X, squares, self.n_components, check_random_state(self.random_state)
        )
        history = [state.objective(self.alpha, self.beta)]
        while len(history) <= self.max_iter:
            state = update(X, squares, state, self.alpha, self.beta)
            history.append(state.objective(self.alpha, self.beta))
            if history[-2] - history[-1] <= self.tol * history[0]:
                return state, history
        self._warn_of_stop(history)
        return state, history

    def _score(self, X):
        X = _as_float64(X)
        topics = self.components_.T
        with use_threads(1):
            mixtures = solve_mixtures(
                X @ topics, row_norms(X) ** 2, topics.T @ topics, self.alpha, self.beta
            )
            return _measure_residuals(X, Factors(topics, mixtures))

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
        return X

    def _warn_of_stop(self, history: list[float]) -> None:
        change = (history[-2] - history[-1]) / history[0]
        warnings.warn(
            f"The descent stopped at max_iter={self.max_iter} rounds; the last one "
            f"lowered the objective by {change:.1e} of its start, which is above "
            f"tol={self.tol}. Raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=2,
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
    residuals = _find_residuals(squares, X @ topics, topics.T @ topics, mixtures)
    return State(Factors(topics, mixtures), residuals)


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
    topics = _descend(old.topics, shared, old.mixtures.T @ old.mixtures, 0.0)
    overlaps = X @ topics
    shared = kept * overlaps
    shared += moved * (old.mixtures @ (old.topics.T @ topics))
    gram = topics.T @ topics
    mixtures = _descend(old.mixtures, shared, gram, beta)
    # Where a topic is 0, its row of H only costs.
    mixtures[:, np.diag(gram) == 0] = 0.0
    residuals = _find_residuals(squares, overlaps, gram, mixtures)
    return State(Factors(topics, mixtures), residuals)


def _keep(residuals: np.ndarray, alpha: float) -> np.ndarray:
    """Return the share of each residual that is not moved to Z."""
    return alpha / np.maximum(residuals, alpha)


def _descend(
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
    # Columns are read and written whole, so they lie side by side.
    columns = np.array(factor.T)
    for j in _used(gram):
        slope = shared[:, j] - gram[j] @ columns - penalty
        np.maximum(columns[j] + slope / gram[j, j], 0.0, out=columns[j])
    return np.ascontiguousarray(columns.T)


def _used(gram: np.ndarray) -> np.ndarray:
    """Return the topics that carry more than rounding."""
    diagonal = np.diag(gram)
    return np.flatnonzero(diagonal > _NEGLIGIBLE * diagonal.max())


def solve_mixtures(
    overlaps: np.ndarray,
    squares: np.ndarray,
    gram: np.ndarray,
    alpha: float,
    beta: float,
) -> np.ndarray:
    r"""Solve for the mixture and the outlier part of each row, with the topics held.

    Coordinate descent on :math:`\frac12 \lVert a - W h - z \rVert^2
    + \alpha \lVert z \rVert + \beta \lVert h \rVert_1` from ``h = 0``. With the best z,
    the first two terms are a Huber loss of the residual's norm. A quadratic with the
    slope of the loss lies above it, and steps down on that one are longer than with z
    held, by ``residual / alpha``, and end at the same place.

    A row stops when a sweep no longer moves it, and does not depend on the others.

    Parameters
    ----------
    overlaps : ndarray of shape (n_samples, n_components)
        Products of the rows with the topics.
    squares : ndarray of shape (n_samples,)
        Squared norms of the rows.
    gram : ndarray of shape (n_components, n_components)
        Products of the topics.
    alpha, beta : float

    Returns
    -------
    mixtures : ndarray of shape (n_samples, n_components)
    """
    n_samples, n_components = overlaps.shape
    mixtures = np.zeros((n_samples, n_components))
    lengths = np.sqrt(np.diag(gram))
    moving = np.arange(n_samples)
    for _ in range(_MAX_SWEEPS):
        if not len(moving):
            break
        old = mixtures[moving]
        residuals = _find_residuals(squares[moving], overlaps[moving], gram, old)
        # The quadratic is kept / 2 times the square, so the penalty weighs 1 / kept.
        penalty = beta / _keep(residuals, alpha)
        new = _descend(old, overlaps[moving], gram, penalty)
        mixtures[moving] = new
        moves = (np.abs(new - old) * lengths).max(axis=1)
        moving = moving[moves > _STILL * np.sqrt(squares[moving])]
    return mixtures


def _find_residuals(
    squares: np.ndarray, overlaps: np.ndarray, gram: np.ndarray, mixtures: np.ndarray
) -> np.ndarray:
    """Return the norms of ``X - mixtures @ topics.T`` from products only."""
    found = squares - np.einsum("ij,ij->i", mixtures, 2.0 * overlaps - mixtures @ gram)
    return np.sqrt(np.maximum(found, 0.0))


def _measure_residuals(X, factors: Factors) -> np.ndarray:
    """Return the norms of ``X - mixtures @ topics.T``, small ones to full precision."""
    topics, mixtures = factors
    norms = row_norms(X)
    found = _find_residuals(norms**2, X @ topics, topics.T @ topics, mixtures)
    small = np.flatnonzero(found < np.sqrt(_SMALL_RESIDUAL) * norms)
    step = max(1, _BLOCK_VALUES // X.shape[1])
    for start in range(0, len(small), step):
        rows = small[start : start + step]
        block = X[rows].toarray() if sparse.issparse(X) else X[rows]
        found[rows] = np.linalg.norm(block - mixtures[rows] @ topics.T, axis=1)
    return found


def _as_float64(X):
    """Return the rows in float64, sparse ones without entries that stand twice."""
    return ArrayRows(X).read(0, X.shape[0]).astype(np.float64, copy=False)
