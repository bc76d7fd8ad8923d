"""What a selection has to show: its candidates as curves."""

from typing import NamedTuple

import numpy as np

from corral._criteria import _MIN_TOLD
from corral._selection import Selection

# Clusters are told apart if a larger share of the question which is which is answered.
MIN_TOLD = _MIN_TOLD


class Curve(NamedTuple):
    """Values of a criterion.

    Attributes
    ----------
    numbers : ndarray of shape (n_points,)
        Numbers of clusters or of outliers, from few to many.
    values : ndarray of shape (n_points,)
        All finite.
    """

    numbers: np.ndarray
    values: np.ndarray

    def value_at(self, number: int) -> float | None:
        """Return the value at a number, None if it is not on the curve."""
        found = self.values[self.numbers == number]
        return float(found[0]) if len(found) else None


def find_chosen(selection: Selection) -> tuple[int, int]:
    """Return the candidate that was chosen.

    Small groups that were then counted as outliers are still clusters of it, so that it
    may differ from the numbers of the fit.

    Parameters
    ----------
    selection : Selection

    Returns
    -------
    n_clusters, n_outliers : int
    """
    columns = selection.columns
    places = np.flatnonzero(columns["is_chosen"])
    if not len(places):
        return selection.n_clusters_, selection.n_outliers_
    place = places[0]
    return int(columns["n_clusters"][place]), int(columns["n_outliers"][place])


def cluster_curve(selection: Selection, name: str) -> Curve | None:
    """Return a criterion by the number of clusters, with the outliers chosen.

    Parameters
    ----------
    selection : Selection
    name : str
        Column of the table.

    Returns
    -------
    curve : Curve or None
        None if the criterion is known for fewer than two numbers.
    """
    _, n_outliers = find_chosen(selection)
    here = selection.columns["n_outliers"] == n_outliers
    return _take(selection, name, here, "n_clusters")


def outlier_curves(selection: Selection, name: str) -> dict[int, Curve]:
    """Return a criterion by the number of outliers, for each number of clusters.

    Parameters
    ----------
    selection : Selection
    name : str
        Column of the table.

    Returns
    -------
    curves : dict of int to Curve
        Without those that have fewer than two points.
    """
    numbers = selection.columns["n_clusters"]
    found = {
        k: _take(selection, name, numbers == k, "n_outliers")
        for k in np.unique(numbers).tolist()
    }
    return {k: curve for k, curve in found.items() if curve is not None}


def gap_curve(selection: Selection) -> Curve | None:
    """Return the widths of the gaps by the number of outliers.

    Parameters
    ----------
    selection : Selection

    Returns
    -------
    curve : Curve or None
        Without gaps of no width, between rows that tie; None if no gap is left.
    """
    wide = np.flatnonzero(selection.gap_widths > 0)
    if not len(wide):
        return None
    return Curve(selection.gap_numbers[wide], selection.gap_widths[wide])


def _take(selection: Selection, name: str, rows: np.ndarray, by: str) -> Curve | None:
    if name not in selection.columns:
        return None
    values = selection.columns[name]
    places = np.flatnonzero(rows & np.isfinite(values))
    if len(places) < 2:
        return None
    numbers = selection.columns[by]
    places = places[np.argsort(numbers[places], kind="stable")]
    return Curve(numbers[places], values[places])
