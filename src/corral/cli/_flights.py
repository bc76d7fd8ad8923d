"""``corral flights``: clusters of flights, odd flights, and what kind of odd."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from corral.cli._bar import progress
from corral.cli._call import command_line
from corral.cli._config import config_files, config_option
from corral.cli._files import (
    check_extras,
    print_json,
    print_rows,
)
from corral.cli._numbers import NumberRange
from corral.cli._options import (
    INPUT,
    OUTPUT,
    choose_one,
    force_option,
    format_option,
    json_option,
    labels_option,
    progress_option,
    raw_option,
)
from corral.cli._outputs import Outputs
from corral.cli._text import count, fact, listing

if TYPE_CHECKING:
    from corral import COR
    from corral.trajectories import OutlierKind, ResampledTracks

# The share of the flights that is set aside if nothing else is said.
_SHARE = 0.05

_COLUMNS = ("id", "time", "latitude", "longitude")

# What a byte of positions becomes, and how often the vectors of flights are held at
# once. Measured on CSV, Parquet and NPZ files of 1,000,000 positions of 2,000 flights,
# and on 40,000 and 120,000 flights of 6 positions, as 10, 50 and 200 points.
_GROWTH = 13
_COPIES_OF_VECTORS = 7


@click.command(
    epilog="""\b
Examples:
  corral flights tracks.csv --n-clusters 6 --n-outliers 200 --report out.html
  corral flights tracks.parquet --n-clusters 6 --contamination 0.01 \\
      --by time --points 20 --labels flights.csv
  corral flights tracks.csv --id-column leg --time-column seen --n-outliers 20
