"""Stage 1: X to partitions, from K-means runs, other clusterers and given labels."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from corral._assign import AssignWorkspace
from corral._blocks import ArrayRows
from corral._codes import CodeBook, Codes, encode
from corral._kmeans_runs import KMeansLabeller, KMeansRuns, KMeansSettings
from corral._position import Ruler
from corral._progress import LABELLING, Counter
from corral._random import draw_seed
from corral._threads import Threads

# Rows of a block where no K-means run sets it.
_BLOCK_ROWS = 8192

# In NumPy, every text of a column takes what the longest takes. One with more letters
# is its beginning and a digest.
_MOST_LETTERS = 100
_TEXT = np.dtype(f"U{_MOST_LETTERS}")
_DIGEST_BYTES = 16


@dataclass(frozen=True)
class LabelColumns:
    """Partitions that others made, and the labels that each one knows.

    Attributes
    ----------
    known : list of ndarray
        The labels of each partition, sorted.
    """

    known: list[np.ndarray]

    @property
    def n_labels(self) -> np.ndarray:
        """Number of labels of each partition, of shape (n_partitions,)."""
        return np.array([len(labels) for labels in self.known], dtype=np.intp)

    def slots(self, columns: list, dtype: np.dtype) -> np.ndarray:
        """Write labels as in a code; see :class:`~corral._codes.CodeBook`.

        Returns
        -------
        slots : ndarray of shape (n_partitions, n_samples)
        """
        slots = np.empty((len(columns), len(columns[0][0])), dtype=dtype)
        for slot, (labels, gone), known in zip(slots, columns, self.known, strict=True):
            place = np.zeros(len(labels), dtype=np.intp)
            is_known = np.zeros(len(labels), dtype=bool)
            if len(known):
                place[~gone], is_known[~gone] = _find_places(known, labels[~gone])
            slot[:] = np.where(is_known, place, len(known))
            slot[gone] = len(known) + 1
        return slots


def find_labels(columns: list[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
    """Return the labels that occur in columns, sorted; see :func:`clean_labels`."""
    return [np.unique(labels[~gone]) for labels, gone in columns]


def _find_places(
    known: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the place of labels among those that are known, and which have one."""
    is_text = _is_text(labels)
    place = np.zeros(len(labels), dtype=np.intp)
    is_known = np.zeros(len(labels), dtype=bool)
    if _is_text(known) == is_text:
        place = np.minimum(np.searchsorted(known, labels), len(known) - 1)
        is_known = known[place] == labels
        if is_known.all() or not is_text:
            return place, is_known
    # Numbers become texts as soon as one of their column is missing in a data frame.
    others, which = np.unique(labels[~is_known], return_inverse=True)
    found = _find_by_value(known, others)[which]
    place[~is_known], is_known[~is_known] = np.maximum(found, 0), found >= 0
    return place, is_known


