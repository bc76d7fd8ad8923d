"""Notes of what a run has done: complete or not there, and of this run only."""

import json
import os
import zipfile

import numpy as np
import pytest

from corral import COR, _journal
from corral._journal import Journal

IDENTITY = {"parameters": {"n_clusters": 3, "eps": 0.01}, "rows": {"shape": [9, 2]}}


def draw_entry():
    """Return arrays of the kinds and shapes that runs note."""
    rng = np.random.default_rng(0)
    return {
        "rows": rng.integers(9, size=(16, 5)).astype(np.uint8),
        "inverse": rng.integers(16, size=64).astype(np.uint16),
        "distances": rng.normal(size=64),
        "nothing": np.zeros((0, 3)),
        "number": np.array(7),
        "words": np.array(["a", "longer"]),
    }


def assert_equal(found, expected):
    assert list(found) == list(expected)
    for name, values in expected.items():
        assert found[name].dtype == values.dtype
        np.testing.assert_array_equal(found[name], values)


@pytest.fixture
def folder(tmp_path):
    """Return the folder of a journal with one entry."""
    journal = Journal.open(tmp_path / "here", IDENTITY)
    journal.write("block", draw_entry())
    return tmp_path / "here"


def test_entries_come_back_as_they_were(folder):
    journal = Journal.open(folder, IDENTITY)
    assert journal.has("block")
    assert not journal.has("block-2")
    assert_equal(journal.read("block"), draw_entry())


def test_an_entry_takes_the_place_of_an_older_one(folder):
    journal = Journal.open(str(folder), IDENTITY)
    journal.write("block", {"number": np.array(8)})
    assert_equal(journal.read("block"), {"number": np.array(8)})


def test_an_entry_is_complete_or_not_there(folder, monkeypatch):
    # Whether it was there before or not, and nothing is left behind.
    journal = Journal.open(folder, IDENTITY)

    def break_off(archive, part, array):
        if part == "end.npy":
            raise KeyboardInterrupt
        write(archive, part, array)

    write = _journal._write_array
    monkeypatch.setattr(_journal, "_write_array", break_off)
    for name in ("block", "new"):
        with pytest.raises(KeyboardInterrupt):
            journal.write(name, draw_entry())
    assert not journal.has("new")
    assert_equal(journal.read("block"), draw_entry())
    assert sorted(os.listdir(folder)) == ["block.npz", "checkpoint.json"]


@pytest.mark.parametrize("error", [SystemExit(143), KeyboardInterrupt()])
@pytest.mark.parametrize("name", ["__init__", "write", "close"])
@pytest.mark.filterwarnings("error")
def test_an_interrupt_within_a_member_stays_one(tmp_path, monkeypatch, error, name):
    # Then an archive refuses to be closed.
    journal = Journal.open(tmp_path / "notes", {})
    method = getattr(zipfile._ZipWriteFile, name)

    def interrupt(*arguments):
        method(*arguments)
        monkeypatch.undo()
        raise error

    monkeypatch.setattr(zipfile._ZipWriteFile, name, interrupt)
    with pytest.raises(type(error)):
        journal.write("a", {"x": np.arange(3)})
    assert not journal.has("a")
    journal.write("a", {"x": np.arange(3)})
    np.testing.assert_array_equal(journal.read("a")["x"], np.arange(3))


@pytest.mark.parametrize("has_page", [True, False])
def test_what_a_killed_run_was_writing_does_not_matter(folder, has_page):
    if not has_page:
        (folder / "checkpoint.json").rename(folder / ".checkpoint.123.part.json")
        (folder / "block.npz").unlink()
    (folder / ".block-2.123.part.npz").write_bytes(b"PK")
    journal = Journal.open(folder, IDENTITY)
    assert not any(path.name.startswith(".") for path in folder.iterdir())
    assert journal.has("block") == has_page


def test_no_wrong_byte_passes_unseen(folder):
    # Wherever it is, either it is told or the arrays are right all the same: some
    # bytes, such as times of files, are not looked at.
    path = folder / "block.npz"
    whole = path.read_bytes()
    journal, told = Journal.open(folder, IDENTITY), []
    rng = np.random.default_rng(0)
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        try:
            found = journal.read("block")
        except ValueError as error:
            told.append(str(error))
        else:
            assert_equal(found, draw_entry())
    assert len(told) > len(whole) / 2
    start, end = (
        f"The checkpoint '{path}' is damaged: ",
        f"Remove the folder '{folder}'",
    )
    assert all(text.startswith(start) and end in text for text in told)


def test_a_shorter_array_is_told(tmp_path):
    # The sum of a file is compared at its end, which a smaller shape does not reach.
    journal = Journal.open(tmp_path, IDENTITY)
    journal.write("block", {"numbers": np.arange(64000)})
    path = tmp_path / "block.npz"
    path.write_bytes(path.read_bytes().replace(b"(64000,)", b"(44000,)"))
    with pytest.raises(ValueError, match=r"is damaged: 'numbers.npy' goes on after"):
        journal.read("block")


@pytest.mark.parametrize("share", [0, 0.01, 0.3, 0.9, 0.999])
def test_a_file_that_was_cut_off_is_told(folder, share):
    path = folder / "block.npz"
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ValueError, match="is damaged: File is not a zip file"):
        Journal.open(folder, IDENTITY).read("block")


