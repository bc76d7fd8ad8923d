"""K-means-- for rows on a Dask cluster."""

from typing import Any, ClassVar

import numpy as np

import corral.rivals
from corral._answers import Columns
from corral._row_blocks import RowBlocks
from corral._threads import Threads
from corral.dask._columns import DaskColumns
from corral.dask._errors import find_client
from corral.dask._lazy import LazyMixin
from corral.dask._rows import DaskRows, is_collection
from corral.dask._states import Tasks
from corral.dask._workplace import DaskWorkplace, work_on_block
from corral.rivals._block_runs import Place
from corral.rivals._open_rows import RowCheck, see_columns
from corral.rivals._questions import Outcome, Told


class KMeansMinusMinus(LazyMixin, corral.rivals.KMeansMinusMinus):
    """K-means-- on a Dask cluster; with ``n_outliers=0`` it is plain K-means.

    The same as :class:`corral.rivals.KMeansMinusMinus`, with the same parameters, and
    the same result to the last bit for the same seed. Rows are read by the workers,
    block by block, and stay there: only centres, exact sums and the rows next to the
    cut travel. All restarts take part in the same passes over the rows.

    Parameters and attributes are those of :class:`corral.rivals.KMeansMinusMinus`.
    ``memory_limit`` is that of a task; None means half of what a worker has for each
    of its threads.

    See Also
    --------
    corral.rivals.KMeansMinusMinus : The same on one machine.
    corral.dask.COR : Clusters and outliers from many partitions, on a cluster.
    corral.dask.start_cluster : Workers on this machine.

    Notes
    -----
    *Rows.* Arrays and data frames of Dask, whose chunks are the blocks; paths of
    Parquet files and folders, or what :func:`corral.sources.open_source` returns, which
    all workers have to see under the same name. ``sample_weight`` and
    ``init="k-means++"`` need rows in memory.

    *Answers.* ``labels_``, ``nearest_labels_`` and ``outlier_scores_`` are arrays of
    Dask. :meth:`to_local` makes a model that needs no cluster.

    Examples
    --------
    >>> from corral.dask import KMeansMinusMinus, start_cluster
    >>> with start_cluster(2) as client:  # doctest: +SKIP
    ...     model = KMeansMinusMinus(5, n_outliers=1000).fit("folder")
    ...     labels = model.labels_.compute()
    """

    _local: ClassVar[tuple[type, str]] = (
        corral.rivals.KMeansMinusMinus,
        "corral.rivals.KMeansMinusMinus",
    )

    def predict(self, X):
        """Return the cluster of each row, -1 for outliers.

        Parameters
        ----------
        X : dask array or data frame, or rows in memory
            The rows; each is answered by itself.

        Returns
        -------
        labels : array of shape (n_samples,)
            Of Dask if X is.
        """
        if not is_collection(X):
            return super().predict(X)
        return self._ask("predict", X, np.empty(0, np.int32))

    def score_samples(self, X):
        """Return how normal each row is; lower is stranger.

        Parameters
        ----------
        X : dask array or data frame, or rows in memory
            The rows.

        Returns
        -------
        scores : array of shape (n_samples,)
            Of Dask if X is.
        """
        if not is_collection(X):
            return super().score_samples(X)
        return self._ask("score_samples", X, np.empty(0))

    def transform(self, X):
        """Return the cost of each row in each cluster; lower is nearer.

        Parameters
        ----------
        X : dask array or data frame, or rows in memory
            The rows.

        Returns
        -------
        costs : array of shape (n_samples, n_clusters)
            Of Dask if X is.
        """
        if not is_collection(X):
            return super().transform(X)
        return self._ask("transform", X, np.empty((0, self.n_clusters)))

    def _reads_blocks(self, X) -> bool:
        return True

    def _open_rows(self, X) -> RowBlocks:
        """Check X and return its rows as tasks."""
        return self._open_tasks(X)

    def _see_columns(self, first: Any) -> int:
        return see_columns(self, first, self._budget)

    def _make_check(self) -> RowCheck:
        return RowCheck(self)

    def _make_place(self, rows: RowBlocks, threads: Threads) -> Place:
        """Return where the passes over rows are made."""
        assert isinstance(rows, DaskRows)
        return DaskPlace(rows, Tasks(find_client()), threads)


class DaskPlace(DaskWorkplace):
    """Passes on a cluster: a :class:`~corral.rivals._block_runs.Place`.

    Parameters
    ----------
    rows : DaskRows
    tasks : Tasks
    threads : Threads
        For what is done in one place.
    """

    def __init__(self, rows: DaskRows, tasks: Tasks, threads: Threads) -> None:
        super().__init__(rows, tasks, threads, None)

    def tell(self, function, *args, each) -> tuple[Any, Columns]:
        """Have a function tell all rows, and add up its summaries.

        What rows are told stays where they are.
        """
        told = self._tasks.start(
            work_on_block, self._blocks, self._read, function, *args, each=each
        )
        summary = self._tasks.reduce(self._tasks.start(_get_summary, told))
        return summary, DaskColumns(self._tasks, told, self.rows.sizes)


def _get_summary(told: Told, threads: Threads) -> Outcome:
    return told.summary
