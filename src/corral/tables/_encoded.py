"""A source of encoded rows: each block is encoded when it is read."""

import hashlib
import json
from typing import TYPE_CHECKING, Any

from corral.tables._rows import read_rows

if TYPE_CHECKING:
    from corral.tables._encoder import TableEncoder


class EncodedSource:
    """The rows of a source as a fitted encoder gives them.

    Holds no rows, only the encoder and the source; can be pickled if they can.

    Parameters
    ----------
    encoder : TableEncoder
        Fitted.
    source : Source
        With the columns of the fit; others are ignored.

    Attributes
    ----------
    shape : tuple of (n_samples, n_features)
    names : list of str or None
        Of the features if rows come as tables, which they do if there are categories;
        None if they come as arrays.
    borders : list of int
        Where pieces that are cheap to read as a whole begin, then ``n_samples``.
    has_random_access : bool
        Whether rows are found without those before them.
    skipped : list of str
        What the source has left out, in sentences.
    """

    def __init__(self, encoder: "TableEncoder", source: Any) -> None:
        self._encoder = encoder
        self._source = source
        self.shape = (source.shape[0], len(encoder.feature_names_out_))
        has_names = bool(encoder.categorical_names_)
        self.names = [*encoder.feature_names_out_] if has_names else None

    @property
    def borders(self) -> list[int]:
        return self._source.borders

    @property
    def has_random_access(self) -> bool:
        return getattr(self._source, "has_random_access", True)

    @property
    def skipped(self) -> list[str]:
        return self._source.skipped

    def read(self, start: int, stop: int) -> Any:
        """Return the rows ``start`` to ``stop - 1``, encoded.

        Parameters
        ----------
        start, stop : int

        Returns
        -------
        X : ndarray, csr_array or pyarrow.Table
            As of :meth:`TableEncoder.transform`.
        """
        rows = read_rows(self._source.read(start, stop))
        return self._encoder._encode(rows, first_row=start)

    def ids(self, start: int = 0, stop: int | None = None) -> list[str]:
        """Return what the rows ``start`` to ``stop - 1`` are called.

        Parameters
        ----------
        start : int, default=0
        stop : int, default=None
            None is the end.

        Returns
        -------
        ids : list of str
            As of :meth:`TableEncoder.ids`.
        """
        return self._encoder.ids(self._source, start, stop)

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells these rows from others, ready for JSON.

        Returns
        -------
        identity : dict
            Kind, shape, names of the features, the identity of the source, and a
            checksum of how its columns are read and scaled.
        """
        return {
            "kind": "encoded",
            "shape": [*self.shape],
            "columns": [*self._encoder.feature_names_out_],
            "source": self._source.fingerprint(),
            "encoding": self._digest(),
        }

    def _digest(self) -> str:
        encoder = self._encoder
        plans = [[plan.name, plan.kind, plan.family] for plan in encoder._plans]
        digest = hashlib.sha256(json.dumps([plans, encoder.scale_]).encode())
        if encoder._scales is not None:
            for values in (encoder._scales.center, encoder._scales.unit):
                digest.update(b"" if values is None else values.tobytes())
        return digest.hexdigest()

    def __repr__(self) -> str:
        return f"EncodedSource({self._source!r})"
