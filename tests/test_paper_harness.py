"""The harness of ``benchmarks/paper``: grids, expected numbers, runs, tables."""

import json
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator

pytest.importorskip("benchmarks.paper", reason="only in a copy of the repository")

from benchmarks.paper import __main__ as command_line
from benchmarks.paper import datasets, expected, grids, measures, methods, run
from benchmarks.paper.datasets import Dataset, MissingData
from benchmarks.paper.figures import draw_partitions, draw_strategies
from benchmarks.paper.grids import Column, Grid
from benchmarks.paper.methods import Method, Task
from benchmarks.paper.progress import open_bar
from benchmarks.paper.publish import publish
from benchmarks.paper.recipes import OURS, PAPER, back_to_file, prepare, shuffle
from benchmarks.paper.results import Result
from benchmarks.paper.run import Settings, run_grid
from benchmarks.paper.score import score_grid
from benchmarks.paper.store import RunKey, Store
from benchmarks.paper.tables import (
    average_table,
    compare_tables,
    describe_runs,
    time_tables,
)
from corral import COR
from corral.metrics import overall_score


class NearZero(BaseEstimator):
    """Clusters rows by the sign of their first value; the largest are outliers."""

    fitted = 0
    stop_at = None

    def __init__(self, n_outliers, seed, power=1):
        self.n_outliers = n_outliers
        self.seed = seed
        self.power = power

    def fit(self, X):
        type(self).fitted += 1
        if self.stop_at is not None and self.seed == self.stop_at[0]:
            raise self.stop_at[1]
        self.outlier_scores_ = np.abs(X[:, 0]) ** self.power
        self.labels_ = (X[:, 0] > 0).astype(int)
        self.labels_[np.argsort(self.outlier_scores_)[-self.n_outliers :]] = -1
        return self


@pytest.fixture
def near_zero(monkeypatch):
    """Make the method "near-zero" and the data set "line" known to the harness."""
    monkeypatch.setattr(NearZero, "fitted", 0)
    monkeypatch.setattr(NearZero, "stop_at", None)
    method = Method(
        "near-zero", "Near zero", lambda task: NearZero(task.n_outliers, task.seed)
    )
    monkeypatch.setitem(methods.METHODS, "near-zero", method)
    monkeypatch.setattr(datasets, "load", load_line)
    return NearZero


def load_line(name, data_dir=None):
    """Return 20 rows, sorted by label: two groups, and two outliers at the end."""
    if name == "absent":
        raise MissingData("it is not here.")
    X = np.concatenate([np.linspace(-2, -1, 9), np.linspace(1, 2, 9), [50.0, 60.0]])
    return Dataset(name, X[:, None], np.repeat([0, 1, -1], [9, 9, 2]), 2, 2)


def make_grid(*names, seeds=2, columns=("paper:near-zero",), **parameters):
    return Grid(
        name="tiny",
        title="Tiny",
        datasets=list(names or ["line"]),
        columns=[Column.parse(text) for text in columns],
        measures=["nmi", "rn", "jaccard", "f", "auc", "ap"],
        seeds=seeds,
        **parameters,
    )


def run_tiny(folder, grid=None, **settings):
    return run_grid(grid or make_grid(), Settings(folder, show_bar=False, **settings))


# Grids


@pytest.mark.parametrize("name", grids.names())
def test_grids_name_what_is_known(name):
    # read() raises for data sets, methods, recipes and measures it does not know.
    grid = grids.read(name)
    assert grid.datasets
    assert grid.runs
    known = {*methods.METHODS, *datasets.names()}
    for key in grid.seeds_of:
        assert set(key.split(":")) <= known


@pytest.mark.parametrize(("name", "table"), [("table2", 2), ("table3", 3)])
def test_cited_columns_are_in_the_expected_tables(name, table):
    cited = {method for _, method, _ in expected.read_quality(table)}
    for column in grids.read(name).columns:
        for each in (column, column.minus):
            assert each is None or each.source != "cited" or each.method in cited


def test_every_table_and_figure_has_a_grid():
    wanted = {*command_line.TABLES, *command_line.FIGURES, *command_line.QUALITY}
    assert wanted == set(grids.names())


def test_unknown_names_are_told():
    with pytest.raises(ValueError, match=r"There is no grid 'table9'\. Choose from"):
        grids.read("table9")
    with pytest.raises(ValueError, match="The data set 'iris' is not known. Choose"):
        datasets.expand(["iris"])
    with pytest.raises(ValueError, match="The method 'svm' is not known. Choose from"):
        methods.find("svm")
    with pytest.raises(ValueError, match="None of ecoli is in figure1. Choose from fb"):
        grids.read("figure1").narrow(["ecoli"], None)


