"""Reading in order holds far less than the data."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from corral.sources import open_source

N_ROWS, N_COLUMNS = 1_800_000, 3
N_BYTES = 8 * N_ROWS * N_COLUMNS  # 43 MB


def blocks():
    rng = np.random.default_rng(0)
    for _ in range(60):
        yield rng.normal(size=(N_ROWS // 60, N_COLUMNS))


@pytest.fixture(scope="module")
def table():
    values = np.concatenate(list(blocks()))
    columns = {f"c{j}": values[:, j] for j in range(N_COLUMNS)}
    return pa.table(columns)


def peak_of_reading(source, size=20_000):
    """Return the most that pyarrow held while the rows were read in order."""
    pool, before = pa.default_memory_pool(), pa.total_allocated_bytes()
    peak = 0
    for start in range(0, source.shape[0], size):
        source.read(start, min(start + size, source.shape[0]))
        peak = max(peak, pool.bytes_allocated() - before)
    return peak


@pytest.mark.parametrize("row_group_size", [100_000, N_ROWS])
def test_parquet_holds_a_batch_and_not_a_row_group(tmp_path, table, row_group_size):
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(table, path, row_group_size=row_group_size)
    assert path.stat().st_size > N_BYTES / 2
    assert peak_of_reading(open_source(path)) < N_BYTES / 3


def test_csv_holds_some_blocks(tmp_path, table):
    pa.csv.write_csv(table, tmp_path / "t.csv")
    before = pa.total_allocated_bytes()
    source = open_source(tmp_path / "t.csv")
    assert pa.total_allocated_bytes() - before < N_BYTES / 20
    assert peak_of_reading(source) < N_BYTES / 3


@pytest.mark.parametrize("kind", ["iterator", "npy"])
def test_arrays_hold_the_rows_asked_for(tmp_path, table, kind):
    np.save(tmp_path / "t.npy", np.column_stack(table.columns))
    tracemalloc.start()
    try:
        source = open_source(blocks if kind == "iterator" else tmp_path / "t.npy")
        for start in range(0, N_ROWS, 20_000):
            source.read(start, start + 20_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < N_BYTES / 8
