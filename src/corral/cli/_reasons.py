"""Why rows are strange, as plain dicts; and the dicts in words."""

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from scipy import sparse

from corral._blocks import cut_rows
from corral._decision import find_cut
from corral._detector import unwrap
from corral.cli._errors import near_names
from corral.cli._findings import are_of_fit, has_clusters
from corral.cli._text import one_line
from corral.tables._arrow import need_arrow
from corral.tables._pieces import HeldRows, is_source
from corral.tables._rows import read_rows
from corral.tables._write import unescape_formula

_NUMBERS = (
    "score",
    "label",
    "nearest_label",
    "label_cost",
    "rarity_cost",
    "distance_cost",
    "disagreement",
)

# Differences that are told; smaller ones would be shown as 0.0.
_LEAST = 0.05

# Rows that are searched for a name at once, and rows among whose names a near one is
# sought.
_BLOCK_ROWS = 2**17
_FEW_ROWS = 2000


def explain_rows(
    model: Any, table: Any, rows: Sequence[int], ids: Sequence[str], n_features: int
) -> list[dict[str, Any]]:
    """Return the reasons of some rows of a table.

    Parameters
    ----------
    model : TableModel
        Fitted.
    table : pyarrow.Table, csr_array, ndarray or source
    rows : sequence of int
        Row numbers.
    ids : sequence of str
        Names of rows.
    n_features : int

    Returns
    -------
    reasons : list of dict
        JSON-ready.
    """
    source = table if is_source(table) else HeldRows(table)
    n_rows = source.shape[0]
    chosen = _choose(model.encoder_, table, n_rows, rows, ids)
    # In the order of the data, against which some sources cannot be read.
    found = {
        row: (source.read(row, row + 1), model.encoder_.ids(table, row, row + 1)[0])
        for row in sorted(chosen)
    }
    part = stack_rows([found[row][0] for row in chosen])
    explained = nw.from_native(model.explain(part, n_features=n_features))
    core = unwrap(model.estimator_)
    return [
        {
            "row": row,
            "id": found[row][1],
            "cut": find_cut(core),
            "n_partitions": getattr(core, "n_partitions_", None),
            # Methods without partitions have a score and no costs.
            **{name: reason[name] for name in _NUMBERS if name in reason},
            "label": _label_of(model, row, n_rows, reason),
            "features": _features(reason, n_features, model.encoder_, part, place),
        }
        for place, (row, reason) in enumerate(
            zip(chosen, explained.rows(named=True), strict=True)
        )
    ]


def _label_of(model: Any, row: int, n_rows: int, reason: dict[str, Any]) -> int:
    """Return the label; of a row of the fit that ties at the cut, that of the fit."""
    label = reason["label"]
    if not has_clusters(model):
        label = -1 if label == -1 else 1
    if n_rows != len(model.labels_):
        return label
    columns = {"label": [label], "outlier_score": [reason["score"]]}
    if "nearest_label" in reason:
        columns["nearest_label"] = [reason["nearest_label"]]
    is_of_fit = are_of_fit(model, columns, slice(row, row + 1))
    return int(model.labels_[row]) if is_of_fit else label


def _choose(
    encoder: Any, table: Any, n_rows: int, rows: Sequence[int], ids: Sequence[str]
) -> list[int]:
    """Return row numbers, each once."""
    wrong = [row for row in rows if row >= n_rows]
    if wrong:
        raise ValueError(
            f"--row {wrong[0]} is not there: the data has {n_rows:,} rows, from 0 "
            f"to {n_rows - 1}."
        )
    chosen = list(rows)
    # As the data has them, or else as a labels file does.
    plain = {name: unescape_formula(name) for name in ids}
    places = _find_names(encoder, table, n_rows, [*ids, *plain.values()])
    for name in ids:
        found = places[name] or places[plain[name]]
        if not found:
            # Of many rows, the names that are near are not looked for.
            known = encoder.ids(table) if n_rows <= _FEW_ROWS else []
            hint = near_names(name, known) if known else ""
            raise ValueError(f"--id {name!r} is not there. {hint}".rstrip())
        chosen += found
    return list(dict.fromkeys(chosen))


def _find_names(
    encoder: Any, table: Any, n_rows: int, names: Sequence[str]
) -> dict[str, list[int]]:
    """Return the rows that have each of these names."""
    found: dict[str, list[int]] = {name: [] for name in names}
    if not found:
        return {}
    for rows in cut_rows(n_rows, _BLOCK_ROWS):
        ids = encoder.ids(table, rows.start, rows.stop)
        for row, name in enumerate(ids, start=rows.start):
            if name in found:
                found[name].append(row)
    return found


