"""A source for tests: rows kept in blocks of any size."""

import numpy as np
import pyarrow as pa
from scipy import sparse


class Blocks:
    """Rows of a table or matrix in blocks of ``n_rows``, joined when they are read."""

    skipped = ()

    def __init__(self, rows, n_rows):
        n_samples = rows.shape[0]
        self.shape = rows.shape
        self.names = getattr(rows, "column_names", None)
        self.borders = [*range(0, n_samples, n_rows), n_samples]
        self.most_read = 0
        self._n_rows = n_rows
        self._is_table = isinstance(rows, pa.Table)
        self._blocks = [self._cut(rows, i, i + n_rows) for i in self.borders[:-1]]

    def _cut(self, rows, start, stop):
        return rows.slice(start, stop - start) if self._is_table else rows[start:stop]

    def read(self, start, stop):
        self.most_read = max(self.most_read, stop - start)
        first = start // self._n_rows
        found = self._blocks[first : max(-(-stop // self._n_rows), first + 1)]
        if self._is_table:
            joined = pa.concat_tables(found)
        elif sparse.issparse(found[0]):
            joined = sparse.vstack(found, format="csr")
        else:
            joined = np.concatenate(found)
        skip = start - first * self._n_rows
        return self._cut(joined, skip, skip + stop - start)

    def fingerprint(self):
        return {"kind": "blocks", "shape": [*self.shape]}

    def __repr__(self):
        return f"Blocks(shape={self.shape})"
