"""What the page shows: rows that are read once, and views of them."""

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from corral._doubts import count_doubts, say_doubts
from corral._refit import Refit
from corral._visible import spell_out
from corral.cli._text import count
from corral.explore._schema import Cluster, Opening, StrangeRow, View
from corral.report._charts import score_chart
from corral.report._clusters import CategoryCounts
from corral.report._map import MAX_OUTLIERS, choose_rows, part_ties, place, project
from corral.report._outcome import Outcome, read_outcome
from corral.report._reasons import Wording, find_apart
from corral.report._rows import read_rows
from corral.report._summary import RowNames, describe_scores
from corral.report._words import clip
from corral.tables import TableModel

# The table has so many outliers at most, and so many of the rows that are next.
_N_OUTLIERS = 100
_N_NEXT = 5

# The slider of clusters ends here, or at twice the number that was chosen.
_MIN_SLIDER = 12

# Longer reasons why a column is not used are cut.
_MAX_REASON = 200

# The slider of outliers ends at this part of the rows.
_MAX_SHARE = 0.5

# With more rows than this, a view does not say how sure labels are: for 100,000 rows
# that would nearly double the time of a fusion.
_MAX_SURE_ROWS = 20_000


class Fused(NamedTuple):
    """A fusion.

    Attributes
    ----------
    n_clusters, n_outliers : int
    estimator : COR
        Fitted.
    is_quick : bool
        Whether how sure labels are was left out.
    warnings : list of str
    """

    n_clusters: int
    n_outliers: int
    estimator: Any
    is_quick: bool
    warnings: list[str]

    def serves(self, n_clusters: int, n_outliers: int, quick: bool) -> bool:
        """Return whether this is what was asked for, or more."""
        numbers = (self.n_clusters, self.n_outliers)
        return numbers == (n_clusters, n_outliers) and (quick or not self.is_quick)


