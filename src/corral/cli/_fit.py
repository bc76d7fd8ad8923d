"""``corral fit``: clusters and outliers of a file."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from corral.cli._bar import Bar, progress
from corral.cli._call import command_line
from corral.cli._config import config_files, config_option
from corral.cli._files import (
    check_checkpoint,
    check_extras,
    print_result,
)
from corral.cli._methods import MethodName
from corral.cli._options import (
    INPUT,
    OUTPUT,
    error_option,
    force_option,
    json_option,
    labels_option,
    memory_option,
    method_options,
    method_settings,
    progress_option,
    raw_option,
    table_options,
    table_settings,
)
from corral.cli._outputs import Outputs, save_model
from corral.cli._text import fact


@click.command(
    epilog="""\b
Examples:
  corral fit data.csv
  corral fit data.csv --n-clusters 5 --n-outliers 20
  corral fit data.parquet --n-clusters 5 --contamination 0.02 \\
      --id-column name --exclude comment,date \\
      --labels labels.csv --report report.html --model model.skops
  corral fit words.npz --tfidf --n-clusters 10 --labels labels.parquet
  corral fit data.csv --method lof --n-outliers 20
  corral fit data.csv --config corral.toml --seed 1
  corral fit big.parquet --dry-run
  corral fit folder/ --memory-limit 2GB --checkpoint-dir notes --labels labels.parquet
  zcat data.csv.gz | corral fit - --n-clusters 5 > labels.csv
"""
)
@click.argument("data", type=INPUT)
@method_options
@click.option(
    "--method",
    type=MethodName(),
    default="cor",
    show_default=True,
    help="Any method of the package, such as kmeans--, lof or iforest.",
)
@table_options
@labels_option
@raw_option
@click.option("--report", type=OUTPUT, help="File for the report, a page of HTML.")
@click.option(
    "--model", type=OUTPUT, help="File for the model, which predicts and explains."
)
@force_option
@memory_option
@click.option(
    "--checkpoint-dir",
    type=OUTPUT,
    metavar="FOLDER",
    help="Folder in which the fit notes what it has done, block by block. If it is "
    "ended, the same command goes on from there.",
)
@error_option
@click.option(
    "--dry-run",
    is_flag=True,
    help="Say how the table would be read and fitted, and about how long and with how "
    "much memory. Reads a sample and writes nothing.",
)
@config_option()
@json_option
@progress_option
@click.pass_context
def fit(
    ctx: click.Context,
    data: str,
    method: str,
    labels: Path | None,
    raw_text: bool,
    report: Path | None,
    model: Path | None,
    force: bool,
    memory_limit: str | None,
    checkpoint_dir: Path | None,
    on_error: str,
    dry_run: bool,
    as_json: bool,
    show: bool | None,
    form: str | None,
    **options: Any,
) -> None:
    """Find clusters and outliers in a file.

    DATA is a table: CSV, TSV, Parquet, Arrow, NPY, NPZ, ARFF or Matrix Market, packed
    by gzip or zstd or not; "-" is standard input. Numbers, dates and booleans are
    used as numbers, and columns of categories join as partitions of their own.

    A table that needs more memory than --memory-limit is read block by block, and so is
    a folder of Parquet files; that is for the method cor and for Parquet, CSV, TSV and
    NPY. Labels are the same.

    Without --n-clusters, the method cor chooses the number of clusters, and without
    --n-outliers or --contamination that of outliers. The summary says why, and which
    is the runner-up; the report has the curves.

    Without --labels, the labels go to standard output and the summary to standard
    error. Label -1 is an outlier. Where the method knows, outlier_confidence is the
    probability that a row is set aside if the partitions are drawn again, and
    label_confidence that its nearest cluster stays the nearest.
    """
    paths = {"--labels": labels, "--report": report, "--model": model}
    inputs: list[str | Path] = [data, *config_files(ctx)]
    outputs = Outputs(paths, inputs, force=force, form=form)
    check_checkpoint(checkpoint_dir, inputs, form)
    check_extras(report=report is not None, model=model is not None)
    settings = method_settings(ctx, options)
    with progress(show) as bar:
        bar.stage("starting")
        from corral.cli._job import plan_job, run_job

        job = plan_job(
            data,
            form,
            method,
            settings,
            table_settings(options),
            memory_limit=memory_limit,
            checkpoint_dir=checkpoint_dir,
            on_error=on_error,
        )
        if dry_run:
            from corral.cli._dry_run import print_rehearsal, rehearse

            rehearsal = rehearse(job, bar)
        else:
            fitted = run_job(job, bar)
            page = _make_page(fitted, data, command_line(ctx), bar) if report else ""
            # All is known before the first file is written.
            blocks = fitted.blocks()
            held = outputs.keep_labels(blocks, as_json=as_json, raw_text=raw_text)
            bar.stage("writing")
            if model is not None:
                outputs.write("--model", partial(save_model, fitted.model))
            if report is not None:
                outputs.write_text("--report", page)

    head = {"method": method, "seed": options["seed"]}
    if dry_run:
        print_rehearsal(head | rehearsal, as_json=as_json)
        return
    facts = {**head, **fitted.facts, "files": outputs.files}
    print_result(facts, held, fit_words, as_json)
    outputs.check_names()


def _make_page(fitted: Any, data: str, command: str, bar: Bar) -> str:
    from corral.cli._work import make_page

    return make_page(fitted.sample(), data, command, bar)


def fit_words(facts: dict[str, Any]) -> str:
    """Return the summary of a fit.

    Parameters
    ----------
    facts : dict

    Returns
    -------
    text : str
    """
    from corral.cli._findings import choice_words, label_words, table_words

    lines = table_words(facts)
    how = f"by {facts['method']}, seed {facts['seed']}"
    lines.append(fact("fit", f"{facts['seconds']:.1f} seconds {how}"))
    lines += label_words(facts)
    lines += choice_words(facts)
    lines += [fact(name, path) for name, path in facts["files"].items()]
    return "\n".join(lines)
