"""Texts of the user's data, safe to show: what would be obeyed is spelled out."""

import re

# Controls, which a terminal obeys, but for tabs and line ends; what turns the order of
# the letters that follow, up to an end that need not come; and halves of characters,
# which no file may hold.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def spell_out(text: str) -> str:
    r"""Return a text in which characters that would be obeyed can be seen.

    Parameters
    ----------
    text : str

    Returns
    -------
    text : str
        Safe for a terminal, and for the words of a page once HTML is escaped.

    Examples
    --------
    >>> from corral._visible import spell_out
    >>> print(spell_out("red \x1b[31m, turned \u202e"))
    red \x1b[31m, turned \u202e
    """
    return _OBEYED.sub(lambda found: ascii(found[0])[1:-1], text)


def spell_out_json(text: str) -> str:
    """Return JSON that says the same without characters that would be obeyed.

    Parameters
    ----------
    text : str
        JSON, in which such characters stand in texts alone.

    Returns
    -------
    text : str
    """
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
