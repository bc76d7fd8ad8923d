"""How far the partitions agree on pairs of rows."""

import numpy as np

from corral._consensus import consensus
from corral.report._outcome import Outcome
from corral.report._reasons import can_label
from corral.report._schema import Agreement, Group

# Pairs of so many rows are compared, and so many of the rows may be outliers.
_MAX_ROWS = 120
_MAX_OUTLIERS = 24

# The same rows are compared each time.
_SEED = 0


def describe_agreement(
    estimator, X, outcome: Outcome, *, extra_partitions=None
) -> Agreement | None:
    """Compare pairs of a sample of the rows; None without partitions to ask."""
    if not can_label(estimator, extra_partitions):
        return None
    rows = choose_pairs(outcome)
    shares = consensus(estimator, X, rows, extra_partitions=extra_partitions)
    percents = np.round(100 * shares)
    return {
        "groups": _groups(outcome.labels[rows], shares),
        "percents": [
            [None if cell != cell else int(cell) for cell in row]
            for row in percents.tolist()
        ],
    }


def choose_pairs(outcome: Outcome) -> np.ndarray:
    """Choose rows, ordered by cluster and within it by score, with the outliers last.

    Large clusters have more of them, and each that has rows has two or more.
    """
    rng = np.random.default_rng(_SEED)
    outliers = np.flatnonzero(outcome.is_outlier)
    strangest = outliers[np.argsort(-outcome.scores[outliers], kind="stable")]
    strangest = strangest[:_MAX_OUTLIERS]
    sizes = np.bincount(outcome.labels[outcome.labels >= 0], minlength=1)
    # The largest clusters, if there are too many to have two rows of each.
    n_places = _MAX_ROWS - len(strangest)
    listed = np.sort(np.argsort(-sizes, kind="stable")[: n_places // 2])
    sizes = np.where(np.isin(np.arange(len(sizes)), listed), sizes, 0)
    wanted = np.minimum(np.maximum(n_places * sizes // max(sizes.sum(), 1), 2), sizes)
    while wanted.sum() > n_places:
        wanted[wanted.argmax()] -= 1
    chosen = []
    for label, n_rows in enumerate(wanted.tolist()):
        members = np.flatnonzero(outcome.labels == label)
        members = rng.choice(members, n_rows, replace=False)
        chosen.append(members[np.argsort(outcome.scores[members], kind="stable")])
    return np.concatenate([*chosen, strangest]).astype(np.intp)


def _groups(labels: np.ndarray, shares: np.ndarray) -> list[Group]:
    groups: list[Group] = []
    # In the order of the rows: outliers, with the label -1, come last.
    for label in dict.fromkeys(labels.tolist()):
        here = labels == label
        own = shares[np.ix_(here, here)]
        pairs = own[~np.eye(len(own), dtype=bool)]
        groups.append(
            {
                "label": label,
                "size": int(here.sum()),
                "within": _mean(pairs),
                "between": _mean(shares[np.ix_(here, ~here)]),
            }
        )
    return groups


def _mean(shares: np.ndarray) -> float | None:
    known = shares[~np.isnan(shares)]
    return float(known.mean()) if len(known) else None