class Session:
    """A table whose rows are fused again and again.

    Parameters
    ----------
    table : pyarrow.Table, csr_array or ndarray
    model : TableModel
        Of a COR, not fitted; its numbers of clusters and outliers are where the page
        starts, and "auto" lets the rows choose them.

    Attributes
    ----------
    table : pyarrow.Table, csr_array or ndarray
    model : TableModel
        Knows how to encode the table.
    """

    def __init__(self, table: Any, model: TableModel) -> None:
        self.table = table
        self.model = model
        estimator, self._X = model._prepare(table)
        # A fit for all numbers would not refuse those of the start.
        estimator._check_numbers(self._X.shape[0])
        self._refit = Refit(estimator, self._X)
        self._asked = (model.estimator.n_clusters, model.estimator.n_outliers)
        encoder = model.encoder_
        self._rows = read_rows(
            self._X,
            names=encoder.feature_names_out_,
            categorical_features=encoder.categorical_names_ or None,
            are_labels=False,
        )
        self._names = RowNames(encoder.ids(table), table, self.n_samples)
        self._categories = [
            np.unique(values, return_inverse=True)
            for values, _ in self._rows.categories
        ]
        chosen = self._refit.chosen
        outcome = read_outcome(chosen, None, is_training=True)
        self._drawn = choose_rows(outcome, MAX_OUTLIERS)
        self._map = self._place_rows(outcome)
        self._last: Fused | None = None

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self._rows.n_samples

    @property
    def chosen(self) -> tuple[int, int]:
        """The numbers of clusters and outliers that the rows suggest."""
        return self._refit.chosen.n_clusters_, self._refit.chosen.n_outliers_

    def open(self, *, source: str, name: str, folder: str) -> Opening:
        """Return what the page needs once.

        Parameters
        ----------
        source : str
            Name of the file.
        name : str
            With which the names of the files begin, unless told.
        folder : str
            Where they go.

        Returns
        -------
        opening : Opening
        """
        selection = self._refit.chosen.selection_
        start = self._find_start()
        n_clusters = max(start[0], self.chosen[0])
        return {
            "source": spell_out(source),
            "n_samples": self.n_samples,
            "n_features": len(self._rows.names),
            "dropped": {
                clip(name): clip(why, _MAX_REASON)
                for name, why in self.model.encoder_.dropped_.items()
            },
            "max_clusters": min(max(_MIN_SLIDER, 2 * n_clusters), self.n_samples),
            "max_outliers": max(int(_MAX_SHARE * self.n_samples), start[1]),
            "start": start,
            "chosen": list(self.chosen),
            "runner_up": selection.runner_up and list(selection.runner_up),
            "reason": selection.reason,
            "map": self._map,
            "name": name,
            "folder": spell_out(folder),
        }

    def prepare(self) -> Iterator[None]:
        """Do ahead what the first moves of a slider would have to wait for.

        Yields
        ------
        None
            After a tenth of a second or so, so that moves can come between.
        """
        yield from self._refit.prepare()

    def fuse(self, n_clusters: int, n_outliers: int, *, quick: bool = False) -> Fused:
        """Fuse the rows into these numbers; the last fusion is kept.

        Parameters
        ----------
        n_clusters, n_outliers : int
        quick : bool, default=False
            Whether how sure labels are may be left out.

        Returns
        -------
        fused : Fused
        """
        last = self._last
        if last is None or not last.serves(n_clusters, n_outliers, quick):
            self._check(n_clusters, n_outliers)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                estimator = self._refit.fuse(n_clusters, n_outliers, quick=quick)
            said = sorted({spell_out(str(each.message)) for each in caught})
            last = self._last = Fused(n_clusters, n_outliers, estimator, quick, said)
        return last

    def view(
        self, n_clusters: int, n_outliers: int, write_command: Callable[[int, int], str]
    ) -> View:
        """Return what the page shows for these numbers.

        Parameters
        ----------
        n_clusters, n_outliers : int
        write_command : callable
            Writes the command that gives the same.

        Returns
        -------
        view : View
        """
        start = time.perf_counter()
        is_large = self.n_samples > _MAX_SURE_ROWS
        fused = self.fuse(n_clusters, n_outliers, quick=is_large)
        middle = time.perf_counter()
        estimator = fused.estimator
        outcome = read_outcome(estimator, None, is_training=True)
        scores = describe_scores(outcome)
        chart = score_chart(scores["ranks"], scores["values"], n_outliers)
        doubts = count_doubts(estimator)
        drawn = self._drawn
        view: View = {
            "n_clusters": n_clusters,
            "n_outliers": n_outliers,
            "labels": outcome.labels[drawn].tolist(),
            "nearest_labels": outcome.nearest[drawn].tolist(),
            "scores": _short(outcome.scores[drawn]),
            "clusters": _list_clusters(estimator, outcome),
            "rows": self._list_rows(estimator, outcome),
            "chart": _round_chart(chart._asdict()),
            "cut": scores["cut"],
            "n_at_cut": scores["n_at_cut"],
            "objective": float(estimator.objective_),
            "doubts": None if doubts is None else say_doubts(doubts),
            "warnings": fused.warnings,
            "command": spell_out(write_command(n_clusters, n_outliers)),
            "seconds": {},
        }
        view["seconds"] = {
            "fuse": round(middle - start, 4),
            "rest": round(time.perf_counter() - middle, 4),
        }
        return view

    def _check(self, n_clusters: int, n_outliers: int) -> None:
        """Refuse numbers that no fit takes."""
        # Beside outliers, some cluster has two rows.
        n_needed = n_clusters + n_outliers + (n_outliers > 0)
        if n_needed > self.n_samples:
            raise ValueError(
                f"{count(n_clusters, 'cluster')} and {count(n_outliers, 'outlier')} "
                f"need {n_needed:,} rows, but there are {self.n_samples:,}. Lower one "
                "of them."
            )

    def _find_start(self) -> list[int]:
        """Return the first numbers: those asked for, and beside them what fits."""
        clusters, outliers = self._asked
        n_clusters, n_outliers = self.chosen
        if isinstance(clusters, int):
            n_clusters = clusters
            n_outliers = min(n_outliers, max(self.n_samples - clusters - 1, 0))
        if isinstance(outliers, int):
            n_outliers = outliers
            n_clusters = min(n_clusters, self.n_samples - outliers - (outliers > 0))
        return [n_clusters, n_outliers]

    def _place_rows(self, outcome: Outcome) -> dict[str, Any] | None:
        """Put the rows that are drawn into the plane, as the report does."""
        drawn = self._drawn
        is_kept = ~outcome.is_outlier[drawn]
        projection = project(
            self._rows.take(drawn),
            is_kept,
            outcome.scores[drawn],
            use_directions=self._refit.chosen.metric == "cosine",
        )
        if projection is None:
            return None
        points, is_shifted = part_ties(place(projection.points, is_kept).round(4))
        return {
            "rows": drawn.tolist(),
            "ids": self._names.ids_of(drawn),
            "x": points[:, 0].round(4).tolist(),
            "y": points[:, 1].round(4).tolist(),
            "axes": projection.axes,
            "variance": projection.variance,
            "is_shifted": is_shifted,
        }

    def _list_rows(self, estimator, outcome: Outcome) -> list[StrangeRow]:
        """Describe the strangest outliers, and the rows that are next."""
        which = np.concatenate(
            [
                _strangest(outcome, outcome.is_outlier, _N_OUTLIERS),
                _strangest(outcome, ~outcome.is_outlier, _N_NEXT),
            ]
        )
        reasons = self._explain(estimator, outcome, which)
        confidence = _read_confidence(estimator, which)
        return [
            {
                "row": row,
                "id": name,
                "score": float(outcome.scores[row]),
                "is_outlier": bool(outcome.is_outlier[row]),
                "nearest_label": int(outcome.nearest[row]),
                "confidence": sure,
                "reasons": words,
            }
            for row, name, sure, words in zip(
                which.tolist(),
                self._names.ids_of(which),
                confidence,
                reasons,
                strict=True,
            )
        ]

    def _explain(
        self, estimator, outcome: Outcome, which: np.ndarray
    ) -> list[list[str]]:
        """Return what sets some rows apart, in words."""
        rows = self._rows
        apart = find_apart(estimator, self._X, rows, which, outcome, None)
        wording = Wording(
            rows.take(which),
            self._count_categories(outcome),
            "its cluster",
            ~outcome.is_outlier[which],
            None if self._names.values is None else self._names.values[which.tolist()],
        )
        found = []
        for j, label in enumerate(outcome.nearest[which].tolist()):
            kept = wording.keep(j, label, apart.names[j], apart.differences[j])
            found.append([each["words"] for each in wording.reasons(j, label, kept)])
        return found

    def _count_categories(self, outcome: Outcome) -> list[CategoryCounts]:
        gone = [gone for _, gone in self._rows.categories]
        return [
            _NumberedCounts(known, places, missing, outcome)
            for (known, places), missing in zip(self._categories, gone, strict=True)
        ]


