"""Which columns set rows apart from their nearest clusters."""

from dataclasses import dataclass

import narwhals.stable.v1 as nw
import numpy as np

from corral._consensus import take_rows
from corral._profiles import Profile, tell_apart
from corral._validation import find_categories
from corral.report._clusters import CategoryCounts, name_category, tells_by_presence
from corral.report._outcome import Outcome
from corral.report._rows import Rows
from corral.report._schema import Reason
from corral.report._words import clip, say_category, say_number, show_value

# How many columns are named for a row.
N_REASONS = 5

# Numbers that are less spreads away are usual, and not named.
_MIN_SPREADS = 1.0

# Categories that are more common in the cluster are usual, too.
_MAX_SHARE = 0.2


@dataclass(frozen=True)
class Apart:
    """What sets some rows apart.

    Attributes
    ----------
    names : list of list of str
        Columns of each row, the most different first; a category as "name = value".
    differences : list of list of float
    disagreement : ndarray of shape (n_rows,) or None
        Share of the partitions that disagree with the row's nearest cluster.
    """

    names: list[list[str]]
    differences: list[list[float]]
    disagreement: np.ndarray | None


def find_apart(
    estimator,
    X,
    rows: Rows,
    which: np.ndarray,
    outcome: Outcome,
    profile: Profile | None,
    *,
    extra_partitions=None,
) -> Apart:
    """Find what sets some rows apart from their nearest clusters.

    Parameters
    ----------
    estimator : fitted estimator
    X : rows as given to the estimator
    rows : Rows
        The same, as the report sees them.
    which : ndarray of int
        The rows to look at.
    outcome : Outcome
    profile : Profile or None
    extra_partitions : array-like or None
    """
    explained = _explain(estimator, X, rows, which, extra_partitions)
    if explained is not None:
        return explained
    if profile is None:
        return Apart([[] for _ in which], [[] for _ in which], None)
    columns, differences = tell_apart(
        rows.numbers[which], outcome.nearest[which], profile, N_REASONS
    )
    return Apart(
        [[rows.number_names[each] for each in row if each >= 0] for row in columns],
        differences.tolist(),
        None,
    )


def _explain(
    estimator, X, rows: Rows, which: np.ndarray, extra_partitions
) -> Apart | None:
    """Ask the estimator itself; None if it cannot tell."""
    if not hasattr(estimator, "explain") or not can_label(estimator, extra_partitions):
        return None
    if extra_partitions is not None:
        extra_partitions = take_rows(extra_partitions, which)
    try:
        native = estimator.explain(
            take_rows(X, which),
            extra_partitions=extra_partitions,
            n_features=N_REASONS,
            feature_names=rows.names or None,
        )
    except ImportError:
        # Explanations are data frames; a report does without a library for them.
        return None
    frame = nw.from_native(native, eager_only=True)
    names = [frame.get_column(f"feature_{j + 1}").to_list() for j in range(N_REASONS)]
    differences = [
        frame.get_column(f"difference_{j + 1}").to_list() for j in range(N_REASONS)
    ]
    rows_of_names = zip(*names, strict=True)
    return Apart(
        # What is missing in a column of names is None, or NaN in pandas.
        [[each for each in row if isinstance(each, str)] for row in rows_of_names],
        [list(row) for row in zip(*differences, strict=True)],
        frame.get_column("disagreement").to_numpy(),
    )


def can_label(estimator, extra_partitions) -> bool:
    """Return whether an estimator that fuses partitions can label rows again.

    It cannot where a partition came from a clusterer without predict, or where labels
    were given to fit and are not given here.
    """
    partitioner = getattr(estimator, "_partitioner", None)
    if partitioner is None:
        return False
    if not all(hasattr(each.estimator, "predict") for each in partitioner.clusterers):
        return False
    if estimator._is_precomputed:
        return True
    n_given = len(partitioner.columns.known) - len(partitioner.clusterers)
    chosen = estimator.categorical_features
    n_categories = 0
    if chosen is not None:
        names = getattr(estimator, "feature_names_in_", None)
        names = None if names is None else list(names)
        is_category = find_categories(chosen, estimator.n_features_in_, names)
        n_categories = int(is_category.sum())
    return n_given == n_categories or extra_partitions is not None


class Wording:
    """Turns what sets a row apart into reasons in words.

    Parameters
    ----------
    rows : Rows
    counts : list of CategoryCounts
        Of the columns of categories.
    whole : str
        What a row is compared with, such as "its cluster".
    is_kept : ndarray of shape (n_samples,), bool
        The rows that belong to a cluster.
    values : narwhals data frame or None
        The user's own values of all rows.
    """

    def __init__(
        self,
        rows: Rows,
        counts: list[CategoryCounts],
        whole: str,
        is_kept: np.ndarray,
        values: nw.DataFrame | None,
    ) -> None:
        self._rows = rows
        self._is_kept = is_kept
        self._values = values
        self._found: dict[str, nw.Series | None] = {}
        self._counts = counts
        self._whole = whole
        self._are_words = tells_by_presence(rows)
        self._columns = {name: j for j, name in enumerate(rows.number_names)}

    def is_number(self, name: str) -> bool:
        """Return whether a name is that of a column of numbers."""
        return name in self._columns

    def keep(
        self, row: int, label: int, names: list[str], differences: list[float]
    ) -> list[tuple[str, float]]:
        """Return the columns of a row that are worth a word, with their differences."""
        shares = self._shares(row, label)
        return [
            (name, difference)
            for name, difference in zip(names, differences, strict=False)
            if (
                abs(difference) >= _MIN_SPREADS
                if self.is_number(name)
                else shares.get(name, 0.0) <= _MAX_SHARE
            )
        ]

    def reasons(
        self, row: int, label: int, kept: list[tuple[str, float]]
    ) -> list[Reason]:
        """Return the reasons of a row.

        Parameters
        ----------
        row : int
        label : int
            Its nearest cluster.
        kept : list of (str, float)
            From :meth:`keep`.
        """
        shares = self._shares(row, label)
        reasons: list[Reason] = []
        for name, difference in kept:
            short = clip(name)
            if self.is_number(name):
                value = self._cell(row, name)
                words = say_number(short, difference, self._whole, value)
            else:
                value = None
                words = say_category(short, shares.get(name), self._whole)
            reasons.append(
                {
                    "name": short,
                    "kind": "number" if self.is_number(name) else "category",
                    "difference": float(difference),
                    "value": value,
                    "words": words,
                }
            )
        return reasons

    def _shares(self, row: int, label: int) -> dict[str, float]:
        """Return how common the row's categories are in a cluster."""
        names = zip(
            self._rows.category_names, self._rows.categories, self._counts, strict=True
        )
        return {
            name_category(name, values[row]): table.share(
                values[row], label, is_member=bool(self._is_kept[row])
            )
            for name, (values, gone), table in names
            if not gone[row]
        }

    def _cell(self, row: int, name: str) -> str | None:
        """Return a number of the row in the user's units; None if they are unknown."""
        cell = float(self._rows.numbers[row, self._columns[name]])
        if self._are_words:
            # The weight of a word tells a reader nothing.
            return "absent" if cell == 0 else None
        if self._values is None:
            return show_value(cell)
        column = self._column(name)
        return None if column is None else show_value(column.item(row))

    def _column(self, name: str) -> nw.Series | None:
        """Return the user's own values of a column, which are looked up once."""
        assert self._values is not None
        if name not in self._found:
            is_there = name in self._values.columns
            self._found[name] = self._values.get_column(name) if is_there else None
        return self._found[name]
