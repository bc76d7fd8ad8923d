"""Why a file cannot be read."""


class Broken(ValueError):
    """Why a file cannot be read, as the end of a sentence that begins with its name."""


NOT_UTF8 = "is not UTF-8 text. Save it as UTF-8."

# What to do about a file that is damaged.
MEND = "Get it again, or save it anew."


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says, shortened and without a full stop.

    Messages of libraries may hold what the file holds.
    """
    lines = str(error).strip().splitlines()
    return lines[0][:_MOST_TOLD].rstrip(". ") if lines else type(error).__name__


_MOST_TOLD = 300


def say_broken(error: BaseException) -> Broken:
    """Return that a file is damaged, with what a library says of it."""
    return Broken(f"is broken or cut off: {first_line(error)}. {MEND}")
