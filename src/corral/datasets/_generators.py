"""Data drawn at random, with outliers whose place makes the truth certain."""

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state

# Rows of a cluster lie within so many spreads of its centre. One row in 370 is drawn
# again for it with one feature, one in 8,000 with two, and hardly any with more.
_REACH = 3.0

# How much a box grows on each side when a place in it is refused.
_GROWTH = 0.05


def make_blobs_with_outliers(
    n_samples=500,
    n_features=2,
    *,
    n_clusters=3,
    n_outliers=25,
    cluster_std=1.0,
    separation=6.0,
    min_distance=4.0,
    random_state=None,
):
    r"""Round clusters, and single outliers strewn around them.

    The spread of a cluster is the root mean square distance of its rows from its
    centre, :math:`\mathrm{cluster\_std} \sqrt{\mathrm{n\_features}}`. Rows of a cluster
    are normally distributed, and those farther from the centre than 3 spreads are drawn
    again. Outliers are uniform in a box around all clusters, but for the places within
    ``min_distance`` spreads of any centre.

    Parameters
    ----------
    n_samples : int, default=500
        Number of rows, outliers among them.
    n_features : int, default=2
        Number of features.
    n_clusters : int, default=3
        Number of clusters, of equal size or one row more.
    n_outliers : int, default=25
        Number of outliers.
    cluster_std : float, default=1.0
        Standard deviation of each feature in a cluster.
    separation : float, default=6.0
        Smallest distance of two centres, in spreads. Clusters overlap below 6.
    min_distance : float, default=4.0
        Smallest distance of an outlier from a centre, in spreads; 3 or more, so that no
        outlier is nearer to a centre than a row of its cluster can be.
    random_state : int, RandomState instance or None, default=None
        Seed of all draws.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The rows, shuffled.
    y : ndarray of shape (n_samples,)
        Clusters from 0 up; -1 for outliers.

    See Also
    --------
    make_micro_clusters : Outliers that come in small groups.

    Examples
    --------
    >>> from corral.datasets import make_blobs_with_outliers
    >>> X, y = make_blobs_with_outliers(100, n_outliers=4, random_state=0)
    >>> X.shape, (y == -1).sum()
    ((100, 2), np.int64(4))
    """
    _check_counts(n_samples, n_features, n_clusters, n_outliers)
    _check_distances(cluster_std, separation, min_distance)
    rng = check_random_state(random_state)
    labels = _cluster_labels(n_samples - n_outliers, n_clusters)
    blobs = _draw_blobs(rng, labels, n_features, cluster_std, separation)
    low, high = _box_around(blobs.centers, 2 * min_distance * cluster_std)
    outliers = _draw_until(
        n_outliers,
        lambda n: rng.uniform(low, high, size=(n, n_features)),
        lambda places: _are_far(places, blobs.centers, min_distance * blobs.spread),
    )
    return _shuffle(rng, blobs.rows, labels, outliers)


def make_moons_with_noise(
    n_samples=500, *, n_outliers=25, noise=0.05, min_distance=4.0, random_state=None
):
    r"""Two half circles that reach into each other, and noise around and between them.

    The half circles are those of :func:`sklearn.datasets.make_moons`, with radius 1 and
    rows at random places of them. The spread of a moon is the root mean square
    distance by which its rows are moved off its half circle,
    :math:`\mathrm{noise} \sqrt{2}`. No row is moved by more than 3 spreads. Outliers
    are uniform in a box around both moons, but for the places within ``min_distance``
    spreads of a half circle.

    Parameters
    ----------
    n_samples : int, default=500
        Number of rows, outliers among them.
    n_outliers : int, default=25
        Number of outliers.
    noise : float, default=0.05
        Standard deviation of each feature about the half circle. The moons are 0.5
        apart and can touch from 0.06 on.
    min_distance : float, default=4.0
        Smallest distance of an outlier from the half circles, in spreads; 3 or more, so
        that no outlier is nearer to one than a row of its moon can be.
    random_state : int, RandomState instance or None, default=None
        Seed of all draws.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The rows, shuffled.
    y : ndarray of shape (n_samples,)
        0 for the upper moon, 1 for the lower one, -1 for outliers.

    See Also
    --------
    sklearn.datasets.make_moons : The moons alone, with rows at equal steps.

    Examples
    --------
    >>> from corral.datasets import make_moons_with_noise
    >>> X, y = make_moons_with_noise(100, n_outliers=10, random_state=0)
    >>> X.shape, (y == -1).sum()
    ((100, 2), np.int64(10))
    """
    _check_counts(n_samples, 2, 2, n_outliers)
    _check_real("noise", noise, above=0)
    _check_real("min_distance", min_distance, at_least=_REACH)
    rng = check_random_state(random_state)
    labels = _cluster_labels(n_samples - n_outliers, 2)
    angles = rng.uniform(0, np.pi, size=len(labels))
    arcs = np.column_stack([np.cos(angles), np.sin(angles)])
    arcs[labels == 1] = _turn_moon(arcs[labels == 1])
    rows = arcs + _draw_near(rng, len(labels), 2, noise)
    low, high = _box_around([[-1, -0.5], [2, 1]], 2 * min_distance * noise)
    outliers = _draw_until(
        n_outliers,
        lambda n: rng.uniform(low, high, size=(n, 2)),
        lambda places: _distance_to_moons(places) >= min_distance * noise * np.sqrt(2),
    )
    return _shuffle(rng, rows, labels, outliers)


