"""How many clusters, how many outliers, and why."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from corral._divergences import round_costs
from corral._encoded import EncodedRows
from corral._position import rarity_table
from corral._reasons import Choice
from corral._search import Answer, Limits, Search
from corral._selection import Selection
from corral._tails import Gaps, measure_gaps
from corral._threads import Threads

# No more clusters are chosen than leave so many rows for each on average.
_CHOSEN_ROWS = 5

# The numbers of outliers that are tried, and how wide their gap should be beside the
# widest.
_N_CANDIDATES = 3
_MIN_GAP_RATIO = 0.15

# Rows beyond one gap and short of another are a cluster rather than outliers if they
# have this part of the mean size of the others.
_FAIR_SIZE = 0.25

# With more rows, gaps are looked for among so many of the strangest.
_GAP_ROWS = 2**20

# So many gaps are kept to be shown.
_MAX_GAPS = 400


def limit_clusters(k_max: int, n_samples: int) -> tuple[int, int]:
    """Return from which to which number of clusters to choose by default."""
    return 1, max(min(k_max, n_samples // _CHOSEN_ROWS), 1)


def choose_numbers(
    rows: EncodedRows,
    partitions: Sequence[int],
    limits: Limits,
    rng: np.random.Generator,
    threads: Threads,
) -> Selection:
    """Choose the number of clusters and of outliers.

    Parameters
    ----------
    rows : EncodedRows
        If it does not count where they lie, how rare their labels are takes its place.
    partitions : sequence of int
        The fine ones, which tell clusters apart.
    limits : Limits
    rng : numpy Generator
        Draws the rows that are searched if there are many.
    threads : Threads

    Returns
    -------
    selection : Selection
    """
    if not rows.has_position:
        rows = replace(rows, rarity=_price_labels(rows))
    strange = np.sort(rows.list_positions(_GAP_ROWS))
    gaps = _find_gaps(strange, rows.n_samples, limits.outliers[1])
    search = Search.make(rows, strange, partitions, limits, rng, threads)
    numbers = _list_outliers(gaps, *limits.outliers)
    answers = [search.answer(o) for o in numbers]
    best = _choose_answer(answers, search)
    if not best.is_told:
        best = search.look_closer(best)
    choice = _count_outliers(best, gaps, search)
    others = [each for each in answers if each is not best]
    choice = replace(choice, runner_up=_find_runner_up(best, others, choice, search))
    return Selection(
        choice.n_clusters,
        choice.n_outliers,
        choice.runner_up,
        choice.explain(gaps, search),
        search.list_candidates(choice.n_clusters, choice.n_outliers, gaps),
        *gaps.thin(_MAX_GAPS),
        gaps.threshold,
        search.n_searched,
    )


def _price_labels(rows: EncodedRows) -> np.ndarray:
    """Return what each slot costs for being rare, in all partitions alike."""
    book = rows.partitioner.book
    n_partitions = len(book.n_labels)
    table = rarity_table(book, rows.weigh_slots(), n_partitions, n_partitions)
    return round_costs(table)


def _find_gaps(strange: np.ndarray, n_samples: int, most: int) -> Gaps:
    """Measure the gaps between the strangest rows."""
    if n_samples > _GAP_ROWS:
        # Half of those that are looked at are outliers, the others tell what is usual.
        most = min(most, _GAP_ROWS // 2)
    return measure_gaps(strange, most)


def _list_outliers(gaps: Gaps, least: int, most: int) -> list[int]:
    """Return the numbers of outliers to try, the most likely first."""
    if least == most:
        return [least]
    found = gaps.list_candidates(_N_CANDIDATES, least)
    if not found:
        return [least]
    widest = gaps.widths[found[0]]
    return [o for o in found if gaps.widths[o] >= _MIN_GAP_RATIO * widest]


def _choose_answer(answers: list[Answer], search: Search) -> Answer:
    """Choose among the numbers of outliers."""
    best = answers[0]
    for other in answers[1:]:
        if _finds_more(other, best, search.n_samples):
            best = other
    return best


def _finds_more(other: Answer, best: Answer, n_samples: int) -> bool:
    """Return whether fewer outliers make more clusters of a fair size."""
    n_more = other.n_clusters - best.n_clusters
    n_between = best.n_outliers - other.n_outliers
    if n_more <= 0 or n_between <= 0 or not other.is_clear:
        return False
    typical = (n_samples - other.n_outliers) / other.n_clusters
    return n_between >= _FAIR_SIZE * typical * n_more


def _count_outliers(best: Answer, gaps: Gaps, search: Search) -> Choice:
    """Return how many outliers there are beside the clusters that were found."""
    least, most = search.limits.outliers
    n_small = best.n_outliers - best.n_asked
    if least == most:
        return Choice(best, "asked", least)
    if gaps.list_candidates(1, least):
        # What was left out to see clusters is no outlier for that.
        asked = best.n_asked if best.n_asked in _list_outliers(gaps, least, most) else 0
        asked = asked or _list_outliers(gaps, least, most)[0]
        return Choice(best, "gap", min(asked + n_small, most), asked)
    n_excess = search.count_excess(best)
    if n_excess:
        return Choice(best, "excess", max(n_excess, n_small))
    return Choice(best, "none", n_small)


def _find_runner_up(
    best: Answer, others: list[Answer], choice: Choice, search: Search
) -> tuple[int, int] | None:
    """Return the second best pair of numbers, if there is one."""
    others += [
        replace(search.part_small(best.n_asked, k), n_outliers=choice.n_outliers)
        for k in best.numbers
    ]
    pairs = [(each.n_clusters, each.n_outliers) for each in others]
    chosen = choice.n_clusters, choice.n_outliers
    return next((pair for pair in pairs if pair != chosen), None)
