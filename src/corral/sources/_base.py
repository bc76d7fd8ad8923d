"""What the sources that read through a cursor share."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from corral._visible import spell_out
from corral.sources._cursor import Cursor
from corral.sources._errors import UnreadableBlockError
from corral.tables._arrow import need_arrow
from corral.tables._broken import Broken
from corral.tables._limits import check_memory

# Errors tell so many of the pieces that were left out.
_MAX_TOLD = 3

_READ_FEWER = "Shorten its texts, or read other columns."


class StreamedSource:
    """Rows that come as a stream of blocks.

    Attributes
    ----------
    shape : tuple of (n_samples, n_columns)
    names : list of str or None
    borders : list of int
        The rows at which pieces begin that are cheap to read as a whole, and n_samples.
    skipped : list of str
        What was left out, in sentences.
    has_random_access : bool
        Whether rows are found without those before them.
    """

    has_random_access = False
    shape: tuple[int, int]
    names: list[str] | None
    borders: list[int]
    skipped: list[str]
    _title: str
    _schema: Any
    _cursor: Cursor | None = None

    def read(self, start: int, stop: int) -> Any:
        """Return rows.

        Parameters
        ----------
        start : int
            The first row.
        stop : int
            The row after the last one.

        Returns
        -------
        block : pyarrow.Table, ndarray or csr_array with stop - start rows
        """
        check_range(start, stop, self.shape[0])
        if self._cursor is None:
            self._cursor = self._make_cursor()
        join = partial(self._join, n_rows=stop - start)
        return self._cursor.read(start, stop, join)

    def _make_cursor(self) -> Cursor:
        raise NotImplementedError

    def _join(self, pieces: Iterator[Any], n_rows: int) -> Any:
        found, n_found = [], 0
        for piece in pieces:
            found.append(piece)
            n_found += len(piece)
            if n_found < n_rows:
                self._check_room(piece.nbytes, n_rows)
        return need_arrow().concat_tables(found or [self._schema.empty_table()])

    def _check_room(self, n_bytes: int, n_rows: int) -> None:
        """Refuse rows of which one more piece like the last would not fit."""
        try:
            check_memory(n_bytes, _READ_FEWER)
        except Broken as error:
            raise MemoryError(f"{n_rows:,} rows of {self._title} {error}") from error

    def __getstate__(self) -> dict[str, Any]:
        # Open files stay in the process that opened them.
        return {**vars(self), "_cursor": None}

    def __repr__(self) -> str:
        return spell_out(f"{type(self).__name__}({self._title}, shape={self.shape})")


def check_range(start: int, stop: int, n_samples: int) -> None:
    """Refuse rows that are not there."""
    if not 0 <= start <= stop <= n_samples:
        raise ValueError(
            f"start={start} and stop={stop} should lie between 0 and "
            f"n_samples={n_samples}, in this order."
        )


class Sieve:
    """Keeps the pieces that can be read, and notes those that cannot.

    Parameters
    ----------
    on_error : {"raise", "skip"}
        Whether a piece that cannot be read is an error or is left out.

    Attributes
    ----------
    left_out : list of str
        Sentences on what was left out.
    """

    def __init__(self, on_error: str) -> None:
        if on_error not in ("raise", "skip"):
            raise ValueError(
                f"on_error={on_error!r} is not known. Choose one of 'raise', 'skip'."
            )
        self._is_strict = on_error == "raise"
        self.left_out: list[str] = []

    def keep(self, read: Callable[[Any], Any], pieces: Iterable[Any]) -> list[Any]:
        """Return what ``read`` makes of the pieces that can be read."""
        kept = []
        for piece in pieces:
            try:
                kept.append(read(piece))
            except UnreadableBlockError as error:
                self.note(error, _say_left_out(piece))
        return kept

    def note(self, error: UnreadableBlockError, outcome: str) -> None:
        """Note what was left out and why; raise the error if nothing may be."""
        if self._is_strict:
            raise error
        self.left_out.append(f"{error} {outcome}")

    def check_left(self, kept: list[Any], name: str) -> None:
        """Refuse to go on without any rows."""
        if kept:
            return
        if not self.left_out:
            raise ValueError(f"{name} has no rows.")
        raise UnreadableBlockError(
            f"Nothing of {name} can be read. {' '.join(self.left_out[:_MAX_TOLD])}"
        )


def _say_left_out(piece: Any) -> str:
    n_rows = getattr(piece, "n_rows", None)
    if isinstance(n_rows, list):
        n_rows = sum(n_rows)
    if n_rows is None:
        return "It is left out."
    return (
        "Its row is left out." if n_rows == 1 else f"Its {n_rows:,} rows are left out."
    )


def choose_names(names: list[str], columns: str | Sequence[str] | None) -> list[str]:
    """Return the names of the columns to read: those asked for, or all."""
    if columns is None:
        return list(names)
    # Brings more of the package than reading without a choice needs.
    from corral.tables._rows import as_names, check_known

    wanted = list(dict.fromkeys(as_names(columns)))
    check_known(wanted, names, "columns names")
    if not wanted:
        raise ValueError("columns is empty. Name the columns to read, or give None.")
    return wanted


def plain_schema(names: Sequence[str], types: Sequence[Any]) -> Any:
    """Return a schema of names and types alone."""
    return need_arrow().schema(list(zip(names, types, strict=True)))
