"""No file is replaced unless the user said so, and no result is lost."""

import os

import pytest

from corral.cli import _job
from tests.cli.example import FIT, only_line, run_corral

# What each command needs before it would compute; the inputs are not there.
CALLS = {
    "fit --labels": ("fit", "gone.csv", "--labels", "old.csv"),
    "fit --report": ("fit", "gone.csv", "--report", "old.csv"),
    "fit --model": ("fit", "gone.csv", "--model", "old.csv"),
    "predict": ("predict", "gone.skops", "gone.csv", "--labels", "old.csv"),
    "report": ("report", "gone.skops", "gone.csv", "--output", "old.csv"),
    "compare": ("compare", "gone.csv", "--labels", "old.csv"),
    "flights --labels": ("flights", "gone.csv", "--labels", "old.csv"),
    "flights --report": ("flights", "gone.csv", "--report", "old.csv"),
}


@pytest.fixture
def old(tmp_path, monkeypatch):
    """Go to a folder with a file that is there already."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.csv").write_text("old")
    return tmp_path / "old.csv"


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_file_that_is_there_is_refused_before_anything_is_read(old, call):
    result = run_corral(*call)
    assert result.exit_code == 2
    assert only_line(result.stderr) == (
        f"Error: {call[-2]} 'old.csv' exists already. Name another, or say --force to "
        "replace it."
    )
    assert old.read_text() == "old"


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_force_goes_on_to_the_input(old, call):
    result = run_corral(*call, "--force")
    assert result.exit_code == 2
    assert "gone" in only_line(result.stderr)
    assert old.read_text() == "old"


def test_force_replaces_and_is_no_part_of_what_a_report_repeats(data, tmp_path):
    labels, report = tmp_path / "l.csv", tmp_path / "r.html"
    outputs = ("--labels", labels, "--report", report)
    pages = []
    for more in ((), ("--force",)):
        labels.write_text("old") if more else None
        result = run_corral("fit", data, *FIT, *outputs, *more)
        assert result.exit_code == 0, result.output
        pages.append((labels.read_bytes(), report.read_bytes()))
    assert pages[0] == pages[1]


def test_files_that_appear_meanwhile_are_left_and_nothing_is_lost(
    data, tmp_path, monkeypatch
):
    names = {"--labels": "l.csv", "--report": "r.html", "--model": "m.skops"}
    fit = _job.run_job

    def fit_slowly(*arguments):
        fitted = fit(*arguments)
        (tmp_path / "l.csv").write_text("theirs")
        (tmp_path / "m.skops").write_text("theirs")
        return fitted

    monkeypatch.setattr(_job, "run_job", fit_slowly)
    monkeypatch.chdir(tmp_path)
    words = [word for pair in names.items() for word in pair]
    result = run_corral("fit", data, *FIT, *words)
    assert result.exit_code == 2
    assert [line.split() for line in result.stdout.splitlines()[-3:]] == [
        ["labels", "l-2.csv"],
        ["report", "r.html"],
        ["model", "m-2.skops"],
    ]
    assert only_line(result.stderr) == (
        "Error: --labels 'l.csv' came to be there during the work, and was left as it "
        "is. The result is in 'l-2.csv'. --model 'm.skops' came to be there during the "
        "work, and was left as it is. The result is in 'm-2.skops'."
    )
    assert (tmp_path / "l.csv").read_text() == "theirs"
    assert (tmp_path / "l-2.csv").read_text().startswith("id,label")
    assert run_corral("predict", "m-2.skops", data).exit_code == 0
    assert len(os.listdir(tmp_path)) == 5


def test_a_file_of_options_cannot_say_force(data, old):
    (old.parent / "corral.toml").write_text("force = true\n")
    words = ("--labels", "old.csv", "--config", "corral.toml")
    result = run_corral("fit", data, *words)
    assert result.exit_code == 2
    assert only_line(result.stderr).startswith(
        "Error: 'corral.toml' has the key 'force', which a file cannot hold. Say "
        "--force on the command line."
    )
    assert old.read_text() == "old"


def test_the_demo_replaces_no_file(tmp_path):
    (tmp_path / "report.html").write_text("mine")
    result = run_corral("demo", "--output", tmp_path)
    assert result.exit_code == 2
    assert only_line(result.stderr) == (
        f"Error: The report's file '{tmp_path / 'report.html'}' exists already. Name "
        "another, or say --force to replace it."
    )
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_device_is_no_file_that_could_be_replaced(data):
    result = run_corral("fit", data, *FIT, "--report", "/dev/null")
    assert result.exit_code == 0, result.output
