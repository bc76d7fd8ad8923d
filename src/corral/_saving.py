"""Models that write themselves to files."""

from pathlib import Path


class SaveMixin:
    """Mixin of all estimators of corral."""

    def save(self, path: str | Path) -> None:
        """Write the model to a file, which :func:`corral.load` reads.

        Parameters
        ----------
        path : str or Path
            By custom it ends in ``.skops``. What was there is replaced at the end only.
        """
        from corral import persist

        persist.save(self, path)
