"""A fit whose numbers of clusters and outliers can be changed in little time."""

from sklearn.base import clone

from corral._cor import COR


class Refit:
    """Partitions that are made once, to be fused into any numbers.

    Parameters
    ----------
    estimator : COR
        Not fitted; its ``n_clusters`` and ``n_outliers`` do not count.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        The rows.
    """

    def __init__(self, estimator: COR, X) -> None:
        self._estimator = clone(estimator).set_params(
            n_clusters="auto", n_outliers="auto", contamination=None
        )
        self._X = X
        self.chosen = clone(self._estimator).fit(X)

    def fuse(self, n_clusters: int, n_outliers: int) -> COR:
        """Return a fitted estimator with these numbers.

        It is the one that ``COR(n_clusters, n_outliers=n_outliers, k_range="auto")``
        with the same other parameters and seed makes of the same rows.
        """
        model = clone(self._estimator).set_params(
            n_clusters=n_clusters, n_outliers=n_outliers, k_range="auto"
        )
        return model.fit(self._X)
