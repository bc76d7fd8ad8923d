"""What the tests of sources share: rows in all ranges, and files made from tables."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest


def as_list(block):
    """Return a block of any kind as lists."""
    if isinstance(block, pa.Table):
        return block.to_pydict()
    return (block if isinstance(block, np.ndarray) else block.toarray()).tolist()


@pytest.fixture
def read_in_ranges():
    """Check that any ranges, in order and not, equal reading all at once."""

    def read_in_ranges(source, expected, seed=0):
        n_samples = source.shape[0]
        rng = np.random.default_rng(seed)
        ranges = np.sort(rng.integers(0, n_samples + 1, size=(40, 2)), axis=1).tolist()
        cuts = [0, *np.unique(rng.integers(0, n_samples, size=6)).tolist(), n_samples]
        in_order = list(zip(cuts[:-1], cuts[1:], strict=True))
        for start, stop in [(0, n_samples), *in_order, *ranges, *in_order]:
            block = source.read(start, stop)
            assert block.shape == (stop - start, source.shape[1])
            assert as_list(block) == as_list(expected[start:stop]), (start, stop)

    return read_in_ranges


@pytest.fixture
def mixed_table():
    """Return 1,000 rows of numbers with missing cells, whole numbers and texts."""
    rng = np.random.default_rng(5)
    sizes = rng.normal(size=1000)
    return pa.table(
        {
            "size": pa.array(sizes, mask=rng.random(1000) < 0.1),
            "count": pa.array(rng.integers(0, 50, size=1000)),
            "color": pa.array(rng.choice(["red", "blue", "a, b"], size=1000).tolist()),
        }
    )


@pytest.fixture
def folder(tmp_path, mixed_table):
    """Return a folder with files of different row groups, some without rows."""
    folder = tmp_path / "folder"
    (folder / "deep").mkdir(parents=True)
    write = pa.parquet.write_table
    write(mixed_table[:300], folder / "a.parquet", row_group_size=70)
    write(mixed_table[300:300], folder / "b.parquet")
    write(mixed_table[300:400], folder / "c.pq")
    # Columns in another order, and read between the files beside its folder.
    shuffled = mixed_table[400:].select(["color", "size", "count"])
    write(shuffled, folder / "deep" / "a.parquet", row_group_size=333)
    for name in (".hidden.parquet", "_part.parquet", "notes.txt"):
        (folder / name).write_text("not a table")
    (folder / "_logs").mkdir()
    (folder / "_logs" / "x.parquet").write_text("not a table")
    return folder
