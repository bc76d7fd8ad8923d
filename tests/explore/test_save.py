"""What is saved is what the command makes."""

import os
import shlex
from pathlib import Path

import pytest

from corral import COR
from corral.cli._call import as_argument
from corral.explore import _save
from corral.explore._save import FilesExistError, Writer, check_name, suggest_name
from corral.explore._session import Session
from corral.tables import TableModel, read_table
from tests.cli.example import make_rows, run_corral, write_table


def run_line(line):
    words = shlex.split(line)
    assert words[:2] == ["corral", "fit"]
    result = run_corral(*words[1:])
    assert result.exit_code == 0, result.output


def check_same_files(saved):
    """Run the command that was saved; labels and report are the same to the byte."""
    labels, report, script = map(Path, saved["files"])
    before = [labels.read_bytes(), report.read_bytes()]
    labels.write_text("changed")
    report.unlink()
    line = script.read_text().splitlines()[1]
    assert line == f"{saved['command']} --force"
    run_line(line)
    assert [labels.read_bytes(), report.read_bytes()] == before


@pytest.mark.parametrize("numbers", [(3, 3), (2, 0), (5, 12)])
def test_the_command_makes_the_same_files(writer, numbers):
    check_same_files(writer.save(*numbers, "mine"))


def test_the_command_spares_files_that_came_to_be_there(writer, monkeypatch, tmp_path):
    theirs = [tmp_path / "mine-labels.csv", tmp_path / "mine-report.html"]

    def make_page(*args):
        for path in theirs:
            path.write_text("theirs")
        return "page"

    monkeypatch.setattr(_save, "make_page", make_page)
    saved = writer.save(3, 3, "mine")
    labels, report, script = map(Path, saved["files"])
    assert (labels.name, report.name) == ("mine-labels-2.csv", "mine-report-2.html")
    run_line(script.read_text().splitlines()[1])
    assert [path.read_text() for path in theirs] == ["theirs", "theirs"]
    assert report.read_text() != "page"


@pytest.mark.parametrize("end", ["labels.csv", "report.html", "command.sh"])
@pytest.mark.parametrize("sort", ["link", "link to nothing", "pipe"])
def test_links_and_pipes_are_not_followed(writer, tmp_path, end, sort):
    theirs, name = tmp_path / "theirs", tmp_path / f"mine-{end}"
    if sort == "link":
        theirs.write_text("theirs")
    if sort == "pipe":
        os.mkfifo(name)
    else:
        name.symlink_to(theirs)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ValueError, match="only plain files are replaced"):
        writer.save(3, 3, "mine", replace=True)
    assert sorted(tmp_path.iterdir()) == before
    assert sort != "link" or theirs.read_text() == "theirs"


def test_formulas_are_escaped_unless_raw_and_the_command_does_the_same(tmp_path):
    rows = [{**row, "name": f"={row['name']}"} for row in make_rows()]
    data = write_table(tmp_path / "data.csv", rows)
    estimator = COR("auto", n_outliers="auto", n_partitions=30, random_state=0)
    session = Session(read_table(data), TableModel(estimator, id_column="name"))
    words = [str(data), "--n-partitions", "30", "--seed", "0", "--id-column", "name"]
    for name, raw, first in (("safe", [], "'=p0,"), ("raw", ["--raw-text"], "=p0,")):
        line = [*words, *raw]
        writer = Writer(session, str(data), line, tmp_path, raw_text=bool(raw))
        saved = writer.save(3, 3, name)
        assert Path(saved["files"][0]).read_text().splitlines()[1].startswith(first)
    check_same_files(saved)


def test_the_full_fit_is_saved_also_where_views_are_quick(writer, session, monkeypatch):
    monkeypatch.setattr("corral.explore._session._MAX_SURE_ROWS", 0)
    assert session.view(4, 9, writer.command)["doubts"] is None
    saved = writer.save(4, 9, "mine")
    assert "confidence" in Path(saved["files"][0]).read_text().splitlines()[0]
    check_same_files(saved)


def test_the_command_is_written_as_fit_writes_it(writer, data):
    line = writer.command(3, 4)
    assert shlex.split(line) == [
        *("corral", "fit", str(data)),
        *("--n-clusters", "3", "--n-outliers", "4", "--n-partitions", "30"),
        *("--k-range", "auto", "--seed", "0", "--id-column", "name"),
    ]


def test_a_table_whose_name_begins_with_a_dash(session, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("-dash.csv").write_bytes(data.read_bytes())
    words = ["--n-partitions", "30", "--seed", "0", "--id-column", "name"]
    source = as_argument("-dash.csv")
    writer = Writer(session, source, [source, *words], Path())
    assert session.view(3, 3, writer.command)["command"].startswith(
        "corral fit ./-dash.csv "
    )
    check_same_files(writer.save(3, 3, "mine"))


def test_the_script_is_one_command_whatever_the_folder_is_called(
    writer, tmp_path, monkeypatch
):
    # A line end in its name must not end the comment.
    folder = tmp_path / "a\nrm -rf b"
    folder.mkdir()
    monkeypatch.chdir(folder)
    writer.save(3, 3, "mine")
    lines = (tmp_path / "mine-command.sh").read_text().splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("# Makes mine-labels.csv and mine-report.html again")
    assert lines[1].startswith("corral fit ")


def test_files_that_are_there_stay(writer, tmp_path):
    (tmp_path / "mine-report.html").write_text("mine")
    with pytest.raises(FilesExistError) as error:
        writer.save(3, 3, "mine")
    assert error.value.names == ["mine-report.html"]
    assert [path.name for path in tmp_path.iterdir()] == ["mine-report.html"]
    writer.save(3, 3, "mine", replace=True)
    assert (tmp_path / "mine-report.html").read_text() != "mine"


def test_force_replaces_without_a_question(session, data, tmp_path):
    (tmp_path / "mine-labels.csv").touch()
    words = [str(data), "--id-column", "name"]
    Writer(session, str(data), words, tmp_path, force=True).save(3, 3, "mine")
    assert (tmp_path / "mine-labels.csv").stat().st_size > 0


def test_the_table_itself_is_never_replaced(session, tmp_path):
    source = tmp_path / "mine-labels.csv"
    source.write_text("a\n1\n")
    writer = Writer(session, str(source), [str(source)], tmp_path, force=True)
    with pytest.raises(ValueError, match="is the same file as the input"):
        writer.save(3, 3, "mine")
    assert source.read_text() == "a\n1\n"


def test_the_file_of_options_is_never_replaced(session, data, tmp_path):
    options = tmp_path / "mine-command.sh"
    options.write_text("seed = 1\n")
    writer = Writer(
        session, str(data), [str(data)], tmp_path, other_inputs=[options], force=True
    )
    with pytest.raises(ValueError, match="is the same file as the input"):
        writer.save(3, 3, "mine")
    assert [path.name for path in tmp_path.iterdir()] == ["mine-command.sh"]


def test_a_folder_in_the_way_is_a_sentence(writer, tmp_path):
    (tmp_path / "mine-labels.csv").mkdir()
    with pytest.raises(ValueError, match=r"^The labels' file '.*' is a folder"):
        writer.save(3, 3, "mine", replace=True)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("data.csv", "data"),
        ("some/where/My table (2).csv.gz", "My-table-2"),
        ("-", "table"),
        ("..csv", "table"),
        (".hidden", "table"),
        ("größe.csv", "größe"),
        ("x" * 300 + ".csv", "x" * 50),
    ],
)
def test_names_come_from_the_table_and_can_be_used(source, name):
    assert suggest_name(source) == name
    check_name(name)