"""
)
@click.argument("tracks", type=INPUT)
@click.option(
    "--n-clusters",
    type=click.IntRange(min=1),
    default=8,
    metavar="K",
    show_default=True,
    help="Number of clusters.",
)
@click.option(
    "--n-outliers",
    type=click.IntRange(min=0),
    metavar="O",
    help="Number of flights to set aside.",
)
@click.option(
    "--contamination",
    type=NumberRange(0, 1, max_open=True),
    metavar="SHARE",
    show_default=str(_SHARE),
    help="Share of the flights to set aside.",
)
@click.option(
    "--points",
    type=click.IntRange(min=2),
    default=50,
    metavar="P",
    show_default=True,
    help="Number of points that stand for a track.",
)
@click.option(
    "--by",
    type=click.Choice(["path", "time"]),
    default="path",
    show_default=True,
    help="Whether the points are evenly spaced along the path or in time.",
)
@click.option(
    "--min-points",
    type=click.IntRange(min=2),
    default=5,
    metavar="N",
    show_default=True,
    help="Flights with fewer known positions are set apart and named.",
)
@click.option(
    "--max-gap",
    type=NumberRange(min=0, min_open=True),
    metavar="SECONDS",
    show_default="by the usual step",
    help="Steps that take longer are gaps, which are bridged and reported.",
)
@click.option("--id-column", metavar="NAME", help="Column that names the flight.")
@click.option("--time-column", metavar="NAME", help="Column with the time.")
@click.option("--latitude-column", metavar="NAME", help="Column with the latitude.")
@click.option("--longitude-column", metavar="NAME", help="Column with the longitude.")
@format_option
@click.option(
    "--seed",
    type=click.IntRange(min=0, max=2**32 - 1),
    default=0,
    metavar="N",
    show_default=True,
    help="Seed of all random choices.",
)
@labels_option
@raw_option
@click.option("--report", type=OUTPUT, help="File for the maps, a page of HTML.")
@force_option
@config_option()
@json_option
@progress_option
@click.pass_context
def flights(
    ctx: click.Context,
    tracks: str,
    labels: Path | None,
    raw_text: bool,
    report: Path | None,
    force: bool,
    as_json: bool,
    show: bool | None,
    form: str | None,
    **options: Any,
) -> None:
    """Find odd flights among tracks.

    TRACKS is a table (CSV, TSV, Parquet or Arrow) with a row per position: the flight,
    the time, the latitude and the longitude, in columns that are known by their usual
    names; or a .npz file with track_t, track_lat, track_lon and offsets.

    Each track becomes a vector of points evenly spaced along it. Flights are clustered,
    those that fit nowhere are set aside, and each of these is called out of range,
    partial, mixed, or of unusual shape, with the reasons.

    Without --labels, the labels go to standard output and the summary to standard
    error. Label -1 is an outlier; flights that were set apart have none.
    """
    paths = {"--labels": labels, "--report": report}
    outputs = Outputs(paths, [tracks, *config_files(ctx)], force=force, form=form)
    check_extras(report=report is not None)
    choose_one(ctx, options, "n_outliers", "contamination")
    with progress(show) as bar:
        bar.stage("starting")
        from corral import COR
        from corral.cli._plan import check_room
        from corral.trajectories import (
            classify_outliers,
            flights_to_html,
            read_tracks,
            resample_tracks,
            summarize_flights,
        )

        remedy = "Take fewer flights or positions."
        check_room(tracks, form, "flights", remedy, _GROWTH)
        bar.stage(f"reading {tracks}")
        columns = {f"{name}_column": options[f"{name}_column"] for name in _COLUMNS}
        read = read_tracks(tracks, format=form, **columns)
        _check_vectors(tracks, len(read), options["points"])
        bar.stage("resampling tracks")
        resampled = resample_tracks(
            read,
            options["points"],
            by=options["by"],
            min_points=options["min_points"],
            max_gap=options["max_gap"],
        )
        model = COR(
            _check_n_clusters(options["n_clusters"], resampled),
            random_state=options["seed"],
            **_read_share(options),
        )
        bar.stage("fitting COR")
        model.fit(resampled.X)
        bar.stage("naming kinds of outliers")
        kinds = classify_outliers(resampled, model.labels_, model.nearest_labels_)
        page = ""
        if report is not None:
            bar.stage("drawing maps")
            page = flights_to_html(
                summarize_flights(resampled, model, kinds, command=command_line(ctx))
            )
        rows = _label_columns(resampled, model, kinds)
        # All is known before the first file is written.
        bar.stage("writing")
        if labels is not None:
            outputs.write_labels(rows, raw_text=raw_text)
        if report is not None:
            outputs.write_text("--report", page)

    facts = {
        **_facts(resampled, model, kinds),
        "seed": options["seed"],
        "files": outputs.files,
    }
    if as_json:
        print_json(facts if labels else facts | {"labels": rows})
    else:
        click.echo(_words(facts), err=labels is None)
        if labels is None:
            print_rows(rows, raw_text=raw_text)
    outputs.check_names()


def _read_share(options: dict[str, Any]) -> dict[str, Any]:
    """Return how many flights to set aside, as a parameter of COR."""
    if options["n_outliers"] is not None:
        return {"n_outliers": options["n_outliers"]}
    given = options["contamination"]
    return {"contamination": _SHARE if given is None else given}


def _check_vectors(data: str, n_flights: int, n_points: int) -> None:
    """Refuse flights whose vectors memory cannot hold; short ones become longer."""
    from corral._memory import need_memory

    # Three coordinates of 8 bytes each.
    need_memory(
        _COPIES_OF_VECTORS * 24 * n_points * n_flights,
        f"'{data}', whose {n_flights:,} flights become {n_points} points each,",
        f"Take fewer flights, or lower --points (now {n_points}).",
    )


def _check_n_clusters(n_clusters: int, resampled: "ResampledTracks") -> int:
    if n_clusters > len(resampled):
        raise ValueError(
            f"--n-clusters {n_clusters} should be at most the number of flights, "
            f"{len(resampled):,}. Ask for fewer clusters."
        )
    return n_clusters


def _label_columns(
    resampled: "ResampledTracks", model: "COR", kinds: list["OutlierKind"]
) -> dict[str, list]:
    """Return the columns of the labels file; flights that were set apart come last."""
    named = {each.row: each for each in kinds}
    rows = range(len(resampled))
    apart: list[Any] = [None] * len(resampled.skipped)
    return {
        "id": resampled.ids + [each.id for each in resampled.skipped],
        "label": model.labels_.tolist() + apart,
        "nearest_label": model.nearest_labels_.tolist() + apart,
        "outlier_score": model.outlier_scores_.tolist() + apart,
        "kind": [named[row].kind if row in named else "" for row in rows]
        + ["set apart"] * len(apart),
        "reasons": [
            "; ".join(named[row].reasons) if row in named else "" for row in rows
        ]
        + [each.reason for each in resampled.skipped],
        "length_km": resampled.length_km.round(3).tolist() + apart,
        "jump_km": resampled.jump_km.round(3).tolist() + apart,
        "gap_share": resampled.gap_share.round(4).tolist() + apart,
    }


def _facts(
    resampled: "ResampledTracks", model: "COR", kinds: list["OutlierKind"]
) -> dict[str, Any]:
    sizes = Counter(model.labels_[model.labels_ >= 0].tolist())
    ranked = sorted(kinds, key=lambda each: -model.outlier_scores_[each.row])
    return {
        "n_flights": len(resampled),
        "n_positions": len(resampled.tracks.time),
        "n_points": resampled.latitude.shape[1],
        "by": resampled.by,
        "dropped": dict(resampled.n_dropped),
        "n_with_gaps": int((resampled.gap_share > 0.1).sum()),
        "set_apart": {each.id: each.reason for each in resampled.skipped},
        "clusters": [
            {"label": label, "n_flights": sizes[label]} for label in sorted(sizes)
        ],
        "n_outliers": len(kinds),
        "kinds": dict(Counter(each.kind for each in kinds).most_common()),
        "strangest": [
            {"id": each.id, "kind": each.kind, "reasons": each.reasons}
            for each in ranked[:5]
        ],
    }


def _words(facts: dict[str, Any]) -> str:
    way = "along the path" if facts["by"] == "path" else "in time"
    dropped, apart = facts["dropped"], facts["set_apart"]
    sizes = [each["n_flights"] for each in facts["clusters"]]
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in facts["kinds"].items())
    aside = count(facts["n_outliers"], "flight")
    lines = [
        fact(
            "data",
            f"{count(facts['n_flights'], 'flight')} with "
            f"{count(facts['n_positions'], 'position')}, {facts['n_points']} points "
            f"each {way}",
        )
    ]
    if any(dropped.values()):
        lines.append(
            fact(
                "left out",
                f"{count(dropped['unknown'], 'position')} without place or time, "
                f"{dropped['same time']:,} with a time that was there before",
            )
        )
    if facts["n_with_gaps"]:
        gaps = f"{count(facts['n_with_gaps'], 'flight')} on over a tenth of the way"
        lines.append(fact("gaps", gaps))
    if apart:
        names = listing(apart)
        lines.append(fact("set apart", f"{count(len(apart), 'flight')}: {names}"))
    lines.append(fact("clusters", f"{len(sizes)}, with {listing(sizes, 20)} flights"))
    lines.append(fact("outliers", f"{aside}: {kinds}" if kinds else aside))
    for position, each in enumerate(facts["strangest"]):
        text = f"{each['id']}: {each['kind']}, {each['reasons'][0]}"
        lines.append(fact("" if position else "strangest", text))
    lines += [fact(name, path) for name, path in facts["files"].items()]
    return "\n".join(lines)
