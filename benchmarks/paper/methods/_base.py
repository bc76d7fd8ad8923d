"""What a method is, and what it is told."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol


class HasRows(Protocol):
    """What a method may look at when it says that it cannot do a data set."""

    @property
    def n_samples(self) -> int: ...

    @property
    def is_sparse(self) -> bool: ...


@dataclass(frozen=True)
class Task:
    """What a method is told: K, o, the distances of the recipe, and the seed."""

    n_clusters: int
    n_outliers: int
    metric: str
    rival_metric: str
    seed: int


def _never(rows: HasRows) -> None:
    return None


@dataclass(frozen=True)
class Method:
    """A method.

    Attributes
    ----------
    name : str
        In grids and files.
    label : str
        In tables.
    build : callable
        From a task to an estimator that is not fitted.
    is_random : bool
        Whether the seed matters; if not, one run is enough.
    has_clusters : bool
        Whether it finds clusters, or outliers only.
    skip : callable
        From a data set to the reason why the method cannot do it, or None.
    """

    name: str
    label: str
    build: Callable[[Task], Any]
    is_random: bool = True
    has_clusters: bool = True
    skip: Callable[[HasRows], str | None] = _never
