"""``corral explain``: why a row is strange, or is not, in words."""

from pathlib import Path

import click

from corral.cli._bar import progress
from corral.cli._files import print_json
from corral.cli._options import (
    INPUT,
    MODEL,
    format_option,
    json_option,
    memory_option,
    progress_option,
)


@click.command(
    epilog="""\b
Examples:
  corral explain model.skops data.csv --row 17
  corral explain model.skops data.csv --id "Ada" --id "Bo" --json
"""
)
@click.argument("model", type=MODEL)
@click.argument("data", type=INPUT)
@click.option(
    "--row",
    "rows",
    type=click.IntRange(min=0),
    multiple=True,
    metavar="N",
    help="Row to explain, counted from 0. May be repeated.",
)
@click.option(
    "--id",
    "ids",
    multiple=True,
    metavar="NAME",
    help="Row to explain, by its name in the id column. May be repeated.",
)
@click.option(
    "--n-features",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    metavar="N",
    help="Largest number of features that are named.",
)
@format_option
@memory_option
@json_option
@progress_option
def explain(
    model: Path,
    data: str,
    rows: tuple[int, ...],
    ids: tuple[str, ...],
    n_features: int,
    form: str | None,
    memory_limit: str | None,
    as_json: bool,
    show: bool | None,
) -> None:
    """Say why rows are strange, or are not.

    MODEL is a file that "corral fit --model" wrote. DATA holds the rows of the fit, or
    others with the same columns; "-" is standard input.

    For each row: its score against the cut, how many partitions disagree with its
    nearest cluster, how its cost adds up, and what sets it apart from that cluster.
    """
    if not rows and not ids:
        raise click.UsageError("Say which rows to explain: --row or --id.")
    with progress(show) as bar:
        bar.stage("starting")
        from corral.cli._job import open_for
        from corral.cli._reasons import explain_rows, in_words
        from corral.cli._work import load_model, read

        fitted = load_model(model)
        opened = open_for(fitted, data, form, memory_limit, bar)
        if opened is None:
            table = read(data, form, fitted.encoder_.texts_, bar)
        else:
            table = opened[0]
        bar.stage("explaining")
        reasons = explain_rows(fitted, table, rows, ids, n_features)

    if as_json:
        print_json(reasons)
        return
    click.echo("\n\n".join(map(in_words, reasons)))
