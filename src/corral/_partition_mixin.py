"""What COR and KCC share: rows in, partitions made, label rows looked up."""

from collections.abc import Callable
from copy import deepcopy as copy
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from corral._block_ladder import BlockRows
from corral._blocks import ArrayRows, RowSource
from corral._kmeans_runs import KMeansSettings, draw_order, fit_kmeans_runs
from corral._ladder import MAX_HELD_VALUES
from corral._partitions import (
    FittedClusterer,
    LabelColumns,
    Partitioner,
    clean_labels,
    find_labels,
    fit_base_clusterer,
    fit_clusterers,
)
from corral._position import draw_unit_rows
from corral._random import SPARE_ROWS, Streams, draw_rows
from corral._row_blocks import Block, MemoryBlocks, is_source
from corral._scan import CompleteRows, Scan, find_known
from corral._sklearn_compat import HasMethods, Interval, StrOptions
from corral._threads import use_threads
from corral._validation import (
    Features,
    check_labelled,
    find_complete,
    read_features,
    read_label_matrix,
)
from corral._workplace import Workplace


class Basis(NamedTuple):
    """What stage 1 learns from.

    Attributes
    ----------
    source : RowSource or None
        The rows, or some of them; None if there are no numbers.
    weights : ndarray of shape (n_samples,), CompleteRows or None
        Rows of weight zero are not learned from.
    n_samples : int
        Of all rows.
    known : ndarray of shape (n_numbers,), bool, or None
        The features that some row has; None means all.
    has_missing : bool
        Whether cells of these are missing.
    labels : list of ndarray
        The labels of each label column.
    """

    source: RowSource | None
    weights: Any
    n_samples: int
    known: np.ndarray | None
    has_missing: bool
    labels: list[np.ndarray]


