"""Whether a table is read as a whole or block by block, decided before it is read."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from corral._memory import (
    BASE_BYTES,
    LEAST_REST,
    format_bytes,
    need_memory,
    read_limit,
)
from corral.tables._read import FORMAT_WORDS, check_exists, kind_of
from corral.tables._size import TableSize, measure_table

# A byte of a table in memory becomes so many while it is fitted: the table, its rows as
# numbers, and copies on the way. Labels, codes, scores and names add the rest, row by
# row. Both measured on files of 1,000,000 x 10 and 300,000 x 42 cells.
_BYTES_PER_BYTE = 4
_BYTES_PER_ROW = 300

# Forms that can be read block by block; those that are packed only as text.
_BLOCK_FORMS = ("csv", "tsv", "parquet", "npy")
_PACKED_FORMS = ("csv", "tsv")

# What to do about a table that cannot be held.
_SAMPLE = (
    "Take a sample of the rows, or use corral fit, which can read them block by block "
    "and makes a report, too."
)

# Methods that can fit rows they do not hold.
_BLOCK_METHODS = ("cor", "cor-detector")


class Plan(NamedTuple):
    """How a table is read.

    Attributes
    ----------
    size : TableSize
    needed : int
        Bytes that the table and its fit take in memory, about.
    limit : int
        Bytes that they may take.
    why : str
        Why it is read block by block; empty if it is not.
    """

    size: TableSize
    needed: int
    limit: int
    why: str

    @property
    def is_by_blocks(self) -> bool:
        """Whether it is read block by block."""
        return bool(self.why)


def plan_fit(
    data: str,
    form: str | None,
    *,
    method: str,
    tfidf: bool,
    memory_limit: str | None,
    checkpoint_dir: Path | None,
    on_error: str,
) -> Plan:
    """Decide how to read the table of a fit, or refuse what cannot be done.

    Parameters
    ----------
    data : str
        Path, or "-" for standard input.
    form : str or None
        Form of the file, if its name does not tell.
    method : str
    tfidf : bool
    memory_limit : str or None
    checkpoint_dir : Path or None
    on_error : {"raise", "skip"}

    Returns
    -------
    plan : Plan
    """
    asked = []
    if checkpoint_dir is not None:
        asked.append("--checkpoint-dir is given")
    if on_error == "skip":
        asked.append("--on-error skip is given")
    plan = plan_reading(data, form, memory_limit, asked)
    if plan.is_by_blocks and method not in _BLOCK_METHODS:
        _refuse(data, plan, f"--method {method} needs all rows", "use --method cor")
    if plan.is_by_blocks and tfidf:
        _refuse(data, plan, "--tfidf needs all rows", "leave --tfidf out")
    return plan


def plan_reading(
    data: str, form: str | None, memory_limit: str | None, asked: Sequence[str] = ()
) -> Plan:
    """Decide how to read a table.

    Parameters
    ----------
    data : str
    form : str or None
    memory_limit : str or None
    asked : sequence of str
        What asks for blocks whatever the size.

    Returns
    -------
    plan : Plan
    """
    limit = read_limit(memory_limit)
    size, growth = _measure(data, form)
    needed = BASE_BYTES + growth
    reasons = [*asked]
    if Path(data).is_dir():
        reasons.append("it is a folder")
    elif growth > max(limit - BASE_BYTES, LEAST_REST):
        reasons.append(
            f"it needs about {format_bytes(needed)} in memory, and the limit is "
            f"{format_bytes(limit)}"
        )
    plan = Plan(size, needed, limit, "; ".join(reasons))
    if plan.is_by_blocks:
        _check_form(data, form, plan)
    return plan


def check_room(
    data: str,
    form: str | None,
    command: str,
    remedy: str = _SAMPLE,
    growth: int | None = None,
) -> None:
    """Refuse a table that a command needs as a whole and memory cannot hold.

    Parameters
    ----------
    data : str
        Path, or "-" for standard input, of which it is not known how much it will give.
    form : str or None
    command : str
        Its name.
    remedy : str
        What to do instead, a sentence.
    growth : int, default=None
        What a byte of the table becomes; None is what it becomes in a fit.
    """
    size, needed = _measure(data, form)
    need_memory(
        needed if growth is None else growth * size.n_bytes,
        f"'{data}', all of which corral {command} holds,",
        remedy,
    )


def _measure(data: str, form: str | None) -> tuple[TableSize, int]:
    """Return the size of a table, and the bytes that it and its fit take about."""
    path = Path(data)
    if data != "-":
        check_exists(path, f"'{data}'")
    # Of standard input and pipes, it is not known how much they will give.
    is_there = data != "-" and (path.is_file() or path.is_dir())
    size = measure_table(path, format=form) if is_there else TableSize(None, 0)
    growth = _BYTES_PER_BYTE * size.n_bytes + _BYTES_PER_ROW * (size.n_rows or 0)
    return size, growth


def _check_form(data: str, form: str | None, plan: Plan) -> None:
    """Refuse a form that cannot be read block by block."""
    if data == "-":
        raise ValueError(
            f"Standard input can be read only once, but it should be read block by "
            f"block: {plan.why}. Save it as a file and name that."
        )
    path = Path(data)
    if not path.is_file():
        # What is wrong with it is told when it is opened.
        return
    kind, packed = kind_of(path, f"'{data}'", form)
    if kind in (_PACKED_FORMS if packed else _BLOCK_FORMS):
        return
    what = FORMAT_WORDS.get(kind or "", "its form") + (" that is packed" * bool(packed))
    _refuse(data, plan, f"{what} needs all rows", "save it as Parquet, CSV or NPY")


def _refuse(data: str, plan: Plan, what: str, instead: str) -> None:
    raise_it = f"--memory-limit (now {format_bytes(plan.limit)})"
    ways = f"{instead[0].upper()}{instead[1:]}"
    if plan.needed > plan.limit:
        ways += f", raise {raise_it}, or take a sample of the rows"
    raise ValueError(
        f"'{data}' should be read block by block ({plan.why}), but {what} in memory at "
        f"once. {ways}."
    )