class _NumberedCounts(CategoryCounts):
    """Counts of categories that were numbered before, which is most of the work."""

    def __init__(
        self,
        known: np.ndarray,
        places: np.ndarray,
        gone: np.ndarray,
        outcome: Outcome,
    ) -> None:
        kept = ~gone & (outcome.labels >= 0)
        cells = outcome.labels[kept] * len(known) + places[kept]
        counts = np.bincount(cells, minlength=outcome.n_groups * len(known))
        self.known = known
        self.counts = counts.reshape(outcome.n_groups, len(known))


def _strangest(outcome: Outcome, is_asked: np.ndarray, most: int) -> np.ndarray:
    """Return the rows with the highest scores among some, in the order of a report.

    Most rows need not be sorted for that.
    """
    rows = np.flatnonzero(is_asked)
    scores = outcome.scores[rows]
    if len(rows) > most:
        least = np.partition(scores, len(rows) - most)[len(rows) - most]
        rows, scores = rows[scores >= least], scores[scores >= least]
    return rows[np.argsort(-scores, kind="stable")][:most]


def _list_clusters(estimator, outcome: Outcome) -> list[Cluster]:
    sizes = np.bincount(
        outcome.labels[outcome.labels >= 0], minlength=outcome.n_clusters
    )
    stability = getattr(estimator, "cluster_stability_", None)
    known = [None] * len(sizes) if stability is None else _shares(stability)
    return [
        {"label": label, "size": size, "stability": share}
        for label, (size, share) in enumerate(zip(sizes.tolist(), known, strict=True))
    ]


def _read_confidence(estimator, which: np.ndarray) -> list[float | None]:
    confidence = getattr(estimator, "outlier_confidence_", None)
    if confidence is None:
        return [None] * len(which)
    return _shares(np.asarray(confidence)[which])


def _shares(values: np.ndarray) -> list[float | None]:
    """Return shares as JSON takes them, None where one is not known."""
    return [
        round(value, 4) if np.isfinite(value) else None
        for value in np.asarray(values, dtype=np.float64).tolist()
    ]


def _short(scores: np.ndarray) -> list[float]:
    """Return scores with the digits that a reader needs."""
    return [float(f"{score:.5g}") for score in scores.tolist()]


def _round_chart(chart: dict[str, Any]) -> dict[str, Any]:
    """Return a chart with positions that a screen can show."""
    points = [[round(x, 2), round(y, 2)] for x, y in chart["points"]]
    return chart | {"points": points}