def test_seeds_are_fewer_where_the_grid_says_so():
    grid = make_grid(seeds=20, seeds_of={"kddcup": 5, "kddcup:iforest": 3, "cor": 7})
    assert len(grid.seeds_for("ecoli", "kmeans")) == 20
    assert len(grid.seeds_for("ecoli", "cor")) == 7
    assert len(grid.seeds_for("kddcup", "cor")) == 5
    assert len(grid.seeds_for("kddcup", "iforest")) == 3
    # A method without chance needs one run.
    assert len(grid.seeds_for("ecoli", "lof")) == 1


# The paper's numbers

# Where the paper's last rows do not follow from its cells; expected/README.md.
MISPRINTS = {
    (2, "Average", "kmeans--", "jaccard"),
    (3, "Average", "kmeans--", "jaccard"),
    (3, "Average", "tonmf", "jaccard"),
    (3, "Score", "tonmf", "jaccard"),
}


def summarise_printed(table):
    """Return averages and scores that follow from the printed cells, and as printed."""
    cells = {key: mean for key, (mean, _) in expected.read_quality(table).items()}
    names, found, measured = (
        list(dict.fromkeys(parts)) for parts in zip(*cells, strict=True)
    )
    rows = [name for name in names if name not in expected.SUMMARIES]
    for measure in measured:
        values = [
            [cells.get((row, name, measure), np.nan) for row in rows] for name in found
        ]
        ours = {
            "Average": np.nanmean(values, axis=1),
            "Score": 100 * overall_score(values),
        }
        for row, numbers in ours.items():
            for name, number in zip(found, numbers, strict=True):
                yield (table, row, name, measure), number, cells[row, name, measure]


@pytest.mark.parametrize("table", [2, 3])
def test_expected_cells_give_the_printed_averages_and_scores(table):
    # Which shows that cells were copied well; the misprints are the paper's.
    wrong = {
        key
        for key, ours, printed in summarise_printed(table)
        if abs(ours - printed) > 0.011
    }
    assert wrong == {key for key in MISPRINTS if key[0] == table}


def test_both_tables_print_the_same_jaccard_of_cor():
    two, three = expected.read_quality(2), expected.read_quality(3)
    for dataset in datasets.names()[:12]:
        assert two[dataset, "cor", "jaccard"][0] == three[dataset, "cor", "jaccard"][0]


def test_expected_seconds():
    seconds = expected.read_seconds()
    assert seconds["iforest", "kddcup"] == 1455.41
    assert ("lof", "kddcup") not in seconds


# Recipes


def test_results_go_back_to_the_order_of_the_file():
    values = np.arange(7) * 10
    order = shuffle(7, seed=3)
    assert not np.array_equal(values[order], values)
    np.testing.assert_array_equal(back_to_file(values[order], order), values)


def test_runs_see_shuffled_rows_and_answer_in_file_order(near_zero, monkeypatch):
    seen = []
    fit = NearZero.fit
    monkeypatch.setattr(NearZero, "fit", lambda self, X: (seen.append(X), fit(self, X)))
    dataset = load_line("line")
    method = methods.find("near-zero")
    for seed in range(2):
        result, _ = run.run_once(method, NearZero(2, seed), dataset.X, seed)
        np.testing.assert_array_equal(result.labels, dataset.y)
        np.testing.assert_array_equal(result.scores, np.abs(dataset.X[:, 0]))
    assert not np.array_equal(seen[0], dataset.X)
    assert not np.array_equal(seen[0], seen[1])


def test_recipes_for_numbers():
    dataset = load_line("line")
    X = prepare(dataset, OURS)
    assert X.mean() == pytest.approx(0)
    assert X.std() == pytest.approx(1)
    np.testing.assert_array_equal(prepare(dataset, PAPER), dataset.X)
    assert OURS.metrics("numeric") == ("euclidean", "euclidean")


def test_recipes_for_text():
    counts = sparse.csr_array(np.array([[3.0, 0, 1], [0, 2, 2], [1, 0, 0]]))
    dataset = Dataset("text", counts, np.array([0, 1, -1]), 2, 1, "text")
    X = prepare(dataset, OURS)
    np.testing.assert_allclose((X * X).sum(axis=1), 1)
    assert (prepare(dataset, PAPER) != counts).nnz == 0
    assert OURS.metrics("text") == ("cosine", "cosine")
    assert PAPER.metrics("text") == ("cosine", "euclidean")


# Methods


