"""From the summary of flights to one self-contained HTML page."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from corral.report._page import open_templates, write_policy


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
        open_templates("corral.trajectories")
        .get_template("flights.html")
        .render(**summary, style=style, script=script, policy=write_policy(script))
    )


def _read(resource) -> str:
    return resource.read_text(encoding="utf-8")
