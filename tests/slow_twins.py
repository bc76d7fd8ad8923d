"""Plain versions of the algorithms, written to be read: the truth in the tests."""

import numpy as np


def one_hot(labels):
    """Return B of Eq. (1): one column per label of each partition, rows of 0 and 1."""
    return np.concatenate(
        [
            (column[:, None] == np.arange(column.max() + 1)).astype(float)
            for column in labels.T
        ],
        axis=1,
    )


def kl(s, t, eps):
    """Return D_KL(s || t) of single numbers 0 or 1, summed over the last axis."""
    t = np.clip(t, eps, 1 - eps)
    return np.sum(np.where(s == 1, -np.log(t), 0.0), axis=-1)


def paper_distances(B, centers, eps):
    """Return f(b, m) + f(b~, m~) of Theorem 2 for each row and centre."""
    return np.array(
        [[kl(b, m, eps) + kl(1 - b, 1 - m, eps) for m in centers] for b in B]
    )


def entropy(p):
    """Return the entropy of coins with probability p, summed over the last axis."""
    p = np.clip(p, 1e-300, 1)
    q = np.clip(1 - p, 1e-300, 1)
    return -np.sum(p * np.log(p) + q * np.log(q), axis=-1)


def stepped_distances(B, centers, eps, n_labels, step):
    """Return the distances with the share of each partition rounded to a step."""
    borders = np.cumsum(n_labels)[:-1]
    parts = zip(
        np.split(B, borders, axis=1), np.split(centers, borders, axis=1), strict=True
    )
    return sum(np.rint(paper_distances(*part, eps) / step) * step for part in parts)


def kmeans_minus_minus(B, centers, n_outliers, eps, n_labels, step, max_iter=100):
    """Run Algorithm 1 of the paper, line by line, from these centres.

    The paper does not say what becomes of a cluster without rows; None is returned
    if one comes up.

    Returns
    -------
    labels : -1 for outliers
    history : the mean distance of the rows that are kept, per iteration
    """
    n = len(B)
    history = []
    for _ in range(max_iter):
        distances = stepped_distances(B, centers, eps, n_labels, step)
        nearest = distances.argmin(axis=1)
        cost = distances.min(axis=1)
        outliers = np.lexsort((np.arange(n), -cost))[:n_outliers]
        labels = nearest.copy()
        labels[outliers] = -1
        history.append(cost[labels >= 0].mean())
        if len(history) > 1 and not history[-1] < history[-2] - 1e-10:
            break
        if len(set(labels) - {-1}) < len(centers):
            return None
        centers = np.array([B[labels == k].mean(axis=0) for k in range(len(centers))])
    return labels, np.array(history)


def lloyd(X, starts, max_iter=300):
    """Run K-means from these centres until no label changes."""
    centers = np.array(starts, dtype=float)
    labels = None
    for _ in range(max_iter):
        distances = ((X[:, None, :] - centers[None]) ** 2).sum(axis=2)
        new = distances.argmin(axis=1)
        if labels is not None and np.array_equal(new, labels):
            break
        labels = new
        centers = np.array([X[labels == k].mean(axis=0) for k in range(len(centers))])
    return labels, centers


def same_clustering(a, b):
    """Tell whether two labellings agree up to names, with the same outliers."""
    a, b = np.asarray(a), np.asarray(b)
    if not np.array_equal(a == -1, b == -1):
        return False
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    return len(pairs) == len(set(a.tolist())) == len(set(b.tolist()))
