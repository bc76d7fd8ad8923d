"""The command ``python -m benchmarks.paper``: our numbers beside the paper's."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.paper import grids
from benchmarks.paper.expected import read_quality
from benchmarks.paper.figures import FIGURES
from benchmarks.paper.grids import Grid
from benchmarks.paper.publish import publish
from benchmarks.paper.run import Settings, run_grid
from benchmarks.paper.score import Score, score_grid, write_scores
from benchmarks.paper.tables import (
    average_table,
    compare_tables,
    describe_runs,
    time_tables,
)

_RESULTS = Path(__file__).parent / "results"

# What makes the body of each table from the numbers.
TABLES: dict[str, Callable[[Grid, list[Score]], str]] = {
    "table2": lambda grid, scores: compare_tables(grid, scores, read_quality(2)),
    "table3": lambda grid, scores: compare_tables(grid, scores, read_quality(3)),
    "table4": time_tables,
    "noise": compare_tables,
    "adbench": compare_tables,
    "quick": lambda grid, scores: compare_tables(grid, scores, read_quality(2)),
}

# Grids whose averages ``quality`` prints, and seeds that keep it below ten minutes.
QUALITY = {"quality": 3, "noise": 3, "adbench": 2}


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; return the exit code."""
    options = _parse(arguments)
    settings = Settings(
        options.output, options.data_dir, options.force, not options.quiet
    )
    try:
        return options.command(options, settings)
    except KeyboardInterrupt:
        message = "Stopped. What is finished is kept; the same command goes on."
        print(message, file=sys.stderr)
        return 130
    except (ImportError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2


def _run(options: argparse.Namespace, settings: Settings) -> int:
    """Run the missing runs of a grid."""
    grid = grids.read(options.name).narrow(options.datasets, options.seeds)
    return _run_missing(grid, options, settings)


def _run_missing(grid: Grid, options: argparse.Namespace, settings: Settings) -> int:
    if options.no_run:
        return 0
    tally = run_grid(grid, settings)
    print(f"{grid.name}: {tally}", file=sys.stderr)
    return 1 if tally.failed else 0


def _table(options: argparse.Namespace, settings: Settings) -> int:
    """Run what is missing, then print a table and write it."""
    grid = grids.read(options.name).narrow(options.datasets, options.seeds)
    code = _run_missing(grid, options, settings)
    scores = _score(grid, settings)
    body = TABLES[grid.name](grid, scores)
    foot = describe_runs(grid, settings.output)
    text = f"## {grid.title}\n\n{body}\n\n{foot}\n"
    _write(settings.output / "tables" / f"{grid.name}.md", text)
    print(text)
    return code


def _figure(options: argparse.Namespace, settings: Settings) -> int:
    """Run what is missing, then draw a figure."""
    grid = grids.read(options.name).narrow(options.datasets, options.seeds)
    code = _run_missing(grid, options, settings)
    scores = _score(grid, settings)
    paths = FIGURES[grid.name](grid, scores, settings) if scores else []
    print("\n".join(map(str, paths)) or "No runs yet.")
    return code


def _quality(options: argparse.Namespace, settings: Settings) -> int:
    """Print averages over the paper's sets and both suites, with few seeds."""
    codes, parts = [], []
    for name, seeds in QUALITY.items():
        grid = grids.read(name).narrow(None, options.seeds or seeds)
        codes.append(_run_missing(grid, options, settings))
        parts.append(average_table(grid, _score(grid, settings)))
        print(parts[-1], end="\n\n")
    text = "\n\n".join(["## Averages over data sets", *parts]) + "\n"
    _write(settings.output / "tables" / "quality.md", text)
    return max(codes)


def _all(options: argparse.Namespace, settings: Settings) -> int:
    """Make every table and figure."""
    codes = []
    wanted = [(name, _table) for name in TABLES if name != "quick"]
    wanted += [(name, _figure) for name in FIGURES]
    for name, command in wanted:
        options.name = name
        codes.append(command(options, settings))
    return max(codes)


def _quick(options: argparse.Namespace, settings: Settings) -> int:
    """Check in a minute that everything works, with whatever data is here."""
    options.name = "quick"
    return _table(options, settings)


def _publish(options: argparse.Namespace, settings: Settings) -> int:
    """Put the tables and figures that were made into a page, between its marks."""
    print("\n".join(publish(options.page, settings.output)))
    return 0


def _score(grid: Grid, settings: Settings) -> list[Score]:
    scores = score_grid(grid, settings.output, settings.data_dir)
    write_scores(settings.output / "scores" / f"{grid.name}.csv", scores)
    return scores


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paper", description=__doc__
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    # Command, what it names, and whether it may be about a part of the data sets.
    for name, command, choices, has_parts in (
        ("run", _run, grids.names(), True),
        ("table", _table, list(TABLES), True),
        ("figure", _figure, list(FIGURES), True),
        ("quick", _quick, None, True),
        ("all", _all, None, False),
        ("quality", _quality, None, False),
    ):
        each = commands.add_parser(name, help=command.__doc__)
        each.set_defaults(command=command, datasets=None)
        if choices:
            each.add_argument("name", choices=choices)
        if has_parts:
            each.add_argument(
                "--datasets", nargs="+", metavar="NAME", help="only these"
            )
        _add_run_options(each)
    page = commands.add_parser("publish", help=_publish.__doc__)
    page.set_defaults(command=_publish, data_dir=None, force=False, quiet=True)
    page.add_argument("page", type=Path)
    _add_output(page)
    return parser.parse_args(arguments)


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, help="runs of each random method")
    parser.add_argument("--data-dir", type=Path, help="folder with the data")
    _add_output(parser)
    parser.add_argument(
        "--force", action="store_true", help="run again what is there already"
    )
    parser.add_argument(
        "--no-run", action="store_true", help="use what is stored, run nothing"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output", type=Path, default=_RESULTS, help="folder for all results"
    )


if __name__ == "__main__":
    sys.exit(main())