def test_objects_are_not_read(folder):
    np.savez(folder / "block.npz", objects=np.array([{}, None], dtype=object))
    with pytest.raises(ValueError, match="is damaged: Object arrays cannot be loaded"):
        Journal.open(folder, IDENTITY).read("block")


def test_memory_that_is_not_there_is_no_damage(folder, monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(zipfile, "ZipFile", fail)
    with pytest.raises(MemoryError):
        Journal.open(folder, IDENTITY).read("block")


def test_another_identity_is_told_with_what_differs(folder):
    other = {"parameters": {"n_clusters": 4, "eps": 0.01}, "rows": {"shape": [9, 2]}}
    with pytest.raises(ValueError, match="is of another fit") as caught:
        Journal.open(folder, other)
    message = str(caught.value)
    assert f"checkpoint_dir='{folder}' is of another fit: parameters was " in message
    assert "'n_clusters': 3" in message
    assert "'n_clusters': 4" in message
    assert "shape" not in message
    assert message.endswith(
        "Go on with the same rows and parameters, or name a new folder."
    )


def test_all_differences_are_told(folder):
    with pytest.raises(ValueError, match="parameters was .*; rows was .* and is None"):
        Journal.open(folder, {"parameters": {}})


def test_results_may_depend_on_versions(folder, monkeypatch):
    monkeypatch.setattr(np, "__version__", "0.1")
    with pytest.raises(ValueError, match=r"numpy was '.*' and is '0\.1'"):
        Journal.open(folder, IDENTITY)


def test_tuples_and_lists_are_the_same_identity(folder):
    same = {"parameters": IDENTITY["parameters"], "rows": {"shape": (9, 2)}}
    assert Journal.open(folder, same).has("block")


def test_no_wrong_byte_of_the_page_passes_unseen(folder):
    page = folder / "checkpoint.json"
    whole = page.read_bytes()
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1
        page.write_bytes(changed)
        with pytest.raises(ValueError, match="is damaged"):
            Journal.open(folder, IDENTITY)


@pytest.mark.parametrize("text", ["", "[]", "7", "{}", '{"identity": {}}', "\ufeff"])
def test_a_page_of_something_else_is_told(folder, text):
    (folder / "checkpoint.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"checkpoint\.json' is damaged\. Remove"):
        Journal.open(folder, IDENTITY)


def test_the_page_can_be_read_by_people(folder):
    page = json.loads((folder / "checkpoint.json").read_text(encoding="utf-8"))
    assert page["identity"]["rows"] == IDENTITY["rows"]
    assert page["identity"]["numpy"] == np.__version__


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    path = tmp_path / "file"
    path.write_text("mine")
    with pytest.raises(ValueError, match="is a file. Name a folder, which may be new"):
        Journal.open(path, IDENTITY)
    assert path.read_text() == "mine"


def test_a_folder_with_other_files_is_refused_and_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / ".mine.1.part.txt").write_text("mine, too")
    with pytest.raises(ValueError, match="holds files but no checkpoint"):
        Journal.open(tmp_path, IDENTITY)
    assert sorted(os.listdir(tmp_path)) == [".mine.1.part.txt", "mine.txt"]


def test_folders_above_are_made(tmp_path):
    Journal.open(tmp_path / "a" / "b", IDENTITY)
    assert (tmp_path / "a" / "b" / "checkpoint.json").exists()


def test_a_temporary_journal_goes_with_the_object():
    journal = Journal.temporary()
    journal.write("block", draw_entry())
    folder = journal.folder
    assert folder.is_dir()
    assert_equal(journal.read("block"), draw_entry())
    del journal
    assert not folder.exists()


def test_two_fits_do_not_write_to_one_folder(tmp_path):
    first = Journal.open(tmp_path / "notes", {"rows": 1})
    with pytest.raises(ValueError, match="is in use by another fit. Wait for its end"):
        Journal.open(tmp_path / "notes", {"rows": 1})
    first.close()
    Journal.open(tmp_path / "notes", {"rows": 1}).close()


def test_where_there_are_no_locks_that_is_logged(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("corral._leftovers.fcntl", None)
    with caplog.at_level("INFO", "corral"):
        journal = Journal.open(tmp_path, IDENTITY)
    assert f"'{tmp_path / 'checkpoint.json'}' cannot be locked" in caplog.messages
    journal.write("block", draw_entry())
    journal.close()
    # Nothing is held any more.
    journal.close()
    assert_equal(Journal.open(tmp_path, IDENTITY).read("block"), draw_entry())


def test_a_fit_that_failed_leaves_its_folder_to_the_next(tmp_path):
    # Also while the error is looked at, which holds all that the fit had.
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = COR(2, n_outliers=3, checkpoint_dir=tmp_path / "notes", random_state=0)
    with pytest.raises(ValueError, match="distinct codes") as error:
        model.set_params(n_partitions=1, n_clusters=40, k_range=(2, 2)).fit(X)
    assert error.traceback
    with pytest.raises(ValueError, match="distinct codes"):
        model.fit(X)
