"""``corral predict``: labels of new rows, by a saved model."""

from pathlib import Path
from typing import Any

import click

from corral.cli._bar import progress
from corral.cli._files import print_result
from corral.cli._options import (
    INPUT,
    MODEL,
    force_option,
    format_option,
    json_option,
    labels_option,
    memory_option,
    progress_option,
    raw_option,
)
from corral.cli._outputs import Outputs
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
@raw_option
@force_option
@memory_option
@json_option
@progress_option
def predict(
    model: Path,
    data: str,
    form: str | None,
    labels: Path | None,
    raw_text: bool,
    force: bool,
    memory_limit: str | None,
    as_json: bool,
    show: bool | None,
) -> None:
    """Label new rows by a saved model.

    MODEL is a file that "corral fit --model" wrote, and DATA a table with the columns
    of the fit; "-" is standard input. Each row is answered by itself. A table that
    needs more memory than --memory-limit is read block by block, and so is a folder of
    Parquet files.

    Without --labels, the labels go to standard output and the summary to standard
    error. Label -1 is an outlier.
    """
    outputs = Outputs({"--labels": labels}, [model, data], force=force, form=form)
    with progress(show) as bar:
        bar.stage("starting")
        from corral.cli._job import judge_any

        judged = judge_any(model, data, form, memory_limit, bar)
        blocks = judged.blocks()
        held = outputs.keep_labels(blocks, as_json=as_json, raw_text=raw_text)

    facts = judged.facts | {"files": outputs.files}
    print_result(facts, held, _in_words, as_json)
    outputs.check_names()


def _in_words(facts: dict[str, Any]) -> str:
    from corral.cli._findings import label_words, table_words

    lines = [*table_words(facts), *label_words(facts)]
    lines += [fact(name, path) for name, path in facts["files"].items()]
    return "\n".join(lines)
