"""Stage 4: which samples are set aside, and what that makes of labels and scores."""

from dataclasses import dataclass

import numpy as np

from corral._codes import Codes


@dataclass(frozen=True)
class SetAside:
    """The samples with the largest costs; of equal ones, the first.

    Attributes
    ----------
    code_weights : ndarray of shape (n_codes,)
        How much of each code's weight was set aside.
    kept_offsets : float
        Sum of the weighted cost offsets of the samples that are kept.
    samples : ndarray or None
        The samples, sorted; None where only their numbers per code are known.
    """

    code_weights: np.ndarray
    kept_offsets: float = 0.0
    samples: np.ndarray | None = None

    def list_samples(self, codes: Codes) -> np.ndarray:
        """Return the samples set aside, sorted: of each code, the first ones."""
        if self.samples is not None:
            return self.samples
        whole = self.code_weights == codes.counts
        parts = [np.flatnonzero(whole[codes.inverse])]
        for code in np.flatnonzero((self.code_weights > 0) & ~whole):
            n_samples = int(self.code_weights[code])
            parts.append(np.flatnonzero(codes.inverse == code)[:n_samples])
        return np.sort(np.concatenate(parts))


def set_aside(
    code_costs: np.ndarray,
    codes: Codes,
    n_outliers: int,
    *,
    sample_weight: np.ndarray | None = None,
    cost_offsets: np.ndarray | None = None,
) -> SetAside:
    """Choose the ``n_outliers`` samples with the largest cost.

    Exactly so many samples are chosen. Where several with the same cost compete for
    the last places, the first of them in the order of the samples are taken.

    Parameters
    ----------
    code_costs : ndarray of shape (n_codes,)
    codes : Codes
    n_outliers : int
    sample_weight : ndarray of shape (n_samples,) or None
        Does not change the choice, only what it weighs.
    cost_offsets : ndarray of shape (n_samples,) or None
        Added to the cost of each sample's code.

    Returns
    -------
    aside : SetAside
    """
    if sample_weight is None and cost_offsets is None:
        return SetAside(_count_by_code(code_costs, codes, n_outliers))
    costs = code_costs[codes.inverse]
    if cost_offsets is not None:
        costs = costs + cost_offsets
    samples = costliest(costs, n_outliers)
    weights = np.ones(len(samples)) if sample_weight is None else sample_weight[samples]
    code_weights = np.bincount(
        codes.inverse[samples], weights, minlength=len(code_costs)
    )
    kept_offsets = 0.0
    if cost_offsets is not None:
        weighted = (
            cost_offsets if sample_weight is None else cost_offsets * sample_weight
        )
        # Added up by themselves: what is set aside can be far larger.
        kept_offsets = float(np.delete(weighted, samples).sum())
    return SetAside(code_weights, kept_offsets, samples)


def costliest(costs: np.ndarray, n: int) -> np.ndarray:
    """Return the ``n`` places with the largest costs, sorted; of equal ones the first.

    Takes time in proportion to the number of costs.
    """
    if n == 0:
        return np.zeros(0, dtype=np.intp)
    threshold = np.partition(costs, len(costs) - n)[len(costs) - n]
    above = np.flatnonzero(costs > threshold)
    level = np.flatnonzero(costs == threshold)[: n - len(above)]
    return np.sort(np.concatenate([above, level]))


def _count_by_code(code_costs: np.ndarray, codes: Codes, n_outliers: int) -> np.ndarray:
    """Return how many samples of each code are set aside, looking at codes only."""
    aside = np.zeros(len(code_costs))
    if n_outliers == 0:
        return aside
    # A code stands for at least one sample, so more codes cannot be needed.
    candidates = np.arange(len(code_costs))
    if n_outliers < len(code_costs):
        candidates = np.argpartition(-code_costs, n_outliers - 1)[:n_outliers]
    order = candidates[np.argsort(-code_costs[candidates])]
    reached = np.cumsum(codes.counts[order])
    threshold = code_costs[order[np.searchsorted(reached, n_outliers)]]
    above = code_costs > threshold
    aside[above] = codes.counts[above]
    n_left = n_outliers - int(codes.counts[above].sum())
    level = code_costs == threshold
    if np.count_nonzero(level) == 1:
        aside[level] = n_left
    else:
        first = codes.inverse[np.flatnonzero(level[codes.inverse])[:n_left]]
        aside += np.bincount(first, minlength=len(aside))
    return aside


def find_offset(
    sample_costs: np.ndarray, outliers: np.ndarray, n_outliers: int
) -> float:
    """Return the score below which a row counts as an outlier.

    It is the score of the strangest sample that was kept: what costs more than every
    kept sample is an outlier. Without outliers, nothing is.
    """
    if n_outliers == 0:
        return -np.inf
    kept = np.ones(len(sample_costs), dtype=bool)
    kept[outliers] = False
    return -float(sample_costs[kept].max())
