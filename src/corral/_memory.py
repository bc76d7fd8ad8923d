"""How much memory there is, how much a fit may take, and blocks that fit into it."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# What Python and its libraries (250 MB with pyarrow), the rows that partitions learn
# from and the trees of their codes take, however many rows there are.
BASE_BYTES = 380 * 10**6

# A limit may be smaller still; blocks and tables get so much in any case.
LEAST_REST = 32 * 2**20

# Where hardly any memory is free, a fit with no limit of its own still tries.
_LEAST_DEFAULT = BASE_BYTES + 64 * 2**20

# The smallest number of rows of a block, where rows are wide or memory is short, and
# the largest: more are no faster.
_LEAST_ROWS = 2**8
_MOST_ROWS = 2**19

# A block is on its way in several forms at once: as it was read, as numbers, as labels
# and as codes, all of which may be distinct. Measured on blocks of 2**18 rows.
_COPIES_OF_NUMBERS = 3
_COPIES_OF_LABELS = 4
_BYTES_BESIDE = 100

# Parts of the limit that blocks and states may have.
_BLOCK_SHARE = 0.4
_STATE_SHARE = 0.25

# So much is there, or all else fails as well; it is not asked for.
_NEVER_REFUSED = 64 * 2**20

# More than any machine has.
_NO_LIMIT = 2**62

# Windows tells only compiled code how much memory there is. A limit is chosen as if so
# much were free; nothing is refused for it.
_GUESSED_FREE = 4 * 2**30

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def read_limit(memory_limit) -> int:
    """Return the number of bytes that a limit stands for.

    Parameters
    ----------
    memory_limit : int, str or None
        Bytes, or a text such as "2GB" or "512 MiB". None means half of what is free,
        or of a guess where that is not told, but not less than a small fit takes.
    """
    if memory_limit is None:
        return max(min(find_free_memory(), _guess_free()) // 2, _LEAST_DEFAULT)
    if isinstance(memory_limit, str):
        n_bytes = _read_bytes(memory_limit)
    else:
        n_bytes = int(memory_limit)
    if n_bytes <= BASE_BYTES:
        raise ValueError(
            f"memory_limit={memory_limit!r} should be more than "
            f"{format_bytes(BASE_BYTES)}, which a fit takes for any number of rows."
        )
    return n_bytes


def _read_bytes(text: str) -> int:
    found = re.fullmatch(r"\s*([0-9.]+)\s*([kmgt]?)(i?)b?\s*", text.lower())
    try:
        number = float(found[1]) if found else 0.0
    except ValueError:
        found = None
    if found is None:
        raise ValueError(
            f"memory_limit={text!r} should be a number of bytes, or a text such as "
            "'2GB' or '512MiB'."
        )
    unit = _UNITS[found[2]]
    if found[3]:
        unit = 1024 ** ["", "k", "m", "g", "t"].index(found[2])
    return int(number * unit)


def format_bytes(n_bytes: float) -> str:
    """Return a number of bytes in words, such as "1.5 GB"."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.3g} {unit}"
    return f"{n_bytes:.0f} bytes"


def find_free_memory(root: Path = Path("/"), *, with_swap: bool = False) -> int:
    """Return how many bytes this process could still take at most.

    Only Linux tells what is free. Elsewhere it is all memory that the machine has, or a
    number without end if that is not told either: what needs more cannot be done, and
    nothing else may be refused.

    Parameters
    ----------
    root : Path, default="/"
        Where the folders are in which Linux tells it.
    with_swap : bool, default=False
        Whether to count what could be had if others gave way.
    """
    return min(
        _find_available(root, with_swap=with_swap),
        _find_container_rest(root),
        _find_process_rest(root),
    )


def need_memory(n_bytes: int, what: str, remedy: str, root: Path = Path("/")) -> None:
    """Refuse what cannot fit into memory.

    Parameters
    ----------
    n_bytes : int
        About what it takes beside what is held already.
    what : str
        What takes it, the beginning of a sentence.
    remedy : str
        What to do instead, a sentence.
    root : Path, default="/"
        Where the folders are in which Linux tells what is free.
    """
    if n_bytes <= _NEVER_REFUSED:
        return
    room = find_free_memory(root, with_swap=True)
    if n_bytes > room:
        raise MemoryError(
            f"{what} needs about {format_bytes(n_bytes)}, and at most "
            f"{format_bytes(room)} are free. {remedy}"
        )


def _find_available(root: Path, *, with_swap: bool) -> int:
    sizes = _read_sizes(root)
    if "MemAvailable" in sizes:
        return sizes["MemAvailable"] + with_swap * sizes.get("SwapFree", 0)
    total = _find_total()
    return _NO_LIMIT if total is None else total


def _guess_free(root: Path = Path("/")) -> int:
    """Return what may be free where nobody tells it; no limit where it is told."""
    if "MemAvailable" in _read_sizes(root):
        return _NO_LIMIT
    total = _find_total()
    return _GUESSED_FREE if total is None else total // 2


