"""Numbers and cells as words, short and safe to show."""

import datetime
import math

from corral._visible import spell_out

# Longer names and cells are cut.
_MAX_LETTERS = 80


def clip(value, max_letters: int = _MAX_LETTERS) -> str:
    """Return a value as a text that is not too long for a page."""
    text = spell_out(str(value))
    if len(text) <= max_letters:
        return text
    return text[: max_letters - 1] + "\N{HORIZONTAL ELLIPSIS}"


def show_value(value) -> str:
    """Return a cell of the user's table as a short text; a dash where it is missing."""
    if value is None or value != value:
        return "\N{EN DASH}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and math.isfinite(value):
        return _show_float(value)
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return str(value.date())
    return clip(value)


def _show_float(value: float) -> str:
    """Return a number with four digits that count, and all before the point."""
    if value and not 1e-4 <= abs(value) < 1e15:
        return f"{value:.4g}"
    n_before = math.floor(math.log10(abs(value))) + 1 if value else 1
    text = f"{value:.{max(4 - n_before, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def say_number(name: str, difference: float, whole: str, value: str | None) -> str:
    """Say how far a number is from what is usual.

    Parameters
    ----------
    name : str
    difference : float
        In spreads, signed.
    whole : str
        What it is compared with, such as "its cluster".
    value : str or None
        The user's own value.
    """
    side = "above" if difference > 0 else "below"
    cell = "" if value is None else f" ({value})"
    return f"{name} is {say_spreads(difference)} {side} {whole}{cell}"


def say_spreads(difference: float) -> str:
    """Return a difference in spreads as words, without its sign."""
    size = abs(difference)
    if size >= 1e6:
        return "over a million spreads"
    return f"{size:.1f} spreads" if size < 9.95 else f"{size:,.0f} spreads"


def say_category(name: str, share: float | None, whole: str) -> str:
    """Say how rare a category is; ``share`` is its share there, None if unknown."""
    if share is None:
        return f"{name} is rare in {whole}"
    if share == 0:
        return f"{name} does not occur elsewhere in {whole}"
    return f"{name} is rare in {whole} ({say_share(share)} of its rows)"


def say_share(share: float) -> str:
    """Return a share as a percentage."""
    if 0 < share < 0.001:
        return "under 0.1%"
    return f"{share:.1%}" if share < 0.0995 else f"{share:.0%}"
