"""Tables in all formats that are read, and ways to damage them.

``make_input(case)`` returns the name and the bytes of a harmful file. A case is a
format and a seed. Half of the files are damaged byte by byte; the other half are whole
files, with right checksums, that hold lies: counts, shapes, types and cells that do not
fit.
"""

import gzip
import io
import struct
import zipfile
from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from scipy import sparse
from scipy.io import mmwrite

# Numbers that programs add, multiply and allocate without a second thought.
COUNTS = [
    *(-1, 0, 1, 2, 3, 7, 255, 256, 65_535, 10**6, 2**31 - 1, 2**31, 2**32, 2**32 + 1),
    *(10**10, 2**40, 2**62, 2**63 - 1, -(2**63), 10**30),
]
CELLS = [
    *(b"", b"?", b"NA", b"nan", b"inf", b"-inf", b"1e999", b"-0", b"007", b"1_0"),
    *(b"\x00", b"1\x00", b"\xff\xfe", b"\xc3\x28", b"\xed\xa0\x80", b"\xef\xbb\xbf1"),
    *(b'"', b'"open', b'""', b'a"b', b"'", b"'open", b"\\", b"\r", b"\n", b"\r\n"),
    *(b",", b";", b"\t", b"%", b"{", b"}", b"{1 2}", b"@data", b"=1+1", b"true"),
    *(b"2024-02-30", b"2024-01-01T25:61:00", b"99999-01-01", b"0001-01-01"),
    *(b"9" * 30, b"9" * 400, b"-" * 20, b"x" * 3000, b"1" * 5000, b"0x10", b"1,5"),
]

N_ROWS = 12


# Damage to bytes ----------------------------------------------------------------------


def _flip(rng, data):
    for place in rng.integers(len(data), size=_some(rng, [1, 1, 2, 8])):
        data[place] ^= 1 << int(rng.integers(8))


def _overwrite(rng, data):
    place = int(rng.integers(len(data)))
    value = rng.choice([0, 1, 0x7F, 0x80, 0xFE, 0xFF])
    data[place : place + int(rng.integers(1, 9))] = bytes([value])


def _put_count(rng, data):
    width, form = [(4, "<i"), (8, "<q"), (2, "<h"), (4, ">i")][rng.integers(4)]
    count = COUNTS[rng.integers(len(COUNTS))] % 2 ** (8 * width - 1)
    place = int(rng.integers(max(len(data) - width, 1)))
    if rng.random() < 0.7:
        # Where formats keep their numbers.
        place -= place % 4
    data[place : place + width] = struct.pack(form, count)


def _cut(rng, data):
    del data[int(rng.integers(len(data))) :]


def _drop(rng, data):
    place = int(rng.integers(len(data)))
    del data[place : place + int(rng.integers(1, 33))]


def _repeat(rng, data):
    start, stop = sorted(rng.integers(len(data) + 1, size=2).tolist())
    data[start:start] = data[start:stop] * int(rng.integers(1, 4))


def _insert(rng, data):
    place = int(rng.integers(len(data) + 1))
    data[place:place] = CELLS[rng.integers(len(CELLS))]


def _splice(rng, data):
    bases = make_bases()
    other = bases[sorted(bases)[rng.integers(len(bases))]][0]
    start, stop = sorted(rng.integers(len(other) + 1, size=2).tolist())
    place = int(rng.integers(len(data) + 1))
    data[place : place + stop - start] = other[start:stop]


_DAMAGES = [_flip, _overwrite, _put_count, _cut, _drop, _repeat, _insert, _splice]


def damage(rng, content: bytes) -> bytes:
    """Return bytes with one to three kinds of damage."""
    data = bytearray(content)
    for _ in range(_some(rng, [1, 1, 1, 2, 3])):
        if data:
            _DAMAGES[rng.integers(len(_DAMAGES))](rng, data)
    return bytes(data)


def _damage_end(rng, content: bytes) -> bytes:
    """Damage what stands at the end, as the footer of Parquet and Arrow does."""
    border = int(len(content) * rng.uniform(0.3, 1))
    return content[:border] + damage(rng, content[border:])


