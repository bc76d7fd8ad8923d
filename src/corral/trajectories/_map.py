"""Tracks as lines of a drawing: plane coordinates, fewer points, graticule, scale."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from corral.trajectories._sphere import EARTH_RADIUS_KM, wrap

# Width of a first view, in units of the drawing. A unit is a tenth of a pixel on a wide
# screen, so whole numbers are exact enough, even after zooming in.
WIDTH = 10_000

# Height of a view as a share of its width.
_LOWEST, _HIGHEST = 0.45, 0.8

_MARGIN = 0.04

# The first view holds all outliers, unless that makes it this many times as wide or
# high as the clusters.
_MAX_GROWTH = 3.0

_STEPS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 45)
_SCALES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)


class Plane(NamedTuple):
    """How degrees become units of the drawing.

    Longitudes are shortened by the cosine of the latitude in the middle, so that shapes
    and distances are right there.

    Attributes
    ----------
    west, north : float
        Corner of the first view, in degrees.
    x_unit, y_unit : float
        Units for a degree of longitude and of latitude.
    height : float
        Of the first view; its width is ``WIDTH``.
    """

    west: float
    north: float
    x_unit: float
    y_unit: float
    height: int

    def place(self, latitude: np.ndarray, longitude: np.ndarray) -> np.ndarray:
        """Return points of the drawing, of shape (n, 2)."""
        x = (longitude - self.west) * self.x_unit
        y = (self.north - latitude) * self.y_unit
        return np.column_stack([x, y])

    @property
    def km(self) -> float:
        """Units for a kilometre."""
        return self.y_unit / math.radians(EARTH_RADIUS_KM)


def make_plane(
    clusters: tuple[np.ndarray, np.ndarray], outliers: tuple[np.ndarray, np.ndarray]
) -> Plane:
    """Choose the first view: all clusters, and all outliers unless they are far away.

    Parameters
    ----------
    clusters, outliers : tuple of ndarray
        Latitudes and longitudes.

    Returns
    -------
    plane : Plane
    """
    (south, north), (west, east) = (
        _extent(inner, outer) for inner, outer in zip(clusters, outliers, strict=True)
    )
    shrink = max(math.cos(math.radians((south + north) / 2)), 0.05)
    # In degrees of latitude, with some room; nothing is narrower than a kilometre.
    width = max((east - west) * shrink, 0.01) * (1 + 2 * _MARGIN)
    height = max(north - south, 0.01) * (1 + 2 * _MARGIN)
    width = max(width, height / _HIGHEST)
    height = max(height, width * _LOWEST)
    unit = WIDTH / width
    return Plane(
        west=(west + east) / 2 - width / shrink / 2,
        north=(south + north) / 2 + height / 2,
        x_unit=unit * shrink,
        y_unit=unit,
        height=round(height * unit),
    )


def _extent(inner: np.ndarray, outer: np.ndarray) -> tuple[float, float]:
    low, high = float(inner.min()), float(inner.max())
    room = (_MAX_GROWTH - 1) / 2 * max(high - low, 0.01)
    if outer.size == 0:
        return low, high
    return (
        min(low, max(float(outer.min()), low - room)),
        max(high, min(float(outer.max()), high + room)),
    )


def simplify(points: np.ndarray, tolerance: float) -> np.ndarray:
    """Leave out points whose line passes within a tolerance (Douglas and Peucker).

    Parameters
    ----------
    points : ndarray of shape (n, 2)
    tolerance : float

    Returns
    -------
    fewer : ndarray of shape (m, 2)
        The first and the last point are kept.
    """
    # As complex numbers, because short arrays are quicker that way.
    places = points[:, 0] + 1j * points[:, 1]
    kept = np.zeros(len(points), dtype=bool)
    kept[[0, -1]] = True
    open_parts = [(0, len(points) - 1)]
    while open_parts:
        start, end = open_parts.pop()
        if end - start < 2:
            continue
        apart = _from_line(places[start + 1 : end], places[start], places[end])
        farthest = int(apart.argmax())
        if apart[farthest] > tolerance:
            middle = start + 1 + farthest
            kept[middle] = True
            open_parts += [(start, middle), (middle, end)]
    return points[kept]


def _from_line(places: np.ndarray, start: complex, end: complex) -> np.ndarray:
    """Return distances to the piece of line from start to end."""
    line = end - start
    length = abs(line)
    if length == 0:
        return abs(places - start)
    # In units of the line, it runs from 0 to 1 on the real axis.
    seen = (places - start) / line
    beyond = seen.real - seen.real.clip(0, 1)
    return length * np.hypot(beyond, seen.imag)


def draw_line(points: np.ndarray) -> str:
    """Return the path data of SVG, in whole units from point to point.

    Parameters
    ----------
    points : ndarray of shape (n, 2)

    Returns
    -------
    data : str
    """
    whole = np.rint(points).astype(int)
    steps = np.diff(whole, axis=0)
    steps = steps[steps.any(axis=1)]
    moves = " ".join(f"{x} {y}" for x, y in steps.tolist())
    # A flight that stays where it is becomes a dot.
    return f"M{whole[0, 0]} {whole[0, 1]}l{moves or '0 0'}".replace(" -", "-")


def draw_graticule(plane: Plane) -> dict[str, list[dict[str, Any]]]:
    """Return lines of longitude and latitude around the first view, with their names.

    Parameters
    ----------
    plane : Plane

    Returns
    -------
    graticule : dict
        "x" and "y", each a list of position and text.
    """
    width, height = WIDTH / plane.x_unit, plane.height / plane.y_unit
    # Six lines or so in the first view, and as many beyond each side of it.
    longitudes = _multiples(
        plane.west - width, plane.west + 2 * width, _choose_step(width)
    )
    latitudes = _multiples(
        max(plane.north - 2 * height, -90),
        min(plane.north + height, 90),
        _choose_step(height),
    )
    return {
        "x": [
            {
                "at": round((each - plane.west) * plane.x_unit),
                "text": _degrees(float(wrap(each)), "EW"),
            }
            for each in longitudes
        ],
        "y": [
            {
                "at": round((plane.north - each) * plane.y_unit),
                "text": _degrees(each, "NS"),
            }
            for each in latitudes
        ],
    }


def _choose_step(extent: float) -> float:
    return next((each for each in _STEPS if extent / each <= 7), _STEPS[-1])


def _multiples(low: float, high: float, step: float) -> list[float]:
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(step * each, 6) for each in range(first, last + 1)]


def _degrees(value: float, signs: Sequence[str]) -> str:
    sign = (
        ""
        if value in (0, -180)
        else f"\N{NARROW NO-BREAK SPACE}{signs[int(value < 0)]}"
    )
    return f"{abs(value):g}\N{DEGREE SIGN}{sign}"


def say_place(latitude: float, longitude: float) -> str:
    """Return a place in words, such as 47.1 N 8.5 E with degree signs.

    Parameters
    ----------
    latitude, longitude : float
        Degrees.

    Returns
    -------
    text : str
    """
    north = _degrees(round(latitude, 1), "NS")
    return f"{north} {_degrees(round(float(wrap(longitude)), 1), 'EW')}"


def choose_scale(plane: Plane) -> int:
    """Return the round number of kilometres that is a fifth of the view, or less.

    Parameters
    ----------
    plane : Plane

    Returns
    -------
    km : int
    """
    fits = [each for each in _SCALES if each * plane.km <= WIDTH / 5]
    return fits[-1] if fits else _SCALES[0]
