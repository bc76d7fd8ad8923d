"""Data sets by name, from every form of their files."""

import gzip
import hashlib
import inspect
import io
import re
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from corral.datasets import (
    RemoteFile,
    describe_dataset,
    fetch_dataset,
    list_datasets,
    load_dataset,
)
from corral.datasets._content import sum_rows
from corral.datasets._formats import read_npz, read_originals
from tests.datasets.originals import (
    compress_lzw,
    original_bytes,
    table_bytes,
    tar_bytes,
    zip_bytes,
)
from tests.test_docstrings import documented

AT_HAND = [name for name in list_datasets() if name not in ("caltech", "sun09")]


@pytest.fixture(autouse=True)
def no_folder(monkeypatch, tmp_path):
    """Let no test see or write the folder of the user."""
    monkeypatch.delenv("CORRAL_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))


def assert_toy(dataset, toy):
    np.testing.assert_array_equal(dataset.data, toy.rows)
    assert dataset.target.tolist() == [1, 0, 0, 0, -1, 1, 0, -1, 1]
    assert dataset.target_original.tolist() == toy.classes.tolist()
    assert dataset.info is toy.info


# The paper's data, where it is at hand.


@pytest.mark.parametrize("name", AT_HAND)
def test_npz_form(name, data_folder):
    dataset = load_dataset(name, data_dir=data_folder)
    info = dataset.info
    assert dataset.data.dtype == np.float64
    assert dataset.data.shape == (info.n_samples, info.n_features)
    assert sparse.issparse(dataset.data) == (info.kind == "text")
    assert np.count_nonzero(dataset.target == -1) == info.n_outliers
    with np.load(data_folder / f"{name}.npz") as file:
        np.testing.assert_array_equal(dataset.target, file["y"])
        np.testing.assert_array_equal(
            dataset.target_original, file["y_original"].astype(str)
        )


@pytest.mark.parametrize("name", [name for name in AT_HAND if name != "kddcup"])
def test_originals_give_the_same_as_npz(name, data_folder, tmp_path):
    # Written as the source publishes them, in its archive; checksums are verified too.
    info = describe_dataset(name)
    known = load_dataset(name, data_dir=data_folder)
    files = original_bytes(info, known.data, known.target_original)
    if name == "shuttle":
        files["shuttle.trn.Z"] = compress_lzw(files.pop("shuttle.trn"))
    pack = tar_bytes if info.layout == "cluto" else zip_bytes
    (tmp_path / info.downloads[0].name).write_bytes(pack(files))
    dataset = load_dataset(name, data_dir=tmp_path)
    assert sum_rows(dataset.data) == sum_rows(known.data)
    np.testing.assert_array_equal(dataset.target, known.target)
    np.testing.assert_array_equal(dataset.target_original, known.target_original)


def test_kddcup_original_gives_the_same_as_npz(data_folder):
    # Half a million lines take a while, so every hundredth.
    info = describe_dataset("kddcup")
    known, _ = read_npz(data_folder / "kddcup.npz")
    rows, classes = known.rows[::100], known.classes[::100]
    file = table_bytes(info.table, rows, classes, end=".")
    content = read_originals(info, [file])
    np.testing.assert_array_equal(content.rows, rows)
    np.testing.assert_array_equal(content.classes, classes)


def test_shuttle_is_written_as_published(data_folder):
    # The sums of the published files, as others have recorded them. So the round trip
    # above is through the very bytes of the originals.
    known = load_dataset("shuttle", data_dir=data_folder)
    files = original_bytes(known.info, known.data, known.target_original)
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    assert sums == {
        "shuttle.trn": (
            "87b24ee9fb5137e1d417659cf905d84d0e15342bbaa60770f1ae83da1a38200a"
        ),
        "shuttle.tst": (
            "f776934a628d9b94c482cb058a76ddaa63823e0f74aec065813c9dff3b89d661"
        ),
    }


# The two sets that are not at hand.

SIZES = {"caltech": [237, 123, 118, 67, 870], "sun09": [20, 932, 1036, 30, 1264]}


def decaf(name, sizes):
    classes = np.repeat(["1", "2", "3", "4", "5"], sizes)
    rows = np.zeros((len(classes), 4096))
    rows[:, 0] = np.arange(len(classes))
    return original_bytes(describe_dataset(name), rows, classes)


@pytest.mark.parametrize("name", SIZES)
def test_decaf_sets_are_grouped_by_size(name, tmp_path):
    # Made up, but with the counts of the paper.
    for original, data in decaf(name, SIZES[name]).items():
        (tmp_path / original).write_bytes(data)
    dataset = load_dataset(name, data_dir=tmp_path)
    by_size = np.argsort(SIZES[name])[::-1][: dataset.info.n_clusters] + 1
    for label, number in enumerate(by_size):
        assert np.all(dataset.target_original[dataset.target == label] == str(number))
    assert np.count_nonzero(dataset.target == -1) == dataset.info.n_outliers


def test_decaf_set_with_other_counts_is_refused(tmp_path):
    sizes = [237, 123, 117, 68, 870]
    for original, data in decaf("caltech", sizes).items():
        (tmp_path / original).write_bytes(data)
    with pytest.raises(ValueError, match="n_outliers is 68 and should be 67"):
        load_dataset("caltech", data_dir=tmp_path)


@pytest.mark.parametrize("name", SIZES)
def test_decaf_sets_cannot_be_downloaded(name, tmp_path):
    info = describe_dataset(name)
    words = (
        f"'{name}' cannot be downloaded by a program. Get {info.originals[0]} from "
        f"{info.page} and put it into '{tmp_path}'."
    )
    with pytest.raises(ValueError, match=re.escape(words)):
        load_dataset(name, data_dir=tmp_path, download=True)
    with pytest.raises(ValueError, match=re.escape(words)):
        fetch_dataset(name, data_dir=tmp_path)


# A data set of nine rows.


def test_folder_of_the_environment(toy, tmp_path, monkeypatch):
    (tmp_path / "toy.data").write_bytes(toy.table)
    monkeypatch.setenv("CORRAL_DATA", str(tmp_path))
    assert_toy(load_dataset("toy"), toy)


def test_data_and_target_alone(toy, tmp_path):
    (tmp_path / "toy.data").write_bytes(toy.table)
    X, y = load_dataset("toy", data_dir=tmp_path, return_X_y=True)
    np.testing.assert_array_equal(X, toy.rows)
    assert y.tolist() == [1, 0, 0, 0, -1, 1, 0, -1, 1]


def test_npz_comes_before_originals(toy, tmp_path):
    np.savez(tmp_path / "toy.npz", X=toy.rows, y_original=toy.classes)
    (tmp_path / "toy.data").write_bytes(b"not looked at")
    assert_toy(load_dataset("toy", data_dir=tmp_path), toy)


def test_npz_that_groups_otherwise_is_refused(toy, tmp_path):
    path = tmp_path / "toy.npz"
    np.savez(path, X=toy.rows, y_original=toy.classes, y=np.zeros(9))
    with pytest.raises(ValueError, match="groups the classes in y otherwise than the"):
        load_dataset("toy", data_dir=tmp_path)


def test_missing_data_names_the_three_ways(toy, tmp_path):
    words = (
        f"The data set 'toy' is not in '{tmp_path}', neither as toy.npz nor as "
        "toy.data. Name its folder with data_dir, or with the environment variable "
        "CORRAL_DATA, or call with download=True to have it from "
        "https://example.org/toy."
    )
    with pytest.raises(FileNotFoundError, match=re.escape(words)):
        load_dataset("toy", data_dir=tmp_path)


def test_nothing_is_downloaded_unasked(toy, tmp_path, server):
    with pytest.raises(FileNotFoundError):
        load_dataset("toy", data_dir=tmp_path)
    (tmp_path / "toy.data").write_bytes(toy.table)
    assert_toy(load_dataset("toy", data_dir=tmp_path, download=True), toy)
    assert server.asked == []


UNREADABLE = {
    "toy.npz": b"PK no zip",
    "toy.zip": b"PK no zip",
    "toy.data": b"1,2\n",
    "toy.data.gz": b"no gzip",
    "toy.data.Z": b"no compress",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_file_is_named(name, toy, tmp_path):
    (tmp_path / name).write_bytes(UNREADABLE[name])
    words = f"'{tmp_path / name}' cannot be read"
    with pytest.raises(ValueError, match=re.escape(words)):
        load_dataset("toy", data_dir=tmp_path)


def test_cut_gzip_file_is_named(toy, tmp_path):
    (tmp_path / "toy.data.gz").write_bytes(gzip.compress(toy.table)[:-20])
    with pytest.raises(ValueError, match=r"toy.data.gz' cannot be read as 'toy'"):
        load_dataset("toy", data_dir=tmp_path)


def cut_matlab():
    file = io.BytesIO()
    savemat(file, {"data": np.eye(9)})
    return file.getvalue()[:-100]


@pytest.mark.parametrize(
    "data", [b"", b"MATLAB?" * 40, cut_matlab()], ids=["empty", "noise", "cut"]
)
def test_unreadable_matlab_file_is_named(data, tmp_path):
    (tmp_path / "SUN09.mat").write_bytes(data)
    with pytest.raises(ValueError, match=r"SUN09.mat' cannot be read as 'sun09'"):
        load_dataset("sun09", data_dir=tmp_path)


def test_download_on_request(toy, tmp_path, server):
    folder = tmp_path / "new"
    assert_toy(load_dataset("toy", data_dir=folder, download=True), toy)
    assert_toy(load_dataset("toy", data_dir=folder, download=True), toy)
    assert len(server.asked) == 1


def test_default_folder_of_downloads(toy, tmp_path):
    (path,) = fetch_dataset("toy", progress=False)
    assert path == tmp_path / "home" / "corral_data" / "toy.zip"


def test_fetch_goes_on_and_then_stays(toy, tmp_path, server):
    server.cut_after = 50
    with pytest.raises(ConnectionError, match="lost after 50 of"):
        fetch_dataset("toy", data_dir=tmp_path, progress=False)
    server.cut_after = None
    for _ in range(2):
        paths = fetch_dataset("toy", data_dir=tmp_path, progress=False)
        assert paths == [tmp_path / "toy.zip"]
    assert paths[0].read_bytes() == toy.archive
    assert server.asked == [None, "bytes=50-"]


def test_downloaded_file_with_known_sum(toy, register, tmp_path, server):
    known = hashlib.sha256(toy.archive).hexdigest()
    remote = RemoteFile("toy.zip", server.url("toy.zip"), known)
    register(downloads=(remote,))
    assert_toy(load_dataset("toy", data_dir=tmp_path, download=True), toy)


def test_file_in_the_folder_with_another_sum(toy, register, tmp_path, server):
    remote = RemoteFile("toy.zip", server.url("toy.zip"), "ab" * 32)
    register(downloads=(remote,))
    (tmp_path / "toy.zip").write_bytes(toy.archive)
    words = f"and should have {'ab' * 32}. Remove it and call again."
    with pytest.raises(ValueError, match=words):
        fetch_dataset("toy", data_dir=tmp_path)


def test_content_is_verified_after_a_download(toy, register, tmp_path):
    # No sum of the file is known, and its rows are not those of the registry.
    register(sha256_rows=sum_rows(toy.rows + 1))
    words = r"toy.zip' is not the data set 'toy' as published: the sha256 of its rows"
    with pytest.raises(ValueError, match=words):
        fetch_dataset("toy", data_dir=tmp_path, progress=False)
    with pytest.raises(ValueError, match=words):
        load_dataset("toy", data_dir=tmp_path, download=True)


def test_archive_without_the_original(toy, tmp_path, server):
    server.files["toy.zip"] = zip_bytes({"other.data": b""})
    with pytest.raises(ValueError, match="it has no file toy.data. Get the original"):
        load_dataset("toy", data_dir=tmp_path, download=True)


@pytest.mark.parametrize("function", [load_dataset, fetch_dataset, describe_dataset])
def test_docstring_has_the_parameters_and_defaults(function):
    described = documented(function.__doc__)
    signature = inspect.signature(function).parameters
    assert list(described) == list(signature)
    for name, parameter in signature.items():
        if parameter.default is not parameter.empty:
            assert described[name].endswith(f"default={parameter.default}")


def test_package_does_not_import_data_sets():
    code = "import sys, corral; print('corral.datasets' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "False"
