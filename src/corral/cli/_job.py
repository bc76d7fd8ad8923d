"""What a command is asked for, and how it is done: in memory or block by block."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from corral.cli._bar import Bar
from corral.cli._blockwise import (
    BlockJudged,
    WatchedSource,
    fit_source,
    judge_source,
    open_rows,
)
from corral.cli._methods import make_method
from corral.cli._plan import Plan, plan_fit, plan_reading
from corral.cli._work import Judged, fit_table, judge_table, list_ids, load_model, read


class Job(NamedTuple):
    """A fit that is asked for.

    Attributes
    ----------
    data : str
        Path of the table, or "-" for standard input.
    form : str or None
        Form of the file, if its name does not tell.
    estimator : object
        Not fitted.
    settings : dict of str to object
        Of ``TableModel``.
    plan : Plan
    on_error : {"raise", "skip"}
    """

    data: str
    form: str | None
    estimator: Any
    settings: dict[str, Any]
    plan: Plan
    on_error: str

    def read(self, bar: Bar) -> Any:
        """Read the table as a whole."""
        return read(self.data, self.form, list_ids(self.settings), bar)

    def open(self, bar: Bar) -> WatchedSource:
        """Open the table, if it is read block by block."""
        chosen, id_column = self.settings["columns"], self.settings["id_column"]
        if chosen is not None:
            # The encoder has to see the columns that are excluded.
            chosen = [*chosen, *(self.settings["exclude"] or [])]
        return open_rows(
            self.data,
            self.form,
            self.plan,
            chosen,
            id_column,
            list_ids(self.settings),
            self.on_error,
            bar,
        )


def plan_job(
    data: str,
    form: str | None,
    method: str,
    parameters: Mapping[str, Any],
    settings: dict[str, Any],
    *,
    memory_limit: str | None,
    checkpoint_dir: Path | None,
    on_error: str,
) -> Job:
    """Decide how a fit is done, or refuse it.

    Parameters
    ----------
    data : str
    form : str or None
    method : str
    parameters : mapping of str to object
        Of the method; None where the user said nothing.
    settings : dict of str to object
        Of ``TableModel``.
    memory_limit : str or None
    checkpoint_dir : Path or None
    on_error : {"raise", "skip"}

    Returns
    -------
    job : Job
    """
    tfidf = settings["tfidf"]
    # Refuses options that do not go together, before the data is looked at.
    estimator = make_method(method, parameters, tfidf=tfidf)
    plan = plan_fit(
        data,
        form,
        method=method,
        tfidf=tfidf,
        memory_limit=memory_limit,
        checkpoint_dir=checkpoint_dir,
        on_error=on_error,
    )
    if plan.is_by_blocks:
        folder = None if checkpoint_dir is None else str(checkpoint_dir)
        more = {"memory_limit": memory_limit, "checkpoint_dir": folder}
        estimator = make_method(method, {**parameters, **more}, tfidf=tfidf)
    return Job(data, form, estimator, settings, plan, on_error)


def run_job(job: Job, bar: Bar) -> Judged | BlockJudged:
    """Do a fit.

    Parameters
    ----------
    job : Job
    bar : Bar

    Returns
    -------
    judged : Judged or BlockJudged
    """
    if not job.plan.is_by_blocks:
        return fit_table(job.read(bar), job.estimator, job.settings, bar)
    return fit_source(job.open(bar), job.estimator, job.settings, job.plan)


def judge_any(
    path: Path, data: str, form: str | None, memory_limit: str | None, bar: Bar
) -> Judged | BlockJudged:
    """Load a model and label the rows of a table.

    Parameters
    ----------
    path : Path
        Of the model.
    data : str
        Of the table; "-" is standard input.
    form : str or None
    memory_limit : str or None
    bar : Bar

    Returns
    -------
    judged : Judged or BlockJudged
    """
    bar.stage(f"loading {path}")
    model = load_model(path)
    source = open_for(model, data, form, memory_limit, bar)
    if source is None:
        table = read(data, form, model.encoder_.texts_, bar)
        return judge_table(model, table, bar)
    return judge_source(model, *source)


def open_for(
    model: Any, data: str, form: str | None, memory_limit: str | None, bar: Bar
) -> tuple[WatchedSource, Plan] | None:
    """Open a table for a model, if it is read block by block.

    Parameters
    ----------
    model : TableModel
        Fitted.
    data : str
    form : str or None
    memory_limit : str or None
    bar : Bar

    Returns
    -------
    opened : tuple of (WatchedSource, Plan) or None
        None if the table is read as a whole.
    """
    plan = plan_reading(data, form, memory_limit)
    if not plan.is_by_blocks:
        return None
    encoder = model.encoder_
    used = [*encoder.numeric_names_, *encoder.categorical_names_, *encoder.text_names_]
    named = (used, encoder.id_column, encoder.texts_)
    return open_rows(data, form, plan, *named, "raise", bar), plan
