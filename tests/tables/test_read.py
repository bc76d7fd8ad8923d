"""Every format gives the same rows, and every broken file one clear sentence."""

import datetime as dt
import gzip
import io
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from scipy import sparse
from scipy.io import mmwrite

from corral.sources import open_source
from corral.tables import read_table
from corral.tables._size import measure_table

TABLE = pa.table(
    {
        "size": pa.array([1.5, None, 3.0], pa.float64()),
        "count": pa.array([1, 2, 3], pa.int64()),
        "color": pa.array(["red", "blue", None], pa.string()),
    }
)
CSV = b"size,count,color\n1.5,1,red\n,2,blue\n3.0,3,\n"
MATRIX = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]])
AS_COLUMNS = {"feature 0": [1.0, 0.0], "feature 1": [0.0, 0.0], "feature 2": [2.0, 3.0]}


def written(writer, *args):
    sink = pa.BufferOutputStream()
    writer(*args, sink)
    return sink.getvalue().to_pybytes()


def ipc(open_writer):
    sink = pa.BufferOutputStream()
    with open_writer(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return sink.getvalue().to_pybytes()


def saved(save, *args, **named):
    file = io.BytesIO()
    save(file, *args, **named)
    return file.getvalue()


TABLES = {
    "t.csv": CSV,
    "t.tsv": CSV.replace(b",", b"\t"),
    "t.tab": CSV.replace(b",", b"\t"),
    "t.parquet": written(pa.parquet.write_table, TABLE),
    "t.arrow": ipc(pa.ipc.new_file),
    "t.feather": written(pa.feather.write_feather, TABLE),
    "stream.arrows": ipc(pa.ipc.new_stream),
    "stream.arrow": ipc(pa.ipc.new_stream),
}
DENSE = {
    "d.npy": saved(np.save, MATRIX),
    "only.npz": saved(np.savez, MATRIX),
    "x.npz": saved(np.savez, X=MATRIX, y=np.zeros(2), other=np.zeros((2, 2))),
    "d.mtx": saved(mmwrite, MATRIX),
}
PARTS = sparse.csr_array(MATRIX)
SPARSE = {
    "s.npz": saved(sparse.save_npz, PARTS),
    "csc.npz": saved(sparse.save_npz, sparse.csc_matrix(MATRIX)),
    "bsr.npz": saved(sparse.save_npz, sparse.bsr_array(MATRIX)),
    "dia.npz": saved(sparse.save_npz, sparse.dia_array(MATRIX)),
    "coo matrix.npz": saved(sparse.save_npz, sparse.coo_matrix(MATRIX)),
    "coo array.npz": saved(sparse.save_npz, sparse.coo_array(MATRIX)),
    # As SciPy will save it one day.
    "coords.npz": saved(
        np.savez,
        data=PARTS.data,
        coords=PARTS.tocoo().coords,
        shape=np.array(PARTS.shape),
        format=b"coo",
    ),
    "parts.npz": saved(
        np.savez,
        data=PARTS.data,
        indices=PARTS.indices,
        indptr=PARTS.indptr,
        shape=np.array(PARTS.shape),
        y=np.zeros(2),
    ),
    "s.mtx": saved(mmwrite, PARTS),
}


@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
@pytest.mark.parametrize("name", TABLES)
def test_tables_keep_names_types_and_missing_cells(put, name, packing):
    read = read_table(put(name + packing, pack(TABLES[name], packing)))
    assert read.to_pydict() == TABLE.to_pydict()
    assert read.schema.types == TABLE.schema.types


def pack(content, packing):
    if packing == ".gz":
        return gzip.compress(content)
    if packing == ".zst":
        return bytes(pa.Codec("zstd").compress(content, asbytes=True))
    return content


def test_zeros_after_gzip_are_no_damage_and_other_bytes_are(put):
    # Tapes and disks are filled with zeros; two packed files in a row are one.
    middle = CSV.index(b"\n") + 1
    packed = gzip.compress(CSV[:middle]) + gzip.compress(CSV[middle:])
    path = put("t.csv.gz", packed + bytes(500))
    assert read_table(path).to_pydict() == TABLE.to_pydict()
    assert measure_table(path).n_rows == open_source(path).shape[0] == len(TABLE)
    with pytest.raises(ValueError, match=r"gzip data is broken or cut off"):
        read_table(put("t.csv.gz", packed + b"more"))


@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
@pytest.mark.parametrize("name", DENSE)
def test_arrays_become_tables_of_numbered_features(put, name, packing):
    read = read_table(put(name + packing, pack(DENSE[name], packing)))
    assert read.to_pydict() == AS_COLUMNS


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_forms_become_csr(put, name):
    read = read_table(put(name, SPARSE[name]))
    assert isinstance(read, sparse.csr_array)
    assert read.dtype == np.float64
    np.testing.assert_array_equal(read.toarray(), MATRIX)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (TABLES["t.csv"], TABLE.to_pydict()),
        (TABLES["t.tsv"], TABLE.to_pydict()),
        (TABLES["t.parquet"], TABLE.to_pydict()),
        (TABLES["t.arrow"], TABLE.to_pydict()),
        (TABLES["stream.arrow"], TABLE.to_pydict()),
        (gzip.compress(CSV), TABLE.to_pydict()),
        (pack(CSV, ".zst"), TABLE.to_pydict()),
        (DENSE["d.npy"], AS_COLUMNS),
        (DENSE["x.npz"], AS_COLUMNS),
        (DENSE["d.mtx"], AS_COLUMNS),
        (b"% ours\n@RELATION r\n@ATTRIBUTE a real\n@DATA\n4\n", {"a": [4.0]}),
    ],
    ids=[
        *("csv", "tsv", "parquet", "file", "stream", "gzip"),
        *("zstd", "npy", "npz", "mtx", "arff"),
    ],
)
def test_standard_input_is_told_by_its_first_bytes(monkeypatch, content, expected):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert read_table("-").to_pydict() == expected


