import sys

import pytest
from click.testing import CliRunner

import corral
from corral.cli import main
from corral.cli._group import corral as command


@pytest.fixture
def run():
    def run(*arguments):
        return CliRunner().invoke(command, [str(argument) for argument in arguments])

    return run


def test_version_is_that_of_the_package(run):
    assert run("--version").output == f"corral {corral.__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("no-such-command",),
        ("demo", "--no-such-option"),
        ("demo", "--seed", "many"),
        ("demo", "--seed", "-1"),
    ],
    ids=" ".join,
)
def test_wrong_arguments_end_with_code_2(run, arguments):
    # One message for the user, no traceback.
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Error: " in result.stderr
    assert "Traceback" not in result.output


def test_without_click_main_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "click", None)
    monkeypatch.delitem(sys.modules, "corral.cli._group")
    monkeypatch.delitem(sys.modules, "corral.cli._demo")
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert capsys.readouterr().err == (
        'The command line needs click. Install it with: pip install "corral[cli]"\n'
    )


def test_debug_shows_where_an_error_came_from(run, tmp_path):
    # With --debug the error itself comes through.
    taken = tmp_path / "taken"
    taken.touch()
    result = run("--debug", "demo", "--output", taken)
    assert isinstance(result.exception, NotADirectoryError)