def make_micro_clusters(
    n_samples=500,
    n_features=2,
    *,
    n_clusters=3,
    n_outliers=30,
    n_micro_clusters=5,
    cluster_std=1.0,
    micro_std=0.1,
    separation=6.0,
    min_distance=4.0,
    random_state=None,
):
    r"""Round clusters, and outliers that come in small tight groups.

    An outlier has close neighbours here, and only the size of its group tells it from
    a row of a cluster. Clusters are those of :func:`make_blobs_with_outliers`; so are
    the groups, with ``micro_std`` in place of ``cluster_std``. Every row of a group is
    at least ``min_distance`` spreads of a cluster from every cluster's centre.

    Parameters
    ----------
    n_samples : int, default=500
        Number of rows, outliers among them.
    n_features : int, default=2
        Number of features.
    n_clusters : int, default=3
        Number of clusters, of equal size or one row more.
    n_outliers : int, default=30
        Number of outliers, in all groups together.
    n_micro_clusters : int, default=5
        Number of groups of outliers, of equal size or one row more. The largest has to
        be smaller than the smallest cluster.
    cluster_std : float, default=1.0
        Standard deviation of each feature in a cluster.
    micro_std : float, default=0.1
        Standard deviation of each feature in a group of outliers.
    separation : float, default=6.0
        Smallest distance of two clusters' centres in spreads of a cluster, and of two
        groups' centres in spreads of a group. Clusters overlap below 6, and so do
        groups.
    min_distance : float, default=4.0
        Smallest distance of an outlier from a cluster's centre, in spreads of the
        cluster; 3 or more, so that no outlier is nearer to a centre than a row of its
        cluster can be.
    random_state : int, RandomState instance or None, default=None
        Seed of all draws.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The rows, shuffled.
    y : ndarray of shape (n_samples,)
        Clusters from 0 up; -1 for outliers of all groups.

    See Also
    --------
    make_blobs_with_outliers : Outliers that are alone.

    Examples
    --------
    >>> from corral.datasets import make_micro_clusters
    >>> X, y = make_micro_clusters(100, n_outliers=12, random_state=0)
    >>> X.shape, (y == -1).sum()
    ((100, 2), np.int64(12))
    """
    _check_counts(n_samples, n_features, n_clusters, n_outliers)
    _check_distances(cluster_std, separation, min_distance)
    _check_real("micro_std", micro_std, above=0)
    _check_groups(n_samples, n_clusters, n_outliers, n_micro_clusters)
    rng = check_random_state(random_state)
    labels = _cluster_labels(n_samples - n_outliers, n_clusters)
    blobs = _draw_blobs(rng, labels, n_features, cluster_std, separation)
    micro_spread = micro_std * np.sqrt(n_features)
    margin = 2 * (min_distance * cluster_std + _REACH * micro_std)
    micro_centers = _place_apart(
        rng,
        n_micro_clusters,
        *_box_around(blobs.centers, margin),
        gap=separation * micro_spread,
        others=blobs.centers,
        distance=min_distance * blobs.spread + _REACH * micro_spread,
    )
    groups = _cluster_labels(n_outliers, n_micro_clusters)
    around = _draw_near(rng, n_outliers, n_features, micro_std)
    return _shuffle(rng, blobs.rows, labels, micro_centers[groups] + around)