def _find_by_value(known: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the place of labels among those that are known, as texts or numbers."""
    texts = {str(label): place for place, label in enumerate(known)}
    values: dict[Any, int] = {}
    for text, place in texts.items():
        values.setdefault(_read_value(text), place)
    found = [
        texts.get(text, values.get(_read_value(text), -1)) for text in map(str, labels)
    ]
    return np.array(found, dtype=np.intp)


def _is_text(labels: np.ndarray) -> bool:
    return labels.dtype.kind in "US"


def _read_value(text: str) -> int | float | str:
    """Return the number that a text writes, whole ones of any size, or the text."""
    for read in (int, float):
        try:
            value = read(text)
        except ValueError:
            continue
        # An infinite one is no whole number, and has no other way to be written.
        return int(value) if value == value // 1 else value
    return text


def clean_labels(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of a categorical column, and where there is none.

    None and NaN are no labels. Labels that are not numbers are taken as text, so that
    a column may hold different kinds; long texts are shortened.
    """
    column = np.asarray(column)
    kind = column.dtype.kind
    if kind == "f":
        return column, np.isnan(column)
    if kind in "iuUS":
        return _shorten_texts(column), np.zeros(len(column), dtype=bool)
    # A column of truth values or dates is one of objects as soon as one is missing.
    column = column.astype(object) if kind != "M" else column.astype("M8[ns]")
    gone = np.array([is_missing(value) for value in column], dtype=bool)
    return np.where(gone, "", _shorten_texts(column).astype(str)), gone


def _shorten_texts(column: np.ndarray) -> np.ndarray:
    """Return a column without long texts; those that differ still do."""
    kind = column.dtype.kind
    if kind not in "OU" or (kind == "U" and column.itemsize <= _TEXT.itemsize):
        return column
    short = (_shorten(value) if isinstance(value, str) else value for value in column)
    return np.fromiter(short, object if kind == "O" else _TEXT, len(column))


def _shorten(text: str) -> str:
    if len(text) <= _MOST_LETTERS:
        return text
    # Halves of letters, which some files have, have no UTF-8.
    letters = text.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(letters, digest_size=_DIGEST_BYTES).hexdigest()
    return f"{text[: _MOST_LETTERS - len(digest) - 1]}\u2026{digest}"


def is_missing(value) -> bool:
    """Return whether a value of any library says that there is none."""
    # NaN and NaT differ from themselves; pandas' NA makes no bool of a comparison.
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


@dataclass(frozen=True)
class FittedClusterer:
    """A clusterer of scikit-learn's kind that made one partition.

    Attributes
    ----------
    estimator : fitted clusterer
    features : ndarray of int or None
        The columns that it sees; None for all.
    """

    estimator: Any
    features: np.ndarray | None

    def view(self, X):
        """Return the columns of X that it sees."""
        return X if self.features is None else X[:, self.features]

    def find_labelled(
        self, labels: np.ndarray, missing: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels that it gave, and where there is none.

        Parameters
        ----------
        labels : ndarray of shape (n_samples,)
            -1 means that there is none.
        missing : ndarray of shape (n_samples, n_numbers), bool, or None
            A row has no label if one of the cells that it sees is missing.
        """
        labels = np.asarray(labels)
        gone = labels == -1
        if missing is not None:
            gone |= self.view(missing).any(axis=1)
        return labels, gone

    def predict(self, X) -> np.ndarray:
        """Label new rows, or say why it cannot be done."""
        if not hasattr(self.estimator, "predict"):
            raise ValueError(
                f"{type(self.estimator).__name__} has no predict, so rows that were "
                "not in fit cannot be labelled. Use a clusterer with predict, or fit "
                "with these rows."
            )
        rows = self.view(X)
        centers = getattr(self.estimator, "cluster_centers_", None)
        if isinstance(centers, np.ndarray):
            # scikit-learn's K-means takes rows of the type of its centres only.
            rows = rows.astype(centers.dtype, copy=False)
        return self.estimator.predict(rows)


@dataclass(frozen=True)
class Partitioner:
    """All that labels a row: the fitted partitions of stage 1.

    Attributes
    ----------
    runs : KMeansRuns or None
    clusterers : list of FittedClusterer
    columns : LabelColumns
        Of the clusterers, then of the categorical features, then of the labels that
        the user brings.
    ruler : Ruler or None
        Measures how far rows lie from the centres of their cells, if that counts.
    """

    runs: KMeansRuns | None
    clusterers: list[FittedClusterer]
    columns: LabelColumns
    ruler: Ruler | None = None

    @property
    def book(self) -> CodeBook:
        """How the labels are written in a code."""
        n_labels = self.columns.n_labels
        if self.runs is not None:
            n_labels = np.concatenate([self.runs.n_labels, n_labels])
        return CodeBook(n_labels)

    def open(
        self,
        numbers,
        columns: list,
        missing: np.ndarray | None = None,
        counter: Counter | None = None,
    ) -> "LabelBlocks":
        """Make ready to label rows.

        Parameters
        ----------
        numbers : ndarray or CSR of shape (n_samples, n_numbers), or None
        columns : list of pairs
            Label columns as :func:`clean_labels` gives them, in the order of
            ``self.columns``.
        missing : ndarray of shape (n_samples, n_numbers), bool, or None
            The cells that are missing. A row has no label in the runs that see one of
            its missing cells.
        counter : Counter or None
            Counts rows; None if these are all that are counted.
        """
        labeller = None
        if self.runs is not None:
            filled = self.runs.fill(numbers, missing)
            labeller = self.runs.label_blocks(ArrayRows(filled))
        slots = None
        if columns:
            slots = self.columns.slots(columns, self.book.dtype)
        return LabelBlocks(self.book, labeller, slots, self.ruler, missing, counter)


class LabelBlocks:
    """Rows on their way to codes, block by block.

    Parameters
    ----------
    book : CodeBook
    labeller : KMeansLabeller or None
    slots : ndarray of shape (n_columns, n_samples) or None
        Of all partitions that are not K-means runs. One of the two is there.
    ruler : Ruler or None
    missing : ndarray of shape (n_samples, n_numbers), bool, or None
    counter : Counter or None

    Attributes
    ----------
    distances : ndarray of shape (n_samples,)
        What the ruler measured, of the blocks read so far; zeros without a ruler.
        Rows with missing cells have the usual distance.
    """

    def __init__(
        self,
        book: CodeBook,
        labeller: KMeansLabeller | None,
        slots: np.ndarray | None,
        ruler: Ruler | None = None,
        missing: np.ndarray | None = None,
        counter: Counter | None = None,
    ) -> None:
        self.book = book
        self._missing = missing
        self._labeller = labeller
        self._slots = slots
        self._ruler = ruler
        self._workspaces: dict[int, AssignWorkspace] = {}
        self.n_samples = 0
        self.block_rows = _BLOCK_ROWS
        if slots is not None:
            self.n_samples = slots.shape[1]
        if labeller is not None:
            self.n_samples = labeller.n_rows
            self.block_rows = labeller.block_rows
        self.distances = np.zeros(self.n_samples)
        self._counter = counter or Counter(LABELLING, self.n_samples)

    def __len__(self) -> int:
        return -(-self.n_samples // self.block_rows)

    def rows(self, index: int) -> slice:
        """Return the samples of a block."""
        start = index * self.block_rows
        return slice(start, min(start + self.block_rows, self.n_samples))

    def read(self, thread: int, index: int) -> np.ndarray:
        """Return the slots of a block, of shape (n_partitions, n_rows).

        Valid until the same thread reads again.
        """
        here = self.rows(index)
        parts = []
        if self._labeller is not None:
            if thread not in self._workspaces:
                self._workspaces[thread] = self._labeller.make_workspace()
            workspace = self._workspaces[thread]
            tile, labels = self._labeller.label_tile(index, workspace)
            if self._ruler is not None:
                self.distances[here] = self._ruler.measure(tile, labels)
            if self._missing is not None and self._missing[here].any():
                labels = self._blank(here, labels)
            parts.append(labels)
        if self._slots is not None:
            parts.append(self._slots[:, here])
        self._counter.add(here.stop - here.start)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _blank(self, here: slice, labels: np.ndarray) -> np.ndarray:
        """Return the labels without those that rest on missing cells."""
        assert self._labeller is not None
        assert self._missing is not None
        missing = self._missing[here]
        runs = self._labeller.runs
        if self._ruler is not None:
            lacks = missing[:, runs.seen].any(axis=1)
            self.distances[here][lacks] = self._ruler.typical
        no_label = (runs.n_labels + 1).astype(self.book.dtype)[:, None]
        return np.where(runs.lack(missing), no_label, labels)

    def encode(self, threads: Threads) -> Codes:
        """Find the distinct codes of all rows."""
        self._counter.add(0)
        return encode(self.book, len(self), self.read, threads)


def fit_clusterers(
    clusterers: list,
    X,
    sample_weight: np.ndarray | None,
    rng: np.random.Generator,
) -> tuple[list[FittedClusterer], list[np.ndarray]]:
    """Fit each clusterer as it is; return them and the labels that they gave."""
    fitted = [FittedClusterer(clone(each), None) for each in clusterers]
    return fitted, [_fit_clusterer(each, X, sample_weight, rng) for each in fitted]


def fit_base_clusterer(
    base,
    X,
    sample_weight: np.ndarray | None,
    settings: KMeansSettings,
    rng: np.random.Generator,
) -> tuple[list[FittedClusterer], list[np.ndarray]]:
    """Fit one clusterer many times, with random parameters or features each time.

    Random parameter selection sets ``n_clusters`` where the clusterer has it; random
    feature selection shows it a random part of the columns.
    """
    parameters = base.get_params(deep=False)
    has_k = "n_clusters" in parameters and settings.feature_share is None
    # None where the clusterer draws random numbers anew each time.
    is_fixed = parameters.get("random_state", 0) is not None
    if not has_k and settings.feature_share is None and is_fixed:
        raise ValueError(
            f"{type(base).__name__} has neither n_clusters nor an open random_state, "
            f"so all {settings.n_runs} runs would be the same. Give it in a list to "
            "run it once, or use strategy='rfs'."
        )
    low, high = settings.k_range
    fitted = []
    for _ in range(settings.n_runs):
        estimator = clone(base)
        features = None
        if has_k:
            k = int(rng.integers(low, high, endpoint=True))
            estimator.set_params(n_clusters=min(k, X.shape[0]))
        if settings.feature_share is not None:
            n_seen = max(round(settings.feature_share * X.shape[1]), 1)
            features = np.sort(rng.choice(X.shape[1], n_seen, replace=False))
        fitted.append(FittedClusterer(estimator, features))
    return fitted, [_fit_clusterer(each, X, sample_weight, rng) for each in fitted]


def _fit_clusterer(
    clusterer: FittedClusterer,
    X,
    sample_weight: np.ndarray | None,
    rng: np.random.Generator,
) -> np.ndarray:
    estimator = clusterer.estimator
    for name, value in sorted(estimator.get_params(deep=True).items()):
        if name.rpartition("__")[2] == "random_state" and value is None:
            estimator.set_params(**{name: draw_seed(rng)})
    weights = {}
    if sample_weight is not None and has_fit_parameter(estimator, "sample_weight"):
        weights["sample_weight"] = sample_weight
    estimator.fit(clusterer.view(X), **weights)
    if hasattr(estimator, "labels_"):
        return estimator.labels_
    return estimator.predict(clusterer.view(X))
