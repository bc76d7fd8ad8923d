"""From the summary of flights to one self-contained HTML page."""

import base64
import hashlib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any


def flights_to_html(summary: Mapping[str, Any]) -> str:
    """Write a summary as an HTML page that needs no other file and no network.

    Parameters
    ----------
    summary : dict
        From :func:`summarize_flights`, or the same after a way through JSON.

    Returns
    -------
    html : str
    """
    own = files("corral.trajectories") / "templates"
    # The same look, and the same table, as the report of any other data.
    shared = files("corral.report") / "static"
    script = _read(shared / "table.js") + _read(own / "flights.js")
    style = _read(shared / "style.css") + _read(own / "flights.css")
    return (
        _environment()
        .get_template("flights.html")
        .render(**summary, style=style, script=script, policy=_policy(script))
    )


def _read(resource) -> str:
    return resource.read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """Allow the page's own script and style, and nothing from elsewhere."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
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
        loader=jinja2.PackageLoader("corral.trajectories"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(counted=_counted, number=_number, percent=_percent)
    return environment


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _percent(share: float) -> str:
    return "under 0.1%" if 0 < share < 0.001 else f"{share:.1%}"
