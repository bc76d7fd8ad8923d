"""Generated data whose number of clusters and of outliers is known."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from corral.datasets import (
    make_blobs_with_outliers,
    make_high_dimensional,
    make_micro_clusters,
    make_moons_with_noise,
    make_sparse_text,
)

# Nothing was ever chosen by looking at the test seeds.
DEVELOPMENT_SEEDS = range(150)
TEST_SEEDS = range(20_000, 20_300)

_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2)
_CLEAN = 0.2
_SIZES = (200, 400, 800, 1500, 3000)


class Case(NamedTuple):
    """A data set and its truth.

    Attributes
    ----------
    seed : int
    kind : str
    X : array or sparse array of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Clusters from 0 up; -1 for outliers.
    metric : str
    """

    seed: int
    kind: str
    X: Any
    y: np.ndarray
    metric: str

    @property
    def n_clusters(self) -> int:
        """The true number of clusters."""
        return len(np.unique(self.y[self.y >= 0]))

    @property
    def n_outliers(self) -> int:
        """The true number of outliers."""
        return int((self.y == -1).sum())


class _Draw(NamedTuple):
    """What all kinds of cases have in common."""

    rng: np.random.Generator
    seed: int
    n_samples: int
    n_outliers: int


def make_case(seed: int) -> Case:
    """Draw a case; all kinds take turns.

    Parameters
    ----------
    seed : int

    Returns
    -------
    case : Case
    """
    rng = np.random.default_rng([seed, 6])
    kind = list(KINDS)[seed % len(KINDS)]
    n_samples = int(rng.choice(_SIZES))
    share = 0.0 if rng.random() < _CLEAN else float(rng.choice(_SHARES))
    draw = _Draw(rng, seed, n_samples, round(share * n_samples))
    X, y = KINDS[kind](draw)
    return Case(seed, kind, X, y, "cosine" if kind == "text" else "euclidean")


def _blobs(draw: _Draw):
    return make_blobs_with_outliers(
        draw.n_samples,
        int(draw.rng.integers(2, 21)),
        n_clusters=int(draw.rng.integers(1, 11)),
        n_outliers=draw.n_outliers,
        separation=float(draw.rng.choice([6, 8])),
        random_state=draw.seed,
    )


def _close(draw: _Draw):
    """Clusters that touch: centres 4.5 to 6 standard deviations apart, or more."""
    n_features = int(draw.rng.integers(2, 11))
    gap = float(draw.rng.choice([4.5, 5, 6]))
    return make_blobs_with_outliers(
        draw.n_samples,
        n_features,
        n_clusters=int(draw.rng.integers(2, 8)),
        n_outliers=draw.n_outliers,
        separation=gap / np.sqrt(n_features),
        random_state=draw.seed,
    )


def _unequal(draw: _Draw):
    """Clusters of unequal size, the largest up to ten times as large as the least."""
    n_clusters = int(draw.rng.integers(2, 9))
    ratio = draw.rng.uniform(3, 10)
    n_features = int(draw.rng.integers(2, 11))
    return _ellipses(draw, n_features, ratio ** np.linspace(0, 1, n_clusters), 1.0)


def _sheared(draw: _Draw):
    """Long clusters in random directions, up to four times as long as wide."""
    n_clusters = int(draw.rng.integers(1, 9))
    n_features = int(draw.rng.integers(2, 11))
    return _ellipses(draw, n_features, np.ones(n_clusters), draw.rng.uniform(2, 4))


def _micro(draw: _Draw):
    """Outliers in groups of at most a quarter of a cluster and at most 12 rows."""
    n_clusters = int(draw.rng.integers(1, 9))
    n_samples, n_outliers = draw.n_samples, draw.n_outliers
    largest = min(12, (n_samples - n_outliers) // n_clusters // 4)
    size = int(draw.rng.integers(3, max(largest, 3) + 1))
    n_features = int(draw.rng.integers(2, 11))
    if n_outliers == 0:
        return make_blobs_with_outliers(
            n_samples,
            n_features,
            n_clusters=n_clusters,
            n_outliers=0,
            random_state=draw.seed,
        )
    # Many groups would be a cloud of their own.
    n_outliers = min(n_outliers, 10 * size)
    return make_micro_clusters(
        n_samples,
        n_features,
        n_clusters=n_clusters,
        n_outliers=n_outliers,
        n_micro_clusters=-(-n_outliers // size),
        random_state=draw.seed,
    )


def _high(draw: _Draw):
    return make_high_dimensional(
        draw.n_samples,
        int(draw.rng.choice([30, 60, 100])),
        n_clusters=int(draw.rng.integers(1, 11)),
        n_outliers=draw.n_outliers,
        random_state=draw.seed,
    )


def _shapes(draw: _Draw):
    """Two moons, or a ring or two around a blob."""
    if draw.rng.random() < 0.5:
        return make_moons_with_noise(
            draw.n_samples, n_outliers=draw.n_outliers, random_state=draw.seed
        )
    radii = np.array([0.0, 4.0, 8.0][: draw.rng.integers(2, 4)])
    sizes = _split(draw.n_samples - draw.n_outliers, np.maximum(radii, 2))
    labels = np.repeat(np.arange(len(radii)), sizes)
    angles = draw.rng.uniform(0, 2 * np.pi, len(labels))
    rows = radii[labels, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    noise = draw.rng.normal(size=rows.shape) * 0.3
    lengths = np.linalg.norm(noise, axis=1, keepdims=True)
    rows = rows + noise * np.minimum(1, 0.9 / lengths)

    def is_far(places):
        off = np.abs(np.linalg.norm(places, axis=1)[:, None] - radii)
        return off.min(axis=1) >= 1.4

    return _add_outliers(draw, rows, labels, is_far)


def _text(draw: _Draw):
    n_samples = min(draw.n_samples, 1500)
    n_outliers = round(draw.n_outliers / draw.n_samples * n_samples)
    return make_sparse_text(
        n_samples,
        int(draw.rng.choice([500, 1000])),
        n_clusters=int(draw.rng.integers(2, 8)),
        n_outliers=n_outliers,
        random_state=draw.seed,
    )


def _ellipses(draw: _Draw, n_features: int, shares: np.ndarray, stretch: float):
    """Normal clusters of given shares, stretched and turned at random."""
    rng, n_clusters = draw.rng, len(shares)
    labels = np.repeat(
        np.arange(n_clusters), _split(draw.n_samples - draw.n_outliers, shares)
    )
    shapes = [
        np.diag(stretch ** rng.uniform(0, 1, n_features))
        @ np.linalg.qr(rng.normal(size=(n_features, n_features)))[0]
        for _ in range(n_clusters)
    ]
    spread = np.sqrt(n_features)
    centers = np.empty((0, n_features))
    width = spread * stretch * 6
    while len(centers) < n_clusters:
        place = rng.uniform(-width, width, (1, n_features))
        if (cdist(place, centers) >= 5.5 * spread * stretch).all():
            centers = np.concatenate([centers, place])
        else:
            width *= 1.02
    moves = rng.normal(size=(len(labels), n_features))
    lengths = np.linalg.norm(moves, axis=1, keepdims=True)
    moves *= np.minimum(1, 3 * spread / lengths)
    rows = np.concatenate(
        [centers[k] + moves[labels == k] @ shapes[k] for k in range(n_clusters)]
    )
    inverses = [np.linalg.inv(shape) for shape in shapes]

    def is_far(places):
        return np.all(
            [
                np.linalg.norm((places - center) @ inverse, axis=1) >= 4 * spread
                for center, inverse in zip(centers, inverses, strict=True)
            ],
            axis=0,
        )

    return _add_outliers(draw, rows, labels, is_far, margin=2 * stretch)


def _strewn(draw: _Draw):
    """Round clusters and outliers all over the box, also close to the clusters."""
    n_features = int(draw.rng.integers(2, 9))
    n_clusters = int(draw.rng.integers(1, 9))
    shares = draw.rng.uniform(1, 3) ** np.linspace(0, 1, n_clusters)
    return _add_anywhere(draw, n_features, shares, np.ones(n_clusters))


def _spreads(draw: _Draw):
    """The same, with clusters of unequal spread, up to three times."""
    n_features = int(draw.rng.integers(2, 9))
    n_clusters = int(draw.rng.integers(2, 7))
    spreads = draw.rng.uniform(1, 3, n_clusters)
    return _add_anywhere(draw, n_features, np.ones(n_clusters), spreads)


def _add_anywhere(
    draw: _Draw, n_features: int, shares: np.ndarray, spreads: np.ndarray
):
    """Normal clusters, and outliers that are uniform over a box around them.

    An outlier within 3 standard deviations of a centre is one of the cluster, as far as
    anybody can tell, and drawn again.
    """
    rng, n_clusters = draw.rng, len(shares)
    sizes = _split(draw.n_samples - draw.n_outliers, shares)
    labels = np.repeat(np.arange(n_clusters), sizes)
    gap = float(rng.uniform(6, 9))
    centers = np.empty((0, n_features))
    width = gap
    while len(centers) < n_clusters:
        place = rng.uniform(-width, width, (1, n_features))
        needed = gap * (spreads[: len(centers)] + spreads[len(centers)]) / 2
        if (cdist(place, centers)[0] >= needed).all():
            centers = np.concatenate([centers, place])
        else:
            width *= 1.02
    moves = rng.normal(size=(len(labels), n_features)) * spreads[labels, None]
    rows = centers[labels] + moves

    def is_far(places):
        off = cdist(places, centers) / spreads
        return (off >= 3).all(axis=1)

    margin = float(rng.uniform(0, 2))
    return _add_outliers(draw, rows, labels, is_far, margin=margin)


def _split(n: int, shares: np.ndarray) -> np.ndarray:
    """Return sizes in proportion to shares that add up to n."""
    ends = np.round(np.cumsum(shares) / np.sum(shares) * n).astype(int)
    return np.diff(ends, prepend=0)


def _add_outliers(
    draw: _Draw,
    rows: np.ndarray,
    labels: np.ndarray,
    is_far: Callable[[np.ndarray], np.ndarray],
    margin: float = 2.0,
):
    """Strew outliers over a box around the rows, at places that are far from all."""
    low, high = rows.min(axis=0) - margin, rows.max(axis=0) + margin
    outliers = np.empty((0, rows.shape[1]))
    while len(outliers) < draw.n_outliers:
        places = draw.rng.uniform(low, high, (draw.n_outliers + 10, rows.shape[1]))
        outliers = np.concatenate([outliers, places[is_far(places)]])
        width = 0.02 * (high - low)
        low, high = low - width, high + width
    outliers = outliers[: draw.n_outliers]
    order = draw.rng.permutation(len(rows) + len(outliers))
    y = np.concatenate([labels, np.full(len(outliers), -1)])
    return np.concatenate([rows, outliers])[order], y[order]


KINDS: dict[str, Callable[[_Draw], tuple[Any, np.ndarray]]] = {
    "blobs": _blobs,
    "close": _close,
    "unequal": _unequal,
    "sheared": _sheared,
    "micro": _micro,
    "high": _high,
    "shapes": _shapes,
    "text": _text,
    "strewn": _strewn,
    "spreads": _spreads,
}
