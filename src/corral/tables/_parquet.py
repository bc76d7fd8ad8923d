"""Parquet files: what they say of themselves is not believed before it is checked."""

from contextlib import ExitStack
from functools import cached_property
from typing import Any

from corral._memory import find_free_memory
from corral.tables._arrow import need_arrow
from corral.tables._broken import MEND, Broken, say_broken
from corral.tables._limits import ALWAYS_FREE, check_columns, check_memory, fits
from corral.tables._parquet_leaves import Leaf, find_leaves, measure_cell
from corral.tables._parquet_size import COPIES, GroupSize, PageHeads

# Rows whose letters are counted at once: of texts that are places in a dictionary, of
# which each batch has a copy, and of others.
_CODED_ROWS = 2**20
_TRIED_ROWS = 2**10

# A dictionary of texts that all differ takes so many times what they take as a list.
_COUNTING = 6

# Texts that are decoded at once take this share of the free memory at most.
_TEXT_SHARE = 0.25


def read_parquet(content: Any) -> Any:
    """Read a Parquet file that fits into memory.

    Parameters
    ----------
    content : pyarrow.Buffer

    Returns
    -------
    table : pyarrow.Table
    """
    pa = need_arrow()
    try:
        with open_parquet(pa.BufferReader(content)) as file:
            _check_size(file, pa.BufferReader(content))
            table = file.read()
            n_told = file.metadata.num_rows
        if table.num_rows != n_told:
            raise Broken(
                f"is broken: it holds {table.num_rows:,} rows, but its footer tells of "
                f"{n_told:,}. {MEND}"
            )
        # Broken pages without a checksum may decode to what is no text.
        table.validate(full=True)
        return table
    except (pa.ArrowException, OSError) as error:
        raise say_broken(error) from error


def open_parquet(source: Any, **options: Any) -> Any:
    """Return an open file whose footer makes sense, and that uses its checksums.

    Parameters
    ----------
    source : str or pyarrow.NativeFile
    options : Any
        Of pyarrow's ``ParquetFile``.

    Returns
    -------
    file : pyarrow.parquet.ParquetFile
    """
    make = need_arrow("pyarrow.parquet").ParquetFile
    file = make(source, page_checksum_verification=True, **options)
    _check_footer(file.metadata)
    return file


def _check_footer(meta: Any) -> None:
    """Refuse a file that has too many columns or counts its rows wrongly."""
    check_columns(meta.num_columns)
    groups = [meta.row_group(number) for number in range(meta.num_row_groups)]
    n_rows = [group.num_rows for group in groups]
    if min(n_rows, default=0) < 0 or sum(n_rows) != meta.num_rows:
        raise Broken(
            f"is broken: its footer tells of {meta.num_rows:,} rows, its row groups "
            f"of {sum(n_rows):,}. {MEND}"
        )


def _check_size(file: Any, content: Any) -> None:
    """Refuse a file that does not fit into memory, before it is unpacked."""
    n_rows = file.metadata.num_rows
    n_bytes = int(n_rows * sum(map(measure_cell, file.schema_arrow.types)))
    # Where this is too much already, the heads of pages need not be looked for.
    check_memory(n_bytes)
    leaves = find_leaves(file)
    # As many columns as there are threads are read at the same time.
    beside = sorted(leaf.beside for leaf in leaves if not leaf.n_lists)
    n_bytes += n_rows * sum(beside[-need_arrow().cpu_count() :])
    heads = PageHeads(content, leaves)
    sizes = [heads.measure(number) for number in range(len(heads))]
    n_bytes += max((size.pages for size in sizes), default=0)
    if not fits(n_bytes + _add_up(sizes)):
        with LetterCounter(content, leaves) as counter:
            sizes = [counter.count(size, number) for number, size in enumerate(sizes)]
    check_memory(n_bytes + _add_up(sizes))


def _add_up(sizes: list[GroupSize]) -> int:
    """Return what all lists and texts of row groups take."""
    return sum(size.all_lists + COPIES * size.letters for size in sizes)


