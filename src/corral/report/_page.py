"""From a summary to one self-contained HTML page."""

from collections.abc import Mapping
from typing import Any

from corral.report._charts import history_chart, score_chart

# A page lists at most this many clusters, the largest first.
_MAX_CLUSTERS = 50


def to_html(summary: Mapping[str, Any]) -> str:
    """Write a summary as an HTML page that needs no other file and no script.

    Parameters
    ----------
    summary : dict
        From :func:`corral.report.summarize`, or the same after a way through JSON.

    Returns
    -------
    html : str
    """
    clusters = sorted(summary["clusters"], key=lambda cluster: -cluster["size"])
    scores = summary["scores"]
    return (
        _environment()
        .get_template("page.html")
        .render(
            **summary,
            listed_clusters=clusters[:_MAX_CLUSTERS],
            with_features=any(cluster["features"] for cluster in clusters),
            score_chart=score_chart(
                scores["ranks"], scores["values"], summary["run"]["n_outliers"]
            ),
            history_chart=history_chart(summary["objective_history"]),
        )
    )


def _environment():
    try:
        import jinja2
    except ImportError as error:
        raise ImportError(
            "The HTML report needs jinja2. "
            'Install it with: pip install "corral[report]"'
        ) from error
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("corral.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        counted=_counted, number=_number, percent=_percent, signed=_signed
    )
    return environment


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _number(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if 1e3 <= abs(value) < 1e12:
        return f"{value:,.0f}"
    return f"{value:#.4g}"


def _percent(share: float) -> str:
    return "under 0.1%" if 0 < share < 0.001 else f"{share:.1%}"


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "\N{MINUS SIGN}")
