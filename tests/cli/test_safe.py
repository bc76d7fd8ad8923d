"""Words of the data can be run neither by a spreadsheet nor by a terminal."""

import csv
import io
import json

import pytest

from corral.cli._errors import Failure
from corral.cli._files import print_json, print_rows
from tests.cli.example import make_rows, run_corral, write_table

# Colours, the end of a title, and letters in another order.
OBEYED = "\x1b[31m\x07\x9b2J\u202e\u2066\x00"
SPELLED = r"\x1b[31m\x07\x9b2J\u202e\u2066\x00"

QUICK = ("--n-clusters", 3, "--n-outliers", 3, "--n-partitions", 20)
NAMED = ("--id-column", "name")

NAMES = [
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-1+1",
    "-7",
    "@SUM(1)",
    "\t=1",
    "'=1",
    "a;=1",
    'a"b',
    "a,b",
    "\uff1d1",
    "a\r\nb",
]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Return a table whose rows are named by formulas, and its model."""
    rows = make_rows()
    for row, name in zip(rows, NAMES, strict=False):
        row["name"] = name
    folder = tmp_path_factory.mktemp("hostile")
    data = write_table(folder / "data.csv", rows)
    done = run_corral("fit", data, *QUICK, *NAMED, "--model", folder / "model.skops")
    assert done.exit_code == 0, done.output
    return data, folder / "model.skops"


def cells(text):
    return [row["id"] for row in csv.DictReader(io.StringIO(text, newline=""))]


def cells_of_file(path):
    with path.open(newline="") as file:
        return cells(file.read())


ESCAPED = [f"'{name}" if name[0] in "=+-@\t'\uff1d" else name for name in NAMES]
ESCAPED[NAMES.index("-7")] = "-7"


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("command", ["fit", "predict", "compare"])
def test_labels_are_escaped_unless_raw(hostile, tmp_path, command, raw):
    data, model = hostile
    path = tmp_path / "labels.csv"
    words = {
        "fit": ("fit", data, *QUICK, *NAMED),
        "predict": ("predict", model, data),
        "compare": ("compare", data, *QUICK, *NAMED, "--methods", "kmeans--"),
    }[command]
    words = (*words, "--raw-text") if raw else words
    assert run_corral(*words, "--labels", path).exit_code == 0
    expected = NAMES if raw else ESCAPED
    assert cells_of_file(path)[: len(NAMES)] == expected
    if command != "compare":
        # The same on standard output, of which click's text has other line ends; and
        # never in JSON.
        assert cells(run_corral(*words).stdout_bytes.decode())[: len(NAMES)] == expected
        found = json.loads(run_corral(*words, "--json").stdout)
        assert found["labels"]["id"][: len(NAMES)] == NAMES


@pytest.mark.parametrize("names", [NAMES, ESCAPED], ids=["as they are", "escaped"])
def test_names_are_known_again_as_the_labels_file_has_them(hostile, names):
    data, model = hostile
    words = [word for name in names for word in ("--id", name)]
    done = run_corral("explain", model, data, "--json", *words)
    assert [each["row"] for each in json.loads(done.stdout)] == [*range(len(NAMES))]


def test_flights_are_escaped_unless_raw(tmp_path):
    lines = [
        f"=f{flight},{step},{50 + step / 9},{flight / 9}"
        for flight in range(12)
        for step in range(8)
    ]
    data = tmp_path / "tracks.csv"
    data.write_text("\n".join(["id,time,latitude,longitude", *lines]))
    words = ("flights", data, "--n-clusters", 2, "--n-outliers", 1)
    assert cells(run_corral(*words).stdout)[3] == "'=f3"
    labels = tmp_path / "labels.csv"
    assert run_corral(*words, "--labels", labels, "--raw-text").exit_code == 0
    assert cells_of_file(labels)[3] == "=f3"


def test_words_that_a_terminal_would_obey_are_spelled_out(tmp_path):
    rows = make_rows()
    for row in rows:
        row["name"] += OBEYED
        row[f"d{OBEYED}"] = row.pop("d")
        row[f"same{OBEYED}"] = row.pop("same")
    data = write_table(tmp_path / "data.csv", rows)
    done = run_corral("fit", data, *QUICK, *NAMED, "--labels", tmp_path / "l.csv")
    assert done.exit_code == 0, done.output
    assert f"p7{SPELLED} (" in done.stdout
    assert f"d{SPELLED}" in done.stdout
    assert f"same{SPELLED}:" in done.stdout
    assert not set(OBEYED) & set(done.output) - set("[31m2J")


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "none\x1b[2J\u202e.csv"),
        ("fit", "{data}", "--columns", "none\x1b[2J\u202e"),
        ("fit", "{data}", "--labels", "none\x1b[2J\u202e/labels.csv"),
        ("fit", "{data}", "--method", "none\x1b[2J\u202e"),
        ("fit", "{data}", "--none\x1b[2J\u202e"),
        ("predict", "none\x1b[2J\u202e", "{data}"),
        ("none\x1b[2J\u202e",),
        ("datasets", "fetch", "none\x1b[2J\u202e"),
        ("fit", "none\x1b[2J\u202e.csv", "--debug"),
    ],
    ids=lambda words: ascii(" ".join(words[:3])),
)
def test_errors_name_files_and_words_spelled_out(data, words):
    done = run_corral(*(word.format(data=data) for word in words))
    assert done.exit_code == 2
    assert r"none\x1b[2J\u202e" in done.stderr
    assert not {"\x1b", "\u202e"} & set(done.output)


def test_every_failure_is_one_line_without_what_a_terminal_would_obey():
    assert Failure(f"a\nb{OBEYED}").format_message() == f"a b{SPELLED}"


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self):
        return True


def test_rows_on_a_terminal_are_for_eyes_and_in_a_pipe_for_programs(monkeypatch):
    columns = {f"id{OBEYED}": [f"p{OBEYED}\r"], "label": [0]}
    for kind, expected in (
        (Screen, f'id{SPELLED},label\n"p{SPELLED}\\r",0\n'),
        (io.StringIO, f'id{OBEYED},label\n"p{OBEYED}\r",0\n'),
    ):
        seen = kind(newline="")
        monkeypatch.setattr("sys.stdout", seen)
        print_rows(columns)
        assert seen.getvalue() == expected


def test_json_says_the_same_without_what_a_terminal_would_obey(capsys):
    print_json({OBEYED: [f"a{OBEYED}\x7f\ud800é"]})
    text = capsys.readouterr().out
    assert json.loads(text) == {OBEYED: [f"a{OBEYED}\x7f\ud800é"]}
    assert r"\u001b[31m\u0007\u009b2J\u202e\u2066\u0000\u007f\ud800é" in text


def test_names_of_files_on_the_progress_bar_have_no_colours():
    pytest.importorskip("rich")
    from corral.cli._rich_bar import RichBar

    with RichBar() as bar:
        bar.stage("reading [red]a[/nope]\x1b[2J.csv")
        progress = bar._progress
        with progress.console.capture() as seen:
            progress.console.print(progress)
    assert r"reading [red]a[/nope]\x1b[2J.csv" in seen.get()
