"""What makes each cluster different from the rows of all clusters."""

from collections.abc import Iterator
from typing import Literal

import narwhals.stable.v1 as nw
import numpy as np
from scipy import sparse

from corral._profiles import Profile, profile_clusters
from corral.report._outcome import Outcome
from corral.report._rows import Rows, as_floats
from corral.report._schema import Cluster, ClusterFeature
from corral.report._words import clip, show_value

_Kind = Literal["number", "date", "share", "scaled"]

# What a column is in a cluster and over all.
_Pair = tuple[_Kind, float | str, float | str]

# How many features are named for a cluster: numbers and categories, or words.
_N_FEATURES = 5
_N_WORDS = 10

# Smaller differences and shares of the rows are not named: nothing to speak of.
_MIN_DIFFERENCE = 0.2
_MIN_SHARE = 0.05

# Sparse rows with fewer entries than this tell by what is there, as words in text do.
_MAX_DENSITY = 0.2


def profile_rows(estimator, rows: Rows, outcome: Outcome, *, is_training: bool):
    """Return means and spreads of the clusters, None without numbers.

    COR knows them from its fit, and so saves a look at all rows.
    """
    if rows.numbers is None:
        return None
    if is_training and hasattr(estimator, "cluster_spreads_"):
        sizes = count_rows(outcome).astype(np.float64)
        return Profile(estimator.cluster_centers_, estimator.cluster_spreads_, sizes)
    return profile_clusters(rows.numbers, outcome.labels, outcome.n_groups)


def count_rows(outcome: Outcome) -> np.ndarray:
    """Return the number of rows of each cluster, of shape (n_groups,)."""
    kept = outcome.labels[outcome.labels >= 0]
    return np.bincount(kept, minlength=outcome.n_groups)


def describe_clusters(
    outcome: Outcome,
    rows: Rows | None,
    profile: Profile | None,
    values=None,
    stability: np.ndarray | None = None,
) -> list[Cluster]:
    """Describe the clusters, by label.

    Parameters
    ----------
    outcome : Outcome
    rows : Rows or None
    profile : Profile or None
    values : narwhals data frame or None
        The user's own values; numbers are told in them if they have the same name.
    stability : ndarray of shape (n_clusters,) or None
        How sure each cluster is, where that is known.
    """
    if not outcome.n_clusters:
        return []
    sizes = count_rows(outcome)
    features: list[list[ClusterFeature]] = [[] for _ in sizes]
    if rows is not None and not rows.are_labels:
        features = _compare(outcome, rows, profile, sizes, values)
    return [
        {
            "label": label,
            "size": size,
            "share": size / outcome.n_samples,
            "stability": _read_finite(stability, label),
            "features": features[label],
        }
        for label, size in enumerate(sizes.tolist())
    ]


def _read_finite(values: np.ndarray | None, place: int) -> float | None:
    if values is None or not np.isfinite(values[place]):
        return None
    return float(values[place])


def _compare(
    outcome: Outcome, rows: Rows, profile: Profile | None, sizes: np.ndarray, values
) -> list[list[ClusterFeature]]:
    """Return what makes each cluster different, the most striking first."""
    are_words = tells_by_presence(rows)
    n_features = _N_WORDS if are_words else _N_FEATURES
    features = _categories(rows, outcome)
    if profile is not None:
        numbers = _Numbers(rows, profile, outcome, UserUnits(values, outcome))
        for label in np.flatnonzero(sizes).tolist():
            features[label] += numbers.of_cluster(label, n_features, are_words)
    return [_most_striking(each)[:n_features] for each in features]


def _most_striking(features: list[ClusterFeature]) -> list[ClusterFeature]:
    worth = [each for each in features if abs(each["difference"]) >= _MIN_DIFFERENCE]
    return sorted(worth, key=lambda each: -abs(each["difference"]))


def tells_by_presence(rows: Rows) -> bool:
    """Return whether rows are sparse, so that it counts what is there."""
    numbers = rows.numbers
    if not sparse.issparse(numbers):
        return False
    return numbers.nnz < _MAX_DENSITY * numbers.shape[0] * numbers.shape[1]


class _Numbers:
    """The columns of numbers, with their means and spreads over all clusters."""

    def __init__(
        self, rows: Rows, profile: Profile, outcome: Outcome, units: "UserUnits"
    ) -> None:
        self._rows = rows
        self._centers = profile.centers
        self._labels = outcome.labels
        self._units = units
        shares = profile.sizes / max(profile.sizes.sum(), 1e-300)
        self._means = shares @ profile.centers
        # Numbers too large to be squared have no spread that could be told.
        with np.errstate(over="ignore", invalid="ignore"):
            squares = profile.spreads**2 + (profile.centers - self._means) ** 2
            self._spreads = np.sqrt(shares @ squares)

    def of_cluster(
        self, label: int, n_features: int, are_words: bool
    ) -> list[ClusterFeature]:
        """Return the columns in which a cluster differs most."""
        # A column whose spread is a rounding error of its mean is constant.
        has_spread = self._spreads > 1e-12 * np.abs(self._means)
        has_spread &= np.isfinite(self._spreads)
        differences = np.zeros(len(self._means))
        apart = self._centers[label] - self._means
        np.divide(apart, self._spreads, out=differences, where=has_spread)
        # What a sparse row lacks is most of it, and says little.
        sizes = np.maximum(differences, 0) if are_words else np.abs(differences)
        order = np.argsort(-sizes, kind="stable")[:n_features]
        return [
            self._describe(column, label, float(differences[column]), are_words)
            for column in order.tolist()
            if sizes[column] > 0
        ]

    def _describe(
        self, column: int, label: int, difference: float, is_word: bool
    ) -> ClusterFeature:
        name = self._rows.number_names[column]
        told = self._presence if is_word else self._mean
        kind, value, usual = told(column, label)
        return {
            "name": clip(name),
            "kind": kind,
            "value": value,
            "usual": usual,
            "difference": difference,
        }

    def _mean(self, column: int, label: int) -> _Pair:
        """Return the mean of a column in a cluster and over all."""
        name = self._rows.number_names[column]
        return self._units.means(name, label) or (
            "number" if self._units.are_those_of_x else "scaled",
            float(self._centers[label, column]),
            float(self._means[column]),
        )

    def _presence(self, column: int, label: int) -> _Pair:
        """Return in which share of the rows a column is not zero."""
        there = self._rows.numbers[:, [column]].toarray()[:, 0] != 0
        here, kept = self._labels == label, self._labels >= 0
        return "share", float(there[here].mean()), float(there[kept].mean())