def test_standard_input_is_what_it_is_said_to_be(monkeypatch):
    content = b"a,b\tc\n1\t2\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert read_table("-", format="tsv").to_pydict() == {"a,b": [1], "c": [2]}


def test_format_wins_over_the_suffix(put):
    assert read_table(put("table.data", CSV), format="csv").num_rows == 3


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_of_csv_is_found(put, delimiter):
    content = f'a{delimiter}"b, or; c"\n1{delimiter}2\n3{delimiter}4\n'.encode()
    read = read_table(put("t.csv", content))
    assert read.to_pydict() == {"a": [1, 3], "b, or; c": [2, 4]}


def test_zstd_may_begin_with_a_frame_that_is_skipped(put):
    # As parallel packers write it.
    packed = b"\x5f\x2a\x4d\x18\x03\x00\x00\x00abc" + pack(CSV, ".zst")
    assert read_table(put("t.csv.zst", packed)).to_pydict() == TABLE.to_pydict()
    assert open_source(put("t.csv.zst", packed)).shape[0] == len(TABLE)


def test_thousands_beside_decimal_commas_are_no_fractions(put):
    read = read_table(put("t.csv", b"a;b\n1.000;2,5\n2.345;3,5\n"))
    assert read.to_pydict() == {"a": ["1.000", "2.345"], "b": [2.5, 3.5]}
    read = read_table(put("t.csv", b"a;b\n1.000;x\n2.345;y\n"))
    assert read["a"].to_pylist() == [1.0, 2.345]


def test_decimal_commas_between_semicolons(put):
    read = read_table(put("t.csv", b"a;b\n1,5;x, y\n-2,25;z\n"))
    assert read.to_pydict() == {"a": [1.5, -2.25], "b": ["x, y", "z"]}


def test_dates_times_and_truth_values_of_csv(put):
    content = b"d,t,s,b\n2024-02-29,12:30,2024-02-29 12:30:00Z,true\n,,,false\n"
    read = read_table(put("t.csv", content))
    kinds = [str(kind) for kind in read.schema.types]
    assert kinds == ["date32[day]", "time32[s]", "timestamp[s, tz=UTC]", "bool"]


@pytest.mark.parametrize("mark", ["", "NA", "nan", "null", "?"])
def test_marks_of_missing_cells(put, mark):
    read = read_table(put("t.csv", f"a,b\n1,x\n{mark},{mark}\n".encode()))
    assert read.to_pydict() == {"a": [1, None], "b": ["x", None]}


def test_line_ends_in_quotes_and_of_windows(put):
    read = read_table(put("t.csv", b'\xef\xbb\xbfa,b\r\n1,"x\r\ny"\r\n2,z\r\n'))
    assert read.to_pydict() == {"a": [1, 2], "b": ["x\r\ny", "z"]}