class LetterCounter(ExitStack):
    """Counts the letters of texts, where the most that they may be is too much.

    Parameters
    ----------
    source : str or pyarrow.NativeFile
    leaves : list of Leaf
        The columns that are read.
    """

    def __init__(self, source: Any, leaves: list[Leaf]) -> None:
        super().__init__()
        self._source = source
        texts = [leaf for leaf in leaves if leaf.is_text and not leaf.is_coded]
        self._in_lists = [leaf.path for leaf in texts if leaf.n_lists]
        self._in_rows = [leaf.path for leaf in texts if not leaf.n_lists]

    def count(self, size: GroupSize, number: int) -> GroupSize:
        """Return what a row group takes, with its letters counted.

        Parameters
        ----------
        size : GroupSize
            With the most that they may take.
        number : int
            Of the row group.

        Returns
        -------
        size : GroupSize
        """
        if not fits(size.pages + _COUNTING * size.lists):
            return size
        in_lists = self._count_coded(self._in_lists, number)
        in_rows = self._count_coded(self._in_rows, number)
        if in_lists is not None:
            size = size._replace(list_letters=in_lists)
        if in_rows is None:
            in_rows = self._count_decoded(size, number)
        return size._replace(letters=in_rows)

    @cached_property
    def _coded(self) -> Any:
        paths = self._in_lists + self._in_rows
        return self.enter_context(open_parquet(self._source, read_dictionary=paths))

    @cached_property
    def _uncoded(self) -> set[str]:
        """The paths of which pyarrow makes no dictionary.

        Two columns may have the same path if there are dots in their names.
        """
        leaves = find_leaves(self._coded)
        return {leaf.path for leaf in leaves if not leaf.is_coded}

    def _count_coded(self, paths: list[str], number: int) -> int | None:
        """Return the letters of texts, read as places in a dictionary.

        A long one is there once, however often it occurs. None if pyarrow makes no
        dictionary of their type, or of the way in which they are written.
        """
        if not paths:
            return 0
        if self._uncoded.intersection(paths):
            return None
        try:
            return sum(
                sum(map(_add_up_letters, batch.columns))
                for path in paths
                for batch in self._coded.iter_batches(_CODED_ROWS, [number], [path])
            )
        except (need_arrow().ArrowException, OSError):
            return None

    def _count_decoded(self, size: GroupSize, number: int) -> int:
        """Return the letters of texts in no list, decoded a few rows at a time."""
        n_letters, free = 0, find_free_memory()
        n_rows = limit_rows(size.text, _TRIED_ROWS)
        with open_parquet(self._source) as file:
            for batch in file.iter_batches(n_rows, [number], self._in_rows):
                n_letters += batch.nbytes
                if n_letters > free:
                    break
        return n_letters


def _add_up_letters(array: Any) -> int:
    """Return how long all texts in nested lists and records of them are."""
    pa, compute = need_arrow(), need_arrow("pyarrow.compute")
    if pa.types.is_dictionary(array.type):
        lengths = compute.binary_length(array.dictionary)
        return compute.sum(lengths.take(array.indices)).as_py() or 0
    if pa.types.is_map(array.type):
        return _add_up_letters(array.keys) + _add_up_letters(array.items)
    if pa.types.is_struct(array.type):
        return sum(map(_add_up_letters, array.flatten()))
    if hasattr(array, "flatten"):
        return _add_up_letters(array.flatten())
    return int(array.nbytes)


def limit_rows(text: int, n_rows: int) -> int:
    """Return how many rows may be decoded at once.

    Parameters
    ----------
    text : int
        The letters that the texts of a row may have.
    n_rows : int
        That would be decoded otherwise.

    Returns
    -------
    n_rows : int
    """
    if text * n_rows <= ALWAYS_FREE:
        return n_rows
    return max(min(int(_TEXT_SHARE * find_free_memory()) // text, n_rows), 1)