class UserUnits:
    """Means of the user's own numbers, where a column was scaled for the estimator."""

    def __init__(self, values: nw.DataFrame | None, outcome: Outcome) -> None:
        self._values = values
        self._labels = outcome.labels
        self._columns: dict[str, tuple[_Kind, np.ndarray] | None] = {}

    @property
    def are_those_of_x(self) -> bool:
        """Whether the user has no other units than the estimator."""
        return self._values is None

    def means(self, name: str, label: int) -> _Pair | None:
        """Return the kind of a column and its means in a cluster and over all.

        None if the user has no such column, or one without a mean.
        """
        if name not in self._columns:
            self._columns[name] = self._read(name)
        column = self._columns[name]
        if column is None:
            return None
        kind, numbers = column
        known = np.isfinite(numbers)
        here, kept = known & (self._labels == label), known & (self._labels >= 0)
        if not here.any():
            return None
        value, usual = float(numbers[here].mean()), float(numbers[kept].mean())
        if kind == "date":
            return kind, _as_date(value), _as_date(usual)
        return kind, value, usual

    def _read(self, name: str) -> tuple[_Kind, np.ndarray] | None:
        if self._values is None or name not in self._values.columns:
            return None
        column = self._values.get_column(name)
        if column.dtype == nw.Boolean:
            return "share", as_floats(column)
        if column.dtype.is_numeric():
            return "number", as_floats(column)
        if column.dtype in (nw.Date, nw.Datetime):
            seconds = column.to_numpy().astype("M8[s]")
            is_known = ~np.isnat(seconds)
            return "date", np.where(is_known, seconds.astype(np.float64), np.nan)
        return None


def _as_date(seconds: float) -> str:
    return str(np.datetime64(int(seconds), "s").astype("M8[D]"))


def _categories(rows: Rows, outcome: Outcome) -> list[list[ClusterFeature]]:
    """Return the categories that are common in each cluster, but not in all."""
    features: list[list[ClusterFeature]] = [[] for _ in range(outcome.n_groups)]
    counts = count_categories(rows, outcome)
    for name, table in zip(rows.category_names, counts, strict=True):
        for label, found in enumerate(_common_values(name, table)):
            features[label] += found
    return features


class CategoryCounts:
    """How often each value of a column of categories occurs in each cluster.

    Attributes
    ----------
    known : ndarray of shape (n_values,)
        Sorted.
    counts : ndarray of shape (n_groups, n_values)
    """

    def __init__(self, values: np.ndarray, gone: np.ndarray, outcome: Outcome) -> None:
        kept = ~gone & (outcome.labels >= 0)
        self.known, places = np.unique(values[kept], return_inverse=True)
        n_values = len(self.known)
        cells = outcome.labels[kept] * n_values + places
        counts = np.bincount(cells, minlength=outcome.n_groups * n_values)
        self.counts = counts.reshape(outcome.n_groups, n_values)

    def share(self, value, label: int, *, is_member: bool) -> float:
        """Return the share of a row's value among the other rows of a cluster.

        Parameters
        ----------
        value : label
        label : int
            The cluster.
        is_member : bool
            Whether the row itself is counted in the cluster.
        """
        total = self.counts[label].sum() - is_member
        place = int(np.searchsorted(self.known, value))
        if total <= 0 or place == len(self.known) or self.known[place] != value:
            return 0.0
        return float((self.counts[label, place] - is_member) / total)


def count_categories(rows: Rows, outcome: Outcome) -> list[CategoryCounts]:
    """Count the values of each column of categories."""
    return [CategoryCounts(values, gone, outcome) for values, gone in rows.categories]


def name_category(name: str, value) -> str:
    """Return a column and its value as one name."""
    return f"{name} = {value}"


def _common_values(name: str, table: CategoryCounts) -> Iterator[list[ClusterFeature]]:
    usual = table.counts.sum(axis=0) / max(table.counts.sum(), 1)
    spread = np.sqrt(usual * (1 - usual))
    for counts in table.counts:
        shares = counts / max(counts.sum(), 1)
        differences = np.zeros(len(usual))
        np.divide(shares - usual, spread, out=differences, where=spread > 0)
        # What is common in the cluster says more than what is rare there.
        order = np.argsort(-differences, kind="stable")[:_N_FEATURES]
        yield [
            {
                "name": clip(name_category(name, show_value(table.known[place]))),
                "kind": "share",
                "value": float(shares[place]),
                "usual": float(usual[place]),
                "difference": float(differences[place]),
            }
            for place in order.tolist()
            if differences[place] > 0 and shares[place] >= _MIN_SHARE
        ]
