"""How much memory a fit takes beside its rows, told before it begins."""

from typing import Any

from scipy import sparse

from corral._memory import need_memory


class RoomMixin:
    """Mixin of the methods that need all rows in memory."""

    # Copies of the rows that a fit makes, and bytes of a row beside them. On 200,000
    # rows of 8 and 30 numbers, the peak of the process grew by 1.3 and 0.9 times as
    # much by K-means--, 0.9 and 0.7 by K-means+1, 0.6 and 1.1 by the isolation forest,
    # 0.5 and 0.3 by OPCA, 2.0 and 1.1 by TONMF; on 100,000 and 60,000 rows, by 2.0 and
    # 1.6 times as much by NEO-K-means.
    _n_copies = 2
    _row_bytes = 200

    def _count_bytes(self, X: Any) -> int:
        """Return about how many bytes a fit takes beside its rows, which are read."""
        return self._n_copies * measure_rows(X) + self._row_bytes * X.shape[0]

    def _check_room(self, X: Any) -> None:
        """Refuse a fit that cannot end well."""
        self._refuse_above(self._count_bytes(X), X.shape[0])

    def _refuse_above(self, n_bytes: int, n_rows: int) -> None:
        """Refuse a fit of so many rows if so many bytes are not there."""
        need_memory(
            n_bytes,
            f"{type(self).__name__} of {n_rows:,} rows",
            "Fit a sample of the rows, or use COR, which reads them from files block "
            "by block.",
        )


def measure_rows(X: Any) -> int:
    """Return how many bytes rows take as numbers.

    Parameters
    ----------
    X : ndarray or sparse rows
    """
    if sparse.issparse(X):
        # A number of 8 bytes and the place of its column, of 4; where each row starts.
        return 12 * X.nnz + 8 * X.shape[0]
    return 8 * X.shape[0] * X.shape[1]
