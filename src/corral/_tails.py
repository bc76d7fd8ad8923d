"""How many outliers: gaps between the strangest rows, and more rows than a tail has."""

from dataclasses import dataclass

import numpy as np

# The spacings below a gap that say how wide gaps are: this share of the rows, and
# never fewer than so many.
_WINDOW_SHARE = 0.15
_MIN_WINDOW = 30

# How often a gap is taken for a sign of outliers where the costs end in an exponential
# tail.
_LEVEL = 0.01

# Costs that differ by less than this part of their range are equal: sums of floats.
_EQUAL_COSTS = 1e-9

# The heaviest tail that clean clusters were seen to have, that of a generalised Pareto
# distribution with this shape, and how many standard deviations more rows than it has
# are a sign of outliers, beside so many rows.
_HEAVY_TAIL = 0.2
_EXCESS_DEVIATIONS = 3.0
_EXCESS_ROWS = 2

# They are counted where they are most certain, less so many standard deviations;
# with none, the chance that a tail has is counted, too.
_COUNT_DEVIATIONS = 2.0

# The number of outliers and the tail of the others depend on each other; they settle in
# a few rounds.
_MAX_ROUNDS = 8


@dataclass(frozen=True)
class Gaps:
    """How wide the gap below each of the costliest rows is.

    Attributes
    ----------
    widths : ndarray of shape (max_outliers + 1,)
        At o, the gap between the o costliest rows and the others, in units of what is
        expected from the gaps below. Zero where rows are tied.
    threshold : float
        Wider gaps are signs of outliers.
    """

    widths: np.ndarray
    threshold: float

    def list_candidates(self, n_candidates: int, least: int = 0) -> list[int]:
        """Return the numbers of outliers with the widest gaps, the widest first.

        Parameters
        ----------
        n_candidates : int
        least : int, default=0
            If outliers are sure to be there, so many of them, the widest gap is taken
            even if it is no sign.

        Returns
        -------
        candidates : list of int
            Empty if no gap is a sign.
        """
        widths = self.widths.copy()
        widths[:least] = 0
        order = np.argsort(-widths, kind="stable")
        wide = [int(o) for o in order if widths[o] > self.threshold]
        if not wide and least:
            return [max(int(order[0]), least)]
        # Of gaps that are close to each other the widest counts.
        chosen: list[int] = []
        for o in wide:
            if all(abs(o - other) > max(3, 0.1 * other) for other in chosen):
                chosen.append(o)
        return chosen[:n_candidates]

    def thin(self, n_gaps: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the widest gaps among their neighbours, to be shown.

        Parameters
        ----------
        n_gaps : int
            About so many at most.

        Returns
        -------
        numbers, widths : ndarray of shape (n_gaps,)
        """
        n_all = len(self.widths) - 1
        if n_all <= n_gaps:
            numbers = np.arange(1, n_all + 1)
            return numbers, self.widths[1:]
        starts = np.unique(np.geomspace(1, n_all, n_gaps).astype(int))
        ends = [*starts[1:], n_all + 1]
        numbers = np.array(
            [
                start + int(self.widths[start:end].argmax())
                for start, end in zip(starts, ends, strict=True)
            ]
        )
        return numbers, self.widths[numbers]


def measure_gaps(costs: np.ndarray, max_outliers: int) -> Gaps:
    r"""Measure the gaps between the costliest rows.

    Let :math:`s_1 \ge s_2 \ge \dots` be the costs. If they end in an exponential tail,
    the normalised spacings :math:`c_i = i (s_i - s_{i+1})` are independent and
    exponential with the same mean (Renyi's representation), and

    .. math:: T_o = \frac{c_o}{\frac{1}{w} \sum_{i=1}^{w} c_{o+i}}

    has an F distribution with 2 and 2w degrees of freedom:
    :math:`P(T_o > t) = (1 + t / w)^{-w}`. The threshold is the t that the widest of
    m gaps exceeds with a probability of at most :math:`\alpha`:
    :math:`t = w ((m / \alpha)^{1 / w} - 1)`.

    Parameters
    ----------
    costs : ndarray of shape (n_samples,)
    max_outliers : int
        Gaps are measured for so many outliers at most.

    Returns
    -------
    gaps : Gaps
    """
    n_samples = len(costs)
    step = _EQUAL_COSTS * float(np.ptp(costs)) or 1.0
    # Equal rows are one: their spacings of zero would make all others wide.
    values, counts = np.unique(np.rint(costs / step), return_counts=True)
    values, counts = values[::-1] * step, counts[::-1]
    ranks = np.arange(1, len(values))
    spacings = ranks * -np.diff(values)
    window = max(_MIN_WINDOW, int(_WINDOW_SHARE * len(values)))
    sums = np.concatenate([[0.0], np.cumsum(spacings)])
    ends = np.minimum(ranks + window, len(spacings))
    used = ends - ranks
    ratios = np.zeros(len(ranks))
    with np.errstate(divide="ignore", invalid="ignore"):
        means = (sums[ends] - sums[ranks]) / used
        np.divide(spacings, means, out=ratios, where=(used >= _MIN_WINDOW // 2))
    ratios[~np.isfinite(ratios)] = 0
    widths = np.zeros(max_outliers + 1)
    n_above = np.cumsum(counts)[:-1]
    fits = n_above <= min(max_outliers, n_samples - 1)
    widths[n_above[fits]] = ratios[fits]
    n_gaps = max(int(np.count_nonzero(fits)), 1)
    threshold = window * ((n_gaps / _LEVEL) ** (1 / window) - 1)
    return Gaps(widths, float(threshold))


def standardize_costs(costs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return costs beside those of the usual rows of the same cluster.

    The median of a cluster becomes 0, and the step down to its first decile 1. Both lie
    where outliers do not reach.

    Parameters
    ----------
    costs : ndarray of shape (n_samples,)
    labels : ndarray of shape (n_samples,)
        Cluster of each row, also of rows that fit in none.

    Returns
    -------
    costs : ndarray of shape (n_samples,)
    """
    standard = np.zeros(len(costs))
    for label in np.unique(labels):
        here = labels == label
        low, middle = np.quantile(costs[here], [0.1, 0.5])
        if middle > low:
            standard[here] = (costs[here] - middle) / (middle - low)
    return standard


def count_excess(costs: np.ndarray, max_outliers: int) -> int:
    r"""Count the rows that are more than the tail of the other rows has.

    The upper half of the other rows is taken for a generalised Pareto distribution,
    which exceeds the median by x with probability

    .. math:: S(x) = \tfrac{1}{2} (1 + \xi x / \mu)^{-1 / \xi}

    with :math:`\mu` from their quartiles. With N(x) rows beyond x and
    :math:`E(x) = m S(x)` of m rows expected there, they are a sign of outliers if
    :math:`N - E > 3 \sqrt{E} + 2` somewhere, for the heaviest tail that clean clusters
    have, :math:`\xi = 0.2`. Their number is then :math:`N - E` where
    :math:`N - E - 2 \sqrt{E}` is largest, for an exponential tail, :math:`\xi = 0`.

    Parameters
    ----------
    costs : ndarray of shape (n_samples,)
        As :func:`standardize_costs` returns them.
    max_outliers : int

    Returns
    -------
    n_outliers : int
        Zero if there is no sign.
    """
    descending = np.sort(costs)[::-1]
    if not _settle_excess(
        descending, max_outliers, _HEAVY_TAIL, _EXCESS_DEVIATIONS, _EXCESS_ROWS
    ):
        return 0
    return _settle_excess(descending, max_outliers, 0.0, _COUNT_DEVIATIONS, 0)


def _settle_excess(
    descending: np.ndarray, most: int, shape: float, n_deviations: float, n_rows: int
) -> int:
    """Return the largest excess; each round leaves out what the one before found."""
    n_outliers = 0
    numbers = np.arange(1, most + 1)
    for _ in range(_MAX_ROUNDS):
        others = descending[n_outliers:]
        middle, upper = np.quantile(others, [0.5, 0.75])
        if upper <= middle or not most:
            return 0
        beyond = np.maximum(descending[:most] - middle, 0) / (upper - middle)
        expected = len(others) * _survival(beyond, shape)
        excess = numbers - expected
        signs = excess - n_deviations * np.sqrt(expected) - n_rows
        best = int(signs.argmax())
        if signs[best] <= 0:
            return 0
        found = round(float(excess[best]))
        if abs(found - n_outliers) <= 1:
            return found
        n_outliers = found
    return n_outliers


def _survival(beyond: np.ndarray, shape: float) -> np.ndarray:
    """Return the share of rows so far beyond the median, in steps of a quartile."""
    if not shape:
        return 0.5 * 0.5**beyond
    # The step from the median to the upper quartile halves the share.
    return 0.5 * (1 + (2**shape - 1) * beyond) ** (-1 / shape)
