import errno
import sys

import pytest

from corral.cli._errors import sentence
from tests.cli.example import FIT, only_line, run_corral


@pytest.fixture
def bad(tmp_path, data):
    """Return a folder with files that cannot be used."""
    (tmp_path / "empty.csv").touch()
    (tmp_path / "head.csv").write_text("a,b\n")
    (tmp_path / "ragged.csv").write_text("a,b\n1,2\n3\n")
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "data.csv").write_bytes(data.read_bytes())
    return tmp_path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dat.csv", "is not there. Did you mean"),
        ("empty.csv", "is empty."),
        ("head.csv", "has no rows."),
        ("ragged.csv", "in line 3, where 2 are expected"),
        ("notes.txt", "its suffix '.txt' is not known"),
        (".", "is a folder without Parquet files."),
        (".", "(--format parquet on the command line)"),
    ],
)
def test_bad_files_are_one_sentence(bad, name, message):
    result = run_corral("fit", bad / name, "--n-clusters", 2)
    assert result.exit_code == 2
    assert message in only_line(result.stderr)
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--n-clusters", 500), "n_clusters=500"),
        (("--n-outliers", 500), "n_outliers=500"),
        (
            ("--n-clusters", 3, "--n-outliers", 148),
            "150 - 3 = 147. Lower n_outliers or n_clusters.",
        ),
        (
            ("--n-outliers", 5, "--contamination", 0.1),
            "Set either --n-outliers or --contamination, not both. Got --n-outliers 5 "
            "and --contamination 0.1.",
        ),
        (("--contamination", 1.5), "1.5 is not in the range 0<=x<1"),
        (("--contamination", "nan"), "'--contamination': 'nan' is not a number."),
        (("--contamination-max", "NaN"), "'NaN' is not a number."),
        (("--columns", ""), "'--columns': '' has no name. Give at least one."),
        (("--exclude", " , "), "'--exclude': ' , ' has no name."),
        (("--labels", ""), "'--labels': the path is empty. Name one."),
        (("--checkpoint-dir", ""), "'--checkpoint-dir': the path is empty."),
        (("--config", ""), "'--config': the path is empty."),
        (("--n-clusters", "many"), "'many' is not a valid integer"),
        (("--columns", "a,bb"), "'bb', which the table does not have"),
        (("--exclude", "nothing"), "'nothing', which the table does not have"),
        (("--id-column", "nam"), "Did you mean 'name'?"),
        (("--columns", "note"), "columns names what cannot be used"),
        (("--method", "loff"), "There is no method 'loff'. Did you mean 'lof'"),
        (("--method", "KMeansMinus"), "Did you mean 'KMeansMinusMinus'"),
        (
            ("--method", "dbscan", "--n-outliers", 5),
            "--n-outliers cannot be set for --method dbscan. Leave it out.",
        ),
        (
            ("--method", "lof", "--n-clusters", 5, "--strategy", "rps"),
            "--n-clusters, --strategy cannot be set for --method lof.",
        ),
        (("--scale", "rubust"), "'rubust' is not one of 'auto'"),
        (("--clusters", 3), "No such option '--clusters'"),
        (("--format", "parquet"), "is not Parquet"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_bad_requests_are_one_sentence(bad, options, message):
    result = run_corral("fit", bad / "data.csv", *options)
    assert result.exit_code == 2
    assert message in only_line(result.stderr)
    assert result.stdout == ""


def test_a_word_among_numbers_is_told(bad, tmp_path):
    # The column is no number any more, and the summary says what became of it.
    lines = (bad / "data.csv").read_text().splitlines()
    lines[5] = lines[5].replace(lines[5].split(",")[1], "much", 1)
    (bad / "data.csv").write_text("\n".join(lines))
    result = run_corral("fit", bad / "data.csv", *FIT)
    assert result.exit_code == 0
    assert "\n          a: " in result.stderr or "not used  a: " in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--labels", "none/x.csv"), "which is not there. Make it first"),
        (("--labels", "folder.csv"), "is a folder. Name a file in it."),
        (("--labels", "data.csv"), "is the same file as the input"),
        (("--labels", "x.csv", "--report", "./x.csv"), "same file as --labels"),
        (("--labels", "x.xlsx"), "has a suffix that is not known. Choose one of .csv"),
    ],
    ids=["no folder", "a folder", "the input", "twice", "suffix"],
)
def test_outputs_are_refused_before_the_fit(bad, monkeypatch, options, message):
    monkeypatch.chdir(bad)
    (bad / "folder.csv").mkdir()
    before = (bad / "data.csv").read_bytes()
    # A fit would need pyarrow and fail otherwise.
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = run_corral("fit", "data.csv", *options)
    assert result.exit_code == 2
    assert message in only_line(result.stderr)
    assert (bad / "data.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("package", "option", "message"),
    [
        ("jinja2", ("--report", "r.html"), 'pip install "corral[report]"'),
        ("skops", ("--model", "m.skops"), 'pip install "corral[persist]"'),
        ("pyarrow", (), 'pip install "corral['),
        ("rich", ("--progress",), 'pip install "corral[cli]"'),
    ],
)
def test_missing_extras_say_what_to_install(bad, monkeypatch, package, option, message):
    monkeypatch.chdir(bad)
    for name in [name for name in sys.modules if name.startswith("corral.cli._rich")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    result = run_corral("fit", "data.csv", "--n-clusters", 3, *option)
    assert result.exit_code == 2
    assert message in only_line(result.stderr)
    assert not (bad / "r.html").exists()


def test_devices_may_be_outputs(bad):
    # Nothing is put beside them, and they stay what they are.
    result = run_corral("fit", bad / "data.csv", *FIT, "--report", "/dev/null")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("option", "writer"),
    [
        ("--labels", "corral.tables.write_rows"),
        ("--model", "corral.persist.save"),
        ("--report", "pathlib.Path.write_text"),
    ],
)
def test_a_full_disk_names_the_file(bad, monkeypatch, option, writer):
    def fail(*arguments, **settings):
        # As the system has it: without the name of a file.
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(writer, fail)
    name = {"--labels": "l.csv", "--model": "m.skops", "--report": "r.html"}[option]
    monkeypatch.chdir(bad)
    result = run_corral("fit", "data.csv", *FIT, option, name)
    assert result.exit_code == 2
    assert only_line(result.stderr) == (
        f"Error: '{name}' cannot be written, because the disk is full. Make room, or "
        "name a place on another disk."
    )


def test_a_full_disk_behind_standard_output_is_one_sentence():
    error = OSError(errno.ENOSPC, "No space left on device")
    assert sentence(error) == (
        "Standard output or a temporary file cannot be written, because the disk is "
        "full. Make room, or set TMPDIR to a folder on another disk."
    )


@pytest.mark.parametrize("command", ["fit", "compare", "flights", "explore"])
def test_an_empty_path_is_not_this_folder(command):
    result = run_corral(command, "")
    assert result.exit_code == 2
    assert "the path is empty. Name one." in only_line(result.stderr)


def test_a_gap_is_a_number(bad):
    result = run_corral("flights", bad / "data.csv", "--max-gap", "nan")
    assert result.exit_code == 2
    assert "'nan' is not a number" in only_line(result.stderr)
