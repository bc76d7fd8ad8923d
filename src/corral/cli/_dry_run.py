"""What a fit would do, found out from a sample of the rows."""

import math
import time
import warnings
from typing import Any, NamedTuple

import click
import numpy as np
from sklearn.base import clone

from corral import COR, CORDetector
from corral._memory import BASE_BYTES, Budget, format_bytes, weigh_row
from corral.cli._bar import Bar
from corral.cli._files import print_json
from corral.cli._findings import Missing, describe_table, table_words
from corral.cli._job import Job
from corral.cli._reasons import stack_rows
from corral.cli._text import count, fact
from corral.sources import UnreadableBlockError
from corral.tables import TableEncoder, TableModel
from corral.tables._read import kind_of
from corral.tables._size import read_head

# Rows that tell the columns and the time, and from how many places of the data they
# come; for CSV, which is read from its start, the bytes that hold about as many.
_SAMPLE_ROWS = 50_000
_N_PLACES = 8
_HEAD_BYTES = 2**24

# Rows that are read to see how long it takes.
_TIMED_ROWS = 2**16

# A fit labels a row in so much of the time that it takes to score it anew, for a fit
# scores only distinct rows of labels. Measured on 1,000,000 x 9 cells.
_LABEL_SHARE = 0.25

# Of a row: what is kept between passes beside its labels, and answers.
_STATE_BYTES = 16
_ANSWER_BYTES = 28

# Passes over the rows for quartiles, of so many columns at once.
_QUARTILE_PASSES = 5
_QUARTILE_COLUMNS = 256


class _Sample(NamedTuple):
    """Some rows, and what was found out while they were read."""

    rows: Any
    n_rows: int
    is_exact: bool
    seconds_per_row: float


def rehearse(job: Job, bar: Bar) -> dict[str, Any]:
    """Find out what a fit would do, without doing it.

    Parameters
    ----------
    job : Job
    bar : Bar

    Returns
    -------
    facts : dict
        JSON-ready. "seconds" is None for methods whose time does not grow with the
        rows alone.
    """
    if job.data == "-":
        raise ValueError(
            "--dry-run needs a file: standard input can be read only once. Save it as "
            "a file and name that."
        )
    bar.stage(f"looking at {job.data}")
    sample = _take_sample(job, bar)
    bar.stage(f"trying {sample.rows.shape[0]:,} rows")
    encoder, fit_seconds = _try_fit(job, sample)
    n_passes = _count_passes(job, encoder) if job.plan.is_by_blocks else 1
    seconds = None
    if fit_seconds is not None:
        per_row = sample.seconds_per_row + _measure_encoding(encoder, sample)
        seconds = round(fit_seconds + n_passes * sample.n_rows * per_row, 1)
    return {
        **describe_table(encoder, sample.n_rows, Missing(encoder.n_missing_, {})),
        "is_exact": sample.is_exact,
        "n_sampled": sample.rows.shape[0],
        "by_blocks": job.plan.why,
        "n_passes": n_passes,
        **_describe_room(job, encoder, sample.n_rows),
        "limit_bytes": job.plan.limit,
        "seconds": seconds,
    }


def print_rehearsal(facts: dict[str, Any], *, as_json: bool) -> None:
    """Say what a fit would do.

    Parameters
    ----------
    facts : dict
        Of :func:`rehearse`, and the method.
    as_json : bool
    """
    if as_json:
        print_json(facts)
    else:
        click.echo("\n".join(_in_words(facts)))


