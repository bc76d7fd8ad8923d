"""Where results go: checked before the work, written whole or not at all."""

import json
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

# What ``corral.tables.write_rows`` writes.
_LABEL_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".pq")


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
    outputs: Mapping[str, Path | None], inputs: Sequence[str | Path]
) -> None:
    """Refuse outputs that cannot be written, before anything is computed.

    Parameters
    ----------
    outputs : mapping of str to Path or None
        By the name of their option.
    inputs : sequence of path-like
        They must not be written over; "-" is standard input.
    """
    labels = outputs.get("--labels")
    if labels is not None and not labels.name.lower().endswith(_LABEL_SUFFIXES):
        raise ValueError(
            f"--labels '{labels}' has a suffix that is not known. Choose one of "
            f"{', '.join(_LABEL_SUFFIXES)}."
        )
    taken = {Path(each).resolve(): "the input" for each in inputs if str(each) != "-"}
    for option, path in outputs.items():
        if path is None:
            continue
        _check_place(option, path)
        other = taken.setdefault(path.resolve(), option)
        if other is not option:
            raise ValueError(
                f"{option} '{path}' is the same file as {other}. Name another file."
            )


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
    folder = path.parent
    if path.exists() and not path.is_file() and not path.is_dir():
        # A device or a pipe, which needs no place for a temporary file beside it.
        return
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


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Name the file in an error of writing it, such as that of a full disk.

    Parameters
    ----------
    path : Path
    """
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error


def write_text(path: Path, text: str) -> None:
    """Write a file, complete or not at all.

    Parameters
    ----------
    path : Path
    text : str
        Written as UTF-8, with its line ends as they are.
    """
    from corral.tables import write_atomically

    with named(path), write_atomically(path) as part:
        part.write_text(text, encoding="utf-8", newline="")


def write_labels(path: Path, columns: Mapping[str, Sequence]) -> None:
    """Write the labels file, complete or not at all.

    Parameters
    ----------
    path : Path
    columns : mapping of str to sequence
    """
    from corral.tables import write_rows

    with named(path):
        write_rows(path, columns)


def print_rows(columns: Mapping[str, Sequence]) -> None:
    """Write columns to standard output as CSV.

    Parameters
    ----------
    columns : mapping of str to sequence
    """
    from corral.tables import write_csv

    _check_stdout()
    write_csv(sys.stdout, columns)
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
    click.echo(json.dumps(_finite(facts), indent=2, ensure_ascii=False))


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
