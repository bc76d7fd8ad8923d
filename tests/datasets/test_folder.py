"""Where the folder is, and what is found in it."""

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from corral.datasets import _folder, describe_dataset
from corral.datasets._folder import choose_folder, find_npz, find_originals
from tests.datasets.originals import compress_lzw, tar_bytes, zip_bytes


def test_argument_before_environment_before_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("CORRAL_DATA", "from-environment")
    assert choose_folder("given") == Path("given")
    assert choose_folder(None) == Path("from-environment")
    monkeypatch.setenv("CORRAL_DATA", "")
    assert choose_folder(None) == tmp_path / "corral_data"
    monkeypatch.delenv("CORRAL_DATA")
    assert choose_folder(None) == tmp_path / "corral_data"
    assert choose_folder("~/other") == tmp_path / "other"


def test_nothing_is_found_in_an_empty_folder(tmp_path):
    info = describe_dataset("ecoli")
    for folder in (tmp_path, tmp_path / "not there"):
        assert find_npz(info, folder) is None
        assert find_originals(info, folder) is None


FILES = {
    "ecoli.data": b"text",
    "ecoli.data.gz": gzip.compress(b"text"),
    "ecoli.data.Z": compress_lzw(b"text"),
    "ecoli.zip": zip_bytes({"README": b"no", "ecoli.data": b"text"}),
}


@pytest.mark.parametrize("below", ["", "ecoli"])
@pytest.mark.parametrize("name", FILES)
def test_packed_or_not_in_the_folder_or_below(name, below, tmp_path):
    folder = tmp_path / below
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(FILES[name])
    (original,) = find_originals(describe_dataset("ecoli"), tmp_path)
    assert original.path == folder / name
    assert original.read() == b"text"


def test_all_originals_are_needed(tmp_path):
    info = describe_dataset("shuttle")
    (tmp_path / "shuttle.tst").write_bytes(b"test")
    assert find_originals(info, tmp_path) is None
    (tmp_path / "shuttle.trn.Z").write_bytes(compress_lzw(b"train"))
    found = find_originals(info, tmp_path)
    assert [each.read() for each in found] == [b"train", b"test"]


def test_packed_file_in_an_archive(tmp_path):
    # As UCI publishes it.
    files = {"shuttle.trn.Z": compress_lzw(b"train"), "shuttle.tst": b"test"}
    (tmp_path / "statlog+shuttle.zip").write_bytes(zip_bytes(files))
    found = find_originals(describe_dataset("shuttle"), tmp_path)
    assert [each.read() for each in found] == [b"train", b"test"]


def read_re0(folder, archive):
    (folder / "datasets.tar.gz").write_bytes(archive)
    return [each.read() for each in find_originals(describe_dataset("re0"), folder)]


def test_archive_in_folders(tmp_path):
    files = {
        "datasets/re1.mat": b"other",
        "datasets/re0.mat": b"matrix",
        "datasets/re0.mat.rclass": b"classes",
    }
    assert read_re0(tmp_path, tar_bytes(files)) == [b"matrix", b"classes"]


@pytest.mark.parametrize("absolute", [False, True])
def test_paths_in_an_archive_lead_nowhere(absolute, tmp_path):
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    path = str(tmp_path / "re0.mat") if absolute else "../../re0.mat"
    files = {path: b"matrix", "re0.mat.rclass": b"classes"}
    assert read_re0(folder, tar_bytes(files)) == [b"matrix", b"classes"]
    # Nothing was written, here or where the path leads.
    files = [each for each in tmp_path.rglob("*") if each.is_file()]
    assert files == [folder / "datasets.tar.gz"]


def test_links_in_an_archive_are_not_followed(tmp_path):
    (tmp_path / "secret").write_bytes(b"secret")
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
            member = tarfile.TarInfo("re0.mat")
            member.type, member.linkname = kind, str(tmp_path / "secret")
            archive.addfile(member)
    with pytest.raises(ValueError, match="it has no file re0.mat"):
        read_re0(tmp_path, file.getvalue())


def test_packed_file_that_swells_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(_folder, "_MAX_BYTES", 1000)
    for name in ("ecoli.data.gz", "ecoli.zip"):
        swollen = bytes(1001)
        packed = gzip.compress(swollen)
        if name.endswith(".zip"):
            packed = zip_bytes({"ecoli.data": swollen})
        (tmp_path / name).write_bytes(packed)
        (original,) = find_originals(describe_dataset("ecoli"), tmp_path)
        with pytest.raises(ValueError, match="it holds more than 1,000 bytes"):
            original.read()
        (tmp_path / name).unlink()