def test_utf16_of_spreadsheets(put):
    read = read_table(put("t.csv", "a\tb\n1\tä\n".encode("utf-16")))
    assert read.to_pydict() == {"a": [1], "b": ["ä"]}


def test_a_first_line_of_numbers_is_a_row(put):
    for content in (b"1.5,2\n3,4\n", b"1,5;2\n3,0;4\n", b'"1.5","2"\n3,4\n'):
        read = read_table(put("t.csv", content))
        assert read.to_pydict() == {"feature 0": [1.5, 3.0], "feature 1": [2, 4]}


@pytest.mark.parametrize("head", ["0,1,2", "2019,2020,2021"])
def test_a_first_line_that_counts_up_names_the_columns(put, head):
    read = read_table(put("t.csv", f"{head}\n7,8,9\n".encode()))
    assert read.column_names == head.split(",")


@pytest.mark.parametrize("row", ["1,,3.5", "1,NA,3.5", ",,3.5", "?,2,3.5", "nan,2,3"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_first_line_of_numbers_may_have_missing_cells(put, row, delimiter):
    content = f"{row}\n4,5,6\n".replace(",", delimiter).encode()
    read = read_table(put("t.csv", content))
    assert read.column_names == ["feature 0", "feature 1", "feature 2"]
    missing = ("", "NA", "?", "nan")
    expected = [None if cell in missing else float(cell) for cell in row.split(",")]
    assert [column[0].as_py() for column in read.columns] == expected


@pytest.mark.parametrize(
    "head", [",0,1", ",0", ",,0", ",2019,2020", '"","1","2"', "NA,id", "1,x,", "NA,?"]
)
def test_names_with_empty_cells_are_names(put, head):
    # pandas and R leave the cells above the names of rows empty.
    n_cells = head.count(",") + 1
    row = ",".join("7" * n_cells)
    path = put("t.csv", f"{head}\n{row}\n{row}\n".encode())
    if head == ",,0":
        with pytest.raises(ValueError, match="more than one column"):
            read_table(path)
    else:
        assert read_table(path).column_names == head.replace('"', "").split(",")


@pytest.mark.parametrize(
    ("row", "first"),
    [
        ('"1,5",2', {"feature 0": ["1,5", "x"], "feature 1": [2, 3]}),
        ('"1,234,567.5",2', {"feature 0": ["1,234,567.5", "x"], "feature 1": [2, 3]}),
        ("1,5\t2", {"feature 0": ["1,5", "x"], "feature 1": [2, 3]}),
    ],
)
def test_commas_in_numbers_of_the_first_line_make_no_names(put, row, first):
    # They may part thousands as well as fractions, and so stay texts.
    rest = "x\t3" if "\t" in row else "x,3"
    assert read_table(put("t.csv", f"{row}\n{rest}\n".encode())).to_pydict() == first


EMPTY_LINES = {
    "in the middle": (["x", "1", "", "3", ""], {"x": [1, None, 3]}),
    "at the end": (["x", "1", "", "", ""], {"x": [1, None, None]}),
    "no line end": (["x", "1", "", "3"], {"x": [1, None, 3]}),
    "before the names": (["", "", "x", "", "3", ""], {"x": [None, 3]}),
    "no names": (["", "7", "", "3", ""], {"feature 0": [None, 7, None, 3]}),
    "texts": (["x", "a", "", '"b\n\nc"', ""], {"x": ["a", None, "b\n\nc"]}),
    "no value": (["x", "", "", ""], {"x": [None, None]}),
    "two columns": (["x,y", "1,2", "", "3,4", ""], {"x": [1, 3], "y": [2, 4]}),
    "names of two lines": (['"x\ny",z', "1,2", "", ""], {"x\ny": [1], "z": [2]}),
}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("name", EMPTY_LINES)
def test_empty_lines_are_missing_cells_where_there_is_one_column(
    put, name, end, encoding
):
    lines, expected = EMPTY_LINES[name]
    path = put("t.csv", end.join(lines).encode(encoding))
    assert read_table(path).to_pydict() == expected
    source = open_source(path)
    assert source.read(0, source.shape[0]).to_pydict() == expected


def test_lines_of_old_macs(put):
    read = read_table(put("t.csv", b"1,7\r3,4\r5,9\r"))
    assert read.to_pydict() == {"feature 0": [1, 3, 5], "feature 1": [7, 4, 9]}
    with pytest.raises(ValueError, match="not closed: the 2 lines that follow"):
        read_table(put("t.csv", b'a,b\r1,x\r1,"x\r3,4\r'))
    # Longer than the part by which a file is measured, and than the first look at it.
    path = put("t.csv", b"1,7\r" * 2**19)
    assert measure_table(path).n_rows == pytest.approx(2**19, rel=0.01)


@pytest.mark.parametrize("encoding", ["utf8", "utf-16"])
def test_the_measure_of_a_file_is_not_that_of_a_cut_cell(put, encoding):
    # The first MiB ends in a cell with line ends, in quotes within quotes.
    line = '1,2.5,"a ""b""\nc"\n'
    n_rows = 2**21 // len(line)
    text = "x,y,note\n" + line * (n_rows // 2)
    for cell in ("d" * 2**18, "d\n" * 2**17):
        whole = f'{text}1,2.5,"{cell}"\n{line * n_rows}'
        size = measure_table(put("t.csv", whole.encode(encoding)))
        assert size.n_rows == pytest.approx(1.5 * n_rows, rel=0.3)
        assert size.n_bytes > 20 * n_rows
    # Quotes that are not closed are told when the file is read, and take no time here.
    damaged = put("t.csv", ('x,"y\n' + 2**19 * '"a"\n').encode(encoding))
    assert measure_table(damaged).n_rows is None


@pytest.mark.parametrize("has_names", [True, False])
def test_lines_of_csv_may_be_long(put, has_names):
    # Longer than the part by which the delimiter is told.
    row = ",".join(["1.2345678901234567"] * 5_000)
    names = ",".join(f"c{j}" for j in range(5_000))
    lines = [names, row] if has_names else [row]
    assert read_table(put("t.csv", "\n".join(lines).encode())).shape == (1, 5_000)


def test_cells_of_csv_may_be_long(put):
    content = b"a,b\n1," + b"x" * 3_000_000 + b"\n2,y\n"
    assert read_table(put("t.csv", content))["a"].to_pylist() == [1, 2]


def test_a_ragged_row_beside_a_long_cell_is_said_in_a_sentence(put):
    content = b"a,b\n1," + b"x" * 200_000 + b"\n2,y,z\n"
    with pytest.raises(ValueError, match="cannot be read as CSV|has 3 cells"):
        read_table(put("t.csv", content))


def test_leading_zeros_of_codes_are_kept(put):
    table = read_table(put("t.csv", b"id,minute,n\n00123,05,100\n20000,10,200\n"))
    assert table["id"].to_pylist() == ["00123", "20000"]
    assert table["minute"].to_pylist() == [5, 10]
    assert table["n"].to_pylist() == [100, 200]


def test_types_may_change_far_down_a_file(put):
    # The head alone, a megabyte of it, would be whole numbers.
    rows = "1\n" * 700_000 + "2.5\n"
    read = read_table(put("t.csv", f"a\n{rows}".encode()))
    assert read["a"][-1].as_py() == 2.5


def test_wide_arrays_stay_arrays(put):
    wide = np.ones((2, 5001))
    read = read_table(put("w.npy", saved(np.save, wide)))
    assert isinstance(read, np.ndarray)
    np.testing.assert_array_equal(read, wide)


def test_named_fields_of_an_array_become_columns(put):
    values = np.array([(1, b"x"), (2, b"y")], dtype=[("n", ">i4"), ("t", "S1")])
    read = read_table(put("f.npy", saved(np.save, values)))
    assert read.to_pydict() == {"n": [1, 2], "t": ["x", "y"]}


def test_a_list_of_numbers_is_one_column(put):
    read = read_table(put("f.npy", saved(np.save, np.array([3, 1, 2]))))
    assert read.to_pydict() == {"feature 0": [3, 1, 2]}


@pytest.mark.parametrize(
    ("symmetry", "cells", "expected"),
    [
        ("symmetric", b"1\n2\n3\n", [[1, 2], [2, 3]]),
        ("hermitian", b"1\n2\n3\n", [[1, 2], [2, 3]]),
        ("skew-symmetric", b"2\n", [[0, -2], [2, 0]]),
    ],
)
@pytest.mark.parametrize("field", ["real", "integer", "unsigned-integer"])
def test_half_of_a_matrix_tells_the_other_half(put, field, symmetry, cells, expected):
    head = f"%%MatrixMarket matrix array {field} {symmetry}\n% ours\n2 2\n".encode()
    read = read_table(put("half.mtx", head + cells))
    assert np.column_stack([*read.columns]).tolist() == expected


def test_half_of_the_entries_tell_the_others(put):
    head = b"%%MatrixMarket matrix coordinate unsigned-integer skew-symmetric\n"
    read = read_table(put("half.mtx", head + b"2 2 1\n2 1 7\n"))
    assert read.toarray().tolist() == [[0, -7], [7, 0]]


def test_a_sparse_matrix_may_have_no_entry(put):
    head = b"%%MatrixMarket matrix coordinate real general\n"
    read = read_table(put("zeros.mtx", head + b"2 3 0\n"))
    np.testing.assert_array_equal(read.toarray(), np.zeros((2, 3)))


def test_nan_of_arrays_is_missing(put):
    read = read_table(put("f.npy", saved(np.save, np.array([[1.0], [np.nan]]))))
    assert read.to_pydict() == {"feature 0": [1.0, None]}


ARFF = b"""% from somewhere
@relation things
@attribute size real
@attribute 'color of it' {red,blue}
@data
"""


def test_dense_arff(put):
    read = read_table(put("t.arff", ARFF + b"1.5,red\n?,?\n"))
    assert read.to_pydict() == {"size": [1.5, None], "color of it": ["red", None]}


def test_arff_rows_choose_their_quotes_and_may_have_a_weight(put):
    kinds = b"@attribute a {x,'y, z','it, too'}\n@attribute b numeric\n"
    head = b"@relation r\n" + kinds + b"@data\n"
    rows = b"x,1\n\"y, z\",2\n'it, too',3,{0.5}\n"
    read = read_table(put("t.arff", head + rows))
    assert read.to_pydict() == {"a": ["x", "y, z", "it, too"], "b": [1, 2, 3]}
    with pytest.raises(ValueError, match=r"'x,1,7' has 3 cells, where 2 are expected"):
        read_table(put("more.arff", head + b"x,1,7\n"))


def test_arff_has_texts_dates_and_both_kinds_of_quotes(put):
    head = (
        b"@relation r\n@attribute name string\n@attribute day date\n"
        b"@attribute clock date 'mm:ss'\n@attribute who {\"O'Brien\",'x, y',z}\n@data\n"
    )
    rows = (
        b"'it, is',2024-02-29T12:30:00,01:30,\"O'Brien\"\n"
        b'say \'\', "2024-02-29T00:00:00",00:07,"x, y"\n?,?,?,?\n'
    )
    read = read_table(put("t.arff", head + rows)).to_pydict()
    assert read["name"] == ["it, is", "say ''", None]
    assert read["day"] == [
        dt.datetime(2024, 2, 29, 12, 30),
        dt.datetime(2024, 2, 29),
        None,
    ]
    assert [each.minute * 60 + each.second for each in read["clock"][:2]] == [90, 7]
    assert read["who"] == ["O'Brien", "x, y", None]
    sparse_rows = read_table(put("s.arff", head + b"{3 z}\n"))
    assert sparse_rows["name"].to_pylist() == [""]
    with pytest.raises(ValueError, match="'1_000' is no number"):
        read_table(put("n.arff", ARFF + b"1_000,red\n"))


def test_sparse_arff_has_zeros_and_first_values_where_nothing_is(put):
    read = read_table(put("t.arff", ARFF + b"{0 1.5, 1 blue}\n{}\n{1 ?}\n"))
    assert read.to_pydict() == {
        "size": [1.5, 0.0, 0.0],
        "color of it": ["blue", "red", None],
    }


def test_sparse_arff_of_numbers_is_csr(put):
    head = b"@relation r\n@attribute a real\n@attribute b integer\n@data\n"
    read = read_table(put("t.arff", head + b"{1 4}\n{0 -1.5, 1 2}\n"))
    assert isinstance(read, sparse.csr_array)
    np.testing.assert_array_equal(read.toarray(), [[0, 4], [-1.5, 2]])


BROKEN_CSR = saved(
    np.savez,
    data=np.ones(1),
    indices=np.array([9]),
    indptr=np.array([0, 1]),
    shape=np.array([1, 3]),
)


def archive(file):
    with zipfile.ZipFile(file, "w") as members:
        members.writestr("t.csv", CSV)


def zip_many(file):
    with zipfile.ZipFile(file, "w") as members:
        for number in range(10_001):
            members.writestr(f"{number}.npy", b"")


ARCHIVE = saved(archive)


def parts_of_csr(**changes):
    """Return the file of a sparse matrix some parts of which are changed."""
    parts = {"data": np.ones(1), "indices": [0], "indptr": [0, 1], "shape": [1, 3]}
    return saved(np.savez, **{**parts, **changes})


def mtx(kind, rest):
    return f"%%MatrixMarket matrix {kind}\n{rest}".encode()


WRONG = {
    "no known suffix": ("t.xlsx", CSV, r"suffix '\.xlsx' is not known.*\.parquet"),
    "no suffix": ("table", CSV, r"suffix '' is not known"),
    "empty": ("t.csv", b"", r"t\.csv' is empty\.$"),
    "empty when unpacked": ("t.csv.gz", gzip.compress(b""), r"is empty\.$"),
    "only a header": ("t.csv", b"a,b\n", r"has no rows\.$"),
    "only line ends": ("t.csv", b"\n\n", r"has no rows\.$"),
    "ragged": ("t.csv", b"a,b\n1,2\n3,4,5\n6,7\n", r"3 cells in line 3, where 2 are"),
    "a comment": ("t.csv", b"# ours\na,b\n1,2\n", r"'# ours', is a title or a comment"),
    "a comment with a comma": (
        "t.csv",
        b"# ours, all\na,b,c\n1,2,3\n",
        r"3 cells in line 2, where 2 .*take it out: the first line should name the",
    ),
    "twice the name": ("t.csv", b"a,b,a\n1,2,3\n", r"more than one column named 'a'"),
    "latin-1": ("t.csv", b"a\n\xe9\n", r"not UTF-8 text in the columns 'a'"),
    "latin-1 name": ("t.csv", b"\xe9,b\n1,2\n", r"not UTF-8 text"),
    "parquet as csv": ("t.csv", TABLES["t.parquet"], r"is not CSV.*it holds Parquet"),
    "csv as parquet": ("t.parquet", CSV, r"is not Parquet.*starts with b'size"),
    "broken parquet": ("t.parquet", TABLES["t.parquet"][:200], r"broken or cut off"),
    "broken arrow": ("t.arrow", TABLES["t.arrow"][:200], r"broken or cut off"),
    "broken stream": ("t.arrow", TABLES["stream.arrow"][:99], r"broken or cut off"),
    "broken gzip": ("t.csv.gz", gzip.compress(CSV)[:-12], r"gzip data is broken"),
    "broken zstd": ("t.csv.zst", pack(CSV, ".zst")[:-4], r"zstd data is broken"),
    "csv as gzip": ("t.csv.gz", CSV, r"is not gzip, as its suffix says"),
    "broken npy": ("t.npy", DENSE["d.npy"][:90], r"is broken or cut off"),
    "broken npz": ("t.npz", DENSE["x.npz"][:90], r"is broken or cut off"),
    "objects": ("t.npy", saved(np.save, np.array([{}])), r"Python objects"),
    "three dimensions": ("t.npy", saved(np.save, np.ones((2, 2, 2))), r"\(2, 2, 2\)"),
    "complex": ("t.npy", saved(np.save, np.ones((2, 2)) * 1j), r"complex numbers"),
    "no rows": ("t.npy", saved(np.save, np.ones((0, 3))), r"has no rows\.$"),
    "no columns": ("t.npy", saved(np.save, np.ones((3, 0))), r"has no columns\.$"),
    "csr of no columns": (
        "t.npz",
        saved(sparse.save_npz, sparse.csr_array((1, 0))),
        r"has no columns\.$",
    ),
    "cells of bytes": ("t.npy", saved(np.save, np.zeros((2, 2), "V3")), r"One number"),
    "lists in fields": (
        "t.npy",
        saved(np.save, np.zeros(2, [("a", "f8", 3)])),
        r"whose cells are arrays\. One number per cell\.$",
    ),
    "several arrays": (
        "t.npz",
        saved(np.savez, a=MATRIX, b=MATRIX),
        r"holds 2 arrays.*'a' \(2, 3\), 'b' \(2, 3\)\. Name one of them X",
    ),
    "spreadsheet": ("t.csv", ARCHIVE, r"is not CSV.*it holds a zip archive"),
    "archive without arrays": ("t.npz", ARCHIVE, r"holds no array"),
    "no array": ("t.npz", saved(np.savez), r"holds no array"),
    "csr that leads nowhere": ("t.npz", BROKEN_CSR, r"is broken or cut off"),
    "complex csr": ("t.npz", parts_of_csr(data=[1j]), r"holds complex numbers"),
    "csr of texts": ("t.npz", parts_of_csr(data=["1"]), r"should be numbers\.$"),
    "csr between cells": ("t.npz", parts_of_csr(indices=[0.5]), r"should be numbers"),
    "csr of half a row": ("t.npz", parts_of_csr(shape=[1.5, 3]), r"no list of whole"),
    "coo of three dimensions": (
        "t.npz",
        # As newer releases of SciPy save it.
        saved(
            np.savez,
            format=np.array(b"coo"),
            shape=[2, 2, 2],
            data=np.ones(1),
            coords=np.zeros((3, 1), dtype=int),
            _is_array=True,
        ),
        r"holds a sparse array that has not rows and columns\.$",
    ),
    "mtx of a pattern": ("t.mtx", mtx("array pattern general", "1 1\n"), r"no values"),
    "mtx of two sizes": (
        "t.mtx",
        mtx("coordinate real general", "1 1\n1 1 1\n"),
        r"not a complete Matrix Market file: its sizes are b'1 1",
    ),
    "mtx of no sizes": ("t.mtx", mtx("array real general", "% x\n"), r"has no sizes"),
    "broken mtx": ("t.mtx", SPARSE["s.mtx"][:-10], r"not a complete Matrix Market"),
    "many arrays": (
        "t.npz",
        saved(zip_many),
        r"holds 10,001 arrays; 10,000 are the most that is read\. Save the rows as one",
    ),
    "a long name": (
        "t.csv",
        b"a," + b"b" * 10_001 + b"\n1,2\n",
        r"a column whose name has 10,001 letters and begins with 'bbbb.*shorten it",
    ),
    "arff without a type": (
        "t.arff",
        b"@relation r\n@attribute a\n@data\n1\n",
        r"'@attribute a' has not both a name and a type\.$",
    ),
    "arff without data": ("t.arff", b"@relation r\n", r"it has no @data"),
    "arff with tables in cells": (
        "t.arff",
        b"@relation r\n@attribute a relational\n@data\nx\n",
        r"ARFF attributes that are not read",
    ),
    "arff with a wrong value": ("t.arff", ARFF + b"1.5,green\n", r"cannot be read"),
    "sparse arff beyond its columns": ("t.arff", ARFF + b"{7 1}\n", r"sparse ARFF row"),
}


@pytest.mark.parametrize(("name", "content", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_in_a_sentence(put, name, content, words):
    with pytest.raises(ValueError, match=words) as caught:
        read_table(put(name, content))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a,b\n1,2\n\n\n3\n", "1 cell in line 5"),
        (b'a,b\n1,"x\ny"\n3\n', "1 cell in line 4"),
        (b"\n\na,b\n1,2,3\n", "3 cells in line 4"),
        (b"1.5,2\r\n3,4\r\n5\r\n", "1 cell in line 3"),
    ],
    ids=["blank lines", "line ends in quotes", "blank head", "no header"],
)
def test_the_line_of_a_ragged_row_is_that_of_the_file(put, content, words):
    with pytest.raises(ValueError, match=words):
        read_table(put("t.csv", content))


def test_a_file_that_is_not_there_and_one_that_is_near(put, tmp_path):
    put("data.csv", CSV)
    with pytest.raises(FileNotFoundError, match=r"is not there\. Did you.*data\.csv'"):
        read_table(tmp_path / "dta.csv")
    with pytest.raises(FileNotFoundError, match=r"Nor is its folder"):
        read_table(tmp_path / "gone" / "data.csv")


def test_a_folder_is_no_table(tmp_path):
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(ValueError, match=r"is a folder\. Name a file in it"):
        read_table(tmp_path / "t.csv")


def test_an_unknown_format_lists_the_known():
    with pytest.raises(ValueError, match=r"format='xls' is not known.*csv, tsv"):
        read_table("-", format="xls")
