"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from corral.cli._config import from_file
from corral.cli._methods import option_name
from corral.cli._names import FilePath, Names, flatten
from corral.cli._numbers import CountOrAuto, NumberRange, Range, Size, read_range

# Forms of an input file; the end of its name tells, where it has one.
FORMATS = ("csv", "tsv", "parquet", "arrow", "npy", "npz", "arff", "mtx")

_MAX_SEED = 2**32 - 1

# Files that are not there are named by whoever reads them, with what is near.
INPUT = FilePath(allow_dash=True)
MODEL = FilePath(path_type=Path)
OUTPUT = FilePath(path_type=Path)


def _stack(*decorators: Callable) -> Callable:
    """Return one decorator for many, whose options stand in this order."""

    def decorate(function):
        for each in reversed(decorators):
            function = each(function)
        return function

    return decorate


format_option = click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Form of the data, if the name of the file does not tell.",
)

json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Write the result to standard output as JSON, and nothing else.",
)

progress_option = click.option(
    "--progress/--no-progress",
    "show",
    default=None,
    show_default="on a terminal",
    help="Show a progress bar on standard error.",
)

labels_option = click.option(
    "--labels",
    type=OUTPUT,
    show_default="standard output",
    help="File for the labels: .csv, .tsv, .csv.gz, .tsv.gz or .parquet.",
)

raw_option = click.option(
    "--raw-text",
    is_flag=True,
    help="Write texts in CSV and TSV as they are, for programs. Without it, those that "
    "a spreadsheet would run as formulas get an apostrophe before them.",
)

force_option = click.option(
    "--force", is_flag=True, help="Replace files that are there already."
)

memory_option = click.option(
    "--memory-limit",
    type=Size(),
    metavar="SIZE",
    show_default="half of what is free",
    help="Memory that may be used, such as 2GB. A table that needs more is read block "
    "by block; results are the same.",
)

error_option = click.option(
    "--on-error",
    type=click.Choice(["raise", "skip"]),
    default="raise",
    show_default=True,
    help="What to do with a file, a row group or a line that cannot be read: stop, or "
    "leave it out and say so.",
)

table_options = _stack(
    click.option(
        "--columns",
        type=Names(),
        multiple=True,
        callback=flatten,
        help="Use these columns alone. Names parted by commas; may be repeated.",
    ),
    click.option(
        "--exclude",
        type=Names(),
        multiple=True,
        callback=flatten,
        help="Do not use these columns.",
    ),
    click.option(
        "--id-column",
        metavar="NAME",
        show_default="row numbers from 0",
        help="Column that names the rows; that of CSV is taken as it is written.",
    ),
    click.option(
        "--scale",
        type=click.Choice(["auto", "standard", "robust", "none"]),
        default="auto",
        show_default=True,
        help="How numbers are made comparable.",
    ),
    click.option(
        "--tfidf/--no-tfidf",
        default=False,
        help="Split texts into words, or take the numbers for counts of words, and "
        "weigh rare words more. Implies --metric cosine.",
    ),
    format_option,
)

method_options = _stack(
    click.option(
        "--n-clusters",
        type=CountOrAuto(min=1),
        metavar="K",
        show_default="chosen by cor; in corral fit, 8 for other methods",
        help="Number of clusters; auto lets cor choose.",
    ),
    click.option(
        "--n-outliers",
        type=CountOrAuto(min=0),
        metavar="O",
        show_default="chosen by cor",
        help="Number of rows to set aside; auto lets cor choose.",
    ),
    click.option(
        "--contamination",
        type=NumberRange(0, 1, max_open=True),
        metavar="SHARE",
        show_default="in corral fit, 0.05 for methods other than cor",
        help="Share of the rows to set aside, in place of --n-outliers.",
    ),
    click.option(
        "--k-max",
        type=click.IntRange(min=1),
        metavar="K",
        show_default="10",
        help="Largest number of clusters that cor chooses.",
    ),
    click.option(
        "--contamination-max",
        type=NumberRange(0, 1, max_open=True),
        metavar="SHARE",
        show_default="0.25",
        help="Largest share of the rows that cor chooses to set aside.",
    ),
    click.option(
        "--metric",
        type=click.Choice(["euclidean", "cosine"]),
        show_default="the method's own, or cosine with --tfidf",
        help="Distance between rows.",
    ),
    click.option(
        "--strategy",
        type=click.Choice(["rps", "rfs"]),
        show_default="rps",
        help="What differs between the K-means runs: rps draws the number of "
        "clusters, rfs the features.",
    ),
    click.option(
        "--n-partitions",
        type=click.IntRange(min=1),
        metavar="R",
        show_default="100",
        help="Number of K-means runs.",
    ),
    click.option(
        "--k-range",
        type=Range(),
        metavar="LOW,HIGH|auto",
        show_default="depends on the number of clusters",
        help="Smallest and largest number of clusters of a K-means run; auto is what "
        "cor takes if it chooses the number of clusters.",
    ),
    click.option(
        "--n-resamples",
        type=click.IntRange(min=0),
        metavar="N",
        show_default="50",
        help="How often cor draws partitions again to see how sure its labels are; 0 "
        "leaves that out.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(min=0, max=_MAX_SEED),
        default=0,
        metavar="N",
        show_default=True,
        help="Seed of all random choices.",
    ),
    click.option(
        "--jobs",
        type=click.IntRange(min=1),
        metavar="N",
        show_default="all cores",
        help="Number of threads; results are the same for any.",
    ),
)


def table_settings(options: dict[str, Any]) -> dict[str, Any]:
    """Return what ``TableModel`` takes, out of the options of a command.

    Parameters
    ----------
    options : dict of str to object

    Returns
    -------
    settings : dict of str to object
    """
    names = ("columns", "exclude", "id_column", "scale", "tfidf")
    return {name: options[name] for name in names}


def method_settings(ctx: click.Context, options: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a method, out of the options of a command.

    Parameters
    ----------
    ctx : click.Context
    options : dict of str to object

    Returns
    -------
    parameters : dict of str to object
        None where the user said nothing.
    """
    names = (
        "n_clusters",
        "n_outliers",
        "contamination",
        "k_max",
        "contamination_max",
        "metric",
        "strategy",
        "n_partitions",
        "n_resamples",
    )
    settings = {name: options[name] for name in names}
    settings["k_range"] = read_range(options["k_range"])
    choose_one(ctx, settings, "n_outliers", "contamination")
    return settings | {"random_state": options["seed"], "n_jobs": options["jobs"]}


def choose_one(
    ctx: click.Context, settings: dict[str, Any], one: str, other: str
) -> None:
    """Leave at most one of two options; the command line wins over the file.

    Parameters
    ----------
    ctx : click.Context
    settings : dict of str to object
        Changed in place.
    one, other : str
        Names of the parameters.
    """
    if settings[one] is None or settings[other] is None:
        return
    if from_file(ctx, one) != from_file(ctx, other):
        settings[one if from_file(ctx, one) else other] = None
        return
    raise click.UsageError(
        f"Set either {option_name(one)} or {option_name(other)}, not both. Got "
        f"{option_name(one)} {settings[one]} and {option_name(other)} "
        f"{settings[other]}.",
        ctx,
    )
