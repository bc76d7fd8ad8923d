"""Disks that are full or can only be read: one sentence, and the old file is whole.

With CORRAL_TEST_SEEDS=100, disks are full at a hundred places, 4 KiB apart.
"""

import gc
import os
import subprocess

import pytest

from tests.cli.example import FIT, only_line, run_corral

PAGE = 4096

NAMES = {
    "--labels": "labels.csv",
    "--labels .gz": "labels.csv.gz",
    "--labels .parquet": "labels.parquet",
    "--report": "report.html",
    "--model": "model.skops",
}


@pytest.fixture
def make_disk(tmp_path):
    """Return a function that makes a disk of a size, in a folder."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(*options):
        command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", place]
        return subprocess.run(command, capture_output=True, text=True)

    def make(n_pages):
        try:
            done = mount(f"size={n_pages * PAGE}")
        except FileNotFoundError:
            pytest.skip("disks of a chosen size need the command mount")
        if done.returncode:
            pytest.skip(f"disks of a chosen size need root: {done.stderr.strip()}")
        return place

    make.lock = lambda: mount("remount", "ro")
    yield make
    # Lazily: an error may still hold a file.
    subprocess.run(["umount", "-l", place], capture_output=True)


@pytest.mark.parametrize("option", NAMES)
def test_a_full_disk_is_told_and_the_old_file_is_whole(data, make_disk, option, seed):
    place = make_disk(1 + seed)
    path = place / NAMES[option]
    path.write_text("old")
    words = (option.split()[0], path, "--force")
    result = run_corral("fit", data, *FIT, *words)
    if result.exit_code == 0:
        # The disk was large enough, as only those of later seeds can be.
        assert seed
        assert path.read_bytes()[:3] != b"old"
    else:
        assert result.exit_code == 2, result.output
        assert only_line(result.stderr) == (
            f"Error: '{path}' cannot be written, because the disk is full. Make room, "
            "or name a place on another disk."
        )
        assert path.read_text() == "old"
    assert os.listdir(place) == [path.name]


@pytest.mark.parametrize("what", ["checkpoint", "spill"])
def test_no_room_for_what_is_kept_between_passes(
    data, make_disk, what, seed, monkeypatch, tmp_path
):
    place = make_disk(1 + seed)
    monkeypatch.setattr("corral._memory._LEAST_ROWS", 32)
    monkeypatch.setattr("corral._memory._MOST_ROWS", 32)
    labels = tmp_path / "labels.csv"
    words = ("--labels", labels, "--on-error", "skip", "--n-resamples", 0)
    if what == "checkpoint":
        words += ("--checkpoint-dir", place / "notes")
        advice = "name a place on another disk."
    else:
        monkeypatch.setattr("corral._memory._STATE_SHARE", 0)
        monkeypatch.setattr("tempfile.tempdir", str(place))
        advice = "set TMPDIR to a folder on another disk."
    result = run_corral("fit", data, *FIT, *words)
    if result.exit_code == 0:
        assert seed
    else:
        assert result.exit_code == 2, result.output
        line = only_line(result.stderr)
        assert line.startswith(f"Error: '{place}")
        assert line.endswith(f"because the disk is full. Make room, or {advice}")
        assert not labels.exists()
    # The error holds what the fit had.
    del result
    gc.collect()
    if what == "spill":
        assert os.listdir(place) == []
    else:
        # With room, the same command goes on.
        assert not [*place.glob("notes/.*")]


@pytest.mark.parametrize("option", ["--labels", "--report", "--model"])
def test_a_disk_that_can_only_be_read(data, make_disk, option):
    place = make_disk(64)
    path = place / NAMES[option]
    path.write_text("old")
    make_disk.lock()
    result = run_corral("fit", data, *FIT, option, path, "--force")
    assert result.exit_code == 2
    assert "cannot be written to" in only_line(result.stderr)
    assert path.read_text() == "old"
    assert os.listdir(place) == [path.name]
