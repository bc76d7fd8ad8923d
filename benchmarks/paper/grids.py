"""What belongs to a table or figure: one small TOML file each."""

import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.paper import datasets, methods
from benchmarks.paper.measures import MEASURES
from benchmarks.paper.recipes import RECIPES

_FOLDER = Path(__file__).parent / "grids"

# A column of the paper's own numbers; all others are "recipe:method".
CITED = "cited"


@dataclass(frozen=True)
class Column:
    """A column of a table: a method's numbers, or how far they are from others.

    Attributes
    ----------
    source : str
        A recipe, or "cited" for what the paper prints.
    method : str
    minus : Column or None
        What is taken off.
    """

    source: str
    method: str
    minus: "Column | None" = None

    @classmethod
    def parse(cls, text: str) -> "Column":
        """Read "source:method", or "source:method minus source:method"."""
        first, _, second = text.partition(" minus ")
        source, _, method = first.partition(":")
        return cls(source, method, cls.parse(second) if second else None)


@dataclass(frozen=True)
class Grid:
    """The runs that a table or figure needs, and how it shows them.

    Attributes
    ----------
    name, title : str
    datasets : list of str
    columns : list of Column
        In the order of the table; those with a recipe say what is run.
    measures : list of str
    seeds : int
        How many, from 0 on.
    seeds_of : dict of str to int
        Fewer seeds for "dataset", "method" or "dataset:method"; the smallest counts.
    """

    name: str
    title: str
    datasets: list[str]
    columns: list[Column]
    measures: list[str]
    seeds: int
    seeds_of: dict[str, int] = field(default_factory=dict)

    @property
    def runs(self) -> list[tuple[str, str]]:
        """The pairs of recipe and method that are run."""
        wanted = [(column.source, column.method) for column in self.columns]
        return [pair for pair in dict.fromkeys(wanted) if pair[0] != CITED]

    def seeds_for(self, dataset: str, method: str) -> range:
        """Return the seeds of a method on a data set."""
        if not methods.find(method).is_random:
            return range(1)
        keys = (dataset, method, f"{dataset}:{method}")
        fewer = [self.seeds_of[key] for key in keys if key in self.seeds_of]
        return range(min([self.seeds, *fewer]))

    def narrow(self, names: list[str] | None, seeds: int | None) -> "Grid":
        """Return the grid with only these of its data sets, and so many seeds."""
        wanted = self.datasets if names is None else datasets.expand(names)
        kept = [name for name in self.datasets if name in wanted]
        if not kept:
            raise ValueError(
                f"None of {', '.join(wanted)} is in {self.name}. Choose from "
                f"{', '.join(self.datasets)}."
            )
        return replace(
            self, datasets=kept, seeds=self.seeds if seeds is None else seeds
        )


def names() -> list[str]:
    """Return the names of all grids."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def read(name: str) -> Grid:
    """Return a grid; names of data sets, methods and measures in it must be known."""
    path = _FOLDER / f"{name}.toml"
    if not path.exists():
        raise ValueError(
            f"There is no grid {name!r}. Choose from {', '.join(names())}."
        )
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    grid = Grid(
        name=name,
        title=content["title"],
        datasets=datasets.expand(content["datasets"]),
        columns=[Column.parse(text) for text in content["columns"]],
        measures=content["measures"],
        seeds=content["seeds"],
        seeds_of=content.get("seeds_of", {}),
    )
    _check(grid)
    return grid


def _check(grid: Grid) -> None:
    for source, method in grid.runs:
        methods.find(method)
        if source not in RECIPES:
            raise ValueError(
                f"The recipe {source!r} in {grid.name}.toml is not known. Choose from "
                f"{', '.join(RECIPES)}."
            )
    for name in grid.measures:
        if name not in MEASURES:
            raise ValueError(
                f"The measure {name!r} in {grid.name}.toml is not known. Choose from "
                f"{', '.join(MEASURES)}."
            )
