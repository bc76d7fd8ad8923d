"""A fit whose numbers of clusters and outliers can be changed in little time."""

import copy
from collections.abc import Iterator

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from corral._cor import COR
from corral._partition_mixin import asks_for_labels, make_block
from corral._random import draw_fit_seed, make_streams
from corral._row_blocks import MemoryBlocks
from corral._threads import use_threads
from corral._workplace import LocalWorkplace


class Refit:
    """Partitions that are made once, to be fused into any numbers.

    Parameters
    ----------
    estimator : COR
        Not fitted; its ``n_clusters`` and ``n_outliers`` do not count.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        The rows.

    Attributes
    ----------
    chosen : COR
        The fit with the numbers that are chosen if none are given.
    """

    def __init__(self, estimator: COR, X) -> None:
        base = clone(estimator).set_params(
            n_clusters="auto", n_outliers="auto", contamination=None, k_range="auto"
        )
        if not isinstance(base.random_state, (int, np.integer)):
            # Drawn once, so that all fits are of the same partitions.
            seed = check_random_state(base.random_state).randint(2**31 - 1)
            base.set_params(random_state=seed)
        base._validate_params()
        base._is_precomputed = asks_for_labels(base.partitions)
        self._base = base
        rows = MemoryBlocks(make_block(*base._read(X, reset=True)))
        streams = make_streams(draw_fit_seed(base.random_state))
        with use_threads(base.n_jobs) as threads:
            self._place = LocalWorkplace(rows, threads)
            self._encoded = base._encode_rows(self._place, None, streams)
            self.chosen = copy.copy(base)
            self.chosen._set_numbers(self._encoded, None, streams, threads)
            self._fuser = self.chosen._make_fuser(
                self._encoded, None, streams, threads, keeps_more=True
            )
        self._finish(self.chosen)

    def fuse(self, n_clusters: int, n_outliers: int, *, quick: bool = False) -> COR:
        """Return a fitted estimator with these numbers.

        Parameters
        ----------
        n_clusters : int
        n_outliers : int
        quick : bool, default=False
            Whether to leave out how sure labels are, as with ``n_resamples=0``.

        Returns
        -------
        model : COR
            The one that ``COR(n_clusters, n_outliers=n_outliers, k_range="auto")``
            with the same other parameters and seed makes of the same rows.
        """
        model = copy.copy(self._base).set_params(
            n_clusters=n_clusters, n_outliers=n_outliers
        )
        if quick:
            model.set_params(n_resamples=0)
        model._validate_params()
        model._check_numbers(self._encoded.n_samples)
        model.selection_ = None
        model.n_clusters_, model.n_outliers_ = n_clusters, n_outliers
        return self._finish(model)

    def prepare(self) -> Iterator[None]:
        """Do ahead what fusions would have to wait for, a little with each step."""
        if self._fuser is not None:
            yield from self._fuser.grow_trees()

    def _finish(self, model: COR) -> COR:
        with use_threads(model.n_jobs) as threads:
            self._place.threads = self._encoded.states.threads = threads
            if self._fuser is not None:
                self._fuser.use_threads(threads)
            # Streams are made anew, as in a fit from the beginning.
            streams = make_streams(draw_fit_seed(model.random_state))
            model._finish(self._encoded, self._place, None, streams, self._fuser)
        return model
