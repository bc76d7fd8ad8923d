"""The function select: how many clusters and outliers, before any fit."""

from numbers import Integral

import numpy as np

from corral._choice import choose_numbers, limit_clusters
from corral._cor import COR, check_codes
from corral._partition_mixin import make_block
from corral._random import draw_fit_seed, make_streams
from corral._row_blocks import MemoryBlocks
from corral._search import Limits
from corral._threads import use_threads
from corral._workplace import LocalWorkplace


def select(
    X,
    k_range=None,
    o_range=None,
    *,
    k_max=10,
    contamination_max=0.25,
    min_cluster_share=0.15,
    metric="euclidean",
    categorical_features=None,
    n_partitions=100,
    max_samples=8192,
    n_jobs=None,
    random_state=None,
):
    """Choose the number of clusters and of outliers.

    Partitions are made once. The number of outliers is where the gap between the
    costs of rows' positions is widest, if it is wider than chance makes it; without
    such a gap, as many as lie farther out of their clusters than tails reach. The
    number of clusters is the largest for which the fine partitions can tell any two
    clusters apart, or for which the border of any two is emptier than their inside:
    one cluster more cuts through a crowd.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        The rows.
    k_range : tuple of (int, int), default=None
        Smallest and largest number of clusters. None means from 1 to ``k_max``.
    o_range : tuple of (int, int), default=None
        Smallest and largest number of outliers. None means from 0 to
        ``contamination_max`` of the rows. If the smallest is not 0, outliers are sure
        to be there, and the widest gap counts, however wide.
    k_max : int, default=10
        Largest number of clusters if ``k_range`` is None.
    contamination_max : float, default=0.25
        Largest share of outliers if ``o_range`` is None.
    min_cluster_share : float, default=0.15
        A group with less than this part of the mean size of a cluster is outliers.
    metric : {"euclidean", "cosine"}, default="euclidean"
        As in :class:`COR`.
    categorical_features : array-like of int, str or bool, default=None
        As in :class:`COR`.
    n_partitions : int, default=100
        As in :class:`COR`.
    max_samples : int or None, default=8192
        As in :class:`COR`.
    n_jobs : int, default=None
        Number of threads. Results are the same for any number.
    random_state : int, RandomState instance or None, default=None
        Seed of all random choices.

    Returns
    -------
    selection : Selection
        What was chosen, the runner-up, the reason and all candidates.

    Examples
    --------
    >>> from corral import select
    >>> from corral.datasets import make_blobs_with_outliers
    >>> X, y = make_blobs_with_outliers(
    ...     300, n_clusters=4, n_outliers=12, random_state=0
    ... )
    >>> found = select(X, random_state=0)
    >>> found.n_clusters_, found.n_outliers_
    (4, 12)
    """
    model = COR(
        k_max=_read_k_max(k_range, k_max),
        metric=metric,
        categorical_features=categorical_features,
        n_partitions=n_partitions,
        max_samples=max_samples,
        n_jobs=n_jobs,
        random_state=random_state,
    )
    model._validate_params()
    _check_share("contamination_max", contamination_max)
    _check_share("min_cluster_share", min_cluster_share)
    model._is_precomputed = False
    features, given = model._read(X, reset=True)
    n_samples = features.n_samples
    outliers = 0, int(contamination_max * n_samples)
    if o_range is not None:
        outliers = _read_range("o_range", o_range, 0, n_samples - 1)
    clusters = limit_clusters(k_max, n_samples - outliers[0])
    if k_range is not None:
        clusters = _read_range("k_range", k_range, 1, n_samples)
    streams = make_streams(draw_fit_seed(random_state))
    rows = MemoryBlocks(make_block(features, given))
    with use_threads(n_jobs) as threads:
        encoded = model._encode_rows(LocalWorkplace(rows, threads), None, streams)
        n_found = len(encoded.partitioner.book.n_labels)
        check_codes(encoded.n_codes, clusters[0], n_found)
        return choose_numbers(
            encoded,
            model._choosing(encoded.partitioner),
            Limits(clusters, outliers, min_cluster_share),
            streams.choice,
            threads,
        )


def _read_k_max(k_range, k_max) -> int:
    """Return the largest number of clusters, whatever the number of rows."""
    if k_range is not None:
        return _read_range("k_range", k_range, 1, None)[1]
    if not isinstance(k_max, Integral) or k_max < 1:
        raise ValueError(f"k_max={k_max!r} should be a whole number, 1 or more.")
    return int(k_max)


def _check_share(name: str, value) -> None:
    if not isinstance(value, (int, float, np.number)) or not 0 <= value < 1:
        raise ValueError(f"{name}={value!r} should be at least 0 and less than 1.")


def _read_range(name: str, value, least: int, most: int | None) -> tuple[int, int]:
    """Return the smallest and the largest number of a range."""
    limits = tuple(value) if isinstance(value, (tuple, list)) else ()
    if (
        len(limits) != 2
        or not all(isinstance(each, Integral) for each in limits)
        or not least <= limits[0] <= limits[1]
        or (most is not None and limits[1] > most)
    ):
        end = "" if most is None else f" to {most}"
        raise ValueError(
            f"{name}={value!r} should be two whole numbers (smallest, largest), both "
            f"from {least}{end or ' up'}."
        )
    return int(limits[0]), int(limits[1])
