"""Memory: limits in words, what they are for, and blocks that fit into them."""

from pathlib import Path

import numpy as np
import pytest

from corral import COR, _memory, all_methods
from corral._memory import (
    Budget,
    find_free_memory,
    format_bytes,
    need_memory,
    read_limit,
)
from corral.cli import _plan
from corral.detectors import COF, LOF
from corral.rivals import DBSCAN, HDBSCAN
from corral.tables._limits import check_memory


@pytest.mark.parametrize(
    ("words", "n_bytes"),
    [
        (10**9, 10**9),
        (np.int64(10**9), 10**9),
        ("1000000000", 10**9),
        ("1000000000b", 10**9),
        ("2GB", 2 * 10**9),
        ("2 gb", 2 * 10**9),
        (" 2G ", 2 * 10**9),
        ("1.5GB", 1_500_000_000),
        (".5 TB", 5 * 10**11),
        ("800MB", 8 * 10**8),
        ("900000k", 9 * 10**8),
        ("512MiB", 512 * 2**20),
        ("512 mi", 512 * 2**20),
        ("1GiB", 2**30),
        ("0.5TiB", 2**39),
        ("1048576 KiB", 2**30),
    ],
)
def test_limits_are_read(words, n_bytes):
    assert read_limit(words) == n_bytes


@pytest.mark.parametrize(
    "words",
    [
        "",
        "GB",
        "much",
        "2 GBs",
        "-2GB",
        "2,5GB",
        "1.2.3GB",
        ".GB",
        "1e9",
        "2 PB",
        "50%",
    ],
)
def test_other_words_are_refused(words):
    with pytest.raises(ValueError, match="should be a number of bytes, or a text such"):
        read_limit(words)


@pytest.mark.parametrize("words", [1, 100 * 2**20, "100MB", "0", "250MiB"])
def test_a_limit_below_what_libraries_take_is_refused(words):
    with pytest.raises(ValueError, match=r"should be more than 380 MB, which a fit"):
        read_limit(words)


@pytest.mark.parametrize("words", ["12 apples", "10MB", 5])
def test_a_fit_refuses_a_wrong_limit(words):
    with pytest.raises(ValueError, match="memory_limit="):
        COR(2, memory_limit=words).fit(np.eye(9))


def test_half_of_what_is_free_is_the_limit_by_default(monkeypatch):
    monkeypatch.setattr(_memory, "find_free_memory", lambda: 6 * 2**30)
    assert read_limit(None) == 3 * 2**30


def test_there_is_some_free_memory():
    assert 2**20 < find_free_memory() < 2**50


def test_a_limit_on_the_process_counts(monkeypatch, tmp_path):
    resource = pytest.importorskip("resource")
    page = resource.getpagesize()
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/statm").write_text("1000 500 100 0 0 0 0")
    (tmp_path / "proc/meminfo").write_text("MemAvailable: 8388608 kB")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (3000 * page, -1))
    assert find_free_memory(tmp_path) == 2000 * page
    monkeypatch.setattr(resource, "getrlimit", lambda _: (-1, -1))
    assert find_free_memory(tmp_path) == 8 * 2**30


def test_a_limit_by_default_holds_a_small_fit(monkeypatch):
    monkeypatch.setattr(_memory, "find_free_memory", lambda: 24 * 10**6)
    assert read_limit(None) == _memory.BASE_BYTES + 64 * 2**20


def write_system(root, files):
    """Write what Linux tells, with 4 GiB that the machine has left."""
    machine = {"proc/meminfo": "MemTotal: 9 kB\nMemAvailable:    4194304 kB"}
    for name, text in (machine | files).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")


def write_group(folder, most, taken, cache=0):
    """Return the files of a group of version 2, in GiB."""
    return {
        f"{folder}/memory.max": most if most == "max" else most * 2**30,
        f"{folder}/memory.current": taken * 2**30,
        f"{folder}/memory.stat": f"anon 7\ninactive_file {cache * 2**30}\nfile 9",
    }


GROUPS = "sys/fs/cgroup"


def test_free_memory_is_what_system_and_container_leave(tmp_path):
    # Of 8 GiB in the container, 7 are taken; the machine has 4 left.
    group = {"proc/self/cgroup": "0::/"}
    write_system(tmp_path, group | write_group(GROUPS, 8, 7))
    assert find_free_memory(tmp_path) == 2**30
    write_system(tmp_path, group | write_group(GROUPS, "max", 7))
    assert find_free_memory(tmp_path) == 4 * 2**30


