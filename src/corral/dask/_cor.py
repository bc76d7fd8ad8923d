"""COR for rows on a Dask cluster."""

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

import corral
from corral._callbacks import log_progress
from corral._open import BlockCheck, count_row_bytes, open_journal
from corral._row_blocks import RowBlocks
from corral._threads import Threads
from corral._workplace import Workplace
from corral.dask._errors import find_client
from corral.dask._lazy import LazyMixin
from corral.dask._rows import DaskRows, is_collection
from corral.dask._states import Tasks
from corral.dask._workplace import DaskWorkplace


class COR(LazyMixin, corral.COR):
    """Clustering with Outlier Removal on a Dask cluster.

    The same as :class:`corral.COR`, with the same parameters, and the same result to
    the last bit for the same seed. Rows are read by the workers, block by block, and
    stay there: only centres, sums, counts, a sample of the rows, the costs around the
    cut and the codes of the rows that may be outliers travel. What is lost with a
    worker is made again from the rows.

    Parameters and attributes are those of :class:`corral.COR`. ``memory_limit`` is that
    of a task; None means half of what a worker has for each of its threads.

    See Also
    --------
    corral.COR : The same on one machine, with all that its parameters mean.
    corral.dask.start_cluster : Workers on this machine.

    Notes
    -----
    *Rows.* Arrays and data frames of Dask, whose chunks are the blocks; paths of
    Parquet files and folders, or what :func:`corral.sources.open_source` returns, which
    all workers have to see under the same name.

    *Answers.* ``labels_`` and all else that is told of each row are arrays of Dask.
    :meth:`to_local` makes a model that needs no cluster.

    *Checkpoints.* ``checkpoint_dir`` should be a folder that all workers see.
    """

    _local: ClassVar[tuple[type, str]] = (corral.COR, "corral.COR")

    def fit_partitions(self, partitions, sample_weight=None):
        """Find clusters and outliers from partitions that are there already.

        Parameters
        ----------
        partitions : dask array or data frame of shape (n_samples, n_partitions)
            Labels, one column per partition; -1 means that the label is missing. Or
            what else :meth:`fit` takes.
        sample_weight : None
            Not for rows that are read block by block.

        Returns
        -------
        self : COR
            The fitted estimator. :meth:`predict` and its kin take labels as well.
        """
        self._validate_params()
        self._is_precomputed = True
        rows = self._open_rows(partitions, sample_weight, None)
        with log_progress(self.verbose):
            return self._fit(rows, None)

    def predict(self, X, extra_partitions=None):
        """Return the cluster of each row, -1 for outliers.

        Parameters
        ----------
        X : dask array or data frame, or what :class:`corral.COR` takes
            The rows; each is answered by itself.
        extra_partitions : array-like of shape (n_samples, n_extra), default=None
            Not for arrays of Dask.

        Returns
        -------
        labels : array of shape (n_samples,)
            Of Dask if X is.
        """
        if not is_collection(X):
            return super().predict(X, extra_partitions)
        self._refuse_extras(None, extra_partitions)
        return self._ask("predict", X, np.empty(0, np.int32))

    def transform(self, X, extra_partitions=None):
        """Return the cost of each row in each cluster; lower is nearer.

        Parameters
        ----------
        X : dask array or data frame, or what :class:`corral.COR` takes
            The rows.
        extra_partitions : array-like of shape (n_samples, n_extra), default=None
            Not for arrays of Dask.

        Returns
        -------
        costs : array of shape (n_samples, n_clusters)
            Of Dask if X is.
        """
        if not is_collection(X):
            return super().transform(X, extra_partitions)
        check_is_fitted(self)
        self._refuse_extras(None, extra_partitions)
        return self._ask("transform", X, self._label_costs[:0])

    def fit_transform(self, X, y=None, sample_weight=None, extra_partitions=None):
        """Find clusters and outliers and return the cost of each row in each cluster.

        Parameters
        ----------
        X : dask array or data frame of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Here because scikit-learn passes it.
        sample_weight : None
            Not for rows that are read block by block.
        extra_partitions : None
            Not for rows that are read block by block.

        Returns
        -------
        costs : dask array of shape (n_samples, n_clusters)
            Costs in nats.
        """
        self.fit(X, sample_weight=sample_weight, extra_partitions=extra_partitions)
        return self.transform(X)

    def score_samples(self, X, extra_partitions=None):
        """Return how normal each row is; lower is stranger.

        Parameters
        ----------
        X : dask array or data frame, or what :class:`corral.COR` takes
            The rows.
        extra_partitions : array-like of shape (n_samples, n_extra), default=None
            Not for arrays of Dask.

        Returns
        -------
        scores : array of shape (n_samples,)
            Of Dask if X is.
        """
        if not is_collection(X):
            return super().score_samples(X, extra_partitions)
        self._refuse_extras(None, extra_partitions)
        return self._ask("score_samples", X, np.empty(0))

    def _open_rows(self, X, sample_weight, extra_partitions) -> RowBlocks:
        """Check X and return its rows as tasks."""
        self._refuse_extras(sample_weight, extra_partitions)
        return self._open_tasks(X)

    def _see_columns(self, first: Any) -> int:
        features, _ = self._read(first, reset=True)
        n_bytes = count_row_bytes(features)
        return self._budget.count_block_rows(n_bytes, self.n_partitions)

    def _make_check(self) -> BlockCheck:
        return BlockCheck(self)

    def _make_workplace(self, rows: RowBlocks, threads: Threads) -> Workplace:
        """Return where the passes over rows are done."""
        journal = None
        if self.checkpoint_dir is not None:
            journal, rows = open_journal(self, rows)
            # Workers may run in other folders.
            journal.folder = journal.folder.absolute()
        tasks = Tasks(find_client(), shows_progress=bool(self.verbose))
        assert isinstance(rows, DaskRows)
        return DaskWorkplace(rows, tasks, threads, journal)