def _read_sizes(root: Path) -> dict[str, int]:
    """Return what Linux says of the memory, in bytes; nothing elsewhere."""
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
        return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}
    except (OSError, IndexError, ValueError):
        return {}


def _find_total() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _find_process_rest(root: Path) -> int:
    """Return what a limit on this process leaves, as ulimit -v sets it."""
    try:
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        pages = int((root / "proc/self/statm").read_text().split()[0])
    except (ImportError, OSError, IndexError, ValueError):
        # Windows has no such limit, and only Linux tells how much is taken.
        return _NO_LIMIT
    if most == resource.RLIM_INFINITY:
        return _NO_LIMIT
    return max(most - pages * resource.getpagesize(), 0)


class _GroupNames(NamedTuple):
    """What a version of control groups calls its folder, its files and the cache.

    Attributes
    ----------
    folder : str
    most : str
        File with the limit.
    taken : str
        File with what the group has, with files that are kept in memory.
    cache : tuple of str
        Lines of memory.stat with the parts of those that are given up if need be.
    """

    folder: str
    most: str
    taken: str
    cache: tuple[str, ...]


_VERSION_1 = _GroupNames(
    "sys/fs/cgroup/memory",
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    ("total_inactive_file", "total_active_file"),
)
_VERSION_2 = _GroupNames(
    "sys/fs/cgroup",
    "memory.max",
    "memory.current",
    ("inactive_file", "active_file"),
)


def _find_container_rest(root: Path) -> int:
    """Return what containers and jobs leave, which may be less than the machine has."""
    rests = (_measure_rest(folder, names) for folder, names in _list_groups(root))
    return min(rests, default=_NO_LIMIT)


def _list_groups(root: Path) -> Iterator[tuple[Path, _GroupNames]]:
    """Yield the groups of this process, each with those around it."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            names = _VERSION_2
        elif "memory" in controllers.split(","):
            names = _VERSION_1
        else:
            continue
        # A container may see its own groups only, and not the path to them.
        parts = [] if ".." in path else path.strip("/").split("/")
        for depth in range(len(parts) + 1):
            yield root.joinpath(names.folder, *parts[:depth]), names


def _measure_rest(folder: Path, names: _GroupNames) -> int:
    """Return what a group leaves; what has no limit has no number."""
    try:
        most = int((folder / names.most).read_text())
        taken = int((folder / names.taken).read_text())
    except (OSError, ValueError):
        return _NO_LIMIT
    return max(most - max(taken - _measure_cache(folder, names), 0), 0)


def _measure_cache(folder: Path, names: _GroupNames) -> int:
    try:
        lines = (folder / "memory.stat").read_text().splitlines()
        sizes = dict(line.split(maxsplit=1) for line in lines)
        return sum(int(sizes.get(name, 0)) for name in names.cache)
    except (OSError, ValueError):
        return 0


class Budget:
    """What parts of the memory limit are for.

    Parameters
    ----------
    limit : int
        In bytes.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        # A limit may be small; a block of the smallest size still has to fit.
        self._rest = max(limit - BASE_BYTES, LEAST_REST)

    @property
    def for_states(self) -> int:
        """Bytes for what is kept of blocks between passes."""
        return int(_STATE_SHARE * self._rest)

    @property
    def for_rows(self) -> int:
        """Bytes for rows of all blocks that are brought to one place."""
        return int(_STATE_SHARE * self._rest)

    def holds(self, n_rows: int, n_partitions: int) -> bool:
        """Return whether what is kept of so many rows fits in any case."""
        return weigh_states(n_rows, n_partitions) <= self._rest

    def count_block_rows(self, bytes_per_row: int, n_partitions: int) -> int:
        """Return how many rows a block should have, a power of two.

        Parameters
        ----------
        bytes_per_row : int
            Of the numbers of a row.
        n_partitions : int
        """
        n_rows = int(_BLOCK_SHARE * self._rest) // weigh_row(
            bytes_per_row, n_partitions
        )
        return min(max(1 << max(n_rows, 1).bit_length() - 1, _LEAST_ROWS), _MOST_ROWS)


def weigh_states(n_rows: int, n_partitions: int) -> int:
    """Return how many bytes the labels and codes of rows take in one place.

    Parameters
    ----------
    n_rows : int
    n_partitions : int
    """
    return n_rows * (_COPIES_OF_LABELS * n_partitions + _BYTES_BESIDE)


def weigh_row(bytes_per_row: int, n_partitions: int) -> int:
    """Return how many bytes a row of a block takes in all its forms.

    Parameters
    ----------
    bytes_per_row : int
        Of the numbers of a row.
    n_partitions : int
    """
    return (
        _COPIES_OF_NUMBERS * bytes_per_row
        + _COPIES_OF_LABELS * n_partitions
        + _BYTES_BESIDE
    )
