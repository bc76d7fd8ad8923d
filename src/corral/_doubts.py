"""How sure a fit is of its labels, in a few counts and sentences."""

from typing import NamedTuple

import numpy as np

# A label is sure if it has this probability, and rows near the cut are in doubt if the
# other answer has that one.
SURE = 0.9
DOUBT = 0.25


class Doubts(NamedTuple):
    """How many rows have sure labels, and how many are in doubt.

    Attributes
    ----------
    n_samples : int
    n_sure : int
        Rows whose nearest cluster is sure.
    n_kept_in_doubt : int
        Rows that are kept, but could well be set aside.
    n_aside_in_doubt : int
        Rows that are set aside, but could well be kept.
    """

    n_samples: int
    n_sure: int
    n_kept_in_doubt: int
    n_aside_in_doubt: int


def count_doubts(model) -> Doubts | None:
    """Count the rows of a fit with sure labels, and those in doubt.

    Parameters
    ----------
    model : COR, or another method with ``labels_``
        Fitted.

    Returns
    -------
    doubts : Doubts or None
        None where the method does not know how sure it is.
    """
    label = getattr(model, "label_confidence_", None)
    outlier = getattr(model, "outlier_confidence_", None)
    if label is None or outlier is None:
        return None
    is_outlier = np.asarray(model.labels_) == -1
    outlier = np.asarray(outlier)
    return Doubts(
        n_samples=len(is_outlier),
        n_sure=int(np.count_nonzero(np.asarray(label) >= SURE)),
        n_kept_in_doubt=int(np.count_nonzero(~is_outlier & (outlier >= DOUBT))),
        n_aside_in_doubt=int(np.count_nonzero(is_outlier & (outlier <= 1 - DOUBT))),
    )


def say_doubts(doubts: Doubts) -> str:
    """Return the counts in words.

    Parameters
    ----------
    doubts : Doubts

    Returns
    -------
    words : str
        One sentence or two.
    """
    share = _floor_percent(doubts.n_sure, doubts.n_samples)
    sentence = (
        f"If partitions are drawn again, {share} of the rows are nearest to the same "
        "cluster in 9 of 10 cases or more."
    )
    sides = [
        _count(n, words)
        for n, words in (
            (doubts.n_kept_in_doubt, "row that is kept"),
            (doubts.n_aside_in_doubt, "row that is set aside"),
        )
        if n
    ]
    if not sides:
        return f"{sentence} No row near the cut is in doubt."
    verb = "is" if sum(doubts[2:]) == 1 else "are"
    return (
        f"{sentence} Near the cut, {' and '.join(sides)} {verb} judged otherwise in a "
        "quarter of the cases or more."
    )


def _floor_percent(n: int, n_all: int) -> str:
    """Return a share in percent, and no 100% where it is not all."""
    return "all" if n == n_all else f"{100 * n // n_all}%"


def _count(n: int, words: str) -> str:
    if n == 1:
        return f"1 {words}"
    return f"{n:,} {words.replace('row', 'rows').replace(' is ', ' are ')}"
