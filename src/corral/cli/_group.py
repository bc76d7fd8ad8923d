"""The command ``corral``, which the other commands hang from."""

import click

from corral import __version__
from corral.cli._lazy import HELP_NAMES, Entry, SentenceGroup, debug_option

COMMANDS = {
    "fit": Entry("corral.cli._fit", "Find clusters and outliers in a file."),
    "predict": Entry("corral.cli._predict", "Label new rows by a saved model."),
    "explain": Entry("corral.cli._explain", "Say why rows are strange, or are not."),
    "report": Entry("corral.cli._report", "Write the report of a saved model."),
    "explore": Entry(
        "corral.cli._explore", "Move sliders for clusters and outliers on a local page."
    ),
    "compare": Entry("corral.cli._compare", "Try several methods side by side."),
    "flights": Entry("corral.cli._flights", "Find odd flights among tracks."),
    "demo": Entry(
        "corral.cli._demo", "Find clusters and planted outliers in a small data set."
    ),
    "datasets": Entry("corral.cli._datasets", "List or fetch the paper's data sets."),
    "completion": Entry(
        "corral.cli._completion", "Let the shell complete commands and options."
    ),
}


@click.group(
    cls=SentenceGroup,
    entries=COMMANDS,
    context_settings={"help_option_names": list(HELP_NAMES)},
)
@click.version_option(__version__, prog_name="corral", message="%(prog)s %(version)s")
def corral() -> None:
    """Find clusters, and set aside the rows that fit nowhere."""


corral.params.append(debug_option())