class PartitionMixin:
    """Mixin of the estimators that fuse partitions.

    It uses the parameters in ``_partition_constraints`` and ``n_clusters``, and two
    attributes that ``fit`` sets: ``_is_precomputed``, whether rows are labels, before
    it reads any, and ``_partitioner``, what labels rows, before it looks any up.
    """

    _partition_constraints: ClassVar[dict] = {
        "partitions": [
            StrOptions({"kmeans", "precomputed"}),
            HasMethods(["fit", "get_params"]),
            list,
        ],
        "n_partitions": [Interval(Integral, 1, None, closed="left")],
        "strategy": [StrOptions({"rps", "rfs"})],
        "k_range": [tuple, list, None],
        "feature_share": [Interval(Real, 0, 1, closed="right")],
        "metric": [StrOptions({"euclidean", "cosine"})],
        "categorical_features": ["array-like", None],
        "kmeans_init": [StrOptions({"random", "k-means++"})],
        "kmeans_max_iter": [Interval(Integral, 1, None, closed="left")],
        "kmeans_tol": [Interval(Real, 0, None, closed="left")],
        "max_samples": [Interval(Integral, 1, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    n_clusters: int
    n_features_in_: int
    partitions: Any
    n_partitions: int
    strategy: str
    k_range: Any
    feature_share: float
    metric: str
    kmeans_init: str
    kmeans_max_iter: int
    kmeans_tol: float
    max_samples: int | None
    n_jobs: int | None
    _is_precomputed: bool
    _partitioner: Partitioner

    def _read(self, X, extra_partitions=None, *, reset: bool) -> tuple[Features, list]:
        """Check the input; return the features and the columns of given labels."""
        if is_source(X):
            raise TypeError(
                f"X is {X!r}; only fit reads rows block by block. Give rows in memory, "
                "such as corral.sources.open_source(...).read(0, 1000)."
            )
        if self._is_precomputed:
            features, given = self._read_labels(X, "X", reset=reset)
        else:
            features, given = read_features(self, X, reset=reset), []
        if extra_partitions is not None:
            labels = read_label_matrix(extra_partitions, name="extra_partitions")
            if len(labels) != features.n_samples:
                raise ValueError(
                    f"extra_partitions has {len(labels)} rows but X has "
                    f"{features.n_samples}."
                )
            given = given + _label_columns(labels)
        return features, given

    def _read_labels(self, X, name: str, *, reset: bool) -> tuple[Features, list]:
        """Check a matrix of labels that takes the place of the features."""
        labels = read_label_matrix(X, name=name)
        if reset:
            self.n_features_in_ = labels.shape[1]
            self.__dict__.pop("feature_names_in_", None)
        elif labels.shape[1] != self.n_features_in_:
            raise ValueError(
                f"{name} has {labels.shape[1]} partitions but {type(self).__name__} "
                f"was fitted on {self.n_features_in_}."
            )
        return Features(None, [], len(labels)), _label_columns(labels)

    def _fit_partitions(
        self,
        place: Workplace,
        weights: np.ndarray | None,
        streams: Streams,
    ) -> tuple[Partitioner, Basis]:
        """Stage 1; return what labels rows, and what was learned from.

        The rows of the workplace get the labels of clusterers as label columns.
        """
        runs, rows, threads = None, place.rows, place.threads
        clusterers: list[FittedClusterer] = []
        use_kmeans, base, others = _sort_partitions(self.partitions)
        if rows.whole is None and (base is not None or others):
            raise ValueError(
                f"partitions={self.partitions} has clusterers, which need all rows in "
                "memory. Use partitions='kmeans', or give the rows as an array."
            )
        basis = self._find_basis(place, weights, streams)
        rng = streams.partitions
        if basis.source is not None:
            settings = self._kmeans_settings(basis)
            if use_kmeans:
                runs = fit_kmeans_runs(
                    basis.source, basis.weights, settings, rng, threads
                )
            if base is not None or others:
                assert isinstance(rows, MemoryBlocks)
                numbers = rows.whole.features.numbers
                if base is not None:
                    fitted = fit_base_clusterer(base, numbers, weights, settings, rng)
                else:
                    fitted = fit_clusterers(others, numbers, weights, rng)
                clusterers, place.rows = fitted[0], _add_labels(rows, *fitted)
                basis = basis._replace(labels=find_labels(place.rows.whole.columns))
        if runs is None and place.rows.whole is not None:
            check_labelled(place.rows.whole.columns)
        return Partitioner(runs, clusterers, LabelColumns(basis.labels)), basis

    def _find_basis(
        self,
        place: Workplace,
        weights: np.ndarray | None,
        streams: Streams,
    ) -> Basis:
        """Return what stage 1 learns from: all rows, or some of a source."""
        rows = place.rows
        if rows.whole is not None:
            features = rows.whole.features
            known, has_missing = None, False
            if features.missing is not None:
                n_known = np.count_nonzero(~features.missing, axis=0)
                known, has_missing = find_known(n_known, features.n_samples)
                if has_missing:
                    is_complete = find_complete(features.missing, known)
                    weights = _weigh_complete(is_complete, weights)
            return Basis(
                None if features.numbers is None else ArrayRows(features.numbers),
                weights,
                features.n_samples,
                known,
                has_missing,
                find_labels(rows.whole.columns),
            )
        if self.max_samples is None:
            scan = self._scan_all(place, streams)
        else:
            scan = self._scan_some(place, self.max_samples, streams)
        n_samples = int(rows.sizes.sum())
        return Basis(
            scan.source,
            scan.complete,
            n_samples,
            scan.known,
            scan.has_missing,
            scan.labels,
        )

    def _scan_all(self, place: Workplace, streams: Streams) -> Scan:
        """Look at a source whose rows are all learned from; take them if few."""
        sizes = place.rows.sizes
        n_samples = int(sizes.sum())
        if n_samples * self.n_features_in_ <= MAX_HELD_VALUES:
            return place.scan(np.arange(n_samples))
        # The same draws as those of the ruler, which come later.
        units = draw_unit_rows(n_samples, None, copy(streams.position))
        scan = place.scan(units)
        taken = scan.source
        if taken is None:
            return scan
        if not taken.is_sparse:
            rows = BlockRows(
                place, sizes, taken, scan.means, scan.known, scan.n_complete
            )
            return scan._replace(source=rows)
        n_values = taken.take(units).nnz * n_samples // len(units)
        if n_values <= MAX_HELD_VALUES:
            return place.scan(np.arange(n_samples))
        raise ValueError(
            f"max_samples=None learns from all rows, and X has {n_samples} sparse ones "
            f"with about {n_values} values, too many to hold. Set max_samples, or give "
            "the rows as a matrix in memory."
        )

    def _scan_some(self, place: Workplace, max_samples: int, streams: Streams) -> Scan:
        """Look at a source, and take the rows to learn from."""
        n_samples = int(place.rows.sizes.sum())
        # The same draws as those of the runs and the ruler, which come later.
        order = draw_order(n_samples, None, max_samples, copy(streams.partitions))
        units = draw_unit_rows(n_samples, None, copy(streams.position))
        scan = place.scan(np.union1d(order, units))
        if scan.complete is not None:
            n_spare = SPARE_ROWS * max_samples
            order = draw_rows(copy(streams.partitions), n_samples, n_spare)
            scan = place.scan(np.union1d(order, units))
        return scan

    def _kmeans_settings(self, basis: Basis) -> KMeansSettings:
        n_samples = basis.n_samples
        is_rfs = self.strategy == "rfs"
        typical = self._n_typical
        default = (typical,) * 2 if is_rfs else (2, 2 * typical)
        is_default = self.k_range is None or self._has_auto_range
        k_range = default if is_default else tuple(self.k_range)
        if (
            len(k_range) != 2
            or not all(isinstance(k, Integral) for k in k_range)
            or not 1 <= k_range[0] <= k_range[1]
        ):
            raise ValueError(
                f"k_range={self.k_range} should be two whole numbers (smallest, "
                "largest), both at least 1."
            )
        return KMeansSettings(
            n_runs=self.n_partitions,
            k_range=(int(k_range[0]), int(k_range[1])),
            fine_range=self._fine_range(n_samples) if is_default else None,
            feature_share=self.feature_share if is_rfs else None,
            metric=self.metric,
            init=self.kmeans_init,
            max_iter=self.kmeans_max_iter,
            tol=self.kmeans_tol,
            max_samples=self.max_samples,
            spares_cells=basis.has_missing,
            known_features=basis.known,
        )

    @property
    def _has_auto_range(self) -> bool:
        """Whether the range of the runs does not depend on ``n_clusters``."""
        return False

    @property
    def _n_typical(self) -> int:
        """The number of clusters that the runs draw theirs around."""
        return self.n_clusters

    def _fine_range(self, n_samples: int) -> tuple[int, int] | None:
        """Return where every other run draws its number of clusters by default."""
        return None

    def _look_up_rows(
        self,
        features: Features,
        given: list,
        look_up: Callable[[np.ndarray, np.ndarray], np.ndarray],
    ) -> np.ndarray:
        """Label rows block by block and return what their label rows cost.

        Parameters
        ----------
        features : Features
        given : list of label columns
        look_up : callable
            Takes label rows of shape (n_rows, n_partitions) and the distances of the
            rows in their cells, of shape (n_rows,), and returns their costs.

        Returns
        -------
        costs : ndarray of shape (n_samples, n_clusters)
        """
        partitioner = self._partitioner
        found = [each.predict(features.numbers) for each in partitioner.clusterers]
        columns = _all_columns(partitioner.clusterers, found, features, given)
        n_known = len(partitioner.columns.known)
        if len(columns) != n_known:
            n_others = len(columns) - len(given)
            raise ValueError(
                f"{type(self).__name__} was fitted with {n_known - n_others} columns "
                f"of given labels but got {len(given)} here. Give as many "
                "extra_partitions as in fit."
            )
        if partitioner.runs is None:
            check_labelled(columns)
        elif features.missing is not None:
            self._check_missing(features.missing)
        blocks = partitioner.open(features.numbers, columns, features.missing)
        costs: list = [None] * len(blocks)

        def work(thread: int, share: range) -> None:
            for index in share:
                rows = np.ascontiguousarray(blocks.read(thread, index).T)
                costs[index] = look_up(rows, blocks.distances[blocks.rows(index)])

        with use_threads(self.n_jobs) as threads:
            threads.share(len(blocks), work)
        return np.concatenate(costs)

    def _check_missing(self, missing: np.ndarray) -> None:
        """Refuse missing cells where all partitions need all of them."""
        runs = self._partitioner.runs
        if runs is not None and runs.features is None:
            row, column = np.argwhere(missing)[0]
            raise ValueError(
                f"X has missing cells, the first in row {row} and numeric column "
                f"{column}, but {type(self).__name__} was fitted without any, so "
                "its partitions need every cell. Fill them, or fit on rows with "
                "missing cells."
            )


def _weigh_complete(is_complete: np.ndarray, weights: np.ndarray | None):
    """Return the weights to learn with: of complete rows only, if half of all are.

    Rows of weight zero do not count.
    """
    if weights is None:
        is_half = 2 * np.count_nonzero(is_complete) >= len(is_complete)
        return CompleteRows(is_complete) if is_half else None
    learned = weights * is_complete
    if 2 * np.count_nonzero(learned) < np.count_nonzero(weights):
        return weights
    return learned


def make_block(features: Features, given: list) -> Block:
    """Return rows with the label columns of categorical features and of the user."""
    return Block(features, [clean_labels(each) for each in features.categories] + given)


def _add_labels(
    rows: MemoryBlocks, clusterers: list[FittedClusterer], found: list[np.ndarray]
) -> MemoryBlocks:
    """Return rows with the labels of clusterers before their other label columns."""
    missing = rows.whole.features.missing
    columns = [
        each.find_labelled(labels, missing)
        for each, labels in zip(clusterers, found, strict=True)
    ]
    return rows.replace_columns(columns + rows.whole.columns)


def asks_for_labels(partitions) -> bool:
    """Return whether rows are to be labels."""
    return isinstance(partitions, str) and partitions == "precomputed"


def _sort_partitions(partitions) -> tuple[bool, object, list]:
    """Return whether to run K-means, the one base clusterer, and the others."""
    if isinstance(partitions, str):
        return partitions == "kmeans", None, []
    if not isinstance(partitions, list):
        return False, partitions, []
    others = [each for each in partitions if not isinstance(each, str)]
    unknown = [
        each for each in partitions if isinstance(each, str) and each != "kmeans"
    ]
    wrong = unknown + [each for each in others if not hasattr(each, "fit")]
    if wrong or not partitions:
        raise ValueError(
            f"partitions={partitions} should be a list of clusterers and 'kmeans'; "
            f"{wrong or 'it'} cannot be used. Labels are given to fit as "
            "extra_partitions."
        )
    return "kmeans" in partitions, None, others


def _label_columns(labels: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the columns of a label matrix, and where in each there is no label."""
    return [(column, column == -1) for column in labels.T]


def _all_columns(
    clusterers: list[FittedClusterer], found: list, features: Features, given: list
) -> list:
    """Return the label columns of clusterers, categorical features and the user."""
    columns = [
        each.find_labelled(labels, features.missing)
        for each, labels in zip(clusterers, found, strict=True)
    ]
    columns += [clean_labels(column) for column in features.categories]
    return columns + given
