"""What a run gives: the only thing that methods, files and measures share."""

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class Result:
    """The answer of a method, in the order of the rows that it was given.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,)
        Cluster of each row, -1 for outliers; 0 for all others if there are no clusters.
    scores : ndarray of shape (n_samples,) or None
        Higher is stranger.
    has_clusters : bool
        Whether the labels tell clusters apart.
    seconds : dict of str to float
        "total" and, where a method has stages, each of them.
    """

    labels: np.ndarray
    scores: np.ndarray | None
    has_clusters: bool
    seconds: dict[str, float] = field(default_factory=dict)