@pytest.mark.parametrize(
    ("inner", "outer", "n_free"),
    [((8, 6), ("max", 9), 2), ((8, 6), (10, 9), 1), (("max", 6), (10, 7), 3)],
)
def test_groups_within_groups_leave_what_the_fullest_leaves(
    tmp_path, inner, outer, n_free
):
    files = write_group(f"{GROUPS}/slurm/job", *outer)
    files |= write_group(f"{GROUPS}/slurm/job/step", *inner)
    files |= write_group(f"{GROUPS}/slurm/other", 1, 1)
    write_system(tmp_path, files | {"proc/self/cgroup": "0::/slurm/job/step"})
    assert find_free_memory(tmp_path) == n_free * 2**30


def test_files_that_are_kept_in_memory_leave_it_when_asked(tmp_path):
    files = write_group(GROUPS, 8, 8, cache=3)
    write_system(tmp_path, files | {"proc/self/cgroup": "0::/"})
    assert find_free_memory(tmp_path) == 3 * 2**30


@pytest.mark.parametrize("path", ["/docker/1a", "/elsewhere", "/../other"])
def test_groups_of_version_1_are_known(tmp_path, path):
    # Those of a container may be at the root, whatever their path is outside of it.
    folder = f"{GROUPS}/memory{path}" if "docker" in path else f"{GROUPS}/memory"
    files = {
        "proc/self/cgroup": f"9:cpu:/a\n4:memory,hugetlb:{path}\n0::/b",
        f"{folder}/memory.limit_in_bytes": 8 * 2**30,
        f"{folder}/memory.usage_in_bytes": 7 * 2**30,
        f"{folder}/memory.stat": f"inactive_file 5\ntotal_inactive_file {2**30}",
    }
    write_system(tmp_path, files)
    assert find_free_memory(tmp_path) == 2 * 2**30


def test_the_least_that_blocks_get_is_one_number(monkeypatch):
    before = Budget(_memory.BASE_BYTES).for_states
    assert _plan.LEAST_REST == _memory.LEAST_REST
    monkeypatch.setattr(_memory, "LEAST_REST", 2 * _memory.LEAST_REST)
    assert Budget(_memory.BASE_BYTES).for_states == 2 * before