@pytest.mark.parametrize("name", sorted(methods.METHODS))
def test_methods_answer_in_one_form(name):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (100, 3)), rng.normal(9, 1, (100, 3))])
    X[:3] = [[40, -40, 40], [-40, 40, 40], [40, 40, -40]]
    method = methods.find(name)
    estimator = method.build(Task(2, 3, "euclidean", "euclidean", seed=0))
    result, _ = run.run_once(method, estimator, X, seed=0)
    assert result.labels.shape == result.scores.shape == (200,)
    assert result.labels.min() == -1
    assert result.seconds["total"] > 0
    if not method.has_clusters:
        assert set(result.labels) == {-1, 0}
        assert np.count_nonzero(result.labels == -1) == 3


def test_cor_tells_its_partitions_apart_from_the_rest():
    X = np.random.default_rng(0).normal(size=(200, 3))
    seconds = methods.fit(COR.paper(2, random_state=0), X, True).seconds
    assert 0 < seconds["partitions"] < seconds["total"]
    assert seconds["partitions"] + seconds["fusion"] == pytest.approx(seconds["total"])


def test_methods_say_why_they_skip():
    text = Dataset("text", sparse.csr_array((9, 3)), None, 2, 1, "text")
    assert methods.find("hdbscan").skip(text) == "HDBSCAN takes no sparse rows"
    many = Dataset("many", np.empty((70_000, 0)), None, 2, 1)
    assert "70,000" in methods.find("lof").skip(many)
    assert methods.find("cor").skip(many) is None


# Runs


def test_runs_are_stored_and_then_found(near_zero, tmp_path):
    assert str(run_tiny(tmp_path)) == "2 runs done, 0 were there"
    assert near_zero.fitted == 2
    assert str(run_tiny(tmp_path)) == "0 runs done, 2 were there"
    assert near_zero.fitted == 2
    run_tiny(tmp_path, force=True)
    assert near_zero.fitted == 4


def test_stored_runs_say_how_they_were_made(near_zero, tmp_path):
    run_tiny(tmp_path)
    key = RunKey("line", "paper", "near-zero", 1)
    record = json.loads(Store(tmp_path).path(key, ".json").read_text())
    assert record["status"] == "done"
    assert record["identity"]["seed"] == 1
    assert record["identity"]["parameters"] == {"n_outliers": 2, "power": 1, "seed": 1}
    assert record["identity"]["recipe"]["numeric"] == "as they are"
    assert record["seconds"]["total"] > 0
    for name in ("date", "processor", "threads", "versions", "commit"):
        assert name in record["machine"]


@pytest.mark.parametrize("change", ["parameters", "version"])
def test_changed_runs_are_done_again(near_zero, tmp_path, monkeypatch, change):
    run_tiny(tmp_path)
    if change == "version":
        monkeypatch.setattr(run, "__version__", "99.0")
    else:
        method = Method("near-zero", "", lambda task: NearZero(2, task.seed, power=2))
        monkeypatch.setitem(methods.METHODS, "near-zero", method)
    assert run_tiny(tmp_path).done == 2


