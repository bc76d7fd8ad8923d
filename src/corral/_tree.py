"""Sums of many parts in a fixed order, wherever they are added up."""

from collections.abc import Iterable
from typing import Any


def add_in_tree(parts: Iterable[Any]) -> Any:
    """Add up parts in the order of a binary tree.

    Parts 0 and 1 are added, then 2 and 3, then these two sums, and so on: the shape
    depends on the number of parts only. So parts can be added up in several places, a
    few that follow each other in each, and the sum is the same to the last bit. No
    more than a handful of sums is held.

    Parameters
    ----------
    parts : iterable
        Whatever has ``+``; at least one.

    Returns
    -------
    total : the same kind
    """
    # Sums of 2**level parts each, the larger ones first.
    pending: list[tuple[int, Any]] = []
    for part in parts:
        level = 0
        while pending and pending[-1][0] == level:
            part = pending.pop()[1] + part
            level += 1
        pending.append((level, part))
    total = pending.pop()[1]
    while pending:
        total = pending.pop()[1] + total
    return total
