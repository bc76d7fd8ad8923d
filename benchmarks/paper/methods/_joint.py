"""Clusters and outliers at once: COR and its rivals."""

from collections.abc import Callable
from functools import partial

from benchmarks.paper.methods._base import HasRows, Method, Task
from corral import COR
from corral.rivals import HDBSCAN, KCC, KMeansMinusMinus, KMeansPlusOne

# HDBSCAN compares all pairs where trees do not help; at 60,000 rows it takes minutes.
_HDBSCAN_ROWS = 20_000


def _cor(task: Task, make: Callable[..., COR] = COR, **parameters) -> COR:
    return make(
        task.n_clusters,
        n_outliers=task.n_outliers,
        metric=task.metric,
        random_state=task.seed,
        **parameters,
    )


_cor_paper = partial(_cor, make=COR.paper)


def _kcc(task: Task) -> KCC:
    """K + 1 clusters from the basic partitions that COR.paper uses."""
    return KCC(
        task.n_clusters, metric=task.metric, max_samples=None, random_state=task.seed
    )


def _kmeans(task: Task) -> KMeansPlusOne:
    return KMeansPlusOne(
        task.n_clusters, metric=task.rival_metric, random_state=task.seed
    )


def _kmeans_minus_minus(task: Task, **parameters) -> KMeansMinusMinus:
    return KMeansMinusMinus(
        task.n_clusters,
        n_outliers=task.n_outliers,
        metric=task.rival_metric,
        random_state=task.seed,
        **parameters,
    )


def _hdbscan(task: Task) -> HDBSCAN:
    return HDBSCAN()


def _skip_hdbscan(rows: HasRows) -> str | None:
    if rows.is_sparse:
        return "HDBSCAN takes no sparse rows"
    if rows.n_samples > _HDBSCAN_ROWS:
        return f"HDBSCAN takes minutes for {rows.n_samples:,} rows"
    return None


# Figure 1 asks how many basic partitions are enough.
_PARTITIONS = tuple(
    Method(f"cor-paper-r{r}", f"{r}", partial(_cor_paper, n_partitions=r))
    for r in (10, 30, 50, 70, 90)
)

METHODS = (
    Method("kmeans", "K-means", _kmeans),
    Method("kmeans--", "K-means--", _kmeans_minus_minus),
    Method(
        "kmeans--one-start",
        "K-means--, one start",
        partial(_kmeans_minus_minus, n_init=1),
    ),
    Method("kcc", "KCC", _kcc),
    Method("hdbscan", "HDBSCAN", _hdbscan, is_random=False, skip=_skip_hdbscan),
    Method("cor-paper", "COR.paper()", _cor_paper),
    Method("cor-paper-rfs", "COR.paper(), RFS", partial(_cor_paper, strategy="rfs")),
    *_PARTITIONS,
    Method("cor", "COR()", _cor),
    Method("cor-rfs", "COR(), RFS", partial(_cor, strategy="rfs")),
)
