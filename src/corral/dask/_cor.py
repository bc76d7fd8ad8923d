"""COR for rows on a Dask cluster."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import corral
from corral._callbacks import log_progress
from corral._memory import Budget, read_limit
from corral._open import BlockCheck, count_row_bytes, open_journal
from corral._row_blocks import RowBlocks, is_source
from corral._threads import Threads
from corral._workplace import Workplace
from corral.dask._errors import find_client, need_dask, tell_loss
from corral.dask._rows import (
    DaskRows,
    check_chunks,
    is_collection,
    is_frame,
    list_blocks,
    open_source_rows,
)
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
        return self._ask("predict", X, extra_partitions, np.empty(0, np.int32))

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
        return self._ask("transform", X, extra_partitions, self._label_costs[:0])

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
        return self._ask("score_samples", X, extra_partitions, np.empty(0))

    def to_local(self):
        """Return the model without the cluster, with all answers in memory.

        Returns
        -------
        model : corral.COR
        """
        dask = need_dask("dask")
        answers = {
            name: value
            for name, value in vars(self).items()
            if dask.is_dask_collection(value)
        }
        with tell_loss(find_client()):
            (found,) = dask.compute(answers)
        model = self._without_answers()
        model.__dict__.update(found)
        return model

    def _ask(self, method: str, X, extra_partitions, nothing: np.ndarray) -> Any:
        """Have each block answered when it is asked for.

        Parameters
        ----------
        method : str
        X : dask array or data frame
        extra_partitions : object
            Refused.
        nothing : ndarray
            What no rows at all are told.
        """
        check_is_fitted(self)
        self._refuse_extras(None, extra_partitions)
        model = self._without_answers()
        if is_frame(X):
            n_columns = nothing.shape[1:]
            # A frame of Dask hands over frames only.
            answers = X.map_partitions(
                _ask_frame, model, method, nothing, meta=_as_frame(nothing, X._meta)
            )
            found = answers.to_dask_array()
            return found if n_columns else found[:, 0]
        check_chunks(X)
        if nothing.ndim == 1:
            return X.map_blocks(
                _ask_block, model, method, nothing, drop_axis=1, meta=nothing
            )
        chunks = (X.chunks[0], nothing.shape[1:])
        return X.map_blocks(
            _ask_block, model, method, nothing, chunks=chunks, meta=nothing
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
        # Refused before any row is read.
        client = find_client()
        if is_collection(X):
            with tell_loss(client):
                return self._open_collection(X)
        if not is_source(X):
            raise _refuse_memory(X)
        from corral.sources import open_source

        source = open_source(X)
        if getattr(source, "is_in_memory", False):
            raise _refuse_memory(X)
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
            # Workers may run in other folders.
            journal.folder = journal.folder.absolute()
        tasks = Tasks(find_client(), shows_progress=bool(self.verbose))
        assert isinstance(rows, DaskRows)
        return DaskWorkplace(rows, tasks, threads, journal)


def _refuse_memory(X: Any) -> TypeError:
    return TypeError(
        f"X is a {type(X).__name__} in memory; corral.dask.COR takes arrays and data "
        "frames of Dask, paths and sources of files. Use corral.COR for rows in memory."
    )


def _take_first(rows: Any, n_rows: int) -> Any:
    return rows[:n_rows]


def _ask_block(
    rows: Any, model: corral.COR, method: str, nothing: np.ndarray
) -> np.ndarray:
    """Return what the rows of a block are told."""
    if not rows.shape[0]:
        return nothing
    model.n_jobs = 1
    return getattr(model, method)(rows)


def _ask_frame(rows: Any, model: corral.COR, method: str, nothing: np.ndarray) -> Any:
    return _as_frame(_ask_block(rows, model, method, nothing), rows)


def _as_frame(answers: np.ndarray, rows: Any) -> Any:
    """Return answers as a data frame with the index of the rows."""
    pandas = need_dask("pandas")
    return pandas.DataFrame(answers, index=rows.index[: len(answers)])