def test_a_stopped_process_loses_one_run(near_zero, tmp_path, monkeypatch):
    # Ctrl-C in the second of four runs; the next call starts with that one.
    monkeypatch.setattr(NearZero, "stop_at", (1, KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        run_tiny(tmp_path, make_grid(seeds=4))
    monkeypatch.setattr(NearZero, "stop_at", None)
    tally = run_tiny(tmp_path, make_grid(seeds=4))
    assert (tally.found, tally.done) == (1, 3)


@pytest.mark.parametrize("left", ["arrays only", "half of the arrays", "drafts"])
def test_what_a_killed_run_leaves_is_not_taken_for_finished(near_zero, tmp_path, left):
    run_tiny(tmp_path, make_grid(seeds=1))
    store, key = Store(tmp_path), RunKey("line", "paper", "near-zero", 0)
    arrays, record = store.path(key, ".npz"), store.path(key, ".json")
    if left == "drafts":
        arrays.rename(arrays.with_name(f".{arrays.name}.123"))
        record.rename(record.with_name(f".{record.name}.123"))
    else:
        record.unlink()
    if left == "half of the arrays":
        arrays.write_bytes(arrays.read_bytes()[:100])
    assert store.read(key) is None
    assert run_tiny(tmp_path, make_grid(seeds=1)).done == 1
    np.testing.assert_array_equal(store.read(key).labels, load_line("line").y)


def test_a_write_that_fails_keeps_no_half_file(near_zero, tmp_path, monkeypatch):
    def write_half(file, **arrays):
        file.write(b"PK")
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez_compressed", write_half)
    with pytest.raises(OSError, match="no space left"):
        run_tiny(tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_failed_run_stops_no_other_and_is_tried_again(
    near_zero, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(NearZero, "stop_at", (0, RuntimeError("too narrow")))
    tally = run_tiny(tmp_path)
    assert tally.failed == ["line, paper:near-zero, seed 0"]
    assert tally.done == 1
    assert "RuntimeError: too narrow" in capsys.readouterr().err
    monkeypatch.setattr(NearZero, "stop_at", None)
    tally = run_tiny(tmp_path)
    assert (tally.found, tally.done) == (1, 1)


def test_missing_data_is_told_and_passed_over(near_zero, tmp_path, capsys):
    tally = run_tiny(tmp_path, make_grid("absent", "line"))
    assert (tally.missing, tally.done) == (["absent"], 2)
    assert "skipped: absent: it is not here." in capsys.readouterr().err


# Tables


def store_line(folder, method, seed, labels, seconds, recipe="paper", dataset="line"):
    """Store a raw output, as a run would."""
    result = Result(np.array(labels), np.arange(20.0), True, seconds)
    key = RunKey(dataset, recipe, method, seed)
    Store(folder).write(key, result, {"identity": {}})


def swap_one(y):
    """Return labels in which a row takes the place of one of the two outliers."""
    labels = y.copy()
    labels[[0, 18]] = labels[[18, 0]]
    return labels


def test_numbers_of_known_raw_files(near_zero, tmp_path):
    # Perfect once; once with 1 of 2 outliers: Jaccard 1 / 3 and F 1 / 2. So the means
    # are 66.7 and 75.0 with deviations 47.1 and 35.4. Scores rank both outliers first.
    y = load_line("line").y
    store_line(tmp_path, "near-zero", 0, y, {"total": 1.0})
    store_line(tmp_path, "near-zero", 1, swap_one(y), {"total": 3.0})
    grid = make_grid(
        columns=["cited:cor", "paper:near-zero", "paper:near-zero minus cited:cor"]
    )
    scores = score_grid(grid, tmp_path, None)
    cited = {("line", "cor", "jaccard"): (60.0, 1.5), ("line", "cor", "f"): (80.0, 2.0)}
    text = compare_tables(grid, scores, cited)
    jaccard = text.split("### Jaccard")[1].split("###")[0]
    assert read_row(jaccard, "data set") == [
        "COR, printed",
        "Near zero, as in the paper",
        "difference",
    ]
    assert read_row(jaccard, "line") == ["60.0 ± 1.5", "66.7 ± 47.1", "+6.7"]
    assert read_row(jaccard, "**Average**") == ["60.0", "66.7", "+6.7"]
    assert read_row(jaccard, "**Score**") == ["100.0", "100.0", ""]
    f = text.split("### F-measure")[1].split("###")[0]
    assert read_row(f, "line") == ["80.0 ± 2.0", "75.0 ± 35.4", "-5.0"]
    auc = text.split("### ROC AUC")[1].split("###")[0]
    assert read_row(auc, "line") == ["100.0 ± 0.0"]
    averages = average_table(grid, scores)
    assert read_row(averages, "Near zero")[:1] == ["1"]
    assert "66.7" in read_row(averages, "Near zero")
    assert "47.1" in read_row(averages, "Near zero")


def read_row(text, name):
    """Return the cells of the row of a Markdown table that begins with the name."""
    lines = [line for line in text.splitlines() if line.startswith(f"| {name} ")]
    assert len(lines) == 1, text
    return [cell.strip() for cell in lines[0].strip("|").split("|")][1:]


def test_tables_say_what_has_no_result_and_why(near_zero, tmp_path):
    store_line(tmp_path, "near-zero", 0, load_line("line").y, {"total": 1.0})
    key = RunKey("other", "paper", "near-zero", 0)
    Store(tmp_path).write_reason(key, "skipped", "too many rows", {"identity": {}})
    store_line(tmp_path, "kmeans", 0, load_line("line").y, {}, dataset="other")
    grid = make_grid(
        "line", "other", seeds=1, columns=["paper:near-zero", "paper:kmeans"]
    )
    text = compare_tables(grid, score_grid(grid, tmp_path, None))
    nmi = text.split("### NMI")[1].split("###")[0]
    assert read_row(nmi, "other") == ["–", "100.0"]
    assert read_row(nmi, "**Average**") == ["100.0 (1 of 2)", "100.0 (1 of 2)"]
    assert "- near-zero on other: too many rows" in text


def test_detectors_have_no_numbers_for_clusters():
    truth = np.array([0, 0, 1, 1, -1])
    found = Result(np.array([0, 0, 0, 0, -1]), None, has_clusters=False)
    assert measures.measure("nmi", truth, found) is None
    assert measures.measure("auc", truth, found) is None
    assert measures.measure("jaccard", truth, found) == 100


def test_times_stand_beside_the_papers_ratios(near_zero, tmp_path):
    # The paper's times on wap: K-means 1.25, partitions 36.58, the rest 0.19 seconds.
    y = load_line("line").y
    times = {"total": 2.5, "partitions": 2.0, "fusion": 0.5}
    store_line(tmp_path, "kmeans", 0, y, {"total": 0.5}, "ours", "wap")
    store_line(tmp_path, "cor-paper", 0, y, times, "ours", "wap")
    grid = make_grid("wap", seeds=1, columns=["ours:kmeans", "ours:cor-paper"])
    seconds, ratios = time_tables(grid, score_grid(grid, tmp_path, None)).split(
        "### Times K-means"
    )
    assert read_row(seconds, "COR.paper(), 100 basic partitions") == ["37 / 2"]
    assert read_row(ratios, "COR.paper(), 100 basic partitions") == ["29 / 4"]
    assert read_row(ratios, "COR.paper(), the rest") == ["0.15 / 1"]
    assert read_row(ratios, "LOF") == ["21 / –"]


def test_tables_say_with_what_they_were_made(near_zero, tmp_path):
    run_tiny(tmp_path)
    text = describe_runs(make_grid(), tmp_path)
    assert text.startswith("Made with: 2 runs of up to 2 seeds; corral ")


# Figures


def test_figures_are_small_files(near_zero, tmp_path):
    pytest.importorskip("matplotlib", reason="figures need the extra paper")
    run_tiny(tmp_path)
    grid = make_grid()
    scores = score_grid(grid, tmp_path, None)
    for draw in (draw_partitions, draw_strategies):
        (path,) = draw(grid, scores, Settings(tmp_path))
        assert "<svg" in path.read_text()
        assert path.stat().st_size < 50_000


def test_missing_extras_are_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(ImportError, match=r"needs tqdm.*pip install \"corral\[paper"):
        open_bar(3)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"need matplotlib.*install \"corral\[paper"):
        draw_partitions(make_grid(), [], Settings(tmp_path))


# The command


def test_the_command_makes_a_table_without_any_data(tmp_path, capsys):
    arguments = ["--datasets", "generated/blobs", "--seeds", "1", "--quiet"]
    code = command_line.main(["quick", *arguments, "--output", str(tmp_path)])
    text = capsys.readouterr().out
    assert code == 0
    assert read_row(text.split("### Jaccard")[1].split("###")[0], "generated/blobs")
    assert (tmp_path / "tables" / "quick.md").read_text() == text.rstrip("\n") + "\n"
    header = (tmp_path / "scores" / "quick.csv").read_text().splitlines()[0]
    assert header == "dataset,recipe,method,seed,measure,value"


def test_tables_are_published_between_marks(tmp_path):
    (tmp_path / "tables").mkdir()
    (tmp_path / "figures").mkdir()
    (tmp_path / "tables" / "table2.md").write_text("## Table 2\n\n| new |\n")
    (tmp_path / "figures" / "figure1.svg").write_text("<svg/>")
    page = tmp_path / "page.md"
    page.write_text("Why.\n<!-- begin table2 -->\n| old |\n<!-- end table2 -->\nSo.\n")
    assert publish(page, tmp_path) == ["table2", "figure1.svg"]
    assert page.read_text() == (
        "Why.\n<!-- begin table2 -->\n| new |\n<!-- end table2 -->\nSo.\n"
    )
    assert (tmp_path / "page" / "figure1.svg").read_text() == "<svg/>"


def test_what_cannot_be_published_is_told(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- begin table3 -->\n<!-- end table3 -->\n")
    with pytest.raises(ValueError, match="Make it with: python -m .* table table3"):
        publish(page, tmp_path)
    page.write_text("Nothing.")
    with pytest.raises(ValueError, match=r"page\.md has no place for a table"):
        publish(page, tmp_path)


def test_the_command_tells_mistakes_without_a_traceback(tmp_path, capsys):
    code = command_line.main(["run", "table2", "--datasets", "iris"])
    assert code == 2
    assert "The data set 'iris' is not known." in capsys.readouterr().err


def test_ctrl_c_says_how_to_go_on(near_zero, tmp_path, monkeypatch, capsys):
    def stop(grid, settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "run_grid", stop)
    assert command_line.main(["run", "table2", "--output", str(tmp_path)]) == 130
    assert "the same command goes on" in capsys.readouterr().err
