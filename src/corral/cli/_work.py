"""What commands do with files and models; imported when the work begins."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from corral.cli._bar import Bar
from corral.cli._findings import (
    are_of_fit,
    confidence_columns,
    describe_choice,
    describe_labels,
    describe_table,
    find_missing,
    fitted_columns,
    new_columns,
)
from corral.tables import TableModel, read_table


class Judged(NamedTuple):
    """A fitted model, and what it says of a table.

    Attributes
    ----------
    model : TableModel
    table : pyarrow.Table, csr_array or ndarray
    ids : list of str
    columns : dict of str to list
        Of the labels file.
    facts : dict
        Of the summary, JSON-ready.
    is_training : bool
        Whether the rows are those of the fit.
    n_all : int or None
        Number of all rows, if these are a random part of them.
    """

    model: Any
    table: Any
    ids: list[str]
    columns: dict[str, Any]
    facts: dict[str, Any]
    is_training: bool = True
    n_all: int | None = None

    def blocks(self) -> list[dict[str, Any]]:
        """Return the columns of the labels file in blocks of rows, here in one."""
        return [self.columns]

    def sample(self) -> "Judged":
        """Return what a report can hold: here all rows."""
        return self

    def write_python(self, source: str) -> str:
        """Return the lines of Python that make the model from a file."""
        estimator = self.model.estimator
        home = type(estimator).__module__.partition("._")[0]
        call = " ".join(self.model.__repr__(N_CHAR_MAX=10**6).split())
        id_column = self.model.id_column
        # As the command reads it.
        texts = "" if id_column is None else f", texts={id_column!r}"
        imports = f"from {home} import {type(estimator).__name__}; "
        if self.n_all is not None:
            return (
                f"{imports}from corral.sources import open_source; "
                "from corral.tables import TableModel; "
                f"model = {call}.fit(open_source({source!r}{texts}))"
            )
        return (
            f"{imports}from corral.tables import TableModel, read_table; "
            f"model = {call}.fit(read_table({source!r}{texts}))"
        )


def read(source: str, form: str | None, texts: Sequence[str], bar: Bar) -> Any:
    """Read a table.

    Parameters
    ----------
    source : str
        Path, or "-" for standard input.
    form : str or None
        Form of the file, if its name does not tell.
    texts : sequence of str
        Columns of CSV that are read as they are written.
    bar : Bar

    Returns
    -------
    table : pyarrow.Table, csr_array or ndarray
    """
    bar.stage("reading standard input" if source == "-" else f"reading {source}")
    return read_table(source, format=form, texts=texts)


def list_ids(settings: Mapping[str, Any]) -> list[str]:
    """Return the columns that a fit reads as they are written: that of the ids.

    Parameters
    ----------
    settings : mapping of str to object
        Of ``TableModel``.

    Returns
    -------
    names : list of str
    """
    id_column = settings["id_column"]
    return [] if id_column is None else [id_column]


def fit_table(table: Any, estimator: Any, settings: dict[str, Any], bar: Bar) -> Judged:
    """Fit an estimator to a table.

    Parameters
    ----------
    table : pyarrow.Table, csr_array or ndarray
    estimator : object
        Not fitted.
    settings : dict of str to object
        Of ``TableModel``.
    bar : Bar

    Returns
    -------
    judged : Judged
    """
    bar.stage(f"fitting {type(estimator).__name__}")
    start = time.perf_counter()
    model = TableModel(estimator, **settings).fit(table)
    return judge_fit(model, table, time.perf_counter() - start)


def judge_fit(model: TableModel, table: Any, seconds: float) -> Judged:
    """Collect what a model says of the rows of its fit.

    Parameters
    ----------
    model : TableModel
        Fitted.
    table : pyarrow.Table, csr_array or ndarray
    seconds : float
        What the fit took.

    Returns
    -------
    judged : Judged
    """
    ids = model.encoder_.ids(table)
    missing = find_missing(model.encoder_, table)
    columns = fitted_columns(model, ids, missing) | confidence_columns(model)
    facts = {
        **describe_table(model.encoder_, len(ids), missing),
        "seconds": round(seconds, 3),
        **describe_labels(columns, model),
        **describe_choice(model),
    }
    return Judged(model, table, ids, columns, facts)


def load_model(path: Path) -> Any:
    """Load a model that ``corral fit --model`` has written.

    Parameters
    ----------
    path : Path

    Returns
    -------
    model : TableModel
    """
    from corral import load

    model = load(path)
    if not isinstance(model, TableModel):
        raise ValueError(
            f"'{path}' holds a {type(model).__name__}, which knows nothing of files "
            "and columns. Use it in Python, or save a model with: corral fit --model"
        )
    return model


def judge_file(path: Path, source: str, form: str | None, bar: Bar) -> Judged:
    """Load a model, read a table and label its rows.

    Parameters
    ----------
    path : Path
        Of the model.
    source : str
        Of the table; "-" is standard input.
    form : str or None
    bar : Bar

    Returns
    -------
    judged : Judged
    """
    bar.stage(f"loading {path}")
    model = load_model(path)
    return judge_table(model, read(source, form, model.encoder_.texts_, bar), bar)


def judge_table(model: TableModel, table: Any, bar: Bar) -> Judged:
    """Label the rows of a table.

    Parameters
    ----------
    model : TableModel
        Fitted.
    table : pyarrow.Table, csr_array or ndarray
    bar : Bar

    Returns
    -------
    judged : Judged
    """
    bar.stage("labelling rows")
    ids = model.encoder_.ids(table)
    missing = find_missing(model.encoder_, table)
    columns = new_columns(model, table, ids, missing)
    is_training = are_of_fit(model, columns)
    if is_training:
        # Rows that tie at the cut are labelled as in the fit.
        columns = fitted_columns(model, ids, missing)
    facts = {
        **describe_table(model.encoder_, len(ids), missing),
        **describe_labels(columns, model),
    }
    return Judged(model, table, ids, columns, facts, is_training)


def make_page(judged: Judged, source: str, command: str, bar: Bar) -> str:
    """Return the report of a model and a table.

    Parameters
    ----------
    judged : Judged
    source : str
        Of the table.
    command : str
        The command line that made it.
    bar : Bar

    Returns
    -------
    page : str
        HTML.
    """
    from corral.report import summarize, to_html

    bar.stage("making the report")
    model = judged.model
    summary = summarize(
        model.estimator_,
        model.encode(judged.table),
        feature_names=model.encoder_.feature_names_out_,
        ids=judged.ids,
        values=judged.table,
        command=command,
        python=judged.write_python(source) if judged.is_training else None,
        is_training=judged.is_training,
        n_all=judged.n_all,
    )
    return to_html(summary)
