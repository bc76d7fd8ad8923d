"""Tables that are read block by block give what tables in memory give."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from corral import persist
from corral.cli import _dry_run
from corral.tables import read_table
from tests.cli.example import FIT, ODD, make_rows, only_line, run_corral, write_table


@pytest.fixture
def by_blocks(monkeypatch):
    """Make any table too large for memory, and blocks small."""
    monkeypatch.setattr("corral.cli._plan.LEAST_REST", 0)
    monkeypatch.setattr("corral.cli._plan._BYTES_PER_BYTE", 10**8)
    monkeypatch.setattr("corral._memory._LEAST_ROWS", 32)
    monkeypatch.setattr("corral._memory._MOST_ROWS", 32)


@pytest.fixture(scope="module")
def files(data, tmp_path_factory):
    """Return a folder with the example table in several forms."""
    folder = tmp_path_factory.mktemp("forms")
    table = read_table(data)
    (folder / "data.csv").write_bytes(data.read_bytes())
    (folder / "data.csv.gz").write_bytes(gzip.compress(data.read_bytes()))
    (folder / "data.tsv").write_text(data.read_text().replace(",", "\t"))
    pq.write_table(table, folder / "data.parquet", row_group_size=40)
    (folder / "parts" / "more").mkdir(parents=True)
    pq.write_table(table.slice(0, 100), folder / "parts" / "a.parquet")
    pq.write_table(table.slice(100), folder / "parts" / "more" / "b.parquet")
    return folder


def fit_both(path, options, request):
    """Fit in memory, then block by block; return both results."""
    whole = run_corral("fit", path, *options)
    assert whole.exit_code == 0, whole.output
    request.getfixturevalue("by_blocks")
    blocks = run_corral("fit", path, *options)
    assert blocks.exit_code == 0, blocks.output
    assert "block by block: it needs about" in blocks.output.replace("\n", " ")
    assert "block by block" not in whole.output
    return whole, blocks


@pytest.mark.parametrize(
    "name", ["data.csv", "data.csv.gz", "data.tsv", "data.parquet"]
)
def test_labels_are_the_same_bytes(files, name, request, tmp_path):
    # Names, numbers, dates, categories and missing cells.
    whole, blocks = (result.stdout for result in fit_both(files / name, FIT, request))
    assert whole == blocks
    assert whole.count("\n") == 151
    assert ",known_share," in whole


@pytest.mark.parametrize("chosen", [(), FIT[:2], ("--scale", "robust")])
def test_chosen_numbers_are_the_same(files, chosen, request):
    whole, blocks = fit_both(files / "data.parquet", chosen, request)
    assert whole.stdout == blocks.stdout


def test_a_matrix_has_the_same_labels(tmp_path, request):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(c, 1, (100, 3)) for c in (0, 9)])
    X[5] = 80
    np.save(tmp_path / "X.npy", X)
    options = ("--n-clusters", 2, "--n-outliers", 1)
    whole, blocks = fit_both(tmp_path / "X.npy", options, request)
    assert whole.stdout == blocks.stdout
    assert "\n5,-1," in whole.stdout


def test_a_folder_is_all_its_files(files, data):
    whole = run_corral("fit", data, *FIT)
    folder = run_corral("fit", files / "parts", *FIT)
    assert folder.exit_code == 0, folder.output
    assert folder.stdout == whole.stdout
    assert "read      block by block: it is a folder" in folder.stderr


def test_the_summary_is_the_same_but_for_time_and_how_it_was_read(files, request):
    results = fit_both(files / "data.csv", FIT, request)
    whole, blocks = (result.stderr.splitlines() for result in results)
    kept = [line for line in whole if not line.startswith("fit ")]
    assert [line for line in blocks if line in kept] == kept


@pytest.mark.parametrize("with_labels", [True, False])
def test_json_is_the_same(files, with_labels, request, tmp_path):
    labels = ("--labels", tmp_path / "l.csv") if with_labels else ()
    options = (*FIT, *labels, "--json", "--force")
    whole = run_corral("fit", files / "data.parquet", *options).stdout
    request.getfixturevalue("by_blocks")
    blocks = run_corral("fit", files / "data.parquet", *options).stdout
    first, second = json.loads(whole), json.loads(blocks)
    assert second.pop("by_blocks").startswith("it needs about")
    first.pop("seconds"), second.pop("seconds")
    assert first == second
    assert list(first) == list(second)
    assert ("labels" in first) != with_labels
    # The document is laid out as Python's own writer does it.
    assert json.dumps(json.loads(blocks), indent=2, ensure_ascii=False) + "\n" == blocks


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet"])
def test_label_files_hold_the_same(files, suffix, request, tmp_path):
    paths = [tmp_path / f"{name}{suffix}" for name in ("whole", "blocks")]
    run_corral("fit", files / "data.csv", *FIT, "--labels", paths[0])
    request.getfixturevalue("by_blocks")
    result = run_corral("fit", files / "data.csv", *FIT, "--labels", paths[1])
    assert result.exit_code == 0, result.output
    if suffix == ".parquet":
        whole, blocks = map(pq.read_table, paths)
        assert whole.equals(blocks)
        assert pq.ParquetFile(paths[1]).num_row_groups == 5
    else:
        assert paths[0].read_bytes() == paths[1].read_bytes()
    assert sorted(tmp_path.iterdir()) == sorted(paths)


def test_a_detector_is_read_by_blocks_too(files, request):
    options = ("--method", "cor-detector", "--n-outliers", 3, "--id-column", "name")
    whole, blocks = fit_both(files / "data.csv", options, request)
    assert whole.stdout == blocks.stdout
    assert ",1," in whole.stdout


def test_columns_that_are_not_asked_for_are_not_read(files, by_blocks, monkeypatch):
    from corral.sources import ParquetSource

    seen = []
    read = ParquetSource.read

    def note(self, start, stop):
        seen.append(tuple(self.names))
        return read(self, start, stop)

    plan = ("--columns", "a,b", "--id-column", "name", "--n-clusters", 2)
    whole = run_corral("fit", files / "data.parquet", *plan, "--n-outliers", 3)
    monkeypatch.setattr(ParquetSource, "read", note)
    blocks = run_corral("fit", files / "data.parquet", *plan, "--n-outliers", 3)
    assert blocks.stdout == whole.stdout
    # The first look, which tells the size, is at all of them.
    assert set(seen[1:]) == {("name", "a", "b")}


# Models, reports and answers ------------------------------------------------------


def test_the_model_and_the_report_are_there(files, by_blocks, tmp_path, data):
    outputs = {"model": "model.skops", "report": "report.html", "labels": "labels.csv"}
    words = [w for key, name in outputs.items() for w in (f"--{key}", tmp_path / name)]
    result = run_corral("fit", files / "parts", *FIT, *words)
    assert result.exit_code == 0, result.output
    page = (tmp_path / "report.html").read_text()
    assert "p127" in page
    # All rows fit into the report, so it does not speak of a part.
    assert "random part" not in page
    assert "open_source(" in page
    model = persist.load(tmp_path / "model.skops")
    assert len(model.labels_) == 150


def test_a_report_of_a_detector_by_blocks_has_its_outliers(files, by_blocks, tmp_path):
    path = tmp_path / "report.html"
    words = ("--method", "cor-detector", *FIT, "--n-partitions", 8, "--report", path)
    result = run_corral("fit", files / "data.parquet", *words)
    assert result.exit_code == 0, result.output
    page = path.read_text()
    assert all(name in page for name in ODD)


def test_a_report_of_many_rows_is_on_a_part(files, by_blocks, tmp_path, monkeypatch):
    monkeypatch.setattr("corral.cli._blockwise._REPORT_ROWS", 80)
    path = tmp_path / "report.html"
    result = run_corral("fit", files / "data.parquet", *FIT, "--report", path)
    assert result.exit_code == 0, result.output
    text = " ".join(path.read_text().split())
    assert "a random part of the rows: 80 of 150." in text


def test_predict_is_the_same(files, model, request):
    whole = run_corral("predict", model, files / "data.csv")
    request.getfixturevalue("by_blocks")
    blocks = run_corral("predict", model, files / "data.csv")
    assert blocks.exit_code == 0, blocks.output
    assert blocks.stdout == whole.stdout
    assert "block by block" in blocks.stderr


def test_predict_of_new_rows_is_the_same(model, tmp_path, request):
    # Fewer rows than in the fit, without missing cells, in a folder.
    rows = [row for row in make_rows()[:100] if row["b"]]
    path = write_table(tmp_path / "new.csv", rows)
    (tmp_path / "new").mkdir()
    pq.write_table(read_table(path), tmp_path / "new" / "rows.parquet")
    whole = run_corral("predict", model, path, "--json")
    request.getfixturevalue("by_blocks")
    blocks = run_corral("predict", model, tmp_path / "new", "--json")
    found = json.loads(blocks.stdout)
    assert found.pop("by_blocks")
    assert found == json.loads(whole.stdout)
    assert "known_share" not in found["labels"]


def test_explain_is_the_same(files, model, request):
    asked = ("--row", 140, "--row", 7, "--id", "p50")
    whole = run_corral("explain", model, files / "data.csv", *asked)
    request.getfixturevalue("by_blocks")
    blocks = run_corral("explain", model, files / "data.csv", *asked)
    assert blocks.exit_code == 0, blocks.output
    assert blocks.stdout == whole.stdout


def test_a_wrong_cell_is_named_by_its_row(model, tmp_path, by_blocks):
    rows = make_rows()
    rows[120]["b"] = "inf"
    path = write_table(tmp_path / "new.csv", rows)
    result = run_corral("predict", model, path)
    assert result.exit_code == 2
    assert "row 120" in only_line(result.stderr)


# What cannot be done --------------------------------------------------------------


@pytest.mark.parametrize("size", ["2XB", "much", "-1", "1e9", "", "1,5GB"])
def test_a_limit_that_is_no_size(data, size):
    result = run_corral("fit", data, "--memory-limit", size)
    assert result.exit_code == 2
    assert "or a text such as '2GB'" in only_line(result.stderr)


@pytest.mark.parametrize("size", ["0", "100MB", "262144000"])
def test_a_limit_that_is_too_small(data, size):
    result = run_corral("fit", data, "--memory-limit", size)
    assert result.exit_code == 2
    assert "should be more than 380 MB" in only_line(result.stderr)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--method", "lof"), "--method lof needs all rows in memory at once. Use"),
        (("--tfidf",), "--tfidf needs all rows in memory at once. Leave --tfidf out"),
    ],
)
def test_what_needs_all_rows_says_how_much_memory(files, by_blocks, options, message):
    options = (*options, "--memory-limit", "1GB")
    result = run_corral("fit", files / "data.parquet", *options)
    assert result.exit_code == 2
    line = only_line(result.stderr)
    assert message in line
    assert "and the limit is 1 GB" in line
    assert "raise --memory-limit (now 1 GB)" in line


def test_what_needs_all_rows_asks_for_no_memory_where_there_is_enough(files):
    words = ("--method", "lof", "--on-error", "skip")
    line = only_line(run_corral("fit", files / "data.parquet", *words).stderr)
    assert "(--on-error skip is given), but --method lof needs all rows in" in line
    assert line.endswith("Use --method cor.")


@pytest.mark.parametrize("name", ["data.arrow", "data.npz", "data.parquet.gz"])
def test_forms_that_cannot_be_read_by_blocks(files, by_blocks, name, tmp_path):
    table = pa.table({"a": np.arange(9.0), "b": np.arange(9.0) ** 2})
    path = tmp_path / name
    if name.endswith(".npz"):
        np.savez(path, X=np.column_stack(table.columns))
    elif name.endswith(".arrow"):
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    else:
        path.write_bytes(gzip.compress((files / "data.parquet").read_bytes()))
    result = run_corral("fit", path, "--n-clusters", 2)
    assert result.exit_code == 2
    assert "Save it as Parquet, CSV or NPY, raise" in only_line(result.stderr)


def test_small_files_of_all_forms_stay_in_memory(files, tmp_path):
    for name in ("data.csv", "data.csv.gz", "data.parquet"):
        result = run_corral("fit", files / name, *FIT, "--memory-limit", "450MB")
        assert result.exit_code == 0, result.output
        assert "block by block" not in result.stderr


def test_standard_input_cannot_be_read_twice(data, tmp_path):
    options = ("--checkpoint-dir", tmp_path / "notes")
    result = run_corral("fit", "-", *FIT, *options, input=data.read_bytes())
    assert result.exit_code == 2
    assert "Save it as a file" in only_line(result.stderr)


def test_labels_do_not_go_among_the_data(files):
    path = files / "parts" / "more" / "labels.parquet"
    result = run_corral("fit", files / "parts", *FIT, "--labels", path)
    assert result.exit_code == 2
    assert "would be read as data" in only_line(result.stderr)
    assert not path.exists()


def test_nothing_is_written_if_the_data_breaks_on_the_way(
    files, by_blocks, tmp_path, monkeypatch
):
    # The names are read last, when the labels file has begun.
    from corral.tables import TableEncoder

    ids = TableEncoder.ids

    def break_off(self, table, start=0, stop=None):
        if start:
            raise OSError(5, "Input/output error", "data.parquet")
        return ids(self, table, start, stop)

    monkeypatch.setattr(TableEncoder, "ids", break_off)
    words = ("--labels", tmp_path / "l.csv", "--model", tmp_path / "m.skops")
    result = run_corral("fit", files / "data.parquet", *FIT, *words)
    assert result.exit_code == 2
    assert "Input/output error" in only_line(result.stderr)
    assert list(tmp_path.iterdir()) == []


# What cannot be read --------------------------------------------------------------


def test_a_broken_file_is_left_out_if_asked(files, tmp_path):
    for path in (files / "parts").rglob("*.parquet"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "c.parquet").write_bytes(b"PAR1 no more PAR1")
    stopped = run_corral("fit", tmp_path, *FIT)
    assert stopped.exit_code == 2
    assert "c.parquet' is broken or cut off" in only_line(stopped.stderr)
    result = run_corral("fit", tmp_path, *FIT, "--on-error", "skip")
    assert result.exit_code == 0, result.output
    assert "left out" in result.stderr
    assert "c.parquet' is broken" in " ".join(result.stderr.split())
    assert result.stdout == run_corral("fit", files / "parts", *FIT).stdout
    found = run_corral("fit", tmp_path, *FIT, "--on-error", "skip", "--json")
    assert "c.parquet" in json.loads(found.stdout)["skipped"][0]


def test_a_line_with_too_many_cells_is_left_out_if_asked(data, tmp_path):
    path = tmp_path / "data.csv"
    lines = data.read_text().splitlines()
    path.write_text("\n".join([*lines[:9], lines[9] + ",more,more", *lines[10:]]))
    assert run_corral("fit", path, *FIT).exit_code == 2
    result = run_corral("fit", path, *FIT, "--on-error", "skip")
    assert result.exit_code == 0, result.output
    assert "left out" in result.stderr
    assert result.stdout.count("\n") == 150
    assert "\np8," not in result.stdout


# Dry runs -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz", "data.parquet", "parts"])
def test_a_dry_run_writes_nothing(files, name, tmp_path, request):
    words = ("--labels", "l.csv", "--model", "m.skops", "--checkpoint-dir", "notes")
    words = [tmp_path / w if w[0] != "-" else w for w in words]
    result = run_corral("fit", files / name, *FIT, *words, "--dry-run")
    assert result.exit_code == 0, result.output
    assert "data      150 rows" in result.stdout
    assert "block by block: --checkpoint-dir is given" in result.stdout
    assert "time      about" in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_in_memory(files):
    result = run_corral("fit", files / "data.csv", *FIT, "--dry-run", "--json")
    facts = json.loads(result.stdout)
    assert facts["by_blocks"] == ""
    assert facts["n_rows"] == facts["n_sampled"] == 150
    assert facts["n_blocks"] == facts["n_passes"] == 1
    assert facts["used"]["color"] == "category"
    assert facts["memory_bytes"] < facts["limit_bytes"]
    assert facts["disk_bytes"] == 0


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("data.parquet", FIT),
        ("data.parquet", FIT[:4]),
        ("data.parquet", (*FIT, "--scale", "robust")),
        ("data.parquet", (*FIT[:4], "--columns", "a,c,d")),
        ("data.parquet", (*FIT[:4], "--exclude", "b")),
        ("parts", (*FIT, "--exclude", "b")),
        ("data.csv", FIT),
    ],
)
def test_a_dry_run_tells_how_often_the_rows_are_read(
    files, by_blocks, name, options, monkeypatch
):
    # A look at the first rows is no pass.
    monkeypatch.setattr("corral._open.FIRST_ROWS", 1)
    path = files / name
    facts = json.loads(run_corral("fit", path, *options, "--dry-run", "--json").stdout)
    from corral.cli._blockwise import WatchedSource

    read, n_read = WatchedSource.read, 0

    def count(self, start, stop):
        nonlocal n_read
        n_read += stop - start
        return read(self, start, stop)

    monkeypatch.setattr(WatchedSource, "read", count)
    assert run_corral("fit", path, *options).exit_code == 0
    # CSV is read once more when it is opened.
    n_passes = facts["n_passes"] - (name == "data.csv")
    assert n_passes * 150 <= n_read < (n_passes + 1) * 150
    assert facts["n_blocks"] == 5


def test_a_dry_run_leaves_out_what_the_fit_leaves_out(tmp_path):
    path = tmp_path / "data.csv"
    rows = [f"{i % 7},{i % 11},row {i}" for i in range(9000)]
    lines = ["a,b,name", *rows[:5000], "1,2,3,4", *rows[5000:]]
    path.write_text("\n".join(lines))
    plain = run_corral("fit", path, *FIT, "--dry-run")
    assert plain.exit_code == 2
    assert "has 4 cells in line 5002" in plain.output
    skipped = run_corral("fit", path, *FIT, "--on-error", "skip", "--dry-run", "--json")
    assert skipped.exit_code == 0, skipped.output
    assert json.loads(skipped.stdout)["n_rows"] == 9000


def test_a_dry_run_of_many_rows_looks_at_some(tmp_path, monkeypatch):
    monkeypatch.setattr("corral.cli._dry_run._SAMPLE_ROWS", 8000)
    monkeypatch.setattr("corral.cli._dry_run._HEAD_BYTES", 2**17)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 2)).round(3)
    X[:, 0] += 9 * rng.integers(0, 2, len(X))
    np.savetxt(tmp_path / "X.csv", X, "%.3f", ",", header="a,b", comments="")
    np.save(tmp_path / "X.npy", X)
    for name in ("X.csv", "X.npy"):
        words = (tmp_path / name, "--n-clusters", 2, "--n-outliers", 9)
        words = (*words, "--n-partitions", 20, "--json")
        facts = json.loads(run_corral("fit", *words, "--dry-run").stdout)
        assert facts["n_rows"] == pytest.approx(len(X), rel=0.02)
        assert facts["n_sampled"] == 8000
        assert 0 < facts["seconds"] < 600


QUICK = ("--n-partitions", 8, "--dry-run")


def test_a_dry_run_says_that_it_looked_at_some_rows(files, monkeypatch):
    monkeypatch.setattr("corral.cli._dry_run._SAMPLE_ROWS", 60)
    result = run_corral("fit", files / "data.csv", *FIT[:2], *QUICK)
    assert "data      150 rows" in result.stdout
    assert "sample    60 rows, which tell columns and time\n" in result.stdout


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(100, "about 100 seconds"), (1500, "about 25 minutes"), (9000, "about 2.5 hours")],
)
def test_a_dry_run_tells_long_times_in_minutes_and_hours(
    files, monkeypatch, seconds, words
):
    take = _dry_run._fit
    monkeypatch.setattr(_dry_run, "_fit", lambda *args: (take(*args)[0], seconds))
    result = run_corral("fit", files / "data.csv", *FIT, *QUICK)
    assert f"time      {words}\n" in result.stdout


def test_a_dry_run_of_a_form_that_is_read_whole(files, tmp_path):
    feather.write_feather(read_table(files / "data.csv"), tmp_path / "data.feather")
    result = run_corral("fit", tmp_path / "data.feather", *FIT, *QUICK, "--json")
    facts = json.loads(result.stdout)
    assert facts["n_rows"] == facts["n_sampled"] == 150
    assert facts["is_exact"] is True


def test_a_dry_run_of_a_detector(files):
    words = ("--method", "cor-detector", *QUICK, "--json")
    facts = json.loads(run_corral("fit", files / "data.csv", *FIT, *words).stdout)
    assert facts["method"] == "cor-detector"
    # Of methods that are no COR, no time is told.
    assert facts["seconds"] is not None


def test_a_dry_run_of_categories_alone_describes_no_clusters(files, by_blocks):
    path = files / "data.parquet"
    passes = []
    for columns in ("color", "color,a"):
        words = ("--columns", columns, *FIT[:4], *QUICK, "--json")
        passes.append(json.loads(run_corral("fit", path, *words).stdout)["n_passes"])
    assert passes[1] == passes[0] + 1


def test_a_dry_run_leaves_out_a_broken_file_if_asked(files, tmp_path):
    table = read_table(files / "data.csv")
    pq.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-9])
    stopped = run_corral("fit", tmp_path, *FIT, *QUICK)
    assert stopped.exit_code == 2
    assert "b.parquet' is broken or cut off" in only_line(stopped.stderr)
    words = ("--on-error", "skip", "--json")
    facts = json.loads(run_corral("fit", tmp_path, *FIT, *QUICK, *words).stdout)
    assert facts["n_rows"] == 150


def test_other_methods_have_no_time(files):
    result = run_corral("fit", files / "data.csv", "--method", "lof", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "time      not known for lof" in result.stdout


@pytest.mark.parametrize(
    ("name", "message"),
    [("-", "--dry-run needs a file"), ("dat.csv", "Did you mean")],
)
def test_a_dry_run_needs_data(files, name, message):
    path = name if name == "-" else files / name
    result = run_corral("fit", path, "--dry-run", input=b"")
    assert result.exit_code == 2
    assert message in only_line(result.stderr)


def test_a_checkpoint_that_was_just_begun_is_gone_on_with(files, tmp_path):
    # A run may be killed while it writes the page of its folder.
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / ".checkpoint.123.part.json").write_text("{")
    words = ("--checkpoint-dir", notes, "--labels", tmp_path / "l.csv", "--force")
    result = run_corral("fit", files / "data.csv", *FIT, *words)
    assert result.exit_code == 0, result.output
    (notes / "checkpoint.json").unlink()
    result = run_corral("fit", files / "data.csv", *FIT, *words)
    assert result.exit_code == 2
    assert f"--checkpoint-dir '{notes}' holds files but no checkpoint" in result.stderr


def test_files_of_a_folder_may_differ_in_columns_that_are_not_asked_for(
    files, tmp_path
):
    table = read_table(files / "data.csv")
    parts = tmp_path / "parts"
    parts.mkdir()
    pq.write_table(table.slice(0, 100), parts / "a.parquet")
    more = table.slice(100).append_column("more", pa.array([1.5] * 50))
    pq.write_table(more.drop_columns(["day"]), parts / "b.parquet")
    model = ("--model", tmp_path / "m.skops", "--force")
    chosen = (*FIT, "--columns", "a,c,color", *model)
    expected = run_corral("fit", files / "data.csv", *chosen)
    found = run_corral("fit", parts, *chosen)
    assert found.exit_code == 0, found.output
    assert found.stdout == expected.stdout
    again = run_corral("predict", tmp_path / "m.skops", parts)
    assert again.exit_code == 0, again.output
    # All columns are not the same in all files.
    refused = run_corral("fit", parts, *FIT)
    assert "Name columns that all files have" in only_line(refused.stderr)


def test_wide_rows_are_read_in_blocks_that_fit(files, by_blocks, tmp_path, monkeypatch):
    from corral.cli._blockwise import _READING, WatchedSource

    seen, read = {}, WatchedSource.read

    def note(self, start, stop):
        seen.setdefault(self._stage, set()).add(stop - start)
        return read(self, start, stop)

    # Rows are as wide as if they had very many columns.
    monkeypatch.setattr("corral._memory._COPIES_OF_NUMBERS", 2**20)
    monkeypatch.setattr("corral._memory._LEAST_ROWS", 4)
    monkeypatch.setattr(WatchedSource, "read", note)
    outputs = ("--model", tmp_path / "m.skops", "--report", tmp_path / "r.html")
    limit = ("--memory-limit", "400MB")
    result = run_corral("fit", files / "data.csv", *FIT, *outputs, *limit)
    assert result.exit_code == 0, result.output
    result = run_corral("predict", tmp_path / "m.skops", files / "data.csv", *limit)
    assert result.exit_code == 0, result.output
    stages = {*seen} - {_READING, None}
    assert len(stages) == 3
    assert all(max(seen[stage]) == 4 for stage in stages)
