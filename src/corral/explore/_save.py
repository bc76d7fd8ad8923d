"""Labels, report and command of a view, as files in one folder."""

import copy
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corral._visible import spell_out
from corral.cli._bar import progress
from corral.cli._call import command_line
from corral.cli._fit import fit
from corral.cli._lazy import HELP_NAMES
from corral.cli._outputs import Outputs
from corral.cli._work import judge_fit, make_page
from corral.explore._session import Session

# A name is one word or a few: no folder, no hidden file, nothing that a file system or
# a shell reads in its own way.
_NAME = re.compile(r"[^\W_](?:[\w .+-]{0,98}[\w+-])?")

# Windows opens devices by these names.
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:[ .].*)?", re.IGNORECASE)


class FilesExistError(Exception):
    """Files are in the way, and nobody said that they may be replaced.

    Parameters
    ----------
    names : list of str
    """

    def __init__(self, names: list[str]) -> None:
        super().__init__(", ".join(names))
        self.names = names


class Writer:
    """Writes the files of a session, and the command that makes them again.

    Parameters
    ----------
    session : Session
    source : str
        The table, as ``corral fit`` takes it.
    words : sequence of str
        The source and further words of ``corral fit``.
    folder : Path
        Where the files go.
    other_inputs : sequence of Path, default=()
        What is not replaced either, as the table is not.
    raw_text : bool, default=False
        Whether formulas are not escaped in the labels.
    force : bool, default=False
        Whether files may be replaced without a question.
    """

    def __init__(
        self,
        session: Session,
        source: str,
        words: Sequence[str],
        folder: Path,
        *,
        other_inputs: Sequence[Path] = (),
        raw_text: bool = False,
        force: bool = False,
    ) -> None:
        self._session = session
        self._source = source
        self._words = list(words)
        self._folder = folder
        self._inputs: list[str | Path] = [source, *other_inputs]
        self._raw_text = raw_text
        self._force = force

    def command(self, n_clusters: int, n_outliers: int, *outputs: str) -> str:
        """Return the command line that gives the same.

        Parameters
        ----------
        n_clusters, n_outliers : int
        *outputs : str
            Further words.

        Returns
        -------
        line : str
            As ``corral fit`` itself would write it.
        """
        numbers = ["--n-clusters", str(n_clusters), "--n-outliers", str(n_outliers)]
        words = [*self._words, *numbers, "--k-range", "auto", *outputs]
        names = list(HELP_NAMES)
        ctx = fit.make_context("corral fit", words, help_option_names=names)
        return command_line(ctx)

    def save(
        self, n_clusters: int, n_outliers: int, name: str, *, replace: bool = False
    ) -> dict[str, Any]:
        """Write labels, report and command.

        Parameters
        ----------
        n_clusters, n_outliers : int
        name : str
            With which the names of the files begin.
        replace : bool, default=False
            Whether files that are there may be replaced.

        Returns
        -------
        saved : dict
            ``files``, their paths, and ``command``, the line, both as words.
        """
        check_name(name)
        labels = self._folder / f"{name}-labels.csv"
        report = self._folder / f"{name}-report.html"
        script = self._folder / f"{name}-command.sh"
        paths = [labels, report, script]
        there = [path.name for path in paths if os.path.lexists(path)]
        may_replace = replace or self._force
        if there and not may_replace:
            raise FilesExistError(there)
        titles = ("The labels' file", "The report's file", "The command's file")
        asked = dict(zip(titles, paths, strict=True))
        outputs = Outputs(asked, self._inputs, force=may_replace)
        _check_plain(paths)
        command = self._command_for(n_clusters, n_outliers, labels, report)
        judged = self._judge(n_clusters, n_outliers)
        with progress(False) as bar:
            page = make_page(judged, self._source, command, bar)
        # All is known before the first file is written.
        outputs.write_labels(judged.columns, option=titles[0], raw_text=self._raw_text)
        outputs.write_text(titles[1], page)
        # Files may have come to be there meanwhile. The script replaces what it names,
        # so it names those that were written.
        made = [Path(outputs.files[title]) for title in titles[:2]]
        command = self._command_for(n_clusters, n_outliers, *made)
        outputs.write_text(titles[2], _write_script(command, *made))
        files = [spell_out(path) for path in outputs.files.values()]
        return {"files": files, "command": spell_out(command)}

    def _command_for(
        self, n_clusters: int, n_outliers: int, labels: Path, report: Path
    ) -> str:
        words = ["--labels", str(labels), "--report", str(report)]
        return self.command(n_clusters, n_outliers, *words)

    def _judge(self, n_clusters: int, n_outliers: int):
        """Return the model that the command makes, without another fit."""
        estimator = self._session.fuse(n_clusters, n_outliers).estimator
        model = copy.copy(self._session.model)
        asked = {"n_clusters": n_clusters, "n_outliers": n_outliers, "k_range": "auto"}
        model.estimator = copy.copy(model.estimator).set_params(**asked)
        model._adopt(estimator, None)
        return judge_fit(model, self._session.table, 0.0)


def _check_plain(paths: list[Path]) -> None:
    """Refuse links, which lead out of the folder, and pipes, which wait for readers."""
    for path in paths:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise ValueError(
                f"'{path}' is a link or a device, and only plain files are replaced. "
                "Remove it, or save under another name."
            )


def check_name(name: str) -> None:
    """Refuse names that are not a plain beginning of a file name.

    Parameters
    ----------
    name : str
    """
    if not _NAME.fullmatch(name) or _DEVICES.fullmatch(name):
        raise ValueError(
            f"The name {name[:100]!r} cannot begin the names of files. It should be up "
            "to 100 letters, digits, blanks, points, plus, minus or underscores, and "
            "begin with a letter or digit."
        )


def suggest_name(source: str) -> str:
    """Return a name for files, after that of the table.

    Parameters
    ----------
    source : str
        Path, or "-" for standard input.

    Returns
    -------
    name : str
    """
    stem = Path(source).name.partition(".")[0]
    words = re.sub(r"[^\w+-]+", "-", stem).strip("-_+")[:50]
    return words if _NAME.fullmatch(words) else "table"


def _write_script(command: str, *paths: Path) -> str:
    # As Python writes it: a line end in the name of the folder would end the comment.
    here = repr(os.getcwd())
    made = " and ".join(path.name for path in paths)
    return (
        f"# Makes {made} again, in the folder {here}, and replaces them.\n"
        f"{command} --force\n"
    )
