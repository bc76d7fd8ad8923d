"""What the estimators on a cluster share: rows as tasks, and answers that stay lazy."""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from corral._memory import Budget, read_limit
from corral._open import FIRST_ROWS
from corral._row_blocks import is_source
from corral.dask._errors import find_client, need_dask, tell_loss
from corral.dask._rows import (
    DaskRows,
    check_chunks,
    is_collection,
    is_frame,
    list_blocks,
    open_source_rows,
)


class LazyMixin:
    """Opens rows as tasks, and has new rows answered where they are.

    An estimator says in ``_local`` what it is on one machine, and where users find it,
    and gives ``_see_columns`` and ``_make_check``.
    """

    _local: ClassVar[tuple[type, str]]

    def _see_columns(self, first: Any) -> int:
        """Learn what the columns are from some rows; return the rows of a block."""
        raise NotImplementedError

    def _make_check(self) -> Any:
        """Return what checks the rows of a block."""
        raise NotImplementedError

    def to_local(self):
        """Return the model without the cluster, with all answers in memory.

        Returns
        -------
        model : estimator
            Of the class for one machine.
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

    def save(self, path: str | Path) -> None:
        """Write what :meth:`to_local` gives to a file, for :func:`corral.load`.

        Parameters
        ----------
        path : str or Path
            By custom it ends in ``.skops``. What was there is replaced at the end only.
        """
        self.to_local().save(path)

    def _ask(self, method: str, X, nothing: np.ndarray) -> Any:
        """Have each block answered when it is asked for.

        Parameters
        ----------
        method : str
        X : dask array or data frame
        nothing : ndarray
            What no rows at all are told.
        """
        check_is_fitted(self)
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

    def _without_answers(self) -> Any:
        """Return what answers for new rows, without what the rows of the fit got."""
        model = self._local[0](**self.get_params(deep=False))  # type: ignore[attr-defined]
        is_answer = need_dask("dask").is_dask_collection
        kept = {name: each for name, each in vars(self).items() if not is_answer(each)}
        model.__dict__.update(kept)
        model.labels_ = np.zeros(0, dtype=np.int32)
        return model

    def _open_tasks(self, X) -> DaskRows:
        """Check X and return its rows as tasks."""
        # Refused before any row is read.
        client = find_client()
        if is_collection(X):
            with tell_loss(client):
                return self._open_collection(X)
        if not is_source(X):
            raise self._refuse_memory(X)
        from corral.sources import open_source

        source = open_source(X)
        if getattr(source, "is_in_memory", False):
            raise self._refuse_memory(X)
        if not getattr(source, "has_random_access", True):
            raise ValueError(
                f"{source} can only be read from its beginning, which each task would "
                "do. Write it as Parquet first, or use dask.dataframe.read_csv."
            )
        first = source.read(0, min(source.shape[0], FIRST_ROWS))
        block_rows = self._see_columns(first)
        return open_source_rows(source, self._make_check(), block_rows)

    def _open_collection(self, X) -> DaskRows:
        dask = need_dask("dask")
        blocks, sizes = list_blocks(X)
        first = dask.delayed(_take_first)(blocks[0], FIRST_ROWS).compute()
        self._see_columns(first)
        token = {"token": dask.base.tokenize(X), "sizes": sizes.tolist()}
        return DaskRows(blocks, self._make_check(), sizes, token)

    def _refuse_memory(self, X: Any) -> TypeError:
        return TypeError(
            f"X is a {type(X).__name__} in memory; corral.dask.{type(self).__name__} "
            "takes arrays and data frames of Dask, paths and sources of files. Use "
            f"{self._local[1]} for rows in memory."
        )

    @property
    def _budget(self) -> Budget:
        memory_limit = self.memory_limit  # type: ignore[attr-defined]
        if memory_limit is not None:
            return Budget(read_limit(memory_limit))
        workers = find_client().scheduler_info()["workers"].values()
        shares = [each["memory_limit"] // each["nthreads"] // 2 for each in workers]
        return Budget(min(shares, default=read_limit(None)))


def _take_first(rows: Any, n_rows: int) -> Any:
    # The index of a frame may be of numbers, by which it would be cut.
    return rows.iloc[:n_rows] if hasattr(rows, "iloc") else rows[:n_rows]


def _ask_block(rows: Any, model: Any, method: str, nothing: np.ndarray) -> np.ndarray:
    """Return what the rows of a block are told."""
    if not rows.shape[0]:
        return nothing
    model.n_jobs = 1
    return getattr(model, method)(rows)


def _ask_frame(rows: Any, model: Any, method: str, nothing: np.ndarray) -> Any:
    return _as_frame(_ask_block(rows, model, method, nothing), rows)


def _as_frame(answers: np.ndarray, rows: Any) -> Any:
    """Return answers as a data frame with the index of the rows."""
    pandas = need_dask("pandas")
    return pandas.DataFrame(answers, index=rows.index[: len(answers)])
