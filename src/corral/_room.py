"""How much memory a fit takes beside its rows, told before it begins."""

from typing import Any

from scipy import sparse

from corral._memory import need_memory


class RoomMixin:
    """Mixin of the methods that need all rows in memory."""

    # Copies of the rows that a fit makes, and bytes of a row beside them. Measured on
    # 200,000 to 400,000 rows of 8 to 30 numbers.
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
        return 12 * X.nnz + 8 * X.shape[0]
    return 8 * X.shape[0] * X.shape[1]
