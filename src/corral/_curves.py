"""What a selection has to show: its candidates as curves."""

from typing import NamedTuple

import numpy as np

from corral._selection import Selection


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
    here = selection.columns["n_outliers"] == selection.n_outliers_
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
        Without those that have fewer than two points or end before the others.
    """
    numbers = selection.columns["n_clusters"]
    taken = {
        k: _take(selection, name, numbers == k, "n_outliers")
        for k in np.unique(numbers).tolist()
    }
    found = {k: curve for k, curve in taken.items() if curve is not None}
    last = max((curve.numbers[-1] for curve in found.values()), default=0)
    return {k: curve for k, curve in found.items() if curve.numbers[-1] == last}


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