def _in_words(facts: dict[str, Any]) -> list[str]:
    about = "" if facts["is_exact"] else "about "
    first, *others = table_words(facts | {"missing": {}, "by_blocks": ""})
    lines = [fact("data", about + first.split(maxsplit=1)[1]), *others]
    if facts["n_sampled"] < facts["n_rows"]:
        sample = count(facts["n_sampled"], "row")
        lines.append(fact("sample", f"{sample}, which tell columns and time"))
    how = "as a whole, in memory"
    if facts["by_blocks"]:
        blocks = count(facts["n_blocks"], "block")
        how = (
            f"block by block: {facts['by_blocks']}. {blocks}, read from the first to "
            f"the last {facts['n_passes']} times"
        )
    lines.append(fact("read", how))
    limit = format_bytes(facts["limit_bytes"])
    lines.append(
        fact(
            "memory",
            f"about {format_bytes(facts['memory_bytes'])}; the limit is {limit}",
        )
    )
    if facts["disk_bytes"]:
        size = format_bytes(facts["disk_bytes"])
        lines.append(fact("disk", f"about {size} for what is kept between passes"))
    time_words = f"not known for {facts['method']}"
    if facts["seconds"] is not None:
        time_words = f"about {_say_seconds(facts['seconds'])}"
    lines.append(fact("time", time_words))
    lines.append(fact("", "Nothing was written: this was a dry run."))
    return lines


def _say_seconds(seconds: float) -> str:
    if seconds < 120:
        return count(max(round(seconds), 1), "second")
    if seconds < 7200:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"


def _take_sample(job: Job, bar: Bar) -> _Sample:
    """Read some rows, and measure how long that takes."""
    size, start = job.plan.size, time.perf_counter()
    kind, _ = kind_of(job.data, f"'{job.data}'", job.form)
    is_exact = True
    has_head = kind in ("csv", "tsv") and size.n_rows is not None
    # Lines that are left out are known to a source only.
    if has_head and job.on_error == "raise":
        rows, share = read_head(job.data, str(kind), _HEAD_BYTES)
        n_rows, is_exact = round(rows.shape[0] / share), share == 1
    elif size.is_exact or job.plan.is_by_blocks:
        return _sample_source(_open(job, bar))
    else:
        # A form that cannot be read in part, or a file that is broken and says so.
        rows = job.read(bar)
        n_rows = rows.shape[0]
    per_row = (time.perf_counter() - start) / rows.shape[0]
    return _Sample(_thin(rows, _SAMPLE_ROWS), n_rows, is_exact, per_row)


def _sample_source(source: Any) -> _Sample:
    """Read rows from several places, and time one block."""
    n_rows = source.shape[0]
    n_timed = min(n_rows, _TIMED_ROWS)
    start = time.perf_counter()
    source.read(0, n_timed)
    per_row = (time.perf_counter() - start) / n_timed
    return _Sample(_thin(_read_places(source), _SAMPLE_ROWS), n_rows, True, per_row)


def _open(job: Job, bar: Bar) -> Any:
    """Open the data; all of it is tried only where something cannot be opened."""
    try:
        return job._replace(on_error="raise").open(bar)
    except UnreadableBlockError:
        if job.on_error == "raise":
            raise
        return job.open(bar)


