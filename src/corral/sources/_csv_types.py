"""Which type fits all cells of a CSV column, told one block after the other."""

from typing import Any

from corral.tables._arrow import need_arrow
from corral.tables._formats import CsvForm


class TypeSieve:
    """The types that all cells so far can be read as.

    pyarrow takes the first type of its list that all cells fit. To know it without
    holding the cells, all types that fit are kept, and each block takes some away.

    Parameters
    ----------
    form : CsvForm
        How the file is written.
    is_text : bool, default=False
        Whether all cells are texts, whatever they could be read as.
    """

    def __init__(self, form: CsvForm, *, is_text: bool = False) -> None:
        self._form = form
        self._left = [] if is_text else _list_types()
        self._is_text = True

    def try_cells(self, cells: Any) -> None:
        """Take the types away that some cell does not fit.

        Parameters
        ----------
        cells : pyarrow.BinaryArray
            As they are written in the file, without quotes.
        """
        if self._left:
            self._left = self._fitting(_quote(cells))
        if not self._left:
            self._is_text = self._is_text and _is_utf8(cells)

    def find_type(self) -> Any:
        """Return pyarrow's type; bytes if the cells are no text either."""
        pa = need_arrow()
        if self._left:
            return self._left[0]
        return pa.string() if self._is_text else pa.binary()

    def _fitting(self, column: Any) -> list[Any]:
        pa = need_arrow()
        fitting: list[Any] = []
        for kind in self._left:
            # Whole numbers are numbers, too; this is the only try that can be spared
            # at all blocks of most files.
            is_sure = kind == pa.float64() and pa.int64() in fitting
            if is_sure or self._fits(column, kind):
                fitting.append(kind)
            if pa.null() in fitting:
                # Missing cells fit every type.
                return self._left
        return fitting

    def _fits(self, column: Any, kind: Any) -> bool:
        pa, arrow_csv = need_arrow(), need_arrow("pyarrow.csv")
        read = arrow_csv.ReadOptions(
            column_names=["cell"], block_size=column.size + 1, use_threads=False
        )
        parse = arrow_csv.ParseOptions(newlines_in_values=True)
        convert = self._form.convert_options(column_types={"cell": kind})
        try:
            arrow_csv.read_csv(pa.BufferReader(column), read, parse, convert)
        except pa.ArrowInvalid:
            return False
        return True


def _list_types() -> list[Any]:
    """Return the types that pyarrow tries, in its order."""
    pa = need_arrow()
    return [
        pa.null(),
        pa.int64(),
        pa.bool_(),
        pa.date32(),
        pa.time32("s"),
        pa.timestamp("s"),
        pa.timestamp("ns"),
        pa.timestamp("s", "UTC"),
        pa.timestamp("ns", "UTC"),
        pa.float64(),
    ]


def _quote(cells: Any) -> Any:
    """Return cells as the bytes of a CSV file with one column."""
    pa, compute = need_arrow(), need_arrow("pyarrow.compute")
    doubled = compute.replace_substring(cells, b'"', b'""')
    parts = [pa.scalar(b'"'), doubled, pa.scalar(b'"\n'), pa.scalar(b"")]
    lines = compute.binary_join_element_wise(*parts)
    n_bytes = compute.sum(compute.binary_length(lines)).as_py()
    return lines.buffers()[2][:n_bytes]


def _is_utf8(cells: Any) -> bool:
    pa = need_arrow()
    try:
        cells.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True
