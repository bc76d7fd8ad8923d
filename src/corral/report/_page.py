"""From a summary to one self-contained HTML page."""

import base64
import functools
import hashlib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from corral._visible import spell_out
from corral.report._charts import (
    draw_agreement,
    draw_map,
    gap_chart,
    history_chart,
    objective_chart,
    score_chart,
    told_chart,
)
from corral.report._words import say_share, say_spreads

# A page lists at most this many clusters, the largest first.
_MAX_CLUSTERS = 50

# What the criteria of a choice are called in the page, and in which order they stand;
# others go by their own names and come last.
_CRITERIA = {
    "told": "told apart",
    "border": "empty border",
    "stability": "stability",
    "mixed": "cells across a border",
    "smallest": "smallest cluster",
    "gap": "gap",
    "objective": "mean cost",
}

# In the order in which they stand in the page.
_SCRIPTS = ("table.js", "map.js", "start.js")

# What the script of the map needs.
_MAP_KEYS = (
    "rows",
    "ids",
    "x",
    "y",
    "labels",
    "nearest_labels",
    "scores",
    "names",
    "reasons",
    "is_category",
)


def to_html(summary: Mapping[str, Any]) -> str:
    """Write a summary as an HTML page that needs no other file.

    Parameters
    ----------
    summary : dict
        From :func:`corral.report.summarize`, or the same after a way through JSON.

    Returns
    -------
    html : str
    """
    clusters = sorted(summary["clusters"], key=lambda cluster: -cluster["size"])
    scores, row_map, agreement = (
        summary[key] for key in ("scores", "map", "agreement")
    )
    history = summary["objective_history"]
    script = _script()
    return (
        open_templates("corral.report")
        .get_template("page.html")
        .render(
            **summary,
            policy=write_policy(script),
            style=_read("style.css"),
            script=script,
            listed_clusters=clusters[:_MAX_CLUSTERS],
            with_features=any(cluster["features"] for cluster in clusters),
            with_reasons=any(row["reasons"] for row in summary["strangest"]),
            with_values=any(row["values"] for row in summary["strangest"]),
            are_numbered=all(
                row["id"] == str(row["row"]) for row in summary["strangest"]
            ),
            with_disagreement=any(
                row["disagreement"] is not None for row in summary["strangest"]
            ),
            with_stability=any(
                cluster["stability"] is not None for cluster in clusters
            ),
            with_confidence=summary["confidence"] is not None,
            criteria=_list_criteria(summary["selection"]),
            selection_charts=_draw_selection(summary["selection"]),
            map_drawing=None if row_map is None else draw_map(row_map),
            map_data=_map_data(summary),
            heat=None if agreement is None else draw_agreement(agreement),
            score_chart=score_chart(
                scores["ranks"], scores["values"], summary["run"]["n_outliers"]
            ),
            history_chart=history_chart(history) if history else None,
        )
    )


def _list_criteria(selection: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the criteria that are known of some listed candidate, with their names."""
    listed = [] if selection is None else selection["candidates"]
    known = {
        key
        for each in listed
        for key, value in each["criteria"].items()
        if value is not None
    }
    order = [*filter(known.__contains__, _CRITERIA), *sorted(known - _CRITERIA.keys())]
    return {key: _CRITERIA.get(key, key.replace("_", " ")) for key in order}


def _draw_selection(selection: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the charts of a choice that there are curves for."""
    draw = {"told": told_chart, "gaps": gap_chart, "objectives": objective_chart}
    return {
        name: function(selection)
        for name, function in draw.items()
        if selection is not None and selection[name]
    }


def _map_data(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    row_map = summary["map"]
    if row_map is None:
        return None
    data = {key: row_map[key] for key in _MAP_KEYS}
    return {**data, "has_clusters": bool(summary["clusters"])}


def _read(name: str) -> str:
    return files("corral.report").joinpath("static", name).read_text("utf-8")


def _script() -> str:
    """Return the scripts as one that leaves no name behind."""
    body = "\n".join(map(_read, _SCRIPTS))
    return f'(() => {{\n"use strict";\n{body}}})();'


def write_policy(script: str) -> str:
    """Return what a page may load: nothing but its own style and this script.

    Parameters
    ----------
    script : str

    Returns
    -------
    policy : str
    """
    digest = hashlib.sha256(script.encode()).digest()
    return (
        "default-src 'none'; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{base64.b64encode(digest).decode()}'; "
        "base-uri 'none'; form-action 'none'"
    )


def open_templates(package: str):
    """Return what fills the templates of a package with words that stay words.

    Parameters
    ----------
    package : str

    Returns
    -------
    environment : jinja2.Environment
        Shared: not to be changed.
    """
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "The HTML report needs jinja2. "
            'Install it with: pip install "corral[report]"'
        ) from error
    return _make_environment(package)


@functools.cache
def _make_environment(package: str):
    """Return what knows the templates; it keeps those that it has read."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        # Words of the data, wherever they stand.
        finalize=lambda value: spell_out(value) if type(value) is str else value,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # The filter tojson writes <, >, & and ' so that no script or tag can end early.
    environment.policies["json.dumps_kwargs"] = {
        "separators": (",", ":"),
        "allow_nan": False,
    }
    environment.filters.update(
        counted=_counted,
        number=_number,
        percent=say_share,
        figure=_figure,
        spreads=say_spreads,
    )
    return environment


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _number(value: float) -> str:
    """Return a number with four digits that count, for columns of numbers."""
    if isinstance(value, int):
        return f"{value:,}"
    if 1e3 <= abs(value) < 1e12:
        return f"{value:,.0f}"
    return f"{value:#.4g}"


def _figure(value: float) -> str:
    """Return a number with three digits that count and no empty ones, for sentences."""
    if 1e3 <= abs(value) < 1e12:
        return f"{value:,.0f}".replace("-", "\N{MINUS SIGN}")
    return f"{value:.3g}".replace("-", "\N{MINUS SIGN}")
