"""Whatever happens, one whole file is there, and nothing stays behind."""

import errno
import os
import signal
import stat
import sys
import tempfile
import time
from types import SimpleNamespace

import numpy as np
import pytest

from corral import _atomic, _leftovers
from corral._atomic import KeptBesideError, append_array, write_part
from corral._leftovers import TemporaryFolder
from corral.tables import write_atomically

fcntl = pytest.importorskip("fcntl", reason="Windows has no locks that end by a kill")

pytestmark = [
    # Children only count lines and end.
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
    pytest.mark.thread_unsafe(reason="processes are forked, and folders listed"),
]

OURS = (_atomic.__file__, _leftovers.__file__)


def run_killed(work, n_lines):
    """Do some work in another process, which is killed before it runs another line."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    n_seen = 0

    def trace(frame, event, _):
        nonlocal n_seen
        if frame.f_code.co_filename not in OURS:
            return None
        n_seen += event == "line"
        if n_seen > n_lines:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)
    work()
    os._exit(0)


def kill_at_lines(work, seed):
    """Yield after each kill, at every third line; three seeds have them all."""
    n_lines = seed % 3
    while run_killed(work, n_lines):
        yield
        n_lines += 3


def write(path, text, **options):
    with write_atomically(path, **options) as part:
        part.write_text(text)


@pytest.fixture
def no_waits(monkeypatch):
    """Do not wait for the disk, which a kill of the process does not ask for."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def use_temporary(folder, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(folder))


def test_a_kill_at_any_line_leaves_a_whole_file(tmp_path, no_waits, seed):
    path, seen = tmp_path / "labels.csv", set()
    for number, _ in enumerate(kill_at_lines(lambda: write(path, "new" * 999), seed)):
        seen.add(path.read_text() if number else "old")
        write(path, "old")
        assert os.listdir(tmp_path) == ["labels.csv"]
    assert seen == {"old", "new" * 999}
    assert number > 15


def test_a_kill_at_any_line_leaves_a_new_file_whole_or_none(tmp_path, no_waits, seed):
    path, seen = tmp_path / "labels.csv", set()
    work = lambda: write(path, "new" * 999, replace=False)  # noqa: E731
    for _ in kill_at_lines(work, seed):
        seen.add(path.read_text() if path.exists() else None)
        path.unlink(missing_ok=True)
        write(tmp_path / "other.html", "next")
        assert os.listdir(tmp_path) == ["other.html"]
    assert seen == {None, "new" * 999}


def test_a_kill_at_any_line_leaves_no_temporary_folder(tmp_path, monkeypatch, seed):
    use_temporary(tmp_path, monkeypatch)

    def work():
        home = TemporaryFolder()
        append_array(home.path / "codes", np.arange(9))
        home.remove()

    n_left = 0
    for _ in kill_at_lines(work, seed):
        n_left += len(os.listdir(tmp_path))
        TemporaryFolder().remove()
        assert os.listdir(tmp_path) == []
    assert n_left > 3


def test_what_others_are_writing_stays(tmp_path):
    path = tmp_path / "labels.csv"
    with write_atomically(path) as first:
        first.write_text("first")
        write(path, "second")
        assert path.read_text() == "second"
        assert first.read_text() == "first"
    assert path.read_text() == "first"
    assert os.listdir(tmp_path) == ["labels.csv"]


def test_a_temporary_folder_stays_while_its_process_lives(tmp_path, monkeypatch):
    use_temporary(tmp_path, monkeypatch)
    first, second = TemporaryFolder(), TemporaryFolder()
    assert first.path.is_dir()
    second.remove()
    assert os.listdir(tmp_path) == [first.path.name]
    del first
    assert os.listdir(tmp_path) == []


def test_a_fork_does_not_remove_the_folder(tmp_path, monkeypatch):
    use_temporary(tmp_path, monkeypatch)
    home = TemporaryFolder()
    child = os.fork()
    if not child:
        home.remove()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert home.path.is_dir()


def test_a_part_that_can_only_be_read_goes_when_its_run_is_over(tmp_path, monkeypatch):
    # As a kill leaves it that comes between the permissions of the old file and its
    # name. Root may write to it all the same, and so is told what others are.
    open_file, refused = os.open, []

    def open_as_others(path, flags, *mode):
        is_there = not flags & os.O_CREAT and os.path.isfile(path)
        if is_there and flags & os.O_RDWR and not os.stat(path).st_mode & stat.S_IWUSR:
            refused.append(path)
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return open_file(path, flags, *mode)

    monkeypatch.setattr(os, "open", open_as_others)
    part = tmp_path / f".labels.{_leftovers.make_mark()}.part.csv"
    part.write_text("whole")
    part.chmod(0o444)
    with part.open("rb") as file:
        assert _leftovers.take_lock(file.fileno())
        write(tmp_path / "labels.csv", "new")
        assert part.exists()
    write(tmp_path / "labels.csv", "new")
    assert not part.exists()
    assert refused == [part, part]