def as_elsewhere(monkeypatch, total):
    """Let only all memory be told, as on macOS, or nothing, as on Windows."""

    def fail(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", fail)
    monkeypatch.setattr(_memory, "_find_total", lambda: total)


def test_where_only_all_memory_is_told_no_more_than_it_is_free(monkeypatch):
    as_elsewhere(monkeypatch, 16 * 2**30)
    assert find_free_memory() == 16 * 2**30
    # A limit is chosen as if half of it were free.
    assert read_limit(None) == 4 * 2**30
    need_memory(16 * 2**30, "The fit", "Use less.")
    with pytest.raises(MemoryError, match="at most 17.2 GB are free"):
        need_memory(17 * 2**30, "The fit", "Use less.")


def test_where_nobody_tells_what_is_free_nothing_is_refused(monkeypatch):
    # A guess would refuse tables, models and fits that there is room for.
    as_elsewhere(monkeypatch, None)
    check_memory(2**60)
    need_memory(2**60, "The fit", "Use less.")
    assert read_limit(None) == 2 * 2**30


def test_a_system_without_sysconf_does_not_tell_its_memory(monkeypatch):
    monkeypatch.delattr("os.sysconf")
    assert _memory._find_total() is None


@pytest.mark.parametrize(
    ("n_bytes", "words"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1 kB"),
        (1536, "1.54 kB"),
        (2.5e6, "2.5 MB"),
        (4 * 10**9, "4 GB"),
        (7.25e12, "7.25 TB"),
    ],
)
def test_bytes_in_words(n_bytes, words):
    assert format_bytes(n_bytes) == words


def test_blocks_grow_with_the_limit_and_shrink_with_the_rows():
    limits = [Budget(read_limit(f"{size}MB")) for size in (381, 500, 1000, 4000, 64000)]
    for n_bytes in (8, 80, 8000):
        sizes = [each.count_block_rows(n_bytes, 100) for each in limits]
        assert sizes == sorted(sizes)
        # A power of two, so that blocks add up as halves of each other.
        assert all(size & (size - 1) == 0 for size in sizes)
        assert all(2**8 <= size <= 2**19 for size in sizes)
    wide = limits[2].count_block_rows(8000, 100)
    assert wide < limits[2].count_block_rows(80, 100)
    assert limits[2].count_block_rows(0, 2000) < limits[2].count_block_rows(0, 100)


def test_a_block_takes_less_than_half_of_a_limit_that_is_not_tiny():
    for gigabytes in (1, 2, 8):
        budget = Budget(gigabytes * 10**9)
        n_rows = budget.count_block_rows(400, 100)
        assert 3 * 400 * n_rows < 0.5 * budget.limit


def test_states_are_kept_in_a_part_of_the_limit():
    small, large = Budget(3 * 10**8), Budget(10**10)
    assert 0 < small.for_states < large.for_states < 0.5 * large.limit
    assert small.holds(1000, 100)
    assert not small.holds(10**7, 100)
    assert large.holds(10**7, 100)
    # More partitions, more labels.
    assert not large.holds(10**7, 1000)


def write_meminfo(root, **sizes):
    (root / "proc").mkdir(exist_ok=True)
    lines = [f"{name}: {n_bytes // 1024} kB" for name, n_bytes in sizes.items()]
    (root / "proc" / "meminfo").write_text("\n".join(lines))
    return root


def test_what_cannot_fit_is_refused_with_numbers_and_a_way_out(tmp_path):
    root = write_meminfo(tmp_path, MemAvailable=4 * 10**9, SwapFree=10**9)
    need_memory(4_900_000_000, "The fit", "Use less.", root)
    with pytest.raises(MemoryError) as caught:
        need_memory(12_300_000_000, "The fit", "Use less.", root)
    assert str(caught.value) == (
        "The fit needs about 12.3 GB, and at most 5 GB are free. Use less."
    )


def test_what_is_small_is_never_refused(tmp_path):
    root = write_meminfo(tmp_path, MemAvailable=0)
    need_memory(64 * 2**20, "The fit", "Use less.", root)
    with pytest.raises(MemoryError):
        need_memory(64 * 2**20 + 1, "The fit", "Use less.", root)


@pytest.fixture
def short_of_memory(monkeypatch):
    """Let hardly any memory be free, and refuse small fits, too."""
    monkeypatch.setattr(_memory, "_NEVER_REFUSED", 0)
    monkeypatch.setattr(_memory, "_find_available", lambda root, with_swap: 1000)


IN_MEMORY = sorted({*all_methods()} - {"cor", "cor-detector", "holoentropy"})


@pytest.mark.parametrize("name", IN_MEMORY)
def test_methods_that_need_all_rows_are_refused_before_they_begin(
    name, short_of_memory, planted
):
    method = all_methods()[name].make()
    title = type(method).__name__
    with pytest.raises(
        MemoryError, match=rf"^{title} of 186 rows needs about .* are free\. .* COR, "
    ):
        method.fit(np.abs(planted.X))


@pytest.mark.parametrize("name", ["cor", "holoentropy"])
def test_what_goes_block_by_block_or_takes_no_more_is_not_refused(
    name, short_of_memory, planted
):
    all_methods()[name].make(n_outliers=6).fit(planted.X)


def test_weights_need_all_codes_in_one_place(short_of_memory, planted):
    with pytest.raises(MemoryError, match="186 rows with sample_weight needs about"):
        COR(3, n_outliers=6).fit(planted.X, sample_weight=np.ones(186))


@pytest.mark.parametrize(
    ("model", "per_row"),
    [
        (LOF(n_neighbors=20), 1400 + 24 * 2),
        (COF(n_neighbors=100), 5400 + 24 * 2),
        (HDBSCAN(), 200 + 16 * 2),
        (HDBSCAN(metric="cosine"), 200 + 16 * 2 + 16 * 4000),
    ],
)
def test_estimates_follow_the_numbers_that_matter(model, per_row):
    assert model._count_bytes(np.zeros((4000, 2))) == 4000 * per_row


def test_neighbours_within_a_radius_are_counted_on_a_few_rows():
    # Rows on a grid of whole numbers have 9 within 4.
    X = np.arange(6000.0)[:, None]
    few, many = (DBSCAN(eps=eps)._count_bytes(X) for eps in (4, 400))
    assert few == pytest.approx(6000 * (216 + 12 * 9), rel=0.05)
    assert many == pytest.approx(6000 * (216 + 12 * 801), rel=0.05)
