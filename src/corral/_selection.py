"""Selection: the numbers that were chosen, all candidates, and why."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from corral._explain import make_frame


@dataclass(frozen=True, eq=False)
class Selection:
    """The numbers of clusters and outliers that were chosen, and why.

    Attributes
    ----------
    n_clusters_ : int
        Number of clusters.
    n_outliers_ : int
        Number of outliers.
    runner_up : tuple of (int, int) or None
        The second best number of clusters and of outliers, if there is one.
    reason : str
        Why these were chosen, in words.
    columns : dict of str to ndarray
        The columns of ``table``.
    gap_numbers : ndarray of shape (n_gaps,)
        Numbers of outliers, from few to many; where there are many, those with the
        widest gaps among their neighbours.
    gap_widths : ndarray of shape (n_gaps,)
        For each of them, how wide the gap is between the outliers and the other rows,
        in units of what is expected.
    gap_threshold : float
        Wider gaps are signs of outliers.
    n_searched : int
        Number of rows that clusters were searched in; fewer than all if there are many.
    """

    n_clusters_: int
    n_outliers_: int
    runner_up: tuple[int, int] | None
    reason: str
    columns: dict[str, np.ndarray] = field(repr=False)
    gap_numbers: np.ndarray = field(repr=False)
    gap_widths: np.ndarray = field(repr=False)
    gap_threshold: float = field(repr=False)
    n_searched: int = field(repr=False)

    @property
    def table(self) -> Any:
        """All candidates, as a data frame of pandas, or else polars or pyarrow.

        One row per candidate: ``n_clusters``, ``n_outliers``; ``told``, how well the
        two clusters that are hardest to tell apart are told apart; ``mixed``, how many
        cells lie across a border of two clusters; ``border``, how empty the fullest
        border between two clusters is, a half where it is like any other place;
        ``smallest``, the size of the smallest cluster among the rows that were
        searched; ``gap``, how wide the gap below the outliers is; ``objective``, the
        mean cost of a row that is kept; ``description_length``, in nats per row;
        ``stability``, how much two halves of the partitions agree on the clusters,
        known for the chosen number of outliers only; ``is_chosen``.
        """
        return make_frame(dict(self.columns), np.empty(0))
