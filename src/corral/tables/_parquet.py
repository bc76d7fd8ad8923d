"""Parquet files: what they say of themselves is not believed before it is checked."""

from typing import Any

from corral._memory import find_free_memory
from corral.tables._arrow import need_arrow
from corral.tables._broken import MEND, Broken, say_broken
from corral.tables._limits import check_columns, check_memory
from corral.tables._parquet_size import GroupSize, Leaf, PageHeads, find_leaves

# Rows of texts that are decoded to see how long they are.
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
    width = sum(_measure_cell(kind) for kind in file.schema_arrow.types)
    n_bytes = int(width * file.metadata.num_rows)
    # Where this is too much already, the heads of pages need not be looked for.
    check_memory(n_bytes)
    heads = PageHeads(content, find_leaves(file))
    sizes = [heads.measure(number) for number in range(len(heads))]
    if sum(size.unfolded for size in sizes) > find_free_memory():
        sizes = [
            count_unfolded(content, size, number, heads.leaves)
            for number, size in enumerate(sizes)
        ]
    pages = max((size.pages for size in sizes), default=0)
    check_memory(n_bytes + pages + sum(size.all_lists for size in sizes))
    texts = max((size.texts for size in sizes), default=0)
    _check_texts(file, heads.leaves, limit_rows(texts, _TRIED_ROWS))


def count_unfolded(
    source: Any, size: GroupSize, number: int, leaves: list[Leaf]
) -> GroupSize:
    """Return what a row group takes, with the texts in lists counted.

    They are read as places in a dictionary, in which a long text is there once.

    Parameters
    ----------
    source : str or pyarrow.NativeFile
    size : GroupSize
        With the most that they may take.
    number : int
        Of the row group.
    leaves : list of Leaf
        The columns that are read.

    Returns
    -------
    size : GroupSize
    """
    check_memory(size.pages + _COUNTING * size.lists)
    paths = [leaf.path for leaf in leaves if leaf.is_list and leaf.is_text]
    try:
        with open_parquet(source, read_dictionary=paths) as file:
            batches = file.iter_batches(_TRIED_ROWS, [number], paths)
            n_bytes = sum(
                _count_letters(column) for batch in batches for column in batch.columns
            )
    except (need_arrow().ArrowException, OSError):
        # There are ways to write texts of which pyarrow makes no dictionary.
        return size
    return size._replace(unfolded=n_bytes)


def _count_letters(array: Any) -> int:
    """Return how long all texts in nested lists and records of them are."""
    pa, compute = need_arrow(), need_arrow("pyarrow.compute")
    if pa.types.is_dictionary(array.type):
        lengths = compute.binary_length(array.dictionary)
        return compute.sum(lengths.take(array.indices)).as_py() or 0
    if pa.types.is_map(array.type):
        return _count_letters(array.keys) + _count_letters(array.items)
    if pa.types.is_struct(array.type):
        return sum(map(_count_letters, array.flatten()))
    return _count_letters(array.flatten())


def _measure_cell(kind: Any) -> float:
    """Return the bytes that a cell of a type takes at least."""
    types = need_arrow().types
    if types.is_null(kind):
        return 0.0
    # Texts and lists have at least a place where they begin.
    has_width = types.is_primitive(kind) or types.is_decimal(kind)
    return kind.bit_width / 8 if has_width else 4.0


def limit_rows(texts: int, n_rows: int) -> int:
    """Return how many rows may be decoded at once.

    Parameters
    ----------
    texts : int
        The bytes that the texts of a row may have.
    n_rows : int
        That would be decoded otherwise.

    Returns
    -------
    n_rows : int
    """
    if not texts:
        return n_rows
    return max(min(int(_TEXT_SHARE * find_free_memory()) // texts, n_rows), 1)


def _check_texts(file: Any, leaves: list[Leaf], n_rows: int) -> None:
    """Refuse texts that do not fit into memory.

    A long text that is there once may stand in all rows, which no page tells. They are
    decoded a few rows at a time, and not kept.
    """
    texts = [leaf.path for leaf in leaves if leaf.is_text and not leaf.is_coded]
    if not texts:
        return
    free, n_bytes = find_free_memory(), 0
    for batch in file.iter_batches(n_rows, columns=texts):
        n_bytes += batch.nbytes
        if n_bytes > free:
            check_memory(n_bytes)
