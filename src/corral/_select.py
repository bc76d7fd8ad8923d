"""The function select: how many clusters and outliers, before any fit."""

from numbers import Integral

from corral._choice import Limits, choose_numbers
from corral._cor import COR
from corral._random import make_streams
from corral._threads import use_threads


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
    clusters = _read_limits(k_range, k_max)
    model = COR(
        k_max=clusters[1],
        metric=metric,
        categorical_features=categorical_features,
        n_partitions=n_partitions,
        max_samples=max_samples,
        n_jobs=n_jobs,
        random_state=random_state,
    )
    model._validate_params()
    model._is_precomputed = False
    features, given = model._read(X, reset=True)
    outliers = _read_outlier_limits(o_range, contamination_max, features.n_samples)
    limits = Limits(clusters, outliers, min_cluster_share)
    streams = make_streams(random_state)
    with use_threads(n_jobs) as threads:
        encoded = model._encode_rows(features, given, None, streams, threads)
        return choose_numbers(
            encoded.codes,
            encoded.position,
            model._choosing(encoded.partitioner),
            limits,
            streams.choice,
            threads,
        )


def _read_limits(k_range, k_max) -> tuple[int, int]:
    if k_range is None and (not isinstance(k_max, Integral) or k_max < 1):
        raise ValueError(f"k_max={k_max} should be a whole number, 1 or more.")
    limits = (1, k_max) if k_range is None else tuple(k_range)
    if (
        len(limits) != 2
        or not all(isinstance(k, Integral) for k in limits)
        or not 1 <= limits[0] <= limits[1]
    ):
        raise ValueError(
            f"k_range={k_range} should be two whole numbers (smallest, largest), both "
            "at least 1."
        )
    return int(limits[0]), int(limits[1])


def _read_outlier_limits(o_range, contamination_max, n_samples) -> tuple[int, int]:
    if o_range is None:
        if not 0 <= contamination_max < 1:
            raise ValueError(
                f"contamination_max={contamination_max} should be at least 0 and less "
                "than 1."
            )
        return 0, int(contamination_max * n_samples)
    limits = tuple(o_range)
    if (
        len(limits) != 2
        or not all(isinstance(o, Integral) for o in limits)
        or not 0 <= limits[0] <= limits[1] < n_samples
    ):
        raise ValueError(
            f"o_range={o_range} should be two whole numbers (smallest, largest) from 0 "
            f"to less than n_samples={n_samples}."
        )
    return int(limits[0]), int(limits[1])
