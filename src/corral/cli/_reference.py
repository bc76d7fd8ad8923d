"""The reference page of the command line, made from the commands themselves.

``python -m corral.cli._reference docs/reference/cli.md`` writes it; a test fails when
it is out of date.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from corral.cli._errors import EXIT_CODES
from corral.cli._group import corral
from corral.cli._lazy import HELP_NAMES

_HEAD = """\
# Command line

This page is made from the commands themselves. To make it again:
`python -m corral.cli._reference docs/reference/cli.md`
"""

_CONFIG = """\
## Options from a file

`--config corral.toml` reads options from a TOML file. Keys are the names of the
options, with `-` or `_`; a key that the command does not have is an error. What stands
on the command line wins over the file. `--force`, leave to replace files, can only be
said on the command line. Paths are relative to the folder that corral runs in.

```toml
n-clusters = 5
contamination = 0.02
id-column = "name"
exclude = ["comment", "last seen"]
scale = "robust"
seed = 1
labels = "labels.parquet"
report = "report.html"
```
"""

_METHODS = """\
## Methods

Names for `--method` and `--methods`; that of the class will do, too, in any case. Joint
methods find clusters and outliers, detectors outliers alone. See
[the methods](../methods.md).
"""

_OUTPUTS = """\
## What goes where

Results go to standard output or to the files that options name. The summary of a fit
goes to standard output if the labels go to a file, and to standard error otherwise.
Warnings, errors and the progress bar go to standard error. With `--json`, standard
output holds one JSON document and nothing else.

Labels have the columns

- `id`: of `--id-column`, else row numbers from 0;
- `label`: 0 to K - 1, and -1 for outliers; detectors give 1 and -1;
- `nearest_label`: the nearest cluster, of outliers too, where the method has clusters;
- `outlier_score`: higher is stranger;
- `outlier_confidence`, `label_confidence`: how often the row is set aside, and how
  often its nearest cluster is the same, if partitions are drawn again; only for fits
  by cor;
- `known_share`: the share of the row's cells that are there, if any cell is missing.

A file is written whole or not at all, and only when all results are there. Outputs that
cannot be written are refused before the work begins.
"""


def main() -> None:
    """Write the page to the path that the command line names."""
    Path(sys.argv[1]).write_text(make_reference(), encoding="utf-8")


def make_reference() -> str:
    """Return the page.

    Returns
    -------
    page : str
        Markdown.
    """
    codes = [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    return "\n".join(
        [
            _HEAD,
            *(_section(*each) for each in _walk(corral, "corral")),
            _methods(),
            _OUTPUTS,
            _CONFIG,
            "## Exit codes\n",
            "| code | meaning |",
            "|---|---|",
            *codes,
            "",
        ]
    )


def _methods() -> str:
    from corral import all_methods

    rows = [
        f"| `{each.name}` | `{each.estimator.__name__}` | {each.kind} |"
        for each in all_methods().values()
    ]
    return "\n".join([_METHODS, "| name | class | kind |", "|---|---|---|", *rows, ""])


def _walk(command: click.Command, path: str) -> Iterator[tuple[click.Command, str]]:
    yield command, path
    if isinstance(command, click.Group):
        ctx = _context(command, path)
        for name in command.list_commands(ctx):
            below = command.get_command(ctx, name)
            assert below is not None
            yield from _walk(below, f"{path} {name}")


def _context(command: click.Command, path: str) -> click.Context:
    # The width is fixed, so that the page does not depend on the terminal.
    return click.Context(
        command,
        info_name=path,
        terminal_width=88,
        help_option_names=list(HELP_NAMES),
    )


def _section(command: click.Command, path: str) -> str:
    ctx = _context(command, path)
    usage = " ".join(command.collect_usage_pieces(ctx))
    parts = [f"## {path}\n", f"```\n{path} {usage}\n```\n", _text(command)]
    if isinstance(command, click.Group):
        parts.append(_commands(command, ctx, path))
    parts.append(_options(command, ctx))
    if command.epilog:
        parts.append(_examples(command.epilog))
    return "\n".join(parts)


def _text(command: click.Command) -> str:
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    return "\n\n".join(_escape(" ".join(each.split())) for each in paragraphs) + "\n"


def _commands(command: click.Group, ctx: click.Context, path: str) -> str:
    rows = ["| command | does |", "|---|---|"]
    for name in command.list_commands(ctx):
        below = command.get_command(ctx, name)
        assert below is not None
        anchor = f"{path} {name}".replace(" ", "-")
        rows.append(f"| [`{name}`](#{anchor}) | {below.get_short_help_str(100)} |")
    return "\n".join([*rows, ""])


def _options(command: click.Command, ctx: click.Context) -> str:
    rows = ["| option | meaning |", "|---|---|"]
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx)
        if record is not None and isinstance(param, click.Option):
            name, meaning = record
            name = name.replace("|", "\\|")
            rows.append(f"| `{name}` | {_escape(meaning)} |")
    return "\n".join([*rows, ""])


def _examples(epilog: str) -> str:
    """Return the lines of an epilog as code, less the head and click's own marks."""
    lines = inspect.cleandoc(epilog.replace("\b", "")).strip().splitlines()
    code = [re.sub(r"^  ", "", line) for line in lines if line.strip() != "Examples:"]
    return "\n".join(["Examples:\n", "```sh", *code, "```", ""])


def _escape(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return re.sub(r"([|*<>_\[\]])", r"\\\1", " ".join(text.split()))


if __name__ == "__main__":
    main()
