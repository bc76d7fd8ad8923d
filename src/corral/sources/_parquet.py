"""Parquet files, one or a folder of them, as a source."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any, NamedTuple

from corral.sources._base import Sieve, StreamedSource, choose_names, plain_schema
from corral.sources._cursor import Cursor
from corral.sources._errors import UnreadableBlockError
from corral.sources._files import FileMark, describe_files, mark_for_arrow
from corral.tables._arrow import need_arrow
from corral.tables._broken import Broken, first_line, say_broken
from corral.tables._limits import check_memory, fits, list_names
from corral.tables._parquet import LetterCounter, limit_rows, open_parquet
from corral.tables._parquet_leaves import Leaf, find_leaves, measure_cell
from corral.tables._parquet_size import GroupSize, PageHeads
from corral.tables._read import SUFFIXES, check_exists, check_names

# A batch has about so many bytes, and so many rows at most: a row group may be larger
# than memory.
_BATCH_BYTES = 2**24
_BATCH_ROWS = 2**16

# Packed bytes that are read ahead, of all columns together and of one.
_AHEAD_BYTES = 2**23
_AHEAD_RANGE = (2**14, 2**20)

_READ_LESS = "Read other columns, or write it with smaller pages and row groups."


class _Footer(NamedTuple):
    """What a file says of itself: columns, and the rows of its row groups."""

    mark: FileMark
    schema: Any
    leaves: list[Leaf]
    n_rows: list[int]


class _Group(NamedTuple):
    """A row group: its file, its number in it, its rows, and what they take."""

    mark: FileMark
    number: int
    n_rows: int
    size: GroupSize = GroupSize()

    def __str__(self) -> str:
        return f"Row group {self.number} of {self.mark}"


class ParquetSource(StreamedSource):
    r"""Rows of a Parquet file, or of all Parquet files in a folder.

    Batches are decoded one after the other, so that neither a file nor a row group has
    to fit into memory, and none is decoded twice when rows are read in order. Damage
    that leaves values is noticed only in files with checksums
    (``write_page_checksum=True`` of pyarrow).

    Parameters
    ----------
    path : str or Path
        A file, or a folder. Files in it are taken in the order of their paths, also
        those in its folders; names that begin with a dot or an underscore are left
        out. What the names of its folders tell, such as ``year=2024``, is no column,
        and ``skipped`` says so.
    columns : str or list of str, default=None
        Names of the columns to read; None reads all.
    format : {"parquet"}, default=None
        Takes the files of a folder whatever their suffix; None takes those with
        .parquet and .pq.
    on_error : {"raise", "skip"}, default="raise"
        What happens to files and row groups that cannot be read. "skip" decodes all
        of them once when the source is made, and leaves out those that fail.

    Attributes
    ----------
    shape : tuple of (n_samples, n_columns)
    names : list of str
    borders : list of int
        The rows at which row groups begin, and n_samples.
    skipped : list of str
        What was left out, and why.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import pyarrow as pa, pyarrow.parquet
    >>> from corral.sources import ParquetSource
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("a", "b"):
    ...     table = pa.table({"size": [1.0, 2.0], "name": [name, name]})
    ...     pa.parquet.write_table(table, folder / f"{name}.parquet")
    >>> source = ParquetSource(folder)
    >>> source.shape, source.borders
    ((4, 2), [0, 2, 4])
    >>> source.read(1, 3).to_pydict()
    {'size': [2.0, 1.0], 'name': ['a', 'b']}
    """

    # A row group is read by itself.
    has_random_access = True

    def __init__(
        self,
        path: str | Path,
        *,
        columns: str | Sequence[str] | None = None,
        format: str | None = None,
        on_error: str = "raise",
    ) -> None:
        self._title = f"'{path}'"
        sieve = Sieve(on_error)
        paths = _find_files(Path(path), is_any=format is not None)
        footers = sieve.keep(_read_footer, paths)
        # A file without rows may have been written without knowing its types.
        full = [footer for footer in footers if sum(footer.n_rows)]
        sieve.check_left(full, self._title)
        self._schema = _choose_schema(full[0], columns)
        # Bytes of a row, without letters and lists.
        self._width = int(sum(map(measure_cell, self._schema.types)))
        full = sieve.keep(partial(_check_schema, first=full[0], columns=columns), full)
        measured = sieve.keep(partial(self._measure, sieve=sieve), full)
        groups = [group for of_file in measured for group in of_file]
        if on_error == "skip":
            groups = sieve.keep(self._try_group, groups)
        sieve.check_left(groups, self._title)
        self._groups = groups
        self.skipped = sieve.left_out
        if columns is None:
            self.skipped += _tell_of_folders(Path(path), paths, self._schema.names)
        self.borders = [0, *accumulate(group.n_rows for group in groups)]
        self.names = self._schema.names
        self.shape = (self.borders[-1], len(self.names))

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells these rows from others, ready for JSON.

        Returns
        -------
        fingerprint : dict
        """
        marks = list(dict.fromkeys(group.mark for group in self._groups))
        return {
            "kind": "parquet",
            **describe_files(marks),
            "shape": list(self.shape),
            "columns": self.names,
        }

    def _make_cursor(self) -> Cursor:
        return Cursor(self._blocks, self.borders[:-1])

    def _blocks(self, row: int) -> Iterator[Any]:
        """Yield the batches from the row group on that begins with this row."""
        groups = self._groups[self.borders.index(row) :]
        for mark, of_file in groupby(groups, lambda group: group.mark):
            with _open(mark, len(self._schema)) as file:
                for group in of_file:
                    yield from self._batches(file, group)

    def _measure(self, footer: _Footer, sieve: Sieve) -> list[_Group]:
        """Return the row groups of a file that have rows and fit into memory."""
        path = footer.mark.path
        try:
            with need_arrow().OSFile(path) as file:
                heads = PageHeads(file, footer.leaves, set(self._schema.names))
                with LetterCounter(path, heads.leaves) as counter:
                    measure = partial(
                        _measure_group, heads=heads, counter=counter, width=self._width
                    )
                    return sieve.keep(measure, _groups_of(footer))
        except Broken as error:
            raise UnreadableBlockError(f"{footer.mark} {error}") from error

    def _try_group(self, group: _Group) -> _Group:
        """Return the row group, after all of it was decoded."""
        with _open(group.mark, len(self._schema)) as file:
            for _ in self._batches(file, group):
                pass
        return group

    def _batches(self, file: Any, group: _Group) -> Iterator[Any]:
        """Yield the rows of a row group as tables."""
        pa = need_arrow()
        names = self._schema.names
        width = max(group.size.rows // group.n_rows, self._width, 1)
        most = min(max(_BATCH_BYTES // width, 1), _BATCH_ROWS)
        most = limit_rows(group.size.text, most)
        n_rows = 0
        try:
            for batch in file.iter_batches(most, [group.number], names):
                n_rows += batch.num_rows
                yield self._make_table(batch)
                # The pool keeps what it got back, and would have it beside the next.
                del batch
                pa.default_memory_pool().release_unused()
        except MemoryError:
            # One of pyarrow's is an ArrowException, too, but the file is not broken.
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            raise UnreadableBlockError(
                f"{group} is broken: {first_line(error)}."
            ) from error
        if n_rows != group.n_rows:
            raise UnreadableBlockError(
                f"{group} is broken: it holds {n_rows} rows, but should have "
                f"{group.n_rows}."
            )

    def _make_table(self, batch: Any) -> Any:
        # Files may differ in the order of their columns and in what else they say of
        # them.
        columns = [_trim(batch.column(name)) for name in self._schema.names]
        table = need_arrow().Table.from_arrays(columns, schema=self._schema)
        # Broken pages without a checksum may decode to what is no text.
        table.validate(full=True)
        return table


def _trim(column: Any) -> Any:
    """Return a column of a batch without what its rows do not use of a dictionary.

    Each batch has the dictionary of the row group, which may be larger than all else.
    """
    pa, kind = need_arrow(), column.type
    if not pa.types.is_dictionary(kind):
        return column
    used = column.indices.dictionary_encode()
    return pa.DictionaryArray.from_arrays(
        used.indices.cast(kind.index_type),
        column.dictionary.take(used.dictionary),
        ordered=kind.ordered,
    )


def _find_files(path: Path, *, is_any: bool) -> list[Path]:
    """Return the file itself, or the Parquet files of the folder, sorted by path."""
    check_exists(path, f"'{path}'")
    if not path.is_dir():
        return [path]
    found = [
        each
        for each in sorted(path.rglob("*"))
        if (is_any or SUFFIXES.get(each.suffix.lower()) == "parquet")
        and not any(part[0] in "._" for part in each.relative_to(path).parts)
        and each.is_file()
    ]
    if not found:
        raise ValueError(
            f"'{path}' is a folder without Parquet files. Their names should end in "
            '.parquet or .pq; give format="parquet" (--format parquet on the command '
            "line) to read all files in it."
        )
    return found


def _tell_of_folders(path: Path, files: list[Path], names: list[str]) -> list[str]:
    """Return a sentence on columns that only folders name, as in ``year=2024``."""
    folders = {part for file in files for part in file.relative_to(path).parts[:-1]}
    told = {folder.partition("=")[0] for folder in folders if "=" in folder}
    missing = sorted(told.difference(names))
    if not missing:
        return []
    return [
        f"The folders in '{path}' tell of columns that its files do not have "
        f"({list_names(missing)}). They are not read: write them into the files."
    ]


def _read_footer(path: Path) -> _Footer:
    pa, mark = need_arrow(), mark_for_arrow(path)
    if not mark.size:
        raise UnreadableBlockError(f"{mark} is empty.")
    try:
        with open_parquet(mark.path) as file:
            meta = file.metadata
            n_rows = [meta.row_group(j).num_rows for j in range(meta.num_row_groups)]
            return _Footer(mark, file.schema_arrow, find_leaves(file), n_rows)
    except Broken as error:
        raise UnreadableBlockError(f"{mark} {error}") from error
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnreadableBlockError(f"{mark} {say_broken(error)}") from error


def _groups_of(footer: _Footer) -> list[_Group]:
    return [
        _Group(footer.mark, number, n_rows)
        for number, n_rows in enumerate(footer.n_rows)
        if n_rows
    ]


def _measure_group(
    group: _Group, heads: PageHeads, counter: LetterCounter, width: int
) -> _Group:
    """Return a row group with what it takes, if that fits into memory."""
    try:
        size = heads.measure(group.number)
        if size.list_letters and not fits(size.pages + size.all_lists + width):
            size = counter.count(size, group.number)
        check_memory(size.pages + size.all_lists + width, _READ_LESS)
    except Broken as error:
        raise UnreadableBlockError(f"{group} {error}") from error
    return group._replace(size=size)


def _choose_schema(footer: _Footer, columns: str | Sequence[str] | None) -> Any:
    """Return the columns to read, in the order in which they are asked for."""
    known = footer.schema
    if not known.names:
        raise ValueError(f"{footer.mark} has no columns.")
    check_names(known.names, str(footer.mark))
    names = choose_names(known.names, columns)
    return plain_schema(names, [known.field(name).type for name in names])


def _check_schema(
    footer: _Footer, *, first: _Footer, columns: str | Sequence[str] | None
) -> _Footer:
    """Return a file's footer, if it has the columns of the first file."""
    known, wanted = first.schema, choose_names(first.schema.names, columns)
    # A schema makes its names anew whenever they are asked for.
    names = dict.fromkeys(footer.schema.names)
    check_names(footer.schema.names, str(footer.mark))
    lacking = [name for name in wanted if name not in names]
    if lacking:
        raise UnreadableBlockError(
            f"{footer.mark} has no column {lacking[0]!r}, but {first.mark} has. Name "
            "columns that all files have."
        )
    more = names.keys() - known.names
    if more and columns is None:
        raise UnreadableBlockError(
            f"{footer.mark} has a column {min(more)!r}, but {first.mark} has not. Name "
            "the columns to read."
        )
    for name in wanted:
        kind, model = footer.schema.field(name).type, known.field(name).type
        if kind != model:
            raise UnreadableBlockError(
                f"Column {name!r} of {footer.mark} is {kind}, but that of {first.mark} "
                f"is {model}. Write them with one type, or read other columns."
            )
    return footer


def _open(mark: FileMark, n_columns: int) -> Any:
    """Return an open file that reads ahead little."""
    mark.check()
    low, high = _AHEAD_RANGE
    buffer_size = min(max(_AHEAD_BYTES // n_columns, low), high)
    return open_parquet(mark.path, pre_buffer=False, buffer_size=buffer_size)
