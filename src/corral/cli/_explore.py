"""``corral explore``: a local page with sliders for clusters and outliers."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from corral.cli._bar import progress
from corral.cli._call import as_argument, said_words
from corral.cli._config import config_files, config_option
from corral.cli._errors import sentence, show_traceback, wants_traceback
from corral.cli._files import check_extras
from corral.cli._methods import make_method
from corral.cli._names import FilePath
from corral.cli._options import (
    INPUT,
    method_options,
    method_settings,
    progress_option,
    raw_option,
    table_options,
    table_settings,
)

# Options of a method that have another meaning here, or none.
_OTHERS = {"n_clusters", "n_outliers", "contamination", "k_range"}

# What ``corral fit`` does not take.
_OWN = {"start_clusters", "start_outliers", "output", "force", "port", "browser"}

_CAUSES = {
    "closed": "Ended, because the page was closed.",
    "interrupted": "Ended. No file is half-written.",
}


@click.command(
    epilog="""\b
Examples:
  corral explore data.csv
  corral explore data.parquet --id-column name --exclude comment --output results
  corral explore data.csv --n-clusters 5 --n-outliers 20
  corral explore data.csv --no-browser --port 8000
"""
)
@click.argument("data", type=INPUT)
@click.option(
    "--n-clusters",
    "start_clusters",
    type=click.IntRange(min=1),
    metavar="K",
    show_default="what the rows suggest",
    help="Number of clusters at the start.",
)
@click.option(
    "--n-outliers",
    "start_outliers",
    type=click.IntRange(min=0),
    metavar="O",
    show_default="what the rows suggest",
    help="Number of outliers at the start.",
)
@method_options
@table_options
@click.option(
    "--output",
    type=FilePath(file_okay=False, path_type=Path),
    default=Path(),
    show_default="this folder",
    metavar="DIR",
    help="Folder for the files that the page saves.",
)
@raw_option
@click.option(
    "--force", is_flag=True, help="Let the page replace files without a question."
)
@click.option(
    "--port",
    type=click.IntRange(min=0, max=65535),
    default=0,
    metavar="N",
    show_default="a free one",
    help="Port of 127.0.0.1 to serve the page at.",
)
@click.option(
    "--browser/--no-browser",
    default=True,
    show_default=True,
    help="Open the page in the browser, or only print its address.",
)
@config_option()
@progress_option
@click.pass_context
def explore(
    ctx: click.Context,
    data: str,
    start_clusters: int | None,
    start_outliers: int | None,
    output: Path,
    raw_text: bool,
    force: bool,
    port: int,
    browser: bool,
    show: bool | None,
    form: str | None,
    **options: Any,
) -> None:
    """Move sliders for clusters and outliers on a local page.

    DATA is a table, as for corral fit. Its partitions are made once; then any numbers
    of clusters and outliers are shown on a map, with the cost curve and the outliers'
    reasons, as fast as the sliders move. A button saves labels, report and the
    command that makes them again.

    The address of the page goes to standard output. It is served to this machine
    alone, and only to whoever has the address. Closing the last page ends the
    command with exit code 0, and so do Ctrl-C and the signal of kill; neither is an
    error.
    """
    _check(output)
    with progress(show) as bar:
        bar.stage("starting")
        from corral.cli._plan import check_room
        from corral.cli._work import list_ids, read
        from corral.explore._server import open_socket

        check_room(data, form, "explore")
        taken = open_socket(port)
        try:
            table = read(data, form, list_ids(table_settings(options)), bar)
            bar.stage("fitting COR")
            made = _prepare(ctx, data, table, start_clusters, start_outliers, options)
        except BaseException:
            taken.close()
            raise
    _serve(ctx, *made, taken, browser)


explore.params = [each for each in explore.params if each.name not in _OTHERS]


def _check(output: Path) -> None:
    """Refuse what cannot end well, before anything is computed."""
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise ImportError(
            f"The page needs {' and '.join(missing)}. "
            'Install with: pip install "corral[explore]"'
        )
    check_extras(report=True)
    if not output.is_dir():
        raise ValueError(
            f"--output '{output}' is a folder that is not there. Make it first, or "
            "name another."
        )
    if not os.access(output, os.W_OK):
        raise ValueError(
            f"--output '{output}' is a folder that cannot be written to. Name another."
        )


def _prepare(
    ctx: click.Context,
    data: str,
    table: Any,
    start_clusters: int | None,
    start_outliers: int | None,
    options: dict[str, Any],
) -> tuple[Any, Any, Any]:
    """Make the partitions; return session, writer and opening."""
    from corral.explore._save import Writer, suggest_name
    from corral.explore._session import Session
    from corral.tables import TableModel

    start = {
        "n_clusters": "auto" if start_clusters is None else start_clusters,
        "n_outliers": "auto" if start_outliers is None else start_outliers,
        "contamination": None,
        "k_range": None,
    }
    settings = method_settings(ctx, options | start)
    estimator = make_method("cor", settings, tfidf=options["tfidf"])
    session = Session(table, TableModel(estimator, **table_settings(options)))
    words = [*said_words(ctx, _OWN | {"seed"}), "--seed", str(options["seed"])]
    output, force = ctx.params["output"], ctx.params["force"]
    raw_text = ctx.params["raw_text"]
    writer = Writer(
        session,
        as_argument(data),
        words,
        output,
        other_inputs=config_files(ctx),
        raw_text=raw_text,
        force=force,
    )
    opening = session.open(
        source="standard input" if data == "-" else Path(data).name,
        name=suggest_name(data),
        folder=str(output.resolve()),
    )
    return session, writer, opening


def _serve(ctx: click.Context, session, writer, opening, taken, browser: bool) -> None:
    """Serve the page, and say how it ended."""
    from corral.explore._server import serve

    def tell(address: str) -> None:
        click.echo(address)
        click.echo("Close the page or press Ctrl-C to end.", err=True)
        if browser:
            _open_browser(address)

    def report_fault(error: Exception) -> None:
        if wants_traceback(ctx):
            show_traceback(error)
        click.echo(f"Error: {sentence(error)}", err=True)

    cause = serve(session, writer, opening, taken, on_ready=tell, on_fault=report_fault)
    click.echo(_CAUSES[cause], err=True)


def _open_browser(address: str) -> None:
    """Open the page, without waiting for the browser."""
    import threading
    import webbrowser

    def work() -> None:
        if not webbrowser.open(address):
            click.echo("No browser was found. Open the address yourself.", err=True)

    threading.Thread(target=work, daemon=True).start()
