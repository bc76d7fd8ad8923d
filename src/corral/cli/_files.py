"""Where results go: checked before the work, written whole or not at all."""

import errno
import json
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

import click

from corral._visible import spell_out, spell_out_json

# What ``corral.tables.write_rows`` writes.
_LABEL_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".pq")

# Those that a folder is read for.
_DATA_SUFFIXES = (".parquet", ".pq")

# Labels for standard output that are held in memory; more go to a temporary file.
_HELD_BYTES = 2**26

# Columns by name.
Columns = Mapping[str, Sequence]


def make_folder(folder: Path) -> None:
    """Make a folder for results, unless it is there.

    Parameters
    ----------
    folder : Path
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise NotADirectoryError(
            f"'{folder}' cannot be a folder, because a file is in its place. "
            "Name another folder."
        ) from error


def check_outputs(
    paths: Mapping[str, Path | None],
    inputs: Sequence[str | Path],
    *,
    force: bool,
    form: str | None = None,
) -> None:
    """Refuse outputs that cannot be written; the parameters are those of Outputs."""
    labels = paths.get("--labels")
    if labels is not None and not labels.name.lower().endswith(_LABEL_SUFFIXES):
        raise ValueError(
            f"--labels '{labels}' has a suffix that is not known. Choose one of "
            f"{', '.join(_LABEL_SUFFIXES)}."
        )
    if not any(paths.values()):
        return
    taken = {follow(each): "the input" for each in inputs if str(each) != "-"}
    if any(path is not None and path.is_file() for path in paths.values()):
        taken |= dict.fromkeys(_find_linked(inputs), "the input")
    for option, path in paths.items():
        if path is None:
            continue
        _check_place(option, path)
        _check_apart(option, path, inputs, form)
        other = taken.setdefault(follow(path), option)
        if other is not option:
            raise ValueError(
                f"{option} '{path}' is the same file as {other}. Name another file."
            )
        if path.is_file() and not force:
            raise ValueError(
                f"{option} '{path}' exists already. Name another, or say --force to "
                "replace it."
            )


def follow(path: str | Path) -> Path:
    """Return where a path leads.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    target : Path
        Without links, unless they lead to themselves.
    """
    # Path.resolve raises an error of its own for such links, before Python 3.13.
    return Path(os.path.realpath(path))


def _find_linked(inputs: Sequence[str | Path]) -> Iterator[Path]:
    """Yield what the links in folders of data lead to."""
    for folder in map(Path, inputs):
        if folder.is_dir():
            found = (each for each in folder.rglob("*") if each.is_symlink())
            yield from map(follow, found)


def check_extras(*, report: bool = False, model: bool = False) -> None:
    """Refuse outputs whose writer is not installed, before anything is computed.

    Parameters
    ----------
    report, model : bool, default=False
        Whether they are asked for.
    """
    if report and find_spec("jinja2") is None:
        raise ImportError(
            "The HTML report needs jinja2. "
            'Install it with: pip install "corral[report]"'
        )
    if model and find_spec("skops") is None:
        raise ImportError(
            "Saving and loading models needs skops. "
            'Install it with: pip install "corral[persist]"'
        )


def _check_place(option: str, path: Path) -> None:
    if _is_loop(path):
        raise ValueError(
            f"{option} '{path}' is a link that leads back to itself. Name another file."
        )
    if path.exists() and not path.is_file() and not path.is_dir():
        # A device or a pipe, which needs no place for a temporary file beside it.
        return
    # What a link leads to is written.
    folder = follow(path).parent if path.is_symlink() else path.parent
    if path.is_dir():
        raise ValueError(f"{option} '{path}' is a folder. Name a file in it.")
    if not folder.is_dir():
        raise ValueError(
            f"{option} '{path}' is in the folder '{folder}', which is not there. Make "
            "it first, or name another."
        )
    if not os.access(folder, os.W_OK):
        raise ValueError(
            f"{option} '{path}' is in the folder '{folder}', which cannot be written "
            "to. Name another."
        )


def _is_loop(path: Path) -> bool:
    """Return whether a path is a link to itself, by whatever ways."""
    try:
        path.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def _check_apart(
    option: str, path: Path, inputs: Sequence[str | Path], form: str | None
) -> None:
    """Refuse a file that a folder of data would hold from then on.

    That is known by the end of its name, unless a form was given: then all files in the
    folder are data.
    """
    # A link counts where it is, by its own name, and where it leads.
    places = [follow(path.parent) / path.name, follow(path)]
    if form is None:
        places = [each for each in places if each.suffix.lower() in _DATA_SUFFIXES]
    for folder in map(Path, inputs):
        if folder.is_dir() and any(follow(folder) in each.parents for each in places):
            raise ValueError(
                f"{option} '{path}' is in the folder '{folder}', and would be read as "
                "data of it from then on. Name a place elsewhere."
            )


def check_checkpoint(
    folder: Path | None, inputs: Sequence[str | Path] = (), form: str | None = None
) -> None:
    """Refuse a folder for checkpoints that cannot be used, before the rows are read.

    Parameters
    ----------
    folder : Path or None
    inputs : sequence of path-like, default=()
    form : str, default=None
        Form of the data, if it was given.
    """
    if folder is not None:
        from corral._journal import check_folder

        if form is not None:
            # Else no file of a checkpoint is taken for data.
            _check_apart("--checkpoint-dir", folder, inputs, form)
        check_folder(folder, f"--checkpoint-dir '{folder}'")


def write_text(path: Path, text: str, *, replace: bool) -> None:
    """Write a file, complete or not at all.

    Parameters
    ----------
    path : Path
    text : str
        Written as UTF-8, with its line ends as they are; names of files that are not
        UTF-8, with the bytes that they have.
    replace : bool
        As of ``corral.tables.write_atomically``.
    """
    from corral.tables import write_atomically

    with write_atomically(path, replace=replace) as part:
        part.write_text(text, encoding="utf-8", errors="surrogateescape", newline="")


def write_labels(
    path: Path,
    columns: Columns | Iterable[Columns],
    *,
    raw_text: bool = False,
    replace: bool,
) -> None:
    """Write the labels file, complete or not at all.

    Parameters
    ----------
    path : Path
    columns : mapping of str to sequence, or iterable of such mappings
        All rows, or blocks of them.
    raw_text : bool, default=False
        Whether formulas are not escaped.
    replace : bool
        As of ``corral.tables.write_atomically``.
    """
    from corral.tables import write_rows

    write_rows(path, columns, escape_formulas=not raw_text, replace=replace)


class HeldLabels:
    """Labels for standard output, held until all of them are there.

    Parameters
    ----------
    blocks : iterable of mappings of str to sequence
        Blocks of rows.
    as_json : bool
        Whether they become part of a JSON document, and not lines of CSV.
    raw_text : bool, default=False
        Whether formulas are not escaped in CSV; in JSON they never are.
    """

    def __init__(
        self, blocks: Iterable[Columns], *, as_json: bool, raw_text: bool = False
    ) -> None:
        self._parts: dict[str, TextIO] = {}
        if as_json:
            self._hold_columns(blocks)
        else:
            self._hold_lines(blocks, raw_text)

    def _hold_lines(self, blocks: Iterable[Columns], raw_text: bool) -> None:
        from corral.tables import write_csv

        self._parts["lines"] = _make_room()
        write_csv(self._parts["lines"], blocks, escape_formulas=not raw_text)

    def _hold_columns(self, blocks: Iterable[Columns]) -> None:
        """Hold each column as the lines of a JSON list."""
        for block in blocks:
            for name, values in block.items():
                start = ",\n      " if name in self._parts else "      "
                text = _to_json([*values], separators=(",\n      ", ": "))
                file = self._parts.setdefault(name, _make_room())
                file.write(start + text[1:-1])

    def print_lines(self) -> None:
        """Write the lines of CSV to standard output."""
        _check_stdout()
        _copy(self._parts["lines"], _find_stdout())
        # A reader that has gone is noticed here, not when Python ends.
        sys.stdout.flush()

    def print_json(self, facts: Mapping[str, Any]) -> None:
        """Write a result to standard output as JSON, the labels as its last part.

        Parameters
        ----------
        facts : mapping
            As of :func:`print_json`.
        """
        _check_stdout()
        head = _to_json({**facts}, indent=2)
        sys.stdout.write(f'{head[:-2]},\n  "labels": {{')
        for number, (name, file) in enumerate(self._parts.items()):
            key = _to_json(name)
            sys.stdout.write(f"{',' * bool(number)}\n    {key}: [\n")
            _copy(file, sys.stdout)
            sys.stdout.write("\n    ]")
        sys.stdout.write("\n  }\n}\n")
        sys.stdout.flush()


def _make_room() -> Any:
    return tempfile.SpooledTemporaryFile(
        _HELD_BYTES, "w+", encoding="utf-8", newline="", prefix="corral-"
    )


def _copy(file: TextIO, to: Any) -> None:
    file.seek(0)
    shutil.copyfileobj(file, to)


class _Terminal:
    """Standard output that is a terminal, which would obey some characters."""

    def write(self, text: str) -> None:
        """Write a text with such characters spelled out."""
        sys.stdout.write(spell_out(text))


def _find_stdout() -> Any:
    """Return where rows go: to a terminal for eyes, and to programs as they are."""
    return _Terminal() if sys.stdout.isatty() else sys.stdout


def print_result(
    facts: dict[str, Any],
    held: HeldLabels | None,
    in_words: Callable[[dict[str, Any]], str],
    as_json: bool,
) -> None:
    """Write a summary, and the labels that are in no file.

    Parameters
    ----------
    facts : dict
    held : HeldLabels or None
    in_words : callable
        Makes a text of the facts.
    as_json : bool
        Whether all of it is one JSON document on standard output.
    """
    if as_json and held is None:
        print_json(facts)
    elif as_json and held is not None:
        held.print_json(facts)
    else:
        click.echo(in_words(facts), err=held is not None)
        if held is not None:
            held.print_lines()


def print_rows(columns: Mapping[str, Sequence], *, raw_text: bool = False) -> None:
    """Write columns to standard output as CSV.

    Parameters
    ----------
    columns : mapping of str to sequence
    raw_text : bool, default=False
        Whether formulas are not escaped.
    """
    from corral.tables import write_csv

    _check_stdout()
    write_csv(_find_stdout(), columns, escape_formulas=not raw_text)
    # A reader that has gone is noticed here, not when Python ends.
    sys.stdout.flush()


def print_json(facts: Any) -> None:
    """Write a result to standard output as JSON.

    Parameters
    ----------
    facts : dict or list
        Of plain values; numbers that are not finite, which JSON does not have, become
        null.
    """
    _check_stdout()
    click.echo(_to_json(facts, indent=2))


def _to_json(value: Any, **settings: Any) -> str:
    text = json.dumps(_finite(value), ensure_ascii=False, **settings)
    return spell_out_json(text)


def _check_stdout() -> None:
    # It is None where the caller closed it.
    if sys.stdout is None:
        raise ValueError(
            "Standard output is closed, so the result has nowhere to go. Open it, or "
            "name a file for the result."
        )


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
