"""Fits and answers of tables that are read block by block."""

import time
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from corral import CORDetector
from corral._answers import FileColumns
from corral._blocks import cut_rows
from corral._journal import Journal
from corral._memory import Budget
from corral._progress import LABELLING, watch
from corral.cli._bar import Bar
from corral.cli._findings import (
    Missing,
    Tally,
    are_of_fit,
    confidence_columns,
    describe_choice,
    describe_table,
    fitted_columns,
    new_columns,
    share_known,
    spot_missing,
)
from corral.cli._plan import Plan
from corral.cli._reasons import stack_rows
from corral.cli._work import Judged
from corral.sources import open_source
from corral.tables import TableModel
from corral.tables._rows import read_rows

# The most rows that are written at once. As Python's own values, they take some 50 MB.
_BLOCK_ROWS = 2**16

# Rows that a report is made of.
_REPORT_ROWS = 50_000

# What a fit knows of each row.
_PER_ROW = (
    "labels_",
    "nearest_labels_",
    "outlier_scores_",
    "outlier_confidence_",
    "label_confidence_",
)

_READING = "reading rows"
_SAMPLING = "taking rows for the report"
_WRITING = "writing labels"


class WatchedSource:
    """A source that shows how far each pass over its rows is.

    Parameters
    ----------
    source : Source
    bar : Bar
    """

    def __init__(self, source: Any, bar: Bar) -> None:
        self._source = source
        self._bar = bar
        self._stage: str | None = _READING
        self.shape = source.shape
        self.names = source.names

    @property
    def borders(self) -> list[int]:
        return self._source.borders

    @property
    def skipped(self) -> list[str]:
        return self._source.skipped

    def read(self, start: int, stop: int) -> Any:
        """Return rows."""
        rows = self._source.read(start, stop)
        if self._stage is not None:
            self._bar.tick(self._stage, stop, self.shape[0])
        return rows

    def enter(self, stage: str) -> None:
        """Say what the next passes are for."""
        self._stage = stage

    def heed(self, stage: str, done: int, total: int) -> None:
        """Be quiet while a fit says itself how far the rows are."""
        is_told = stage == LABELLING and done < total
        self._stage = None if is_told else _READING

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells these rows from others."""
        return self._source.fingerprint()

    def __repr__(self) -> str:
        return repr(self._source)


class _Held:
    """A few rows of a source, read once, when they are first asked for."""

    def __init__(self, source: Any, rows: slice) -> None:
        self._source = source
        self._rows = rows
        self.shape = source.shape
        self.fingerprint = source.fingerprint

    @cached_property
    def block(self) -> Any:
        """The rows as the source gives them."""
        return self._source.read(self._rows.start, self._rows.stop)

    def read(self, start: int, stop: int) -> Any:
        """Return the rows, or as many of them as are asked for."""
        first = self._rows.start
        return self.block[start - first : stop - first]


class BlockJudged:
    """A fitted model, and what it says of a table that is not held in memory.

    Parameters
    ----------
    model : TableModel
    source : WatchedSource
    block_rows : int
        How many rows are read at once.
    make_blocks : callable
        Returns an iterator over the columns of the labels file, in blocks of rows.
    facts : dict
        Of the summary, up to the labels.
    more_facts : dict
        Those after the labels.
    """

    def __init__(
        self,
        model: TableModel,
        source: WatchedSource,
        block_rows: int,
        make_blocks: Callable[[], Iterator[dict[str, Any]]],
        facts: dict[str, Any],
        more_facts: dict[str, Any],
    ) -> None:
        self.model = model
        self.source = source
        self._block_rows = block_rows
        self._make_blocks = make_blocks
        self._facts = facts
        self._more_facts = more_facts
        self._tally: Tally | None = None

    def blocks(self) -> Iterator[dict[str, Any]]:
        """Yield the columns of the labels file, in blocks of rows."""
        self._tally = Tally(self.model)
        for columns in self._make_blocks():
            self._tally.add(columns)
            yield columns

    def sample(self) -> Judged:
        """Return what a report can hold: a random part of the rows of a fit."""
        n_rows = self.source.shape[0]
        draw = np.random.default_rng(0).choice
        rows = np.sort(draw(n_rows, min(n_rows, _REPORT_ROWS), replace=False))
        self.source.enter(_SAMPLING)
        table, ids = _take(self.model.encoder_, self.source, rows, self._block_rows)
        model = copy(self.model)
        model.estimator_ = _keep_rows(model.estimator_, rows)
        return Judged(model, table, ids, {}, {}, n_all=n_rows)

    @property
    def facts(self) -> dict[str, Any]:
        """What the summary says; known when all blocks were asked for."""
        assert self._tally is not None
        return self._facts | self._tally.describe() | self._more_facts


def _take(
    encoder: Any, source: WatchedSource, rows: np.ndarray, block_rows: int
) -> tuple[Any, list]:
    """Return some rows, which are sorted, and their names."""
    parts, ids = [], []
    for block in cut_rows(source.shape[0], block_rows):
        held = _Held(source, block)
        first, end = np.searchsorted(rows, [block.start, block.stop])
        places = rows[first:end] - block.start
        found = read_rows(held.block)
        is_table = hasattr(found, "column_names")
        parts.append(found.take(places) if is_table else found[places])
        names = encoder.ids(held, block.start, block.stop)
        ids += [names[place] for place in places]
    return stack_rows(parts), ids


def _keep_rows(estimator: Any, rows: np.ndarray) -> Any:
    """Return a fitted method that has seen some of its rows only."""
    kept = copy(estimator)
    if isinstance(kept, CORDetector):
        kept.estimator_ = _keep_rows(kept.estimator_, rows)
    for name in _PER_ROW:
        if name in vars(kept):
            setattr(kept, name, np.asarray(getattr(kept, name)[rows]))
    return kept


def open_rows(
    data: str,
    form: str | None,
    plan: Plan,
    used: list[str] | None,
    id_column: str | None,
    texts: Sequence[str],
    on_error: str,
    bar: Bar,
) -> WatchedSource:
    """Open a table that is read block by block.

    Parameters
    ----------
    data : str
        Path.
    form : str or None
    plan : Plan
    used : list of str or None
        Columns that are needed; None for all.
    id_column : str or None
    texts : sequence of str
        Columns of CSV that are read as they are written.
    on_error : {"raise", "skip"}
    bar : Bar

    Returns
    -------
    source : WatchedSource
    """
    bar.stage(f"opening {data}")
    columns = _choose_columns(data, plan.size.names, used, id_column)
    source = open_source(
        data, columns=columns, format=form, on_error=on_error, texts=texts
    )
    return WatchedSource(source, bar)


def _choose_columns(
    data: str, names: list[str] | None, used: list[str] | None, id_column: str | None
) -> list[str] | None:
    """Return the columns to read; None for all."""
    if used is None:
        return None
    wanted = [*used] if id_column is None else [*used, id_column]
    if names is None:
        # Files of a folder may differ in columns that are not needed.
        return wanted if Path(data).is_dir() else None
    # Columns that are not there are told by the encoder.
    is_some = {*used} <= {*names} and not {*names} <= {*wanted}
    return [name for name in names if name in wanted] if is_some else None


def fit_source(
    source: WatchedSource,
    estimator: Any,
    settings: dict[str, Any],
    plan: Plan,
) -> BlockJudged:
    """Fit an estimator to a table that is not held in memory.

    Parameters
    ----------
    source : WatchedSource
    estimator : COR or CORDetector
        Not fitted.
    settings : dict of str to object
        Of ``TableModel``.
    plan : Plan

    Returns
    -------
    judged : BlockJudged
    """
    start = time.perf_counter()
    with watch(source.heed):
        model = TableModel(estimator, **settings).fit(source)
    seconds = time.perf_counter() - start
    encoder = model.encoder_
    missing = Missing(_order_missing(encoder), {})
    facts = {
        **_describe_source(source, plan),
        **describe_table(encoder, source.shape[0], missing),
        "seconds": round(seconds, 3),
    }
    block_rows = _count_rows(model, source, plan)
    make_blocks = partial(_fitted_blocks, model, source, block_rows)
    choice = describe_choice(model)
    return BlockJudged(model, source, block_rows, make_blocks, facts, choice)


def _count_rows(model: TableModel, source: WatchedSource, plan: Plan) -> int:
    """Return how many rows are read at once, fewer of wide rows."""
    estimator = model.estimator_
    if isinstance(estimator, CORDetector):
        estimator = estimator.estimator_
    n_partitions = getattr(estimator, "n_partitions", 0)
    n_bytes = 8 * source.shape[1]
    most = Budget(plan.limit).count_block_rows(n_bytes, n_partitions)
    return min(most, _BLOCK_ROWS)


def _describe_source(source: WatchedSource, plan: Plan) -> dict[str, Any]:
    facts: dict[str, Any] = {"by_blocks": plan.why}
    return facts | {"skipped": source.skipped} if source.skipped else facts


def _order_missing(encoder: Any) -> dict[str, int]:
    """Return the missing cells of columns, in the order of the features."""
    found, names = encoder.n_missing_, encoder.feature_names_out_
    return {name: found[name] for name in names if name in found}


def _fitted_blocks(
    model: TableModel, source: WatchedSource, block_rows: int
) -> Iterator[dict[str, Any]]:
    source.enter(_WRITING)
    encoder = model.encoder_
    for rows in cut_rows(source.shape[0], block_rows):
        held = _Held(source, rows)
        ids = encoder.ids(held, rows.start, rows.stop)
        missing = Missing({}, {})
        if encoder.n_missing_:
            X = encoder.transform(held).read(rows.start, rows.stop)
            shares = share_known(spot_missing(X))
            missing = Missing({}, {"known_share": shares.tolist()})
        columns = fitted_columns(model, ids, missing, rows)
        yield columns | confidence_columns(model, rows)


def judge_source(model: TableModel, source: WatchedSource, plan: Plan) -> BlockJudged:
    """Label the rows of a table that is not held in memory.

    Parameters
    ----------
    model : TableModel
        Fitted.
    source : WatchedSource
    plan : Plan

    Returns
    -------
    judged : BlockJudged
    """
    source.enter(LABELLING)
    block_rows = _count_rows(model, source, plan)
    answers = _Answers(model, source, block_rows)
    missing = Missing(answers.n_missing, {})
    facts = {
        **_describe_source(source, plan),
        **describe_table(model.encoder_, source.shape[0], missing),
    }
    return BlockJudged(model, source, block_rows, answers.blocks, facts, {})


class _Answers:
    """What a model says of new rows, kept in temporary files.

    Whether the rows are those of the fit, and whether any cell is missing, is known
    only when all of them were seen; then they are written.
    """

    def __init__(
        self, model: TableModel, source: WatchedSource, block_rows: int
    ) -> None:
        self._model = model
        self._source = source
        self._block_rows = block_rows
        # Removed with this object.
        self._journal = Journal.temporary()
        n_rows = source.shape[0]
        self._kept = FileColumns(self._journal.folder, n_rows)
        self._names: list[str] = []
        n_missing = np.zeros(len(model.encoder_.feature_names_out_), dtype=int)
        self._is_training = n_rows == len(model.labels_)
        for rows in cut_rows(n_rows, block_rows):
            n_missing += self._answer(rows)
        counts = zip(model.encoder_.feature_names_out_, n_missing.tolist(), strict=True)
        self.n_missing = {name: n for name, n in counts if n}

    def _answer(self, rows: slice) -> np.ndarray:
        """Label some rows, and return how many cells of each column are missing."""
        held, encoder = _Held(self._source, rows), self._model.encoder_
        # Encoded first: what cannot be used is told by the number of its row.
        is_missing = spot_missing(encoder.transform(held).read(rows.start, rows.stop))
        found = new_columns(self._model, held.block, [], Missing({}, {}))
        del found["id"]
        self._names = [*found]
        columns = {name: np.asarray(values) for name, values in found.items()}
        if self._is_training:
            self._is_training = are_of_fit(self._model, columns, rows)
        self._kept.append(columns | {"known_share": share_known(is_missing)})
        return is_missing.sum(axis=0)

    def blocks(self) -> Iterator[dict[str, Any]]:
        """Yield the columns of the labels file, in blocks of rows."""
        self._source.enter(_WRITING)
        encoder = self._model.encoder_
        for rows in cut_rows(self._source.shape[0], self._block_rows):
            ids = encoder.ids(_Held(self._source, rows), rows.start, rows.stop)
            shares = {}
            if self.n_missing:
                shares = {"known_share": self._read("known_share", rows)}
            missing = Missing({}, shares)
            if self._is_training:
                # Rows that tie at the cut are labelled as in the fit.
                yield fitted_columns(self._model, ids, missing, rows)
            else:
                answers = {name: self._read(name, rows) for name in self._names}
                yield {"id": ids, **answers, **missing.columns}

    def _read(self, name: str, rows: slice) -> list:
        return self._kept.read(name, rows.start, rows.stop).tolist()