def _read_places(source: Any) -> Any:
    """Return rows from several places at which reading is cheap to begin."""
    starts = source.borders[:-1]
    n_places = min(len(starts), _N_PLACES)
    chosen = np.linspace(0, len(starts) - 1, n_places).round().astype(int)
    n_each = -(-_SAMPLE_ROWS // n_places)
    blocks = [
        source.read(starts[i], min(starts[i] + n_each, source.shape[0])) for i in chosen
    ]
    return stack_rows(blocks)


def _thin(rows: Any, n_rows: int) -> Any:
    """Return at most so many rows, from all over the table."""
    if rows.shape[0] <= n_rows:
        return rows
    places = np.linspace(0, rows.shape[0] - 1, n_rows).astype(int)
    return rows.take(places) if hasattr(rows, "column_names") else rows[places]


def _try_fit(job: Job, sample: _Sample) -> tuple[TableEncoder, float | None]:
    """Return how columns are used, and how long a fit of all rows takes, if known."""
    if _find_cor(job.estimator) is None:
        names = ("columns", "exclude", "id_column", "scale", "tfidf")
        settings = {name: job.settings[name] for name in names}
        encoder = TableEncoder(**settings, categories=False).fit(sample.rows)
        return encoder, None
    model, seconds = _fit(job, sample)
    # Learning and fusing take much the same time for few rows and for many: the rest
    # of the rows are labelled only.
    start = time.perf_counter()
    model.score_samples(sample.rows)
    n_sampled = sample.rows.shape[0]
    per_row = _LABEL_SHARE * (time.perf_counter() - start) / n_sampled
    return model.encoder_, seconds + per_row * (sample.n_rows - n_sampled)


def _measure_encoding(encoder: TableEncoder, sample: _Sample) -> float:
    """Return how long it takes to turn a row into numbers, which each pass does."""
    start = time.perf_counter()
    encoder.transform(sample.rows)
    return (time.perf_counter() - start) / sample.rows.shape[0]


def _fit(job: Job, sample: _Sample) -> tuple[TableModel, float]:
    """Fit the sample; return the model and the seconds that it took."""
    estimator = clone(job.estimator)
    cor = _find_cor(estimator)
    cor.set_params(memory_limit=None, checkpoint_dir=None)
    if isinstance(cor.n_outliers, int):
        n_outliers = cor.n_outliers * sample.rows.shape[0] // sample.n_rows
        cor.set_params(n_outliers=n_outliers)
    start = time.perf_counter()
    with warnings.catch_warnings():
        # What a sample lacks, the table may have.
        warnings.simplefilter("ignore")
        model = TableModel(estimator, **job.settings).fit(sample.rows)
    return model, time.perf_counter() - start


def _find_cor(estimator: Any) -> Any:
    """Return the COR that is fitted; None for other methods."""
    if isinstance(estimator, CORDetector):
        return estimator.estimator
    return estimator if isinstance(estimator, COR) else None


def _describe_room(job: Job, encoder: TableEncoder, n_rows: int) -> dict[str, Any]:
    """Return blocks, and the bytes in memory and on disk."""
    if not job.plan.is_by_blocks:
        return {"n_blocks": 1, "memory_bytes": job.plan.needed, "disk_bytes": 0}
    cor, budget = _find_cor(job.estimator), Budget(job.plan.limit)
    row_bytes = 8 * len(encoder.numeric_names_)
    block_rows = budget.count_block_rows(row_bytes, cor.n_partitions)
    n_blocks = math.ceil(n_rows / block_rows)
    in_flight = min(block_rows, n_rows) * weigh_row(row_bytes, cor.n_partitions)
    n_labels = cor.n_partitions + len(encoder.categorical_names_)
    states = n_rows * (n_labels + _STATE_BYTES)
    is_on_disk = n_blocks > 1 and states > budget.for_states
    is_on_disk |= cor.checkpoint_dir is not None
    kept = min(states, budget.for_states)
    return {
        "n_blocks": n_blocks,
        "memory_bytes": BASE_BYTES + in_flight + kept,
        "disk_bytes": states + n_rows * _ANSWER_BYTES if is_on_disk else 0,
    }


def _count_passes(job: Job, encoder: TableEncoder) -> int:
    """Return how often the rows are read from the first to the last."""
    has_missing = bool(encoder.n_missing_)
    kind, _ = kind_of(job.data, f"'{job.data}'", job.form)
    n_numeric = len(encoder.numeric_names_)
    # To tell the columns apart, to take the rows to learn from, and to label all.
    n_passes = 3
    if kind in ("csv", "tsv") or job.on_error == "skip":
        n_passes += 1
    if encoder.scale_ == "robust":
        n_passes += _QUARTILE_PASSES * math.ceil(n_numeric / _QUARTILE_COLUMNS)
    if n_numeric:
        # To describe the clusters.
        n_passes += 1
    if has_missing and n_numeric:
        # Rows to learn from are taken again, from those that are complete.
        n_passes += 1
    if has_missing or encoder.id_column is not None:
        # Beside the labels go names and shares of known cells.
        n_passes += 1
    return n_passes
