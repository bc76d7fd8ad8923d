"""Files that are made to harm are refused in a sentence, soon and in little memory."""

import io
import json
import os
import pickle
import socket
import struct
import time
import tracemalloc
import zipfile

import joblib
import numpy as np
import pytest
import skops.io
from scipy import sparse

import corral
from tests.models.make import HERE

GOOD = HERE / corral.__version__

# Imported before time and memory are measured.
assert skops.io


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.skops"


def read_members(name="cor"):
    with zipfile.ZipFile(GOOD / f"{name}.skops") as archive:
        return {each: archive.read(each) for each in archive.namelist()}


def write_members(path, members, method=zipfile.ZIP_DEFLATED):
    """Write pairs of names and contents, also names that are there twice."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, member in members:
            archive.NameToInfo.pop(name, None)
            archive.writestr(name, member)


def refuse(path, words):
    """Load a file, which has to fail soon, in one line, and in little memory."""
    tracemalloc.start()
    begin = time.perf_counter()
    with pytest.raises(ValueError, match=words) as caught:
        corral.load(path)
    seconds = time.perf_counter() - begin
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert peak < 100e6
    assert seconds < 20


def array_name(members):
    return next(name for name in members if name.endswith(".npy"))


def test_members_that_do_not_belong_are_refused(path):
    pairs = list(read_members().items())
    for name in ("../1.npy", "/1.npy", "a/1.npy", "C:\\1.npy", "x.pkl", "1.npy\n", "é"):
        write_members(path, [*pairs, (name, b"x")])
        refuse(path, "it has the unknown member")
    write_members(path, [*pairs, ("123.npy", read_members()["1.npy"])])
    refuse(path, "'123.npy' is not both described and there")


def test_names_that_are_there_twice_are_refused(path):
    pairs = list(read_members().items())
    write_members(path, [*pairs, pairs[0]])
    refuse(path, "is there twice")


def test_pickles_are_not_read_however_they_are_packed(path):
    path.write_bytes(pickle.dumps(corral.COR()))
    refuse(path, "looks like a pickle")
    joblib.dump(corral.COR(), path)
    refuse(path, "looks like a pickle")
    joblib.dump(corral.COR(), path, compress=3)
    refuse(path, "it is no zip archive")
    members = read_members()
    objects = io.BytesIO()
    np.save(objects, np.array([corral.COR()], dtype=object), allow_pickle=True)
    for content in (pickle.dumps([1]), objects.getvalue()):
        pairs = {**members, array_name(members): content}.items()
        write_members(path, pairs)
        refuse(path, "is no array|is an array of object")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_unknown_packing_is_refused(path, method):
    write_members(path, read_members().items(), method)
    refuse(path, "is packed in an unknown way")


def patch_directory(path, offset, fresh):
    """Change what the directory says of the first member."""
    content = bytearray(path.read_bytes())
    start = content.find(b"PK\x01\x02") + offset
    content[start : start + len(fresh)] = fresh
    path.write_bytes(content)


def test_encrypted_members_are_refused(path):
    write_members(path, read_members().items())
    patch_directory(path, 8, b"\x01\x00")
    refuse(path, "is encrypted")


def test_bombs_are_refused_by_what_they_announce(path):
    pairs = list(read_members().items())
    zeros = bytes(2**20)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, member in pairs:
            archive.writestr(name, member)
        with archive.open("999.npy", "w", force_zip64=True) as file:
            for _ in range(64):
                file.write(zeros)
    assert path.stat().st_size < 2**17
    refuse(path, "it would unpack to .* far more than a model of its size")


def test_bombs_that_announce_little_are_refused(path):
    pairs = [("999.npy", bytes(2**25)), *read_members().items()]
    write_members(path, pairs)
    patch_directory(path, 24, struct.pack("<I", 100))
    refuse(path, "damaged: it is damaged: Bad CRC-32 for file '999.npy'")


def test_members_that_hold_less_than_they_announce_are_refused(path):
    write_members(path, read_members().items())
    size = len(next(iter(read_members().values())))
    patch_directory(path, 24, struct.pack("<I", size + 1))
    refuse(path, "is not as large as announced")


def test_a_page_that_is_no_page_is_refused(path):
    members = read_members()
    members["corral.json"] = b" " * 10**5 + members["corral.json"]
    write_members(path, members.items())
    refuse(path, r"'corral\.json' is larger than 65\.5 kB")


def test_a_bomb_in_sparse_rows_is_refused(path):
    members = read_members("lof-sparse")
    name = next(each for each in members if each.endswith(".npz"))
    inner = io.BytesIO()
    np.savez_compressed(inner, data=np.zeros(2**22), indices=[0], indptr=[0, 1])
    write_members(path, {**members, name: inner.getvalue()}.items())
    refuse(path, "it would unpack to .* far more than a model of its size")


def test_what_memory_cannot_hold_is_refused(path, monkeypatch):
    monkeypatch.setattr("corral.persist._archive.SMALL_TOTAL", 100)
    monkeypatch.setattr("corral.persist._archive.find_free_memory", lambda: 10_000)
    path.write_bytes((GOOD / "cor.skops").read_bytes())
    refuse(path, "there is not as much free memory")


def dump(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def test_one_array_cannot_stand_in_thousands_of_places(path):
    members = read_members()
    schema = json.loads(members["schema.json"])
    node = {"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode"}
    node |= {"__id__": 999, "type": "numpy", "file": "999.npy"}
    partitioner = schema["content"]["content"]["_partitioner"]["content"]
    known = partitioner["content"]["columns"]["content"]["content"]["known"]
    known["content"] = [node] * 3000
    members["schema.json"] = json.dumps(schema).encode()
    write_members(path, {**members, "999.npy": dump(np.zeros(2 * 10**6))}.items())
    assert path.stat().st_size < 50_000
    begin = time.perf_counter()
    refuse(path, r"it uses '999\.npy' and others too many times")
    assert time.perf_counter() - begin < 5


def test_descriptions_that_become_many_objects_need_room(path, monkeypatch):
    module = "corral.persist._archive"
    members = read_members()
    members["schema.json"] = b'{"a":[' + b"{}," * 10**6 + b"0]}"
    write_members(path, members.items())
    monkeypatch.setattr(f"{module}.find_free_memory", lambda: 50 * 10**6)
    refuse(path, r"reading it takes 90 MB, and there is not as much free memory")
    members["schema.json"] = b" " * (64 * 2**20 + 1)
    write_members(path, members.items())
    refuse(path, r"'schema\.json' is larger than 67\.1 MB")


def test_arrays_without_values_have_few_rows(path):
    # They take no room in the file, but what is made for each row does.
    members = read_members()
    for shape in ((2**40, 0), (0, 2**31)):
        buffer = io.BytesIO()
        head = {"descr": "<f8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(buffer, head)
        pairs = {**members, array_name(members): buffer.getvalue()}.items()
        write_members(path, pairs)
        refuse(path, "has a shape that cannot be")


def test_few_rows_with_many_neighbors_are_refused(path):
    # Equal rows are there once, and an answer takes all pairs of neighbours.
    members = read_members("cof")
    schema = json.loads(members["schema.json"])
    top = schema["content"]["content"]
    neighbors = top["_neighbors"]["content"]["content"]
    book = neighbors["book"]["content"]["content"]
    for node in (top["labels_"], top["outlier_scores_"], book["inverse"]):
        array = np.load(io.BytesIO(members[node["file"]]))
        members[node["file"]] = dump(np.resize(array, 20_000))
    for node in (top["n_neighbors_"], neighbors["n_neighbors"]):
        node["content"] = "19999"
    members["schema.json"] = json.dumps(schema).encode()
    write_members(path, members.items())
    refuse(path, "an answer for one row would take gigabytes")


def test_sparse_rows_with_a_billion_columns_are_refused(path):
    # Their medians are dense.
    members = read_members("cof-sparse")
    schema = json.loads(members["schema.json"])
    schema["content"]["content"]["n_features_in_"]["content"] = str(2**30 - 1)
    name = next(each for each in members if each.endswith(".npz"))
    rows = sparse.load_npz(io.BytesIO(members[name]))
    buffer = io.BytesIO()
    # For the cosine, they have one column more.
    parts = (rows.data, rows.indices, rows.indptr)
    sparse.save_npz(buffer, sparse.csr_array(parts, (rows.shape[0], 2**30)))
    members |= {name: buffer.getvalue(), "schema.json": json.dumps(schema).encode()}
    write_members(path, members.items())
    refuse(path, "an answer for one row would take gigabytes")


def test_arrays_that_announce_more_than_they_have_are_refused(path):
    members = read_members()
    name = array_name(members)
    for shape in ("(10000000000,)", "(0, -1)", "(1e9,)", "(1,) * 90"):
        text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}\n"
        length = len(text).to_bytes(2, "little")
        content = b"\x93NUMPY\x01\x00" + length + text.encode() + bytes(8)
        write_members(path, {**members, name: content}.items())
        refuse(path, "is not as large as its header says|shape that cannot|is no array")


def test_headers_that_are_more_than_a_type_and_a_shape_are_not_parsed(path):
    # Python's parser takes time and room for chains of signs.
    members = read_members()
    text = b"-" * 9000 + b"1"
    content = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
    write_members(path, {**members, array_name(members): content}.items())
    refuse(path, "is no array: it holds more than a type and a shape")


def test_deep_descriptions_are_refused(path):
    members = read_members()
    for deep in ("[" * 10**6, '{"a":' * 10**6, nest(200), nest(400)):
        write_members(path, {**members, "schema.json": deep.encode()}.items())
        refuse(path, "nested too deeply|is no JSON")


def nest(depth):
    """Return a list in a list and so on, as skops describes it."""
    node = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}
    content = []
    for _ in range(depth):
        content = [{**node, "content": content}]
    return json.dumps({**node, "content": content, "protocol": 2})


def test_parts_that_stand_for_each_other_cannot_multiply(path):
    # Each list holds the one before it twice by its number, which skops looks at
    # 2**40 times.
    node = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}
    content = [{**node, "content": [], "__id__": 1}]
    for number in range(2, 42):
        twin = {**node, "content": [], "__id__": number - 1}
        content = [{**node, "content": [*content, twin], "__id__": number}]
    schema = {**node, "content": content, "protocol": 2}
    members = {
        "corral.json": read_members()["corral.json"],
        "schema.json": json.dumps(schema).encode(),
    }
    write_members(path, members.items())
    refuse(path, "holds a list and no model")


def test_a_model_that_holds_itself_is_refused(path):
    members = read_members("cor-detector")
    schema = json.loads(members["schema.json"])
    schema["__id__"] = 1
    schema["content"]["content"]["estimator_"] = {
        "__class__": "CORDetector",
        "__module__": "corral._detector",
        "__loader__": "ObjectNode",
        "__id__": 1,
    }
    members["schema.json"] = json.dumps(schema).encode()
    write_members(path, members.items())
    refuse(path, "cannot be read")


def test_what_is_no_file_is_refused_without_waiting(path, tmp_path):
    os.mkfifo(path)
    refuse(path, "is a pipe or a device")
    refuse("/dev/zero", "is a pipe or a device")
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    refuse(loop, "cannot be opened")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        refuse(tmp_path / "socket", "cannot be opened|is a pipe or a device")
    refuse(tmp_path, "is a folder")


def test_a_folder_is_told_where_folders_are_not_opened(path, tmp_path, monkeypatch):
    def refuse_to_open(*args):
        raise PermissionError(13, "Permission denied")

    path.write_bytes((GOOD / "cor.skops").read_bytes())
    monkeypatch.setattr(os, "open", refuse_to_open)
    refuse(tmp_path, "it is a folder. Name a model file")
    with pytest.raises(PermissionError, match="Permission denied"):
        corral.load(path)


def test_a_link_to_a_model_is_followed(path):
    path.symlink_to(GOOD / "cor.skops")
    assert isinstance(corral.load(path), corral.COR)


def test_another_archive_before_the_model_is_refused(path):
    path.write_bytes(b"#!/bin/sh\n" + (GOOD / "cor.skops").read_bytes())
    refuse(path, "it is no zip archive")


def test_a_newer_format_is_named_whatever_else_is_in_the_file(path):
    members = read_members()
    page = json.loads(members["corral.json"])
    page |= {"format": 2, "corral": "0.5.0"}
    words = r"by corral 0\.5\.0 in the format 2, .* It needs a newer corral: use that"
    for other, more in [
        ({}, {"weights.bin": b"1"}),
        ({"platform": {"os": "linux"}}, {}),
        ({}, {"schema.json": b"\x00"}),
        ({}, {"x.npy": b"1"}),
    ]:
        content = json.dumps({**page, **other}).encode()
        write_members(path, {**members, "corral.json": content, **more}.items())
        refuse(path, words)
    write_members(path, [("corral.json", json.dumps(page))])
    refuse(path, words)


def test_a_newer_format_is_named(path):
    members = read_members()
    page = json.loads(members["corral.json"])
    for wrong, words in [
        (
            {"format": 2, "corral": "1.0.0"},
            r"written by corral 1\.0\.0 in the format 2",
        ),
        ({"format": 0}, r"in the format 0, and corral .* Use that version"),
        ({"format": "1"}, "does not say which format"),
        ({"format": -1}, "does not say which format"),
        ({"format": 10**30}, "does not say which format"),
        ({"corral": "1\n2"}, "has a version that is none"),
        ({"corral": "9" * 1000}, "has a version that is none"),
    ]:
        members["corral.json"] = json.dumps({**page, **wrong}).encode()
        write_members(path, members.items())
        refuse(path, words)
