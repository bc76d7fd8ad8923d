"""Tracks from files: tables with a row per position, and ``.npz`` with ``offsets``."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from corral.tables._broken import Broken
from corral.tables._columns import family_of
from corral.tables._npz import Npz
from corral.trajectories._tracks import (
    Tracks,
    check_tracks,
    group_numbered,
    read_offsets,
)

if TYPE_CHECKING:
    import pyarrow as pa

# Names of columns, without case, spaces and signs; the first that is there is taken.
_KNOWN = {
    "id": (
        "flightid", "trackid", "trajectoryid", "trajid", "tripid", "flight", "track",
        "trajectory", "flightnumber", "flightnum", "callsign", "ident", "icao24",
        "icao", "hex", "registration", "tail", "mmsi", "id", "name",
    ),
    "time": (
        "time", "timestamp", "datetime", "date", "unixtime", "timeutc", "utc", "ts",
        "t", "timeposition", "lastposupdate", "basedatetime", "epoch", "seconds",
    ),
    "latitude": ("latitude", "lat", "latdeg", "latitudedeg", "y"),
    "longitude": ("longitude", "lon", "lng", "long", "londeg", "longitudedeg", "x"),
}  # fmt: skip

# Unix times above these are milli-, micro- and nanoseconds: as seconds, they would lie
# thousands of years ahead.
_UNITS = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))


# Arrays of a NPZ file of tracks, and those that it may have.
_WANTED = ("track_t", "track_lat", "track_lon", "offsets")
_NAMES = ("callsign", "icao24")


def read_tracks(
    path: str | Path,
    *,
    format: str | None = None,
    id_column: str | None = None,
    time_column: str | None = None,
    latitude_column: str | None = None,
    longitude_column: str | None = None,
) -> Tracks:
    """Read tracks from a file.

    A table (CSV, TSV, Parquet or Arrow, packed by gzip or zstd or not) has one row per
    position, in any order, with the flight, the time, the latitude and the longitude.
    Columns are known by their usual names (``flight_id``, ``callsign``, ``icao24``,
    ``timestamp``, ``lat``, ``lon`` ...), whatever else is there. Times are numbers
    (seconds, or Unix milli-, micro- or nanoseconds) or ISO 8601 texts. A ``.npz`` file
    has the arrays ``track_t``, ``track_lat`` and ``track_lon``, cut by ``offsets``, and
    may have ``callsign`` and ``icao24``.

    Parameters
    ----------
    path : str or Path
        The file; "-" is standard input.
    format : str, default=None
        Form of the file, as in :func:`corral.tables.read_table`, if its name does not
        tell.
    id_column, time_column, latitude_column, longitude_column : str, default=None
        Names of the columns of a table. None means the usual names. Flights are called
        as CSV has them, whatever they could be read as: 007 is not 7.

    Returns
    -------
    tracks : Tracks
    """
    if format == "npz" or (format is None and _is_npz(path)):
        return _read_npz(Path(path))
    asked = {
        "id": id_column,
        "time": time_column,
        "latitude": latitude_column,
        "longitude": longitude_column,
    }
    table = _load_table(path, format, id_column)
    columns = _choose_columns(table.column_names, asked)
    return group_numbered(
        *_number_flights(table, columns["id"]),
        _times(table, columns["time"]),
        _numbers(table, columns["latitude"]),
        _numbers(table, columns["longitude"]),
    )


def _is_npz(path: str | Path) -> bool:
    return Path(path).suffix.lower() == ".npz"


def _read_npz(path: Path) -> Tracks:
    if not path.is_file():
        raise FileNotFoundError(f"'{path}' is not there.")
    try:
        with Npz(path) as file:
            missing = [name for name in _WANTED if name not in file]
            if missing:
                raise Broken(
                    f"has no array {_quoted(missing)}. A file of tracks has "
                    f"{_quoted(_WANTED)}."
                )
            known = [name for name in (*_WANTED, *_NAMES) if name in file]
            arrays = {name: file[name] for name in known}
        _check_arrays(arrays)
    except Broken as error:
        raise ValueError(f"'{path}' {error}") from error
    n_positions = len(arrays["track_t"])
    offsets = read_offsets(
        arrays["offsets"], n_positions, f"The array 'offsets' of '{path}'"
    )
    for name in (each for each in _NAMES if each in arrays):
        if arrays[name].shape != (len(offsets) - 1,):
            raise ValueError(
                f"'{path}' has an array {name!r} of shape {arrays[name].shape}. It "
                f"should have a name for each of the {len(offsets) - 1:,} tracks."
            )
        if arrays[name].dtype.kind not in "SUiu":
            raise ValueError(
                f"'{path}' has an array {name!r} of {arrays[name].dtype}. It should "
                "hold texts, or whole numbers."
            )
    return check_tracks(
        Tracks(
            _npz_ids(arrays, len(offsets) - 1),
            arrays["track_t"].astype(np.float64),
            arrays["track_lat"].astype(np.float64),
            arrays["track_lon"].astype(np.float64),
            offsets,
        )
    )


def _check_arrays(arrays: dict[str, np.ndarray]) -> None:
    """Refuse arrays of which no tracks can be made."""
    n_positions = arrays["track_t"].size
    for name in _WANTED:
        each = arrays[name]
        if each.ndim != 1 or each.dtype.kind not in "fiu" or not each.size:
            raise Broken(
                f"has an array {name!r} of {each.dtype} and shape {each.shape}. It "
                "should be a list of numbers."
            )
        if name != "offsets" and each.size != n_positions:
            raise Broken(
                f"has {each.size:,} cells in {name!r}, but {n_positions:,} in "
                "'track_t'. They should have one for each position."
            )


def _npz_ids(arrays: dict[str, np.ndarray], n_tracks: int) -> list[str]:
    """Return callsigns, else addresses, else numbers, each made to occur once."""
    blank = [""] * n_tracks
    callsigns = [_as_name(each) for each in arrays.get("callsign", blank)]
    addresses = [_as_name(each) for each in arrays.get("icao24", blank)]
    names = [
        callsign or address or f"track {number}"
        for number, (callsign, address) in enumerate(
            zip(callsigns, addresses, strict=True)
        )
    ]
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return unique


def _as_name(value: Any) -> str:
    """Return a value as the name of a flight, without the spaces around it."""
    # Many writers keep texts as bytes.
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return text.strip()


def _load_table(
    source: str | Path, form: str | None, id_column: str | None
) -> "pa.Table":
    from corral.tables._read import read_named

    def choose_texts(names: list[str]) -> list[str]:
        return [id_column or _find_known(names, "id")]

    table = read_named(source, form, choose_texts)
    if not hasattr(table, "column_names"):
        raise ValueError(
            f"'{source}' holds a matrix. Tracks are a table with a row per position."
        )
    return table


def _choose_columns(
    names: Sequence[str], asked: dict[str, str | None]
) -> dict[str, str]:
    chosen: dict[str, str] = {}
    missing = []
    for role, wanted in asked.items():
        if wanted is not None and wanted not in names:
            raise ValueError(
                f"There is no column '{wanted}'. The columns are {_quoted(names)}."
            )
        chosen[role] = wanted or _find_known(names, role)
        if not chosen[role]:
            missing.append("flight" if role == "id" else role)
    if missing:
        options = ", ".join(
            f"--{'id' if each == 'flight' else each}-column" for each in missing
        )
        raise ValueError(
            f"No column was recognised for: {', '.join(missing)}. The columns are "
            f"{_quoted(names)}. Name them with {options}."
        )
    return chosen


def _find_known(names: Sequence[str], role: str) -> str:
    """Return the column that has a usual name of its role; empty if none has."""
    plain = {_plain(name): name for name in reversed(names)}
    return next((plain[each] for each in _KNOWN[role] if each in plain), "")


def _plain(name: str) -> str:
    return "".join(each for each in name.lower() if each.isalnum())


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _number_flights(table: "pa.Table", name: str) -> tuple[list[str], np.ndarray]:
    """Return the flights in the order of their first rows, and that of each row."""
    import pyarrow as pa

    column = table[name]
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise ValueError(
            f"Column '{name}' has no flight in row {row + 1}. Every position needs one."
        )
    try:
        encoded = column.combine_chunks().dictionary_encode()
        # Names that differ in the spaces around them are one.
        names = [_as_name(each) for each in encoded.dictionary.to_pylist()]
    except (pa.ArrowException, LookupError) as error:
        # Lists and structs, and moments in a time zone that is not known here.
        raise ValueError(
            f"Column '{name}' is of the type {str(column.type)[:60]}, which cannot "
            "name flights. It should hold texts or whole numbers. Name another column "
            "with --id-column."
        ) from error
    numbers = {each: number for number, each in enumerate(dict.fromkeys(names))}
    merged = np.array([numbers[each] for each in names], dtype=np.intp)
    return list(numbers), merged[encoded.indices.to_numpy()]


def _numbers(table: "pa.Table", name: str) -> np.ndarray:
    """Return a column as float64; empty cells are NaN."""
    import pyarrow as pa

    column = table[name]
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        # Not safe: nanoseconds since 1970 have more digits than float64.
        return column.cast(pa.float64(), safe=False).to_numpy()
    return _parse(column.to_pylist(), float, name, "a number")


def _times(table: "pa.Table", name: str) -> np.ndarray:
    """Return a column as seconds; empty cells are NaN."""
    import pyarrow as pa

    column = table[name]
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        # In UTC, whatever the unit and the zone of the column.
        return _ticks(column, pa.timestamp("us", getattr(column.type, "tz", None)))
    if pa.types.is_time(column.type):
        return _ticks(column, pa.time64("us"))
    if family_of(column.type) != "text":
        seconds = _numbers(table, name)
    else:
        texts = column.to_pylist()
        try:
            seconds = _parse(texts, float, name, "a number")
        except ValueError:
            return _parse(texts, _seconds, name, "a number or an ISO time")
    typical = np.nanmedian(np.abs(seconds)) if np.isfinite(seconds).any() else 0
    return seconds * next((unit for least, unit in _UNITS if typical > least), 1.0)


def _ticks(column: "pa.ChunkedArray", kind: "pa.DataType") -> np.ndarray:
    """Return seconds by way of a type that counts microseconds."""
    import pyarrow as pa

    ticks = column.cast(kind, safe=False).cast(pa.int64())
    return 1e-6 * ticks.cast(pa.float64(), safe=False).to_numpy()


def _seconds(text: str) -> float:
    with suppress(ValueError):
        return float(text)
    moment = datetime.fromisoformat(text)
    # Without a zone, times are taken as UTC: only differences count.
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _parse(values: list[Any], convert, name: str, wanted: str) -> np.ndarray:
    parsed = np.full(len(values), np.nan)
    for row, value in enumerate(values):
        if value is None:
            continue
        try:
            parsed[row] = convert(str(value).strip())
        except ValueError:
            raise ValueError(
                f"Column '{name}' has '{value}' in row {row + 1}, which should be "
                f"{wanted}."
            ) from None
    return parsed
