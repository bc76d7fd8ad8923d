"""No file is replaced unless the user said so, and no result is lost."""

import os

import pyarrow.csv
import pyarrow.parquet
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


@pytest.fixture
def parts(tmp_path, data, monkeypatch):
    """Go to where a folder of data is: one part with a suffix, one without."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parts").mkdir()
    table = pyarrow.csv.read_csv(data)
    pyarrow.parquet.write_table(table, "parts/a.parquet")
    pyarrow.parquet.write_table(table, "parts/part-0")
    return tmp_path / "parts"


FORM = ("--format", "parquet")


@pytest.mark.parametrize(
    "words",
    [
        ("--report", "parts/new.parquet"),
        ("--labels", "into.csv"),
        ("--report", "into.html"),
        ("--report", "parts/out.parquet"),
        ("--report", "parts/part-0", *FORM),
        ("--report", "parts/new.html", *FORM),
        ("--report", "parts/deep/new.html", *FORM),
        ("--checkpoint-dir", "parts/notes", *FORM),
    ],
    ids=" ".join,
)
def test_no_output_becomes_a_part_of_the_data_or_replaces_one(parts, words):
    # Links into the folder, and one in it that leads out.
    for name in ("into.csv", "into.html"):
        (parts.parent / name).symlink_to("parts/a.parquet")
    (parts / "out.parquet").symlink_to("../elsewhere.html")
    (parts / "deep").mkdir()
    before = {each: each.read_bytes() for each in parts.glob("*a*") if each.is_file()}
    result = run_corral("fit", "parts", *FIT, *words, "--force")
    assert result.exit_code == 2
    assert only_line(result.stderr) == (
        f"Error: {words[0]} '{words[1]}' is in the folder 'parts', and would be read "
        "as data of it from then on. Name a place elsewhere."
    )
    assert before == {each: each.read_bytes() for each in before}


def test_what_a_link_in_a_folder_of_data_leads_to_is_data(parts):
    far = parts.parent / "far.csv"
    (parts / "part-0").rename(far)
    (parts / "b.parquet").symlink_to(far)
    before = far.read_bytes()
    result = run_corral("fit", "parts", *FIT, "--labels", far, "--force")
    assert result.exit_code == 2
    assert "is the same file as the input" in only_line(result.stderr)
    assert far.read_bytes() == before


def test_other_files_may_stand_beside_the_data(parts):
    # Without a form, only names tell what data is.
    result = run_corral("fit", "parts", *FIT, "--report", "parts/page.html")
    assert result.exit_code == 0, result.output
    words = (*FORM, "--report", "page.html")
    assert run_corral("fit", "parts/part-0", *FIT, *words).exit_code == 0


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("fit", "--report"),
        ("fit", "--model"),
        ("compare", "--labels"),
        ("flights", "--report"),
    ],
)
def test_the_file_of_options_is_an_input(old, command, option):
    old.write_text("n-clusters = 3\n")
    words = ("--config", "old.csv", option, "./old.csv", "--force")
    result = run_corral(command, "gone.csv", *words)
    assert result.exit_code == 2
    assert only_line(result.stderr) == (
        f"Error: {option} 'old.csv' is the same file as the input. Name another file."
    )
    assert old.read_text() == "n-clusters = 3\n"


@pytest.mark.parametrize("more", [(), ("--force",)])
def test_a_link_to_itself_is_no_output(old, more):
    (old.parent / "loop.csv").symlink_to("loop.csv")
    result = run_corral("fit", "old.csv", "--labels", "loop.csv", *more)
    assert result.exit_code == 2
    assert only_line(result.stderr) == (
        "Error: --labels 'loop.csv' is a link that leads back to itself. Name another "
        "file."
    )
    # Nor is it an input.
    result = run_corral("fit", "loop.csv", "--labels", "new.csv")
    assert result.exit_code == 2
    assert "loop.csv" in only_line(result.stderr)


def test_a_link_into_a_folder_that_is_gone_is_refused_at_once(old):
    (old.parent / "link.csv").symlink_to("none/there.csv")
    result = run_corral("fit", "gone.csv", "--labels", "link.csv")
    assert result.exit_code == 2
    assert "none', which is not there. Make it first" in only_line(result.stderr)