# Whole files --------------------------------------------------------------------------


def _some(rng, values):
    return values[int(rng.integers(len(values)))]


def make_numbers(rng, n_columns=3):
    return rng.normal(size=(N_ROWS, n_columns)).round(2)


def make_table() -> pa.Table:
    """Return a table with columns of all kinds that are used, and some that are not."""
    rng = np.random.default_rng(0)
    words = ["red", "green", None, "blue"] * (N_ROWS // 4)
    return pa.table(
        {
            "size": pa.array(rng.normal(size=N_ROWS)),
            "count": pa.array([*range(N_ROWS - 1), None], pa.int32()),
            "color": pa.array(words),
            "kind": pa.array(words).dictionary_encode(),
            "day": pa.array(range(N_ROWS), pa.date32()),
            "when": pa.array(range(N_ROWS), pa.timestamp("ms", "UTC")),
            "paid": pa.array([True, False, None] * (N_ROWS // 3)),
            "price": pa.array(range(N_ROWS), pa.int64()).cast(pa.decimal128(21, 2)),
            "list": pa.array([[1, 2], None, []] * (N_ROWS // 3)),
            "bytes": pa.array([b"x", b"", None] * (N_ROWS // 3)),
        }
    )


def to_bytes(write: Callable, *args, **named) -> bytes:
    """Return what a function writes into a file, its first argument."""
    file = io.BytesIO()
    write(file, *args, **named)
    return file.getvalue()


def to_parquet(table: pa.Table, **options) -> bytes:
    """Return a table as a Parquet file."""
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(table, sink, **options)
    return sink.getvalue().to_pybytes()


def _to_arrow(table: pa.Table, open_writer=pa.ipc.new_file, compression=None) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with open_writer(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=5)
    return sink.getvalue().to_pybytes()


_ARFF_HEAD = (
    b"% a comment\n@relation r\n@attribute size numeric\n@attribute 'the color' "
    b"{red,'light blue',green}\n@attribute day date 'yyyy-MM-dd'\n@data\n"
)


@cache
def make_bases() -> dict[str, list[bytes]]:
    """Return sound files of each format."""
    rng = np.random.default_rng(1)
    table, numbers = make_table(), make_numbers(rng)
    plain = table.drop_columns(["list", "bytes"])
    rows = sparse.random_array((N_ROWS, 6), density=0.4, random_state=rng).tocsr()
    sink = pa.BufferOutputStream()
    pa.csv.write_csv(plain, sink)
    text = sink.getvalue().to_pybytes()
    dense = b"1.5,red,2024-01-02\n?,'light blue',?\n-2,green,2023-12-31\n" * 4
    strewn = b"{0 1.5, 1 green}\n{}\n{1 ?, 2 2024-01-02}\n" * 4
    head = b"@relation s\n@attribute a numeric\n@attribute b real\n@data\n"
    parts = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr}
    return {
        "csv": [text, text.replace(b",", b";"), b"\xff\xfe" + _utf16(text)],
        "tsv": [text.replace(b",", b"\t")],
        "parquet": [
            to_parquet(table),
            to_parquet(table, compression="zstd", row_group_size=5),
            to_parquet(plain, use_dictionary=False, data_page_version="2.0"),
        ],
        "arrow": [
            _to_arrow(table),
            _to_arrow(table, pa.ipc.new_stream),
            _to_arrow(table, compression="zstd"),
        ],
        "npy": [
            to_bytes(np.save, numbers),
            to_bytes(np.save, np.asfortranarray(numbers, dtype="<f4")),
            to_bytes(np.save, np.array([(1, b"a"), (2, b"b")], "i4,S3")),
        ],
        "npz": [
            to_bytes(np.savez, X=numbers, y=np.arange(N_ROWS)),
            to_bytes(np.savez_compressed, numbers),
            to_bytes(sparse.save_npz, rows),
            to_bytes(sparse.save_npz, rows.tocsc()),
            to_bytes(np.savez, **parts, shape=np.array(rows.shape)),
        ],
        "arff": [_ARFF_HEAD + dense, _ARFF_HEAD + strewn, head + b"{1 4}\n{0 1}\n" * 6],
        "mtx": [
            to_bytes(mmwrite, rows),
            to_bytes(mmwrite, numbers),
            to_bytes(mmwrite, sparse.coo_array(np.eye(5)), symmetry="symmetric"),
        ],
    }


def _utf16(text: bytes) -> bytes:
    return text.decode().encode("utf-16-le")


# Files that lie -----------------------------------------------------------------------


def _lie_csv(rng, mark=b",") -> bytes:
    n_columns = int(_some(rng, [1, 2, 3, 50]))
    head = [b"c%d" % j for j in range(n_columns)]
    rows = [
        [b"%g" % each for each in row]
        for row in rng.normal(size=(N_ROWS, n_columns)).tolist()
    ]
    lines = [head, *rows]
    for _ in range(_some(rng, [1, 2, 5])):
        line = lines[rng.integers(len(lines))]
        line[rng.integers(len(line))] = _some(rng, CELLS)
    if rng.random() < 0.3:
        lines[rng.integers(len(lines))].append(_some(rng, CELLS))
    end = _some(rng, [b"\n", b"\r\n", b"\r", b"\n\n"])
    text = end.join(mark.join(line) for line in lines)
    if rng.random() < 0.1:
        text = b"\xff\xfe" + text.decode("latin-1").encode("utf-16-le")
    return text


def _lie_tsv(rng) -> bytes:
    return _lie_csv(rng, b"\t")


_TYPES = [
    *("<f8", "<f4", ">i2", "|b1", "|O", "|S0", "<U0", "|V0", "<U3", "<c16", "<M8[ns]"),
    *("<m8[D]", "|V1000000000", "<f16", "f8", "<i99", "", "object", "<f2", "|S5"),
    *([("a", "<f8"), ("b", "|S3")], [("a", "<f8"), ("a", "<f8")], [("", "<i4")]),
    *([("a", "<f8", (2, 2))], [], [("a", [("b", "<f8")])], ("<f8", (3,)), None, 3),
]


def _make_npy(rng, values: np.ndarray) -> bytes:
    """Return the bytes of an array under a header that lies in one to three places."""
    head = {
        "descr": values.dtype.str,
        "fortran_order": False,
        "shape": values.shape,
    }
    for _ in range(rng.integers(1, 4)):
        lie = rng.integers(6)
        if lie == 0:
            head["descr"] = _some(rng, _TYPES)
        elif lie == 1:
            head["fortran_order"] = _some(rng, [True, 1, None, "yes"])
        elif lie == 2:
            head.pop(_some(rng, ["descr", "shape"]), None)
        else:
            n_axes = rng.integers(4)
            head["shape"] = tuple(_some(rng, COUNTS) for _ in range(n_axes))
    text = repr(head).encode()
    text = _some(rng, [text, text, text, text, b"(" * 300, b"-" * 5000 + b"1", b"1"])
    text += b" " * (-len(text) % 64) + b"\n"
    version = _some(rng, [b"\x01\x00"] * 6 + [b"\x02\x00", b"\x03\x00", b"\x09\x00"])
    size = len(text) if rng.random() < 0.9 else int(_some(rng, COUNTS)) % 2**16
    width = "<H" if version == b"\x01\x00" else "<I"
    return b"\x93NUMPY" + version + struct.pack(width, size) + text + values.tobytes()


def _lie_npy(rng) -> bytes:
    return _make_npy(rng, make_numbers(rng))


def _lie_npz(rng) -> bytes:
    """Return a zip archive with sound checksums, the parts of which do not fit."""
    rows = sparse.random_array((N_ROWS, 6), density=0.4, random_state=rng)
    kind = _some(rng, ["csr", "csc", "coo", "bsr", "dia", "none", "dense"])
    parts = split_sparse(rows, kind)
    for _ in range(_some(rng, [1, 1, 2])):
        name = _some(rng, sorted(parts))
        parts[name] = _spoil(rng, parts[name])
    if rng.random() < 0.1:
        parts.pop(_some(rng, sorted(parts)))
    file = io.BytesIO()
    packings = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED] * 8 + [zipfile.ZIP_LZMA]
    packing = _some(rng, packings)
    with zipfile.ZipFile(file, "w", packing) as archive:
        for name, values in parts.items():
            data = to_bytes(np.save, values)
            if rng.random() < 0.05:
                data = _make_npy(rng, values)
            archive.writestr(
                f"{name}.npy", damage(rng, data) if rng.random() < 0.1 else data
            )
    return file.getvalue()


def split_sparse(rows, kind: str) -> dict[str, np.ndarray]:
    """Return the arrays that SciPy saves of a sparse matrix, or those of a table."""
    if kind == "dense":
        return {"X": rows.toarray(), "y": np.arange(N_ROWS)}
    made = rows.tocsr() if kind == "none" else rows.asformat(kind)
    names = ("data", "indices", "indptr", "row", "col", "offsets")
    parts = {name: getattr(made, name) for name in names if hasattr(made, name)}
    parts["shape"] = np.array(made.shape)
    if kind != "none":
        parts["format"] = np.array(kind.encode())
    return parts


def _spoil(rng, values: np.ndarray) -> np.ndarray:
    """Return an array that does not fit to the others."""
    lie = rng.integers(6)
    if values.dtype.kind not in "iuf" or lie == 0:
        return _some(rng, [np.array(b"csc"), np.array(b"dok"), np.array(["x"]), values])
    if lie == 1 and values.size:
        values = values.copy()
        places = rng.integers(values.size, size=2)
        values.flat[places] = [_some(rng, COUNTS) % 2**31 for _ in places]
        return values
    if lie == 2:
        return values[: len(values) // 2] if values.ndim else values
    if lie == 3:
        return _some(rng, [-values, values[::-1], values.astype("f4"), values[None]])
    if lie == 4:
        return np.concatenate([values, values])
    count = _some(rng, COUNTS) % 2**62
    return np.full(values.shape, count, dtype=np.int64)


def _lie_mtx(rng) -> bytes:
    form = _some(rng, [b"coordinate", b"coordinate", b"array"])
    fields = [b"real"] * 12 + [b"integer", b"pattern", b"complex", b"quaternion"]
    field = _some(rng, fields)
    kinds = [b"general"] * 9 + [b"symmetric", b"skew-symmetric", b"hermitian"]
    symmetry = _some(rng, kinds)
    sizes = [N_ROWS, 3, N_ROWS]
    for _ in range(_some(rng, [0, 0, 1, 2])):
        sizes[rng.integers(3)] = _some(rng, COUNTS)
    sizes = sizes[: 2 if form == b"array" else 3]
    lines = [b"%%MatrixMarket matrix " + b" ".join([form, field, symmetry])]
    lines += [b" ".join(b"%d" % size for size in sizes)]
    for i in range(N_ROWS * (3 if form == b"array" else 1)):
        cell = b"%g" % rng.normal()
        lines += [
            cell if form == b"array" else b"%d %d " % (i % N_ROWS + 1, i % 3 + 1) + cell
        ]
    for _ in range(_some(rng, [0, 1, 2])):
        place = rng.integers(1, len(lines))
        words = lines[place].split() or [b""]
        words[rng.integers(len(words))] = _some(rng, [*CELLS, *map(_as_text, COUNTS)])
        lines[place] = b" ".join(words)
    return b"\n".join(lines) + b"\n"


def _as_text(count: int) -> bytes:
    return b"%d" % count


_ATTRIBUTES = [
    *(b"numeric", b"{a,b}", b"date 'yyyy'") * 8,
    *(b"numeric", b"REAL", b"integer", b"string", b"relational", b"date", b"{}", b"{"),
    *(b"{a,b}", b"{a,'b c',?}", b"{'", b"date 'yyyy'", b"date 'HH:mm'", b"date '%'"),
    *(b"{" + b"v," * 500 + b"w}", b"{" + b"x" * 5000 + b"}", b"{" + b",'" * 300 + b"}"),
]


def _lie_arff(rng) -> bytes:
    odd = [b'"d"', b"a", b"(x+)+$", b"'", b""]
    kinds = [_some(rng, _ATTRIBUTES) for _ in range(rng.integers(1, 5))]
    names = [b"'name %d'" % j for j in range(len(kinds))]
    if rng.random() < 0.2:
        names[0] = _some(rng, odd)
    pairs = zip(names, kinds, strict=True)
    head = [b" ".join([b"@attribute", *pair]) for pair in pairs]
    blank = b"\n" * int(_some(rng, [1, 1, 2, 60]))
    rows = [[_fitting_cell(rng, kind) for kind in kinds] for _ in range(N_ROWS)]
    row = _some(rng, rows)
    row[rng.integers(len(row))] = _some(rng, [b"?", *CELLS])
    if rng.random() < 0.4:
        lines = [b"{" + _join_pairs(rng, row) + b"}" for row in rows]
    else:
        lines = [b",".join(row) for row in rows]
    return b"\n".join([b"@relation r", *head, b"@data"]) + blank + b"\n".join(lines)


def _fitting_cell(rng, kind: bytes) -> bytes:
    if kind.startswith(b"{"):
        return _some(rng, [b"a", b"b"])
    return b"%d" % rng.integers(1990, 2024)


def _join_pairs(rng, row: list[bytes]) -> bytes:
    places = [*range(len(row))]
    if rng.random() < 0.03:
        places[0] = _some(rng, COUNTS)
    return b", ".join(b"%d %s" % pair for pair in zip(places, row, strict=True))


def _odd_column(rng) -> pa.Array:
    """Return a column of a kind that is seldom, or with values at its borders."""
    n = N_ROWS
    low, high = -(2**63), 2**63 - 1
    make = [
        lambda: pa.array([low, high] * (n // 2), pa.timestamp("us")),
        lambda: pa.array([low, high] * (n // 2), pa.duration("s")),
        lambda: pa.array([high - j for j in range(n)], pa.uint64()),
        lambda: pa.array([2**31 - 1, -(2**31)] * (n // 2), pa.date32()),
        lambda: pa.array([low, high] * (n // 2), pa.date64()),
        lambda: pa.array([10**70 + j for j in range(n)], pa.decimal256(76, 0)),
        lambda: pa.array([float("inf"), float("nan")] * (n // 2)),
        lambda: pa.array(np.arange(n, dtype="f2")),
        lambda: pa.array(range(n), pa.time64("ns")),
        lambda: pa.nulls(n),
        lambda: pa.array([{"a": 1}] * n),
        lambda: pa.array([[1]] * n, pa.list_(pa.int64(), 1)),
        lambda: pa.array([[("k", 1)]] * n, pa.map_(pa.string(), pa.int64())),
        lambda: pa.array(["a", "b"] * (n // 2), pa.large_string()),
        lambda: pa.array(["a", "b"] * (n // 2), pa.string_view()),
        lambda: pa.array([b"ab"] * n, pa.binary(2)),
        lambda: pa.array([None, "a"] * (n // 2)).dictionary_encode(),
        lambda: pa.array(range(n)).dictionary_encode(),
        lambda: pa.array(["x" * 5000, ""] * (n // 2)),
    ]
    return _some(rng, make)()


def _odd_arrow_column(rng) -> pa.Array:
    """Return a column of a kind that Parquet does not have, or one that it has."""
    n = N_ROWS
    make = [
        lambda: pa.array([(1, 2, 3)] * n, pa.month_day_nano_interval()),
        lambda: pa.RunEndEncodedArray.from_arrays([5, n], [1.0, 2.0]),
        lambda: pa.UnionArray.from_dense(
            pa.array([0, 1] * (n // 2), pa.int8()),
            pa.array([j // 2 for j in range(n)], pa.int32()),
            [pa.array(range(n // 2)), pa.array(["a"] * (n // 2))],
        ),
        lambda: pa.array([[1]] * n, pa.list_view(pa.int64())),
        lambda: pa.array([b"a"] * n, pa.binary_view()),
        lambda: pa.DictionaryArray.from_arrays(
            pa.array([5] * n, pa.int32()), pa.array(["a"]), safe=False
        ),
        lambda: _odd_column(rng),
    ]
    return _some(rng, make)()


def _break_texts(rng) -> bytes:
    """Return an Arrow file whose texts are said to lie outside of their bytes."""
    content = _to_arrow(pa.table({"text": ["ab"] * N_ROWS}))
    starts = np.arange(0, 12, 2, dtype=np.int32)
    wrong = starts.copy()
    wrong[rng.integers(6)] = _some(rng, COUNTS) % 2**31
    return content.replace(starts.tobytes(), wrong.tobytes())


def _odd_table(rng, make_column) -> pa.Table:
    names = ["a", "b", "b", "", "\x00", "c" * 300]
    columns = [make_column(rng) for _ in range(rng.integers(1, 4))]
    return pa.Table.from_arrays(columns, names=[_some(rng, names) for _ in columns])


def _lie_parquet(rng) -> bytes:
    options = {
        "compression": _some(rng, ["none", "snappy", "gzip", "zstd", "lz4", "brotli"]),
        "use_dictionary": bool(rng.integers(2)),
        "data_page_version": _some(rng, ["1.0", "2.0"]),
        "row_group_size": int(_some(rng, [1, 5, 100])),
        "write_page_checksum": bool(rng.integers(2)),
    }
    try:
        content = to_parquet(_odd_table(rng, _odd_column), **options)
    except pa.ArrowNotImplementedError:
        # Older releases of pyarrow cannot write all types.
        return _lie_parquet(rng)
    return content if rng.random() < 0.3 else _damage_footer(rng, content)


def _damage_footer(rng, content: bytes) -> bytes:
    """Damage the metadata, and leave its length and the mark at the end right."""
    start = len(content) - 8 - struct.unpack("<I", content[-8:-4])[0]
    footer = damage(rng, content[start:-8])
    return content[:start] + footer + struct.pack("<I", len(footer)) + b"PAR1"


def _lie_arrow(rng) -> bytes:
    if rng.random() < 0.1:
        return _break_texts(rng)
    writer = _some(rng, [pa.ipc.new_file, pa.ipc.new_stream])
    table = _odd_table(rng, _odd_arrow_column)
    try:
        content = _to_arrow(table, writer, _some(rng, [None, "lz4", "zstd"]))
    except (pa.ArrowException, ValueError):
        # Some kinds of columns can be packed and others cannot be written.
        content = _to_arrow(make_table(), writer)
    return content if rng.random() < 0.4 else _damage_end(rng, content)


_LIES = {
    "csv": _lie_csv,
    "tsv": _lie_tsv,
    "parquet": _lie_parquet,
    "arrow": _lie_arrow,
    "npy": _lie_npy,
    "npz": _lie_npz,
    "arff": _lie_arff,
    "mtx": _lie_mtx,
}
FORMATS = sorted(_LIES)


def make_input(case: tuple[str, int]) -> tuple[str, bytes]:
    """Return the name and the content of a harmful file.

    Parameters
    ----------
    case : tuple of format and seed
        Seeds that are one more than a multiple of 5 give packed files.
    """
    kind, seed = case
    rng = np.random.default_rng([seed, FORMATS.index(kind)])
    if rng.random() < 0.5:
        content = _LIES[kind](rng)
    else:
        content = _some(rng, make_bases()[kind])
        content = _some(rng, [damage, _damage_end])(rng, content)
    if seed % 5 != 1:
        return f"case.{kind}", content
    suffix = _some(rng, [".gz", ".zst"])
    packed = gzip.compress(content, 1) if suffix == ".gz" else zstd(content)
    return f"case.{kind}{suffix}", packed if rng.random() < 0.5 else damage(rng, packed)


def zstd(content: bytes) -> bytes:
    """Return bytes, packed."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()
