"""What rows are told, on the workers: arrays of Dask."""

from typing import Any

import numpy as np

from corral._answers import Answer
from corral._threads import Threads
from corral.dask._errors import need_dask
from corral.dask._states import Tasks

# What each column holds.
_KINDS = {"labels_": np.int32, "nearest_labels_": np.int32}


class DaskColumns:
    """Answers that stay on the workers: :class:`~corral._answers.Columns`.

    Parameters
    ----------
    tasks : Tasks
    answers : list of Future
        Of an :class:`~corral._answers.Answer` each.
    sizes : ndarray of shape (n_blocks,)
    """

    def __init__(self, tasks: Tasks, answers: list[Any], sizes: np.ndarray) -> None:
        self.answers = answers
        self._tasks = tasks
        self._sizes = sizes
        self._scattered: dict[str, list[Any]] = {}

    def append(self, columns: dict[str, np.ndarray]) -> None:
        """Refuse: answers are made on the workers."""
        raise NotImplementedError

    def scatter(self, name: str, rows: np.ndarray, values: np.ndarray) -> None:
        """Add a column of zeros with these values in some rows, which are sorted."""
        borders = np.concatenate([[0], np.cumsum(self._sizes)])
        ends = np.searchsorted(rows, borders)
        self._scattered[name] = [
            self._tasks.submit(
                _fill, int(size), rows[first:end] - start, values[first:end]
            )
            for size, first, end, start in zip(
                self._sizes, ends[:-1], ends[1:], borders[:-1], strict=True
            )
        ]

    def read(self, name: str, start: int, stop: int) -> np.ndarray:
        """Return a part of a column, brought to this place."""
        return self.close()[name][start:stop].compute()

    def close(self) -> dict[str, Any]:
        """Return all columns, as arrays of Dask."""
        names = self._tasks.gather(self._tasks.start(_list_names, self.answers[:1]))[0]
        columns = {
            name: self._tasks.start(_get_column, self.answers, name) for name in names
        }
        return {
            name: self._join(parts, _KINDS.get(name, np.float64))
            for name, parts in (columns | self._scattered).items()
        }

    def _join(self, parts: list[Any], kind: type) -> Any:
        da, delayed = need_dask("dask.array"), need_dask("dask").delayed
        return da.concatenate(
            [
                da.from_delayed(delayed(part), (int(size),), kind)
                for part, size in zip(parts, self._sizes, strict=True)
            ]
        )


def _fill(size: int, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    column = np.zeros(size)
    column[rows] = values
    return column


def _list_names(answer: Answer, threads: Threads) -> list[str]:
    return list(answer.columns)


def _get_column(answer: Answer, threads: Threads, name: str) -> np.ndarray:
    return answer.columns[name]
