"""Places on the earth: points of the unit sphere, great circles, longitudes."""

import numpy as np

EARTH_RADIUS_KM = 6371.0088

# Below this angle (6 mm on the earth) an arc is as straight as float64 can tell.
_STRAIGHT = 1e-9


def to_points(latitude: np.ndarray, longitude: np.ndarray) -> np.ndarray:
    """Return places as points of the unit sphere.

    On the sphere there is neither a date line nor a pole, so everything but reading
    and drawing is done there.

    Parameters
    ----------
    latitude, longitude : ndarray of any shape
        Degrees.

    Returns
    -------
    points : ndarray of that shape and a last axis of 3
    """
    phi, lam = np.radians(latitude), np.radians(longitude)
    return np.stack(
        [np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi)], axis=-1
    )


def to_degrees(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return latitude and longitude of points, in degrees, longitude from -180 to 180.

    Parameters
    ----------
    points : ndarray of shape (..., 3)
        Need not have unit length.

    Returns
    -------
    latitude, longitude : ndarray of shape (...)
    """
    x, y, z = np.moveaxis(points, -1, 0)
    return np.degrees(np.arctan2(z, np.hypot(x, y))), np.degrees(np.arctan2(y, x))


def arcs(starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the angles between unit vectors, in radians.

    By the chord, because the arc cosine of a product loses steps of a few metres.

    Parameters
    ----------
    starts, ends : ndarray of shape (..., 3)

    Returns
    -------
    angles : ndarray of shape (...)
    """
    chords = np.linalg.norm(ends - starts, axis=-1)
    return 2 * np.arcsin(np.minimum(chords / 2, 1))


def distances_km(starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return great-circle distances between unit vectors, in kilometres.

    Parameters
    ----------
    starts, ends : ndarray of shape (..., 3)

    Returns
    -------
    distances : ndarray of shape (...)
    """
    return EARTH_RADIUS_KM * arcs(starts, ends)


def interpolate(starts: np.ndarray, ends: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the points that divide great-circle arcs.

    Parameters
    ----------
    starts, ends : ndarray of shape (n, 3)
        Unit vectors.
    shares : ndarray of shape (n,)
        0 is the start, 1 the end.

    Returns
    -------
    points : ndarray of shape (n, 3)
    """
    angles = arcs(starts, ends)
    sines = np.sin(angles)
    straight = sines < _STRAIGHT
    sines[straight] = 1
    from_start = np.where(straight, 1 - shares, np.sin((1 - shares) * angles) / sines)
    from_end = np.where(straight, shares, np.sin(shares * angles) / sines)
    return from_start[:, None] * starts + from_end[:, None] * ends


def local_frame(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the middle of points, and the directions east, north and up there.

    Parameters
    ----------
    points : ndarray of shape (n, 3)

    Returns
    -------
    middle : ndarray of shape (3,)
        A unit vector.
    frame : ndarray of shape (3, 3)
        Its rows are the directions.
    """
    latitude, longitude = to_degrees(points.mean(axis=0))
    phi, lam = np.radians(latitude), np.radians(longitude)
    up = to_points(latitude, longitude)
    east = np.array([-np.sin(lam), np.cos(lam), 0.0])
    north = np.array(
        [-np.sin(phi) * np.cos(lam), -np.sin(phi) * np.sin(lam), np.cos(phi)]
    )
    return up, np.stack([east, north, up])


def wrap(longitude: np.ndarray | float) -> np.ndarray:
    """Return longitudes from -180 up to, but without, 180.

    Parameters
    ----------
    longitude : ndarray of any shape

    Returns
    -------
    wrapped : ndarray of that shape
    """
    return (np.asarray(longitude) + 180) % 360 - 180


def middle_longitude(longitude: np.ndarray) -> float:
    """Return the longitude opposite to the widest empty part of the globe.

    Parameters
    ----------
    longitude : ndarray of shape (n,)

    Returns
    -------
    middle : float
        0 if no degree is empty.
    """
    taken = np.unique(np.floor(wrap(longitude)).astype(int))
    gaps = np.diff(np.append(taken, taken[0] + 360))
    widest = int(np.argmax(gaps))
    if gaps[widest] <= 1:
        return 0.0
    # The empty part runs from the end of one degree to the start of the next taken.
    empty = taken[widest] + 1 + (gaps[widest] - 1) / 2
    return float(wrap(empty - 180))


def unwrap(longitude: np.ndarray, starts: np.ndarray, middle: float) -> np.ndarray:
    """Return longitudes without leaps, so that tracks near each other stay so.

    Parameters
    ----------
    longitude : ndarray of shape (n,)
        Longitudes of all tracks, one after the other.
    starts : ndarray of int
        Where each track starts.
    middle : float
        Each track is moved by whole turns to where its mean is nearest to this.

    Returns
    -------
    unwrapped : ndarray of shape (n,)
        May be below -180 or above 180.
    """
    steps = wrap(np.diff(longitude, prepend=longitude[:1]))
    steps[starts] = longitude[starts]
    sums = np.cumsum(steps)
    counts = np.diff(np.append(starts, len(longitude)))
    before = np.concatenate([[0.0], sums[starts[1:] - 1]])
    smooth = sums - np.repeat(before, counts)
    means = np.add.reduceat(smooth, starts) / counts
    turns = np.round((means - middle) / 360)
    return smooth - 360 * np.repeat(turns, counts)