def make_high_dimensional(
    n_samples=500,
    n_features=100,
    *,
    n_informative=5,
    n_clusters=3,
    n_outliers=25,
    cluster_std=1.0,
    noise=0.1,
    separation=6.0,
    min_distance=4.0,
    random_state=None,
):
    r"""Clusters in a subspace of few dimensions, and outliers that leave it.

    The subspace has a random direction, so that every feature takes part. Clusters are
    normally distributed in it, with a little noise in all features; their spread, the
    root mean square distance of a row from its centre, is
    :math:`(\mathrm{n\_informative}\, \mathrm{cluster\_std}^2 +
    \mathrm{n\_features}\, \mathrm{noise}^2)^{1/2}`. Rows farther than 3 spreads from
    their centre are drawn again. An outlier is a row of a random cluster, but moved at
    right angles to the subspace, in a direction of its own, to 1 to 1.5 times
    ``min_distance`` spreads from it. Within the subspace it looks like any other row.

    Parameters
    ----------
    n_samples : int, default=500
        Number of rows, outliers among them.
    n_features : int, default=100
        Number of features.
    n_informative : int, default=5
        Dimension of the subspace, smaller than ``n_features``.
    n_clusters : int, default=3
        Number of clusters, of equal size or one row more.
    n_outliers : int, default=25
        Number of outliers.
    cluster_std : float, default=1.0
        Standard deviation of a cluster in each direction of the subspace.
    noise : float, default=0.1
        Standard deviation of what is added to every feature. 0 for none.
    separation : float, default=6.0
        Smallest distance of two centres, in spreads. Clusters overlap below 6.
    min_distance : float, default=4.0
        Smallest distance of an outlier from the subspace, and so from every centre, in
        spreads; 3 or more, so that no outlier is nearer to a centre than a row of its
        cluster can be.
    random_state : int, RandomState instance or None, default=None
        Seed of all draws.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The rows, shuffled.
    y : ndarray of shape (n_samples,)
        Clusters from 0 up; -1 for outliers.

    See Also
    --------
    make_blobs_with_outliers : Clusters that use all features.

    Examples
    --------
    >>> from corral.datasets import make_high_dimensional
    >>> X, y = make_high_dimensional(100, 50, n_outliers=4, random_state=0)
    >>> X.shape, (y == -1).sum()
    ((100, 50), np.int64(4))
    """
    _check_counts(n_samples, n_features, n_clusters, n_outliers)
    _check_subspace(n_features, n_informative)
    _check_distances(cluster_std, separation, min_distance)
    _check_real("noise", noise, at_least=0)
    rng = check_random_state(random_state)
    spread = np.sqrt(n_informative * cluster_std**2 + n_features * noise**2)
    # The columns of the basis are orthonormal and span the subspace.
    basis = np.linalg.qr(rng.normal(size=(n_features, n_informative)))[0]
    centers = _draw_centers(rng, n_clusters, n_informative, separation * spread)
    labels = _cluster_labels(n_samples - n_outliers, n_clusters)
    hosts = rng.randint(n_clusters, size=n_outliers)

    def draw(n):
        within = rng.normal(0, cluster_std, size=(n, n_informative))
        return within @ basis.T + rng.normal(0, noise, size=(n, n_features))

    around = _draw_until(
        n_samples, draw, lambda moves: _lengths(moves) <= _REACH * spread
    )
    rows = (centers @ basis.T)[np.concatenate([labels, hosts])] + around
    rows, outliers = np.split(rows, [len(labels)])
    distances = rng.uniform(1, 1.5, size=n_outliers) * min_distance * spread
    return _shuffle(rng, rows, labels, _move_off(rng, outliers, basis, distances))


