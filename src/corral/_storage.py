"""Where the rows of a fit were, and what is kept of them."""

from dataclasses import dataclass

from corral._encoded import EncodedRows
from corral._row_blocks import RowBlocks


@dataclass(frozen=True)
class Storage:
    """Where a fit kept what it knows of rows, which changes no result.

    Attributes
    ----------
    n_blocks : int
        Number of blocks that rows were read in.
    states : {"memory", "disk", "workers"}
        Where the codes of the rows were between passes.
    codes : {"merged", "hash ranges"}
        How distinct codes were counted: brought to one place, or, where they are very
        many, one range of their hashes after the other.
    skipped : list of str
        Sentences on rows that were left out because they cannot be read.
    """

    n_blocks: int
    states: str
    codes: str
    skipped: list[str]


def describe_storage(rows: RowBlocks, encoded: EncodedRows) -> Storage:
    """Return where a fit kept what it knows of rows."""
    return Storage(
        n_blocks=len(rows.sizes),
        states=encoded.states.place,
        codes="merged" if encoded.census.n_ranges == 1 else "hash ranges",
        skipped=list(rows.skipped),
    )
