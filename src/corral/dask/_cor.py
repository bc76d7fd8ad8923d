"""COR for rows on a Dask cluster."""

from typing import Any

import numpy as np

import corral
from corral._memory import Budget, read_limit
from corral._open import BlockCheck, count_row_bytes, is_source, open_journal
from corral._row_blocks import RowBlocks
from corral._threads import Threads
from corral._workplace import Workplace
from corral.dask._errors import find_client, need_dask
from corral.dask._rows import DaskRows, is_collection, list_blocks, open_source_rows
from corral.dask._states import Tasks
from corral.dask._workplace import DaskWorkplace

# From so many rows it is told what the columns are.
_FIRST_ROWS = 1000


class COR(corral.COR):
    """Clustering with Outlier Removal on a Dask cluster.

    The same as :class:`corral.COR`, with the same parameters, and the same result to
    the last bit for the same seed. Rows are read by the workers, block by block, and
    stay there: only centres, sums, counts, a sample of the codes and the costs around
    the cut travel. What is lost with a worker is made again from the rows.

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
        return self._ask("predict", X, extra_partitions, np.int32)

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
        return self._ask("score_samples", X, extra_partitions, np.float64)

    def to_local(self):
        """Return the model without the cluster, with all answers in memory.

        Returns
        -------
        model : corral.COR
        """
        model = corral.COR(**self.get_params(deep=False))
        dask = need_dask("dask")
        fitted = {
            name: value
            for name, value in vars(self).items()
            if name not in self.get_params(deep=False)
        }
        (answers,) = dask.compute(fitted)
        model.__dict__.update(answers)
        return model

    def _ask(self, method: str, X, extra_partitions, kind: type) -> Any:
        if not is_collection(X):
            return getattr(super(), method)(X, extra_partitions)
        model = self._without_answers()
        if hasattr(X, "map_partitions"):
            rows = X.map_partitions(
                _ask_block, model, method, meta=(method, np.dtype(kind))
            )
            return rows.to_dask_array()
        return X.map_blocks(
            _ask_block, model, method, dtype=kind, drop_axis=1, meta=np.empty(0, kind)
        )

    def _without_answers(self) -> corral.COR:
        """Return what answers for new rows, without what the rows of the fit got."""
        model = corral.COR(**self.get_params(deep=False))
        is_answer = need_dask("dask").is_dask_collection
        kept = {name: each for name, each in vars(self).items() if not is_answer(each)}
        model.__dict__.update(kept)
        model.labels_ = np.zeros(0, dtype=np.int32)
        return model

    def _open_rows(self, X, sample_weight, extra_partitions) -> RowBlocks:
        """Check X and return its rows as tasks."""
        self._refuse_extras(sample_weight, extra_partitions)
        if is_collection(X):
            return self._open_collection(X)
        if not is_source(X):
            raise TypeError(
                f"X is a {type(X).__name__}; corral.dask.COR takes arrays and data "
                "frames of Dask, paths and sources. Use corral.COR for rows in memory."
            )
        from corral.sources import open_source

        source = open_source(X)
        first = source.read(0, min(source.shape[0], _FIRST_ROWS))
        features, _ = self._read(first, reset=True)
        block_rows = self._budget.count_block_rows(
            count_row_bytes(features), self.n_partitions
        )
        return open_source_rows(source, BlockCheck(self), block_rows)

    def _open_collection(self, X) -> DaskRows:
        dask = need_dask("dask")
        blocks, sizes = list_blocks(X)
        first = dask.delayed(_take_first)(blocks[0], _FIRST_ROWS).compute()
        self._read(first, reset=True)
        token = {"token": dask.base.tokenize(X), "sizes": sizes.tolist()}
        return DaskRows(blocks, BlockCheck(self), sizes, token)

    @property
    def _budget(self) -> Budget:
        if self.memory_limit is not None:
            return Budget(read_limit(self.memory_limit))
        workers = find_client().scheduler_info()["workers"].values()
        shares = [each["memory_limit"] // each["nthreads"] // 2 for each in workers]
        return Budget(min(shares, default=read_limit(None)))

    def _make_workplace(self, rows: RowBlocks, threads: Threads) -> Workplace:
        """Return where the passes over rows are done."""
        journal = None
        if self.checkpoint_dir is not None:
            journal, rows = open_journal(self, rows)
        tasks = Tasks(find_client(), shows_progress=bool(self.verbose))
        assert isinstance(rows, DaskRows)
        return DaskWorkplace(rows, tasks, threads, journal)


def _take_first(rows: Any, n_rows: int) -> Any:
    return rows[:n_rows]


def _ask_block(rows: Any, model: corral.COR, method: str) -> np.ndarray:
    if not len(rows):
        return np.zeros(0)
    model.n_jobs = 1
    return getattr(model, method)(rows)
