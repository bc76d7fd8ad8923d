"""``corral predict``: labels of new rows, by a saved model."""

from pathlib import Path

import click

from corral.cli._bar import progress
from corral.cli._files import check_outputs, print_json, print_rows, write_labels
from corral.cli._options import (
    INPUT,
    MODEL,
    format_option,
    json_option,
    labels_option,
    progress_option,
)
from corral.cli._text import fact


@click.command(
    epilog="""\b
Examples:
  corral predict model.skops new.csv
  corral predict model.skops new.csv --labels labels.parquet
"""
)
@click.argument("model", type=MODEL)
@click.argument("data", type=INPUT)
@format_option
@labels_option
@json_option
@progress_option
def predict(
    model: Path,
    data: str,
    form: str | None,
    labels: Path | None,
    as_json: bool,
    show: bool | None,
) -> None:
    """Label new rows by a saved model.

    MODEL is a file that "corral fit --model" wrote, and DATA a table with the columns
    of the fit; "-" is standard input. Each row is answered by itself.

    Without --labels, the labels go to standard output and the summary to standard
    error. Label -1 is an outlier.
    """
    check_outputs({"--labels": labels}, [model, data])
    with progress(show) as bar:
        bar.stage("starting")
        from corral.cli._findings import label_words, table_words
        from corral.cli._work import judge_file

        judged = judge_file(model, data, form, bar)
        if labels is not None:
            write_labels(labels, judged.columns)

    files = {"labels": str(labels)} if labels else {}
    facts = judged.facts | {"files": files}
    if as_json:
        print_json(facts if labels else facts | {"labels": judged.columns})
        return
    lines = [*table_words(facts), *label_words(facts)]
    lines += [fact(name, path) for name, path in files.items()]
    click.echo("\n".join(lines), err=labels is None)
    if labels is None:
        print_rows(judged.columns)
