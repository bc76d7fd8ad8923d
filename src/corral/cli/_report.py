"""``corral report``: the report of a saved model."""

from pathlib import Path

import click

from corral.cli._bar import progress
from corral.cli._call import command_line
from corral.cli._files import check_extras
from corral.cli._options import (
    INPUT,
    MODEL,
    OUTPUT,
    force_option,
    format_option,
    progress_option,
)
from corral.cli._outputs import Outputs
from corral.cli._text import fact


@click.command(
    epilog="""\b
Examples:
  corral report model.skops data.csv --output report.html
"""
)
@click.argument("model", type=MODEL)
@click.argument("data", type=INPUT)
@click.option(
    "--output",
    type=OUTPUT,
    default=Path("report.html"),
    show_default=True,
    help="File for the report, a page of HTML.",
)
@force_option
@format_option
@progress_option
@click.pass_context
def report(
    ctx: click.Context,
    model: Path,
    data: str,
    output: Path,
    force: bool,
    form: str | None,
    show: bool | None,
) -> None:
    """Write the report of a saved model.

    MODEL is a file that "corral fit --model" wrote. DATA holds the rows of the fit, or
    others with the same columns, which are then judged anew; "-" is standard input.
    """
    outputs = Outputs({"--output": output}, [model, data], force=force, form=form)
    check_extras(report=True, model=True)
    with progress(show) as bar:
        bar.stage("starting")
        from corral.cli._findings import label_words
        from corral.cli._plan import check_room
        from corral.cli._work import judge_file, make_page

        check_room(data, form, "report")
        judged = judge_file(model, data, form, bar)
        page = make_page(judged, data, command_line(ctx), bar)
        outputs.write_text("--output", page)

    rows = "those of the fit" if judged.is_training else "judged anew, not of the fit"
    click.echo(
        "\n".join(
            [
                fact("data", f"{judged.facts['n_rows']:,} rows, {rows}"),
                *label_words(judged.facts),
                fact("report", outputs.files["output"]),
            ]
        )
    )
    outputs.check_names()
