"""Why a row costs what it costs: its labels, its position and its features."""

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, Literal

import narwhals.stable.v1 as nw
import numpy as np

from corral._codes import CodeBook, one_hot_rows
from corral._profiles import Profile, compare_rows, most_different, row_blocks
from corral._validation import Features, find_categories


@dataclass(frozen=True)
class Judge:
    """What is known of each slot of a code book.

    Attributes
    ----------
    book : CodeBook
    label_costs : ndarray of shape (n_slots, n_clusters)
        What a label costs in a cluster.
    rarity : ndarray of shape (n_slots,)
        What it costs in all of them.
    centers : ndarray of shape (n_clusters, n_slots)
        Share of each label in each cluster.
    """

    book: CodeBook
    label_costs: np.ndarray
    rarity: np.ndarray
    centers: np.ndarray

    def split(self, rows: np.ndarray) -> "SplitCosts":
        """Split the costs of label rows over partitions.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_partitions)
        """
        slots = rows.astype(np.intp) + self.book.offsets
        nearest = (one_hot_rows(rows, self.book) @ self.label_costs).argmin(axis=1)
        usual = self.usual_slots[nearest]
        is_known = rows != self.book.n_labels + 1
        n_known = np.maximum(np.count_nonzero(is_known, axis=1), 1)
        n_apart = np.count_nonzero(is_known & (slots != usual), axis=1)
        return SplitCosts(
            nearest,
            self.label_costs[slots, nearest[:, None]],
            self.rarity[slots],
            n_apart / n_known,
        )

    @cached_property
    def usual_slots(self) -> np.ndarray:
        """The most common label of each cluster in each partition, as slots."""
        shares = np.where(self.book.is_label, self.centers, -1.0)
        ends = self.book.offsets + self.book.n_labels
        usual = [
            start + shares[:, start : max(end, start + 1)].argmax(axis=1)
            for start, end in zip(self.book.offsets, ends, strict=True)
        ]
        return np.stack(usual, axis=1)

    def surprise(
        self, rows: np.ndarray, nearest: np.ndarray, partitions: range
    ) -> np.ndarray:
        r"""Return how far labels are from the most common one, as if they were numbers.

        A number z spreads away from the mean of a bell curve is :math:`e^{z^2/2}` times
        rarer than the mean; a label that is so much rarer than the cluster's most
        common one counts as much.

        Returns
        -------
        surprise : ndarray of shape (n_rows, len(partitions))
            Zero for missing labels.
        """
        columns = list(partitions)
        offsets = self.book.offsets[columns]
        slots = rows[:, columns].astype(np.intp) + offsets
        costs = self.label_costs[slots, nearest[:, None]]
        usual = self.usual_slots[nearest][:, columns]
        least = self.label_costs[usual, nearest[:, None]]
        is_known = rows[:, columns] != self.book.n_labels[columns] + 1
        return np.where(is_known, np.sqrt(2 * np.maximum(costs - least, 0)), 0)


@dataclass(frozen=True)
class SplitCosts:
    """Costs of rows in their nearest clusters, partition by partition.

    Attributes
    ----------
    nearest : ndarray of shape (n_rows,)
    label_costs, rarity_costs : ndarray of shape (n_rows, n_partitions)
    disagreement : ndarray of shape (n_rows,)
        Share of the known labels that are not the cluster's most common one.
    """

    nearest: np.ndarray
    label_costs: np.ndarray
    rarity_costs: np.ndarray
    disagreement: np.ndarray


def rank_features(
    numbers: Any,
    missing: np.ndarray | None,
    surprise: np.ndarray,
    nearest: np.ndarray,
    profile: Profile | None,
    n_features: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Find the numbers and categories that set rows apart from their clusters.

    Parameters
    ----------
    numbers : ndarray or CSR of shape (n_samples, n_numbers), or None
    missing : ndarray of shape (n_samples, n_numbers), bool, or None
    surprise : ndarray of shape (n_samples, n_categories)
        Of the categories.
    nearest : ndarray of shape (n_samples,)
    profile : Profile or None
        None if there are no numbers.
    n_features : int

    Returns
    -------
    features : ndarray of shape (n_samples, n_features)
        Columns of numbers, then of categories; -1 where there are fewer.
    differences : ndarray of shape (n_samples, n_features)
    """
    features = np.full((len(nearest), n_features), -1, dtype=np.intp)
    differences = np.zeros((len(nearest), n_features))
    for here in row_blocks(surprise if numbers is None else numbers):
        found = [surprise[here]]
        if numbers is not None:
            assert profile is not None
            rows = numbers[here]
            rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
            apart = compare_rows(rows, nearest[here], profile)
            if missing is not None:
                apart = np.where(missing[here], 0, apart)
            found.insert(0, apart)
        both = np.concatenate(found, axis=1)
        features[here], differences[here] = most_different(both, n_features)
    return features, differences


@dataclass(frozen=True)
class FeatureNames:
    """Names of the columns of X, numbers and categories apart.

    Attributes
    ----------
    numbers, categories : list of str
    """

    numbers: list[str]
    categories: list[str]

    @classmethod
    def make(
        cls, names, n_features: int, categorical_features, fitted_names
    ) -> "FeatureNames":
        """Part the names of all columns.

        Parameters
        ----------
        names : sequence of str or None
            None numbers the columns.
        n_features : int
        categorical_features : array-like or None
            As for COR.
        fitted_names : sequence of str or None
            The names that categorical features may be chosen by.
        """
        if names is None:
            names = [f"feature {column}" for column in range(n_features)]
        names = [str(name) for name in names]
        if len(names) != n_features:
            raise ValueError(
                f"feature_names has {len(names)} names but X has {n_features} columns."
            )
        known = None if fitted_names is None else list(fitted_names)
        is_category = find_categories(categorical_features, n_features, known)
        return cls(
            [name for name, yes in zip(names, is_category, strict=True) if not yes],
            [name for name, yes in zip(names, is_category, strict=True) if yes],
        )

    def of_rows(self, columns: np.ndarray, features: Features) -> list[str | None]:
        """Return the names of a column per row, with its value if it is a category.

        Parameters
        ----------
        columns : ndarray of shape (n_samples,)
            Of numbers, then of categories; -1 for none.
        features : Features
        """
        return [
            self._name(row, column, features)
            for row, column in enumerate(columns.tolist())
        ]

    def _name(self, row: int, column: int, features: Features) -> str | None:
        if column < 0:
            return None
        if column < len(self.numbers):
            return self.numbers[column]
        place = column - len(self.numbers)
        return f"{self.categories[place]} = {features.categories[place][row]}"


def make_frame(columns: dict[str, Any], like: Any):
    """Return columns as a data frame of the library that some rows came in.

    Parameters
    ----------
    columns : dict of str to array or list
    like : data frame, array or sparse matrix
        For an array, the first library that is installed is taken.
    """
    frame = nw.from_native(like, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        made = nw.from_dict(columns, backend=frame.implementation).to_native()
        index = nw.maybe_get_index(frame)
        if index is not None:
            made.index = index
        return made
    return nw.from_dict(columns, backend=_find_library()).to_native()


def _find_library() -> Literal["pandas", "polars", "pyarrow"]:
    names: tuple[Literal["pandas", "polars", "pyarrow"], ...]
    names = ("pandas", "polars", "pyarrow")
    for name in names:
        try:
            import_module(name)
        except ImportError:
            continue
        return name
    raise ImportError(
        "The answer is a data frame, which needs pandas, polars or pyarrow. Install "
        "one with: pip install pandas"
    )
