"""Data sets written as their sources publish them."""

import io
import tarfile
import zipfile

import numpy as np
from scipy.io import savemat


def numbers(values):
    """Return the shortest text of each number that reads back as the same number."""
    return [repr(value).removesuffix(".0") for value in values.tolist()]


def table_bytes(table, rows, classes, other="x", end=""):
    """Return a file with a row per line; columns of no use have the text ``other``."""
    lines = []
    for row, name in zip(rows, classes, strict=True):
        cells = [other] * (max(*table.features, table.label) + 1)
        for column, text in zip(table.features, numbers(row), strict=True):
            cells[column] = text
        cells[table.label] = f"{name}{end}"
        lines.append((table.delimiter or " ").join(cells) + "\n")
    return "".join(lines).encode()


def cluto_bytes(rows):
    lines = [f"{rows.shape[0]} {rows.shape[1]} {rows.nnz}"]
    pairs = zip((rows.indices + 1).tolist(), numbers(rows.data), strict=True)
    texts = [f"{column} {value}" for column, value in pairs]
    for start, stop in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        lines.append(" ".join(texts[start:stop]))
    return ("\n".join(lines) + "\n").encode()


def lines_bytes(classes):
    return "".join(f"{name}\n" for name in classes).encode()


def decaf_bytes(rows, classes):
    file = io.BytesIO()
    savemat(file, {"data": np.column_stack([rows, classes.astype(float)])})
    return file.getvalue()


def original_bytes(info, rows, classes):
    """Return the originals of a data set by their names."""
    if info.layout == "cluto":
        files = [cluto_bytes(rows), lines_bytes(classes)]
    elif info.layout == "decaf":
        files = [decaf_bytes(rows, classes)]
    elif info.name == "shuttle":
        cut = 43_500
        files = [
            table_bytes(info.table, rows[:cut], classes[:cut]),
            table_bytes(info.table, rows[cut:], classes[cut:]),
        ]
    else:
        files = [table_bytes(info.table, rows, classes)]
    return dict(zip(info.originals, files, strict=True))


def zip_bytes(files, packing=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", packing) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return file.getvalue()


def tar_bytes(files, mode="w:gz", **options):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode, **options) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return file.getvalue()


def compress_lzw(data, max_width=16, clears=False):
    """Return what the Unix program compress makes, written to be read."""
    codes, in_group, width = [], 0, 9

    def emit(code):
        nonlocal in_group
        codes.append(f"{code:0{width}b}"[::-1])  # the lowest bit comes first
        in_group = (in_group + 1) % 8

    def end_group():
        nonlocal in_group
        codes.append("0" * (width * (-in_group % 8)))
        in_group = 0

    table, word = {bytes([value]): value for value in range(256)}, b""
    next_code = 257
    for value in data:
        longer = word + bytes([value])
        if longer in table:
            word = longer
            continue
        emit(table[word])
        word = bytes([value])
        if next_code < 1 << max_width:
            table[longer] = next_code
            next_code += 1
            if next_code > 1 << width and width < max_width:
                end_group()
                width += 1
        elif clears:
            emit(256)
            end_group()
            table = {bytes([value]): value for value in range(256)}
            next_code, width = 257, 9
    if word:
        emit(table[word])
    bits = np.array(list("".join(codes)), dtype=np.uint8)
    head = bytes([0x1F, 0x9D, 0x80 | max_width])
    return head + np.packbits(bits, bitorder="little").tobytes()