def make_sparse_text(
    n_samples=500,
    n_features=2000,
    *,
    n_clusters=4,
    n_outliers=25,
    document_length=100,
    topic_share=0.5,
    random_state=None,
):
    """Term counts of documents, each about one topic, and of outliers about none.

    The columns are parted into vocabularies: common terms first, then the terms of each
    topic, and rare terms last. In each vocabulary the frequency of a term is in
    proportion to 1 / rank, as in Zipf's law. A share of each document is drawn from the
    common terms. The rest of a document of a cluster is drawn from the terms of one
    topic; that of an outlier in equal parts from all topics and the rare terms, with
    the ranks moved on by a random number in each, so that the outlier's frequent terms
    are unrelated. Every outlier has terms of every topic, and no other document has
    terms of two.

    Parameters
    ----------
    n_samples : int, default=500
        Number of documents, outliers among them.
    n_features : int, default=2000
        Number of terms. Each topic has ``n_features // (n_clusters + 2)``, and so many
        are rare; the others are common.
    n_clusters : int, default=4
        Number of topics, each with the same number of documents or one more.
    n_outliers : int, default=25
        Number of outliers.
    document_length : int, default=100
        Mean number of words in a document, Poisson distributed, but no document has
        less than half of it.
    topic_share : float, default=0.5
        Share of the words that are not common terms.
    random_state : int, RandomState instance or None, default=None
        Seed of all draws.

    Returns
    -------
    X : csr_array of shape (n_samples, n_features), int64
        How often each document has each term; documents are shuffled.
    y : ndarray of shape (n_samples,)
        Topics from 0 up; -1 for outliers.

    Examples
    --------
    >>> from corral.datasets import make_sparse_text
    >>> X, y = make_sparse_text(100, 600, n_outliers=4, random_state=0)
    >>> X.shape, X.nnz < 100 * 100, (y == -1).sum()
    ((100, 600), True, np.int64(4))
    """
    _check_counts(n_samples, n_features, n_clusters, n_outliers)
    _check_terms(n_features, n_clusters)
    _check_documents(document_length, topic_share, n_clusters)
    rng = check_random_state(random_state)
    labels = _cluster_labels(n_samples - n_outliers, n_clusters)
    y = rng.permutation(np.concatenate([labels, np.full(n_outliers, -1)]))
    n_terms = n_features // (n_clusters + 2)
    n_common = n_features - (n_clusters + 1) * n_terms
    shortest = -(-document_length // 2)
    lengths = np.maximum(rng.poisson(document_length, size=n_samples), shortest)
    n_own = np.ceil(topic_share * lengths).astype(np.intp)
    documents, terms = _draw_own_terms(rng, y, n_own, n_clusters + 1, n_terms)
    in_common = np.repeat(np.arange(n_samples), lengths - n_own)
    common = _draw_ranks(rng, len(in_common), n_common)
    places = (
        np.concatenate([documents, in_common]),
        np.concatenate([n_common + terms, common]),
    )
    ones = np.ones(len(places[0]), dtype=np.int64)
    # Words that occur several times in a document are added up.
    X = sparse.coo_array((ones, places), shape=(n_samples, n_features)).tocsr()
    # Many estimators take no wider indices.
    X.indices = X.indices.astype(np.int32)
    X.indptr = X.indptr.astype(np.int32)
    return X, y


class _Blobs(NamedTuple):
    rows: np.ndarray
    centers: np.ndarray
    spread: float


def _draw_blobs(
    rng, labels: np.ndarray, n_features: int, std: float, separation: float
) -> _Blobs:
    """Draw a row for each label, near the centre of its cluster."""
    spread = std * np.sqrt(n_features)
    centers = _draw_centers(rng, labels.max() + 1, n_features, separation * spread)
    rows = centers[labels] + _draw_near(rng, len(labels), n_features, std)
    return _Blobs(rows, centers, spread)


def _move_off(
    rng, rows: np.ndarray, basis: np.ndarray, distances: np.ndarray
) -> np.ndarray:
    """Move rows to these distances from a subspace, each in a direction of its own."""
    directions = rng.normal(size=rows.shape)
    directions -= directions @ basis @ basis.T
    directions *= (distances / _lengths(directions))[:, None]
    return rows @ basis @ basis.T + directions


def _draw_own_terms(
    rng, y: np.ndarray, n_own: np.ndarray, n_vocabularies: int, n_terms: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the terms that are not common; return the document and term of each word.

    Terms are counted from 0 for the first of the first topic. The last vocabulary holds
    the rare ones.
    """
    documents = np.repeat(np.arange(len(y)), n_own)
    positions = np.arange(len(documents)) - np.repeat(np.cumsum(n_own) - n_own, n_own)
    is_outlier = y == -1
    # The words of an outlier take the vocabularies in turn, starting with any of them.
    starts = rng.randint(n_vocabularies, size=len(y))
    in_turn = (starts[documents] + positions) % n_vocabularies
    chosen = np.where(is_outlier[documents], in_turn, y[documents])
    shifts = rng.randint(n_terms, size=(len(y), n_vocabularies)) * is_outlier[:, None]
    ranks = _draw_ranks(rng, len(documents), n_terms) + shifts[documents, chosen]
    return documents, chosen * n_terms + ranks % n_terms


def _draw_ranks(rng, n: int, n_terms: int) -> np.ndarray:
    """Draw n of the numbers 0 to n_terms - 1, each in proportion to 1 / (rank + 1)."""
    weights = 1 / np.arange(1, n_terms + 1)
    return rng.choice(n_terms, size=n, p=weights / weights.sum())


def _draw_centers(rng, n: int, n_features: int, gap: float) -> np.ndarray:
    """Draw centres at least ``gap`` apart."""
    # Random places in a box of this width are about the gap apart.
    width = gap * np.sqrt(6 / n_features) * n ** (1 / n_features)
    half = np.full(n_features, width / 2)
    return _place_apart(rng, n, -half, half, gap=gap)


def _place_apart(
    rng,
    n: int,
    low: np.ndarray,
    high: np.ndarray,
    *,
    gap: float,
    others: np.ndarray | None = None,
    distance: float = 0.0,
) -> np.ndarray:
    """Draw places ``gap`` apart and at a distance from others, in a box that may grow.

    It grows each time that a place is refused, so there will be room for all.
    """
    places = np.empty((0, len(low)))
    others = places if others is None else others
    while len(places) < n:
        place = rng.uniform(low, high)[None, :]
        if _are_far(place, places, gap)[0] and _are_far(place, others, distance)[0]:
            places = np.concatenate([places, place])
        else:
            margin = _GROWTH * (high - low)
            low, high = low - margin, high + margin
    return places


def _draw_near(rng, n: int, n_features: int, std: float) -> np.ndarray:
    """Draw normally distributed rows, none longer than the reach of a cluster."""
    return _draw_until(
        n,
        lambda n_rows: rng.normal(0, std, size=(n_rows, n_features)),
        lambda rows: _lengths(rows) <= _REACH * std * np.sqrt(n_features),
    )


def _draw_until(
    n: int,
    draw: Callable[[int], np.ndarray],
    accept: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """Draw n rows, and draw those again that are not accepted."""
    rows = draw(n)
    refused = np.flatnonzero(~accept(rows))
    while len(refused):
        rows[refused] = draw(len(refused))
        refused = refused[~accept(rows[refused])]
    return rows


def _box_around(points, margin: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper corner of the box that holds the points and a margin.

    With twice a distance (in standard deviations) as margin, the corners are that
    distance (in spreads) from all points and more, so there is room for outliers.
    """
    return np.min(points, axis=0) - margin, np.max(points, axis=0) + margin


def _are_far(places: np.ndarray, points: np.ndarray, distance: float) -> np.ndarray:
    """Return which places are at least this far from all points, if there are any."""
    return (cdist(places, points) >= distance).all(axis=1)


def _distance_to_moons(places: np.ndarray) -> np.ndarray:
    """Return the distance of each place from the nearer moon's half circle."""
    turned = _turn_moon(places)
    return np.minimum(_distance_to_arc(places), _distance_to_arc(turned))


def _turn_moon(places: np.ndarray) -> np.ndarray:
    """Turn the upper moon, half of the unit circle, into the lower one, and back."""
    return np.array([1, 0.5]) - places


def _distance_to_arc(places: np.ndarray) -> np.ndarray:
    """Return the distance from the upper half of the unit circle."""
    to_circle = np.abs(_lengths(places) - 1)
    to_ends = cdist(places, [[-1, 0], [1, 0]]).min(axis=1)
    return np.where(places[:, 1] >= 0, to_circle, to_ends)


def _lengths(rows: np.ndarray) -> np.ndarray:
    return np.linalg.norm(rows, axis=1)


def _cluster_labels(n: int, n_clusters: int) -> np.ndarray:
    """Return labels of clusters that differ in size by at most one row."""
    return np.arange(n) % n_clusters


def _shuffle(
    rng, rows: np.ndarray, labels: np.ndarray, outliers: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of clusters and the outliers, mixed, with their labels."""
    X = np.concatenate([rows, outliers])
    y = np.concatenate([labels, np.full(len(outliers), -1)])
    order = rng.permutation(len(X))
    return X[order], y[order]


def _check_count(name: str, value, at_least: int) -> None:
    if not isinstance(value, Integral):
        raise TypeError(f"{name}={value!r} should be a whole number.")
    if value < at_least:
        raise ValueError(f"{name}={value} should be at least {at_least}.")


def _check_real(name: str, value, *, at_least=None, above=None) -> None:
    if not isinstance(value, Real):
        raise TypeError(f"{name}={value!r} should be a number.")
    if not math.isfinite(value):
        raise ValueError(f"{name}={value} should be finite.")
    if at_least is not None and value < at_least:
        raise ValueError(f"{name}={value} should be at least {at_least:g}.")
    if above is not None and value <= above:
        raise ValueError(f"{name}={value} should be above {above:g}.")


def _check_counts(n_samples, n_features, n_clusters, n_outliers) -> None:
    _check_count("n_samples", n_samples, 1)
    _check_count("n_features", n_features, 1)
    _check_count("n_clusters", n_clusters, 1)
    _check_count("n_outliers", n_outliers, 0)
    if n_samples < n_clusters + n_outliers:
        raise ValueError(
            f"n_samples={n_samples} should be at least n_clusters + n_outliers = "
            f"{n_clusters} + {n_outliers} = {n_clusters + n_outliers}."
        )


def _check_distances(cluster_std, separation, min_distance) -> None:
    _check_real("cluster_std", cluster_std, above=0)
    _check_real("separation", separation, above=0)
    _check_real("min_distance", min_distance, at_least=_REACH)


def _check_groups(n_samples, n_clusters, n_outliers, n_micro_clusters) -> None:
    _check_count("n_micro_clusters", n_micro_clusters, 1)
    if n_outliers < n_micro_clusters:
        raise ValueError(
            f"n_outliers={n_outliers} should be at least "
            f"n_micro_clusters={n_micro_clusters}."
        )
    largest = -(-n_outliers // n_micro_clusters)
    smallest = (n_samples - n_outliers) // n_clusters
    if largest >= smallest:
        raise ValueError(
            f"Groups of {largest} outliers should be smaller than the smallest "
            f"cluster, which has {smallest} rows. Raise n_samples (now {n_samples}) or "
            f"n_micro_clusters (now {n_micro_clusters})."
        )


def _check_subspace(n_features, n_informative) -> None:
    _check_count("n_informative", n_informative, 1)
    if n_informative >= n_features:
        raise ValueError(
            f"n_informative={n_informative} should be smaller than "
            f"n_features={n_features}, so that outliers can leave the subspace."
        )


def _check_terms(n_features, n_clusters) -> None:
    if n_features < n_clusters + 2:
        raise ValueError(
            f"n_features={n_features} should be at least n_clusters + 2 = "
            f"{n_clusters + 2}: terms for each topic, common ones and rare ones."
        )


def _check_documents(document_length, topic_share, n_clusters) -> None:
    _check_count("document_length", document_length, 1)
    _check_real("topic_share", topic_share, above=0)
    if topic_share > 1:
        raise ValueError(f"topic_share={topic_share} should be at most 1.")
    # The shortest document has half the length, and needs a word from each vocabulary.
    if topic_share * document_length < 2 * (n_clusters + 1):
        raise ValueError(
            f"topic_share * document_length = {topic_share} * {document_length} should "
            f"be at least 2 * (n_clusters + 1) = {2 * (n_clusters + 1)}, so that "
            "outliers have words of all topics. Raise document_length."
        )
