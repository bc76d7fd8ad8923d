import errno
import json
import subprocess
import sys
import warnings

import click
import pytest

import corral
from corral.cli import main
from corral.cli._errors import near_names, sentence
from corral.cli._group import COMMANDS
from corral.cli._group import corral as command

HELPS = [("--help",), ("fit", "--help"), ("compare", "-h"), ("datasets", "--help")]


def test_version_is_that_of_the_package(run):
    assert run("--version").output == f"corral {corral.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ftt",), "There is no command 'ftt'. Did you mean 'fit'? See: corral --help"),
        (("--no-such",), "No such option '--no-such'. See: corral --help"),
        (("fit", "a", "b"), "extra argument (b). See: corral fit --help"),
        (("fit", "--label", "x"), "'--labels'?) See: corral fit --help"),
        (("fit",), "Missing argument 'DATA'. See: corral fit --help"),
        (("datasets", "lst"), "Did you mean 'list'? See: corral datasets --help"),
        (("demo", "--seed", "many"), "'many' is not a valid integer"),
        (("demo", "--seed", "-1"), "-1 is not in the range"),
        (("fit", "x.csv", "--n-clusters", "0"), "0 is not in the range x>=1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_arguments_are_one_sentence_with_code_2(run, arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert message in line


def test_without_arguments_help_is_shown(run):
    assert "Find clusters, and set aside" in run().output


@pytest.mark.parametrize("arguments", HELPS, ids=" ".join)
def test_help_imports_nothing_heavy(arguments):
    # What takes long to import would make help slow.
    code = (
        "import json, sys\n"
        "from corral.cli import main\n"
        "try:\n    main()\n"
        "finally:\n    sys.stderr.write(json.dumps(sorted(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True
    )
    loaded = {name.partition(".")[0] for name in json.loads(done.stderr)}
    assert "click" in loaded
    assert not loaded & {"numpy", "scipy", "sklearn", "pyarrow", "rich", "pandas"}
    assert done.stdout.startswith("Usage: ")


@pytest.mark.parametrize("name", COMMANDS)
def test_line_in_the_list_is_that_of_the_command(name):
    found = command.get_command(click.Context(command), name)
    assert found.get_short_help_str(200) == COMMANDS[name].help


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_takes_debug(run, name):
    result = run(name, "--debug", "--help")
    assert result.exit_code == 0
    assert "--debug" in result.output


def test_without_click_main_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "click", None)
    for name in [name for name in sys.modules if name.startswith("corral.cli._")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert capsys.readouterr().err == (
        'The command line needs click. Install it with: pip install "corral[cli]"\n'
    )


@pytest.mark.parametrize("place", ["before", "after"])
def test_debug_shows_where_an_error_came_from(run, tmp_path, place):
    # The traceback comes before the sentence, and the exit code stays.
    taken = tmp_path / "taken"
    taken.touch()
    words = ["demo", "--output", taken]
    result = run(*(["--debug", *words] if place == "before" else [*words, "--debug"]))
    assert "Traceback (most recent call last)" in result.stderr
    assert "NotADirectoryError" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("Error: ")
    assert result.exit_code == 2


def test_an_unforeseen_error_asks_for_a_report(run, monkeypatch):
    # Not the user's fault: code 1, still one line.
    def fail():
        raise RuntimeError("the sky\nfell")

    monkeypatch.setattr("corral.datasets.list_datasets", fail)
    result = run("datasets", "list")
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert "RuntimeError: the sky fell. Run again with --debug" in line


def test_warnings_are_sentences(run, monkeypatch):
    def warn():
        warnings.warn("mind the gap", RuntimeWarning, stacklevel=2)
        return []

    monkeypatch.setattr("corral.datasets.list_datasets", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        result = run("datasets", "list", "--json")
    assert result.stderr == "Warning: mind the gap\n"
    assert json.loads(result.stdout) == []


def test_near_names_are_told_and_too_many_are_not():
    assert near_names("LOFF", ["lof", "cof", "x"]) == "Did you mean 'lof' or 'cof'?"
    assert near_names("zzz", ["lof", "cof"]) == "Choose one of lof, cof."
    assert near_names("zzz", map(str, range(100))) == ""
    assert near_names("7", map(str, range(2001))) == ""


def test_a_disk_that_can_only_be_read_is_said_so():
    error = OSError(errno.EROFS, "Read-only file system", "labels.csv")
    assert sentence(error).startswith(
        "'labels.csv' cannot be written, because its disk can only be read. Name a"
    )
