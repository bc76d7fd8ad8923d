"""``corral compare``: several methods side by side."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from corral.cli._bar import progress
from corral.cli._config import config_files, config_option
from corral.cli._errors import Failure
from corral.cli._files import print_json
from corral.cli._methods import MethodName
from corral.cli._names import Names, flatten
from corral.cli._options import (
    INPUT,
    OUTPUT,
    force_option,
    json_option,
    method_options,
    method_settings,
    progress_option,
    raw_option,
    table_options,
    table_settings,
)
from corral.cli._outputs import Outputs


def _check_methods(
    ctx: click.Context, param: click.Parameter, values: tuple[list[str], ...]
) -> list[str]:
    """Return the names of the methods, each once."""
    names = flatten(ctx, param, values) or []
    if not names:
        raise click.UsageError("Name at least one method with --methods.", ctx)
    known = [MethodName().convert(name, param, ctx) for name in names]
    return list(dict.fromkeys(known))


@click.command(
    epilog="""\b
Examples:
  corral compare data.csv
  corral compare data.csv --methods cor,kmeans--,lof --n-clusters 5 --n-outliers 20
  corral compare data.csv --methods cor,iforest --contamination 0.02 --json
"""
)
@click.argument("data", type=INPUT)
@click.option(
    "--methods",
    type=Names(),
    multiple=True,
    callback=_check_methods,
    default=["cor,kmeans--,lof,iforest"],
    show_default=True,
    help="Methods of the package, parted by commas. May be repeated.",
)
@method_options
@table_options
@click.option(
    "--labels", type=OUTPUT, help="File for the labels, with a column per method."
)
@raw_option
@force_option
@config_option()
@json_option
@progress_option
@click.pass_context
def compare(
    ctx: click.Context,
    data: str,
    methods: list[str],
    labels: Path | None,
    raw_text: bool,
    force: bool,
    as_json: bool,
    show: bool | None,
    form: str | None,
    **options: Any,
) -> None:
    """Try several methods side by side.

    DATA is a table as for "corral fit"; "-" is standard input. Shown are the time that
    each method takes, its clusters, how many rows it sets aside, and how well the
    methods agree on them: the Jaccard index of two sets of outliers is the share of
    their rows that are in both.

    Options count for the methods that have them: some find the number of clusters or
    of outliers by themselves. All others get the same numbers, so that they can be
    compared: what is not given is chosen by cor, for all of them.
    """
    inputs: list[str | Path] = [data, *config_files(ctx)]
    outputs = Outputs({"--labels": labels}, inputs, force=force, form=form)
    settings = method_settings(ctx, options)
    with progress(show) as bar:
        bar.stage("starting")
        from corral.cli._plan import check_room
        from corral.cli._side_by_side import fit_all, in_words
        from corral.cli._work import list_ids, read

        check_room(data, form, "compare")
        chosen = table_settings(options)
        table = read(data, form, list_ids(chosen), bar)
        found = fit_all(table, methods, settings, chosen, bar)
        if labels is not None and found.columns:
            outputs.write_labels(found.columns, raw_text=raw_text)

    failed = found.facts["failed"]
    if as_json:
        print_json(found.facts)
    elif len(failed) < len(methods):
        click.echo(in_words(found.facts, outputs.files.get("labels")))
    if failed:
        # What the others found is shown all the same.
        reasons = " ".join(_gather(failed))
        raise Failure(f"{len(failed)} of {len(methods)} methods failed. {reasons}")
    outputs.check_names()


def _gather(failed: dict[str, str]) -> Iterator[str]:
    """Yield each reason once, behind the methods that have it."""
    for reason in dict.fromkeys(failed.values()):
        names = [name for name, other in failed.items() if other == reason]
        yield f"{', '.join(names)}: {reason}"
