"""What is raised when a piece of a source cannot be read."""


class UnreadableBlockError(ValueError):
    """A file, row group, line or block cannot be read; the message names it."""