@pytest.mark.parametrize(("days", "stays"), [(1, True), (30, False)])
def test_what_another_machine_left_goes_when_it_is_old(tmp_path, days, stays):
    # Its locks may not be seen from here.
    part = tmp_path / ".labels.0123abcd-0123456789abcdef.part.csv"
    part.write_text("half")
    then = time.time() - days * 24 * 3600
    os.utime(part, (then, then))
    write(tmp_path / "labels.csv", "new")
    assert part.exists() == stays


@pytest.mark.parametrize(("days", "stays"), [(1, True), (30, False)])
def test_without_locks_age_tells(tmp_path, monkeypatch, days, stays):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", refuse)
    part = tmp_path / f".labels.{_leftovers.make_mark()}.part.csv"
    part.write_text("half")
    then = time.time() - days * 24 * 3600
    os.utime(part, (then, then))
    write(tmp_path / "labels.csv", "new")
    assert part.exists() == stays


@pytest.mark.parametrize("is_held", [False, True], ids=["before", "after"])
def test_what_another_run_took_for_left_is_begun_again(tmp_path, monkeypatch, is_held):
    # Before the lock is there or just after it, all that is new goes once.
    use_temporary(tmp_path, monkeypatch)
    lock, n_calls = _leftovers.take_lock, 0

    def remove_first(descriptor):
        nonlocal n_calls
        n_calls += 1
        if n_calls > 1:
            return lock(descriptor)
        for each in tmp_path.iterdir():
            each.rmdir() if each.is_dir() else each.unlink()
        return is_held

    monkeypatch.setattr(_leftovers, "take_lock", remove_first)
    with write_atomically(tmp_path / "labels.csv") as part:
        part.write_text("whole")
        # It is locked: the next run does not take it for left.
        write(tmp_path / "other.csv", "other")
    assert (tmp_path / "labels.csv").read_text() == "whole"
    n_calls = 0
    for each in tmp_path.iterdir():
        each.unlink()
    home = TemporaryFolder()
    assert os.listdir(tmp_path) == [home.path.name]
    home.remove()
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_gone_before_it_is_opened_is_made_again(tmp_path, monkeypatch):
    use_temporary(tmp_path, monkeypatch)
    open_file, removed = os.open, []

    def remove_first(path, *flags, **options):
        if not removed:
            removed.append(path)
            os.rmdir(path)
        return open_file(path, *flags, **options)

    monkeypatch.setattr(os, "open", remove_first)
    home = TemporaryFolder()
    assert os.listdir(tmp_path) == [home.path.name]
    assert home.path not in removed
    home.remove()


@pytest.fixture
def as_on_windows(monkeypatch):
    """Let there be no locks, no owners, and no folders that can be opened."""

    def open_file(path, *flags):
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return os.open(path, *flags)

    known = {**vars(os), "name": "nt", "open": open_file}
    del known["chown"]
    monkeypatch.setattr(_atomic, "os", SimpleNamespace(**known))
    monkeypatch.setattr(_leftovers, "fcntl", None)


@pytest.mark.parametrize("replace", [True, False])
def test_as_on_windows_files_are_whole(tmp_path, as_on_windows, replace):
    path = tmp_path / "labels.csv"
    if replace:
        path.write_text("old")
    write(path, "new", replace=replace)
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["labels.csv"]


@pytest.mark.parametrize(("days", "stays"), [(1, True), (30, False)])
def test_as_on_windows_age_tells(tmp_path, monkeypatch, as_on_windows, days, stays):
    use_temporary(tmp_path, monkeypatch)
    left = tmp_path / f"corral-{_leftovers.make_mark()}"
    left.mkdir()
    then = time.time() - days * 24 * 3600
    os.utime(left, (then, then))
    home = TemporaryFolder()
    assert home.path.is_dir()
    assert left.exists() == stays
    home.remove()
    assert not home.path.exists()


@pytest.mark.parametrize(
    "name", [".mine.part.csv", "labels.part.csv", ".labels.1-2.part", ".a.swp"]
)
def test_files_with_like_names_stay(tmp_path, name):
    (tmp_path / name).write_text("mine")
    write(tmp_path / "labels.csv", "new")
    assert (tmp_path / name).read_text() == "mine"


def test_links_and_pipes_with_the_name_of_a_part_are_not_touched(tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / f".a.{_leftovers.make_mark()}.part.csv").symlink_to("mine")
    os.mkfifo(tmp_path / f".b.{_leftovers.make_mark()}.part.csv")
    write(tmp_path / "labels.csv", "new")
    assert len(os.listdir(tmp_path)) == 4
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_pipe_without_a_name_gets_the_content(tmp_path):
    end, other = os.pipe()
    place = f"/dev/fd/{other}"
    if not os.path.exists(place):
        pytest.skip("pipes have no places here")
    write(place, "new")
    os.close(other)
    with open(end, "rb") as file:
        assert file.read() == b"new"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444])
