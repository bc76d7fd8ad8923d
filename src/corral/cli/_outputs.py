"""The files that a command writes: none is replaced unless the user said so."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from corral.cli._errors import Failure
from corral.cli._files import (
    Columns,
    HeldLabels,
    check_outputs,
    follow,
    write_labels,
    write_text,
)


class Outputs:
    """Files of a command, checked before anything is computed.

    Parameters
    ----------
    paths : mapping of str to Path or None
        By the name of their option.
    inputs : sequence of path-like
        They must not be written over; "-" is standard input.
    force : bool
        Whether files that are there may be replaced.
    form : str, default=None
        Form of the data, if it was given. Then a folder of data may hold nothing else,
        whatever its name.
    """

    def __init__(
        self,
        paths: Mapping[str, Path | None],
        inputs: Sequence[str | Path],
        *,
        force: bool,
        form: str | None = None,
    ) -> None:
        check_outputs(paths, inputs, force=force, form=form)
        self._paths = {option: path for option, path in paths.items() if path}
        self._force = force
        # Those whose name another file had at the end.
        self._beside: dict[str, Path] = {}

    def __contains__(self, option: str) -> bool:
        return option in self._paths

    def write(self, option: str, write: Callable[..., None]) -> None:
        """Write a file that was asked for.

        Parameters
        ----------
        option : str
        write : callable
            Takes the path, and whether it may replace a file as ``replace``.
        """
        from corral._atomic import KeptBesideError, named

        path = self._paths[option]
        try:
            # Errors name it as the user did, and not what a link leads to.
            with named(path, follow(path)):
                write(path, replace=self._force)
        except KeptBesideError as error:
            # Others are to be written still.
            self._beside[option] = _name_beside(path, error.kept)

    def write_text(self, option: str, text: str) -> None:
        """Write a text that was asked for.

        Parameters
        ----------
        option, text : str
        """
        self.write(option, partial(write_text, text=text))

    def write_labels(
        self,
        columns: Columns | Iterable[Columns],
        *,
        option: str = "--labels",
        raw_text: bool = False,
    ) -> None:
        """Write labels that were asked for.

        Parameters
        ----------
        columns : mapping of str to sequence, or iterable of such mappings
        option : str, default="--labels"
        raw_text : bool, default=False
            Whether formulas are not escaped.
        """
        self.write(option, partial(write_labels, columns=columns, raw_text=raw_text))

    def keep_labels(
        self, blocks: Iterable[Columns], *, as_json: bool, raw_text: bool
    ) -> HeldLabels | None:
        """Write labels to their file, or hold them for standard output.

        Parameters
        ----------
        blocks : iterable of mappings of str to sequence
        as_json : bool
            How they are held.
        raw_text : bool
            Whether formulas are not escaped in CSV and TSV.

        Returns
        -------
        held : HeldLabels or None
            None if they are in the file.
        """
        if "--labels" not in self:
            return HeldLabels(blocks, as_json=as_json, raw_text=raw_text)
        self.write_labels(blocks, raw_text=raw_text)
        return None

    @property
    def files(self) -> dict[str, str]:
        """Where the files are, by the word of their option."""
        places = self._paths | self._beside
        return {option.lstrip("-"): str(path) for option, path in places.items()}

    def check_names(self) -> None:
        """Tell which files have another name than the user gave them, if any has."""
        told = [
            f"{option} '{self._paths[option]}' came to be there during the work, and "
            f"was left as it is. The result is in '{path}'."
            for option, path in self._beside.items()
        ]
        if told:
            raise Failure(" ".join(told))


def _name_beside(path: Path, kept: Path) -> Path:
    """Return the place of a file in the words in which the user gave its own."""
    beside = path.with_name(kept.name)
    return beside if beside.exists() else kept


def save_model(model: Any, path: Path, *, replace: bool) -> None:
    """Write a model to a file, as :meth:`Outputs.write` asks for it.

    Parameters
    ----------
    model : estimator
    path : Path
    replace : bool
    """
    from corral import persist

    persist.save(model, path, replace=replace)
