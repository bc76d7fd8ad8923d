"""Other ways to choose the number of clusters, and of outliers where they can.

K-means, the silhouette and HDBSCAN are scikit-learn's; the gap statistic and X-means
are written to be read. All but HDBSCAN look at 2,000 random rows at most and try up to
ten clusters.

References
----------
.. [1] P. J. Rousseeuw, "Silhouettes: a graphical aid to the interpretation and
   validation of cluster analysis", Journal of Computational and Applied Mathematics 20,
   1987. https://doi.org/10.1016/0377-0427(87)90125-7
.. [2] R. Tibshirani, G. Walther and T. Hastie, "Estimating the number of clusters in a
   data set via the gap statistic", Journal of the Royal Statistical Society B 63(2),
   2001. https://doi.org/10.1111/1467-9868.00293
.. [3] D. Pelleg and A. Moore, "X-means: extending K-means with efficient estimation of
   the number of clusters", Proceedings of the 17th International Conference on Machine
   Learning, 2000.
.. [4] R. J. G. B. Campello, D. Moulavi and J. Sander, "Density-based clustering based
   on hierarchical density estimates", Advances in Knowledge Discovery and Data Mining,
   2013. https://doi.org/10.1007/978-3-642-37456-2_14
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import silhouette_score

K_MAX = 10

_MAX_ROWS = 2_000
_MAX_HDBSCAN_ROWS = 20_000
_N_INIT = 5
_N_REFERENCES = 10
# X-means starts from one cluster and from two: where clusters lie evenly around the
# mean, one is better than two, and two are worse than four.
_STARTS = (1, 2)
# HDBSCAN's own default.
_LEAST_CLUSTER = 5


class Found(NamedTuple):
    """What HDBSCAN chooses."""

    n_clusters: int
    n_outliers: int


def choose_by_silhouette(X: np.ndarray, seed: int) -> int:
    """Return the number of clusters, from 2 up, with the largest mean silhouette [1]_.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    seed : int

    Returns
    -------
    n_clusters : int
    """
    rows = _sample(X, _MAX_ROWS, seed)
    numbers = range(2, K_MAX + 1)
    scores = [
        silhouette_score(rows, _fit_kmeans(rows, k, seed).labels_) for k in numbers
    ]
    return numbers[int(np.argmax(scores))]


def choose_by_gap(X: np.ndarray, seed: int) -> int:
    r"""Return the least number of clusters whose gap the next one does not beat [2]_.

    The gap of k is the mean of :math:`\log W_k` of uniform references less that of the
    rows, :math:`W_k` being the inertia of K-means. Chosen is the smallest k with
    :math:`\mathrm{gap}(k) \ge \mathrm{gap}(k + 1) - s_{k+1}`, where s is the standard
    deviation over the B references times :math:`\sqrt{1 + 1/B}`; the largest k if there
    is none.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    seed : int

    Returns
    -------
    n_clusters : int
    """
    rows = _sample(X, _MAX_ROWS, seed)
    rng = np.random.default_rng(seed)
    references = np.array(
        [_log_inertias(_draw_reference(rows, rng), seed) for _ in range(_N_REFERENCES)]
    )
    gaps = references.mean(axis=0) - _log_inertias(rows, seed)
    errors = references.std(axis=0) * np.sqrt(1 + 1 / _N_REFERENCES)
    is_enough = gaps[:-1] >= gaps[1:] - errors[1:]
    return int(np.argmax(is_enough)) + 1 if is_enough.any() else K_MAX


def choose_by_x_means(X: np.ndarray, seed: int) -> int:
    """Return the number of clusters of the best model that X-means meets [3]_.

    Each cluster is split in two by K-means where that raises the BIC of its own rows;
    then all centres are moved together. It ends where none is split, or at the largest
    number. The model with the best BIC of all rows counts.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    seed : int

    Returns
    -------
    n_clusters : int
    """
    rows = _sample(X, _MAX_ROWS, seed)
    models = [model for start in _STARTS for model in _grow(rows, start, seed)]
    return max(models, key=lambda model: _bic(rows, model)).n_clusters


def choose_by_hdbscan(X: np.ndarray, seed: int, least_share: float = 0.0) -> Found:
    """Return the numbers of clusters and of noise rows of HDBSCAN [4]_.

    More than 20,000 rows are sampled, and the number of noise rows is scaled up.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    seed : int
    least_share : float, default=0
        ``min_cluster_size`` is this share of the rows, and 5, scikit-learn's default,
        where that is more.

    Returns
    -------
    found : Found
    """
    rows = _sample(X, _MAX_HDBSCAN_ROWS, seed)
    least = max(_LEAST_CLUSTER, round(least_share * len(rows)))
    labels = HDBSCAN(min_cluster_size=least, copy=True).fit(rows).labels_
    noise = np.count_nonzero(labels == -1) * len(X) / len(rows)
    return Found(int(labels.max()) + 1, round(noise))


# Rivals that choose K alone.
K_ONLY: dict[str, Callable[[np.ndarray, int], int]] = {
    "silhouette": choose_by_silhouette,
    "gap": choose_by_gap,
    "X-means": choose_by_x_means,
}


def _sample(X: np.ndarray, limit: int, seed: int) -> np.ndarray:
    if len(X) <= limit:
        return X
    return X[np.random.default_rng(seed).choice(len(X), limit, replace=False)]


def _fit_kmeans(rows: np.ndarray, n_clusters: int, seed: int) -> KMeans:
    return KMeans(n_clusters, n_init=_N_INIT, random_state=seed).fit(rows)


def _log_inertias(rows: np.ndarray, seed: int) -> np.ndarray:
    """Return the logarithm of the inertia for 1 to K_MAX clusters."""
    inertias = [_fit_kmeans(rows, k, seed).inertia_ for k in range(1, K_MAX + 1)]
    return np.log(inertias)


def _draw_reference(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw as many rows uniformly from their box along their principal axes."""
    axes = PCA().fit(rows)
    turned = axes.transform(rows)
    box = rng.uniform(turned.min(axis=0), turned.max(axis=0), turned.shape)
    return axes.inverse_transform(box)


