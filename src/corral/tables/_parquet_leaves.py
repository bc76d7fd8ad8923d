"""The columns of a Parquet file, and what a value of each takes."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from corral.tables._arrow import need_arrow

_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12}

# Where a text begins, and a view of one.
_PLACE_BYTES = 4
_LARGE_PLACE_BYTES = 8
_VIEW_BYTES = 16

# Whether a value is missing.
_LEVEL_BYTES = 2


class Leaf(NamedTuple):
    """A column of Parquet; a column of lists or records may have several.

    Attributes
    ----------
    name : str
        Of the column of the table.
    path : str
        The names that lead to it.
    width : int
        Bytes of a value; of a text, those of its place.
    beside : int
        Bytes that a value takes while it is read, beside what it takes then.
    n_lists : int
        How many lists are in each other; 0 if a row has one value.
    has_gaps : bool
        Whether values may be missing.
    is_text : bool
    is_coded : bool
        Whether it is read as places in a dictionary.
    """

    name: str
    path: str
    width: int
    beside: int
    n_lists: int
    has_gaps: bool
    is_text: bool
    is_coded: bool


def find_leaves(file: Any) -> list[Leaf]:
    """Return the columns of a Parquet file.

    Parameters
    ----------
    file : pyarrow.parquet.ParquetFile

    Returns
    -------
    leaves : list of Leaf
    """
    table, schema = file.schema_arrow, file.schema
    kinds = [
        (name, kind)
        for name, whole in zip(table.names, table.types, strict=True)
        for kind in _find_kinds(whole)
    ]
    columns = [schema.column(number) for number in range(len(schema))]
    return [
        _describe(column, name, kind)
        for column, (name, kind) in zip(columns, kinds, strict=True)
    ]


def _find_kinds(kind: Any) -> Iterator[Any]:
    """Yield the types of the values in lists and records, in the order of Parquet."""
    kind, types = _strip(kind), need_arrow().types
    if types.is_struct(kind):
        for number in range(kind.num_fields):
            yield from _find_kinds(kind.field(number).type)
    elif types.is_map(kind):
        yield from _find_kinds(kind.key_type)
        yield from _find_kinds(kind.item_type)
    elif types.is_dictionary(kind) or not hasattr(kind, "value_type"):
        yield kind
    else:
        yield from _find_kinds(kind.value_type)


def _strip(kind: Any) -> Any:
    """Return how values of a type are stored."""
    return getattr(kind, "storage_type", kind)


def _describe(column: Any, name: str, kind: Any) -> Leaf:
    physical = column.physical_type
    is_text = physical == "BYTE_ARRAY"
    width = _PLACE_BYTES if is_text else _WIDTHS.get(physical, max(column.length, 0))
    # Values of another width are copied.
    copied = 0 if measure_cell(kind) == width else width
    return Leaf(
        name,
        column.path,
        width,
        copied + _LEVEL_BYTES,
        column.max_repetition_level,
        column.max_definition_level > 0,
        is_text,
        need_arrow().types.is_dictionary(kind),
    )


def measure_cell(kind: Any) -> float:
    """Return the bytes that a cell of a type takes, without letters and lists."""
    kind, types = _strip(kind), need_arrow().types
    if types.is_null(kind):
        return 0.0
    if types.is_struct(kind):
        fields = [kind.field(number).type for number in range(kind.num_fields)]
        return sum(map(measure_cell, fields))
    if types.is_fixed_size_list(kind):
        return kind.list_size * measure_cell(kind.value_type)
    if types.is_primitive(kind) or types.is_decimal(kind):
        return kind.bit_width / 8
    if types.is_fixed_size_binary(kind):
        return float(kind.byte_width)
    if str(kind).endswith("_view"):
        return float(_VIEW_BYTES)
    return float(_LARGE_PLACE_BYTES if str(kind).startswith("large") else _PLACE_BYTES)
