"""``corral datasets``: the paper's data sets, listed and fetched."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from corral._visible import spell_out
from corral.cli._files import print_json
from corral.cli._names import FilePath
from corral.cli._options import json_option, progress_option
from corral.cli._text import table

if TYPE_CHECKING:
    from corral.datasets import DatasetInfo

# What is told of a data set.
_FACTS = (
    "name",
    "title",
    "kind",
    "n_samples",
    "n_features",
    "n_clusters",
    "n_outliers",
    "licence",
    "page",
    "notes",
)


@click.group()
def datasets() -> None:
    """List or fetch the paper's data sets."""


@datasets.command(
    "list",
    epilog="""\b
Examples:
  corral datasets list
  corral datasets list --json
""",
)
@json_option
def list_(as_json: bool) -> None:
    """List the data sets, with their sizes and licences."""
    from corral.datasets import describe_dataset, list_datasets

    every = [describe_dataset(name) for name in list_datasets()]
    if as_json:
        print_json([_describe(each) for each in every])
        return
    head = ("name", "rows", "features", "clusters", "outliers", "fetch", "licence")
    rows = [
        (
            each.name,
            f"{each.n_samples:,}",
            f"{each.n_features:,}",
            str(each.n_clusters),
            f"{each.n_outliers:,}",
            "yes" if each.downloads else "by hand",
            each.licence,
        )
        for each in every
    ]
    click.echo(table(head, rows))


def _describe(info: "DatasetInfo") -> dict[str, Any]:
    facts: dict[str, Any] = {name: getattr(info, name) for name in _FACTS}
    return facts | {"can_fetch": bool(info.downloads)}


@datasets.command(
    epilog="""\b
Examples:
  corral datasets fetch glass
  corral datasets fetch glass yeast --folder data
"""
)
@click.argument("names", nargs=-1, required=True)
@click.option(
    "--folder",
    type=FilePath(file_okay=False, path_type=Path),
    help="Where to put the files. [default: $CORRAL_DATA, or else ~/corral_data]",
)
@progress_option
def fetch(names: tuple[str, ...], folder: Path | None, show: bool | None) -> None:
    """Download data sets from where they are published, and verify them.

    NAMES are names of data sets, as "corral datasets list" gives them. Files that are
    there already stay.
    """
    from corral.datasets import describe_dataset, fetch_dataset

    for name in names:
        # A wrong name is known before the first download.
        describe_dataset(name)
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    shown = is_terminal if show is None else show
    for name in names:
        for path in fetch_dataset(name, data_dir=folder, progress=shown):
            click.echo(spell_out(str(path)))