def stack_rows(blocks: list[Any]) -> Any:
    """Return rows one below the other.

    Parameters
    ----------
    blocks : list of pyarrow.Table, csr_array or ndarray

    Returns
    -------
    rows : pyarrow.Table, csr_array or ndarray
    """
    parts = [read_rows(block) for block in blocks]
    if sparse.issparse(parts[0]):
        return sparse.csr_array(sparse.vstack(parts))
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return need_arrow().concat_tables(parts)


def _features(
    reason: dict[str, Any], n_features: int, encoder: Any, part: Any, place: int
) -> list[dict[str, Any]]:
    """Return what sets a row apart, with the user's own values."""
    found = []
    for rank in range(1, n_features + 1):
        name = reason[f"feature_{rank}"]
        if name is None:
            break
        column = _column_of(name, encoder)
        found.append(
            {
                "feature": name,
                "is_category": column != name or name in encoder.categorical_names_,
                "value": encoder.format_value(column, part, place),
                "difference": reason[f"difference_{rank}"],
            }
        )
    return found


def _column_of(name: str, encoder: Any) -> str:
    """Return the column of a feature; a category is named "column = value"."""
    if name in encoder.numeric_names_:
        return name
    columns = encoder.categorical_names_
    return next((each for each in columns if name.startswith(f"{each} = ")), name)


def in_words(reason: dict[str, Any]) -> str:
    """Return the reasons of a row as text.

    Parameters
    ----------
    reason : dict
        Of ``explain_rows``.

    Returns
    -------
    text : str
    """
    row, name = reason["row"], reason["id"]
    cluster = reason.get("nearest_label")
    place = "the rows that are kept" if cluster is None else f"cluster {cluster}"
    lines = [
        f"Row {row}" + ("" if name == str(row) else f", {one_line(name)}"),
        f"  {_verdict(reason)}",
    ]
    if cluster is not None:
        lines.append(f"  Its nearest cluster is {cluster}{_disagreement(reason)}.")
    if "label_cost" in reason:
        lines.append(f"  {_sum(reason)}")
    told = [each for each in reason["features"] if abs(each["difference"]) >= _LEAST]
    if told:
        lines.append(f"  What sets it apart, in spreads of {place}:")
        width = max(len(one_line(each["feature"])) for each in told)
        lines += [f"    {_feature_words(each, width)}" for each in told]
    return "\n".join(lines)


def _verdict(reason: dict[str, Any]) -> str:
    score, cut = reason["score"], reason["cut"]
    if cut is None:
        return f"It is kept, as all rows are: its score is {score:.2f}."
    if reason["label"] == -1 and score <= cut:
        return (
            f"It is set aside: its score {score:.2f} is at the cut, and ties with "
            "that of a row that is kept."
        )
    if reason["label"] == -1:
        return f"It is set aside: its score {score:.2f} is above the cut, {cut:.2f}."
    return f"It is kept: its score {score:.2f} is not above the cut, {cut:.2f}."


def _disagreement(reason: dict[str, Any]) -> str:
    """Return how many partitions see the row elsewhere, counted where all know it."""
    if "disagreement" not in reason:
        return ""
    share, total = reason["disagreement"], reason["n_partitions"]
    apart = share * total
    if abs(apart - round(apart)) < 1e-6:
        return f"; {round(apart)} of {total} partitions disagree"
    return f"; {share:.0%} of the partitions that know it disagree"


def _sum(reason: dict[str, Any]) -> str:
    # The largest part takes what rounding leaves, so that what is shown adds up.
    total = round(reason["score"], 2)
    names = ("label_cost", "rarity_cost", "distance_cost")
    parts = {name: round(reason[name], 2) for name in names}
    largest = max(names, key=parts.__getitem__)
    parts[largest] += total - sum(parts.values())
    label, rarity, distance = parts.values()
    return (
        f"Its cost adds up: labels {label:.2f} + rarity {rarity:.2f} + distance "
        f"{distance:.2f} = {total:.2f}."
    )


def _feature_words(feature: dict[str, Any], width: int) -> str:
    name, difference = one_line(feature["feature"]), feature["difference"]
    if feature["is_category"]:
        return f"{name:<{width}}  as rare as {abs(difference):.1f} spreads"
    side = "above" if difference > 0 else "below"
    return (
        f"{name:<{width}}  {abs(difference):.1f} {side} the mean, at "
        f"{one_line(feature['value'])}"
    )