def test_permissions_of_a_file_that_is_replaced_are_kept(tmp_path, mode):
    path = tmp_path / "labels.csv"
    path.write_text("old")
    path.chmod(mode)
    with write_atomically(path) as part:
        # Whoever may not read the old file may not read a part of the new one.
        assert stat.S_IMODE(part.stat().st_mode) & 0o077 & ~mode == 0
        part.write_text("new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    write(tmp_path / "labels.csv", "new")
    (tmp_path / "plain").write_text("plain")
    assert (tmp_path / "labels.csv").stat().st_mode == (
        tmp_path / "plain"
    ).stat().st_mode


def write_meanwhile(path):
    with write_atomically(path, replace=False) as part:
        part.write_text("ours")
        path.write_text("theirs")


@pytest.mark.parametrize("name", ["l.csv", "l.csv.gz", ".l", "l"])
def test_a_file_that_appears_is_left_and_nothing_is_lost(tmp_path, name):
    path = tmp_path / name
    for expected in ("2", "3"):
        with pytest.raises(KeptBesideError, match="was left as it is") as caught:
            write_meanwhile(path)
        assert path.read_text() == "theirs"
        assert caught.value.kept.name == name.replace("l", f"l-{expected}", 1)
        assert caught.value.kept.read_text() == "ours"
        assert str(caught.value.kept) in str(caught.value)
    assert len(os.listdir(tmp_path)) == 3


@pytest.fixture
def no_links(monkeypatch):
    """Let files have one name only, as on some file systems."""

    def refuse(*_):
        raise PermissionError(errno.EPERM, "no links")

    monkeypatch.setattr(os, "link", refuse)


@pytest.mark.parametrize("is_there", [True, False])
def test_where_files_cannot_be_linked_none_is_replaced(tmp_path, no_links, is_there):
    path = tmp_path / "l.csv"
    if is_there:
        path.write_text("theirs")
        with pytest.raises(KeptBesideError):
            write(path, "ours", replace=False)
    else:
        write(path, "ours", replace=False)
    assert path.read_text() == ("theirs" if is_there else "ours")
    assert len(os.listdir(tmp_path)) == 1 + is_there


def test_a_name_that_cannot_be_given_is_free_again(tmp_path, no_links, monkeypatch):
    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "rename", fail)
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="Input/output error"):
        write(tmp_path / "l.csv", "ours", replace=False)
    assert os.listdir(tmp_path) == []


def test_names_may_be_as_long_as_names_can_be(tmp_path):
    path = tmp_path / ("\u00fc" * 125 + ".csv")
    write(path, "old")
    write(path, "new")
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize(("lasts", "n_waits"), [(True, 2), (False, 0)])
def test_the_disk_has_the_file_before_it_has_the_name(
    tmp_path, monkeypatch, lasts, n_waits
):
    # What a failure of power would find after each wait.
    found, wait = [], os.fsync

    def note(descriptor):
        wait(descriptor)
        found.append((tmp_path / "r.txt").exists())

    monkeypatch.setattr(os, "fsync", note)
    with write_part(tmp_path / "r.txt", lasts=lasts) as part:
        part.write_text("new")
    assert found == [False, True][:n_waits]


@pytest.mark.parametrize("limit", [0, 1, 4096, 10_000])
def test_a_file_that_cannot_grow_leaves_the_old_one(tmp_path, limit):
    # The kernel refuses to write more, as on a full disk.
    import resource

    path = tmp_path / "r.txt"
    path.write_text("old")
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            write(path, "x" * 10_001)
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == errno.EFBIG
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["r.txt"]


def test_a_disk_that_fails_at_last_leaves_the_old_file(tmp_path, monkeypatch):
    # Some disks tell that they are full only when they are waited for.
    def fail(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    path = tmp_path / "r.txt"
    path.write_text("old")
    with pytest.raises(OSError, match="No space left"):
        write(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["r.txt"]


def test_a_disk_that_cannot_be_waited_for_has_the_file(tmp_path, monkeypatch):
    def refuse(descriptor):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", refuse)
    write(tmp_path / "r.txt", "new")
    assert (tmp_path / "r.txt").read_text() == "new"


def test_a_folder_that_cannot_be_listed_can_be_written_to(tmp_path, monkeypatch):
    def refuse(folder):
        raise PermissionError(errno.EACCES, "Permission denied", str(folder))

    monkeypatch.setattr(type(tmp_path), "iterdir", refuse)
    write(tmp_path / "r.txt", "new")
    assert (tmp_path / "r.txt").read_text() == "new"


def test_an_array_that_does_not_fit_names_the_file():
    from pathlib import Path

    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        append_array(Path("/dev/full"), np.zeros(9))