def _grow(rows: np.ndarray, start: int, seed: int) -> Iterator[KMeans]:
    """Yield the models of X-means from so many clusters on."""
    centers = _fit_kmeans(rows, start, seed).cluster_centers_
    while True:
        model = KMeans(len(centers), init=centers, n_init=1).fit(rows)
        yield model
        centers = _split_clusters(rows, model, seed)
        if len(centers) == model.n_clusters:
            return


def _split_clusters(rows: np.ndarray, model: KMeans, seed: int) -> np.ndarray:
    """Return the centres, two in place of one where that raises the BIC.

    Where that made too many, the splits that raise it most are taken.
    """
    halves, gains = [], []
    for k in range(model.n_clusters):
        members = rows[model.labels_ == k]
        # With fewer rows, two clusters have no variance left to estimate.
        if len(np.unique(members, axis=0)) < 3:
            halves.append(None)
            gains.append(-np.inf)
            continue
        whole, half = (_fit_kmeans(members, n, seed) for n in (1, 2))
        halves.append(half.cluster_centers_)
        gains.append(_bic(members, half) - _bic(members, whole))
    order = np.argsort(gains)[::-1][: K_MAX - model.n_clusters]
    is_split = np.isin(np.arange(model.n_clusters), order) & (np.array(gains) > 0)
    return np.concatenate(
        [
            halves[k] if is_split[k] else model.cluster_centers_[[k]]
            for k in range(model.n_clusters)
        ]
    )


def _bic(rows: np.ndarray, model: KMeans) -> float:
    """Return the BIC of round normal clusters of one variance: higher is better."""
    n_samples, n_features = rows.shape
    sizes = np.bincount(model.labels_, minlength=model.n_clusters)
    sizes = sizes[sizes > 0]
    n_free = n_features * (n_samples - len(sizes))
    # Rows that are all equal to their centre have no variance.
    variance = max(model.inertia_ / n_free, np.finfo(float).tiny)
    log_likelihood = (
        sizes @ np.log(sizes / n_samples)
        - n_samples * n_features / 2 * np.log(2 * np.pi * variance)
        - n_free / 2
    )
    # Shares, centres and the variance.
    n_parameters = len(sizes) - 1 + len(sizes) * n_features + 1
    return log_likelihood - n_parameters / 2 * np.log(n_samples)
