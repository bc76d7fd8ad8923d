"""Rows that are generated block by block, in files."""

from pathlib import Path

import numpy as np

N_FEATURES = 16
_N_CLUSTERS = 10
_BLOCK_ROWS = 2**20


def _make_block(start: int, stop: int) -> np.ndarray:
    """Return rows of ten round clusters, one in a thousand anywhere."""
    centers = np.random.default_rng(0).normal(0, 6, (_N_CLUSTERS, N_FEATURES))
    rng = np.random.default_rng([1, start])
    rows = rng.standard_normal((stop - start, N_FEATURES), dtype=np.float32)
    rows += centers.astype(np.float32)[rng.integers(_N_CLUSTERS, size=stop - start)]
    is_far = rng.random(stop - start) < 0.001
    rows[is_far] = rng.uniform(-30, 30, (np.count_nonzero(is_far), N_FEATURES))
    return rows


def _blocks(n_rows: int):
    for start in range(0, n_rows, _BLOCK_ROWS):
        stop = min(start + _BLOCK_ROWS, n_rows)
        yield start, stop, _make_block(start, stop)


def write_npy(path: Path, n_rows: int) -> None:
    """Write rows as one array of float32."""
    shape = (n_rows, N_FEATURES)
    rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    for start, stop, block in _blocks(n_rows):
        rows[start:stop] = block
    rows.flush()


def write_parquet(folder: Path, n_rows: int, rows_per_file: int = 2**20) -> None:
    """Write rows as a folder of Parquet files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    names = [f"x{j}" for j in range(N_FEATURES)]
    for start, _, block in _blocks(n_rows):
        table = pa.table(dict(zip(names, block.T, strict=True)))
        path = folder / f"rows-{start:012d}.parquet"
        pq.write_table(table, path, row_group_size=rows_per_file // 4)
