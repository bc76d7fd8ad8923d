import json

import pytest

from tests.cli.example import FIT, only_line, run_corral

GOOD = """\
n-clusters = 3
n_outliers = 3
id-column = "name"
exclude = ["note", "same"]
scale = "robust"
"""


@pytest.fixture
def config(tmp_path):
    def write(text):
        path = tmp_path / "corral.toml"
        path.write_text(text)
        return path

    return write


def facts_of(data, *options):
    result = run_corral("fit", data, *options, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_keys_are_options_with_dash_or_underscore(data, config):
    facts = facts_of(data, "--config", config(GOOD))
    assert (len(facts["clusters"]), facts["n_outliers"]) == (3, 3)
    assert facts["id_column"] == "name"
    assert facts["scale"] == "robust"
    assert facts["dropped"] == {}


def test_the_command_line_wins(data, config):
    path = config(GOOD)
    facts = facts_of(data, "--config", path, "--n-clusters", 2, "--scale", "none")
    assert len(facts["clusters"]) == 2
    assert facts["scale"] == "none"
    # Wherever --config stands.
    assert len(facts_of(data, "--n-clusters", 2, "--config", path)["clusters"]) == 2


def test_a_share_on_the_line_wins_over_a_count_in_the_file(data, config):
    facts = facts_of(data, "--config", config(GOOD), "--contamination", 0.1)
    assert facts["n_outliers"] == 15


def test_a_flag_of_the_file_can_be_taken_back(data, config):
    path = config("n-clusters = 3\ntfidf = true\ncolumns = ['a', 'b', 'c', 'd']")
    assert facts_of(data, "--config", path, "--no-tfidf")["tfidf"] is False


def test_names_with_commas_need_no_quotes_in_a_list(tmp_path, config):
    path = tmp_path / "odd.csv"
    path.write_text('"a,b",c\n' + "".join(f"{i},{i % 7}\n" for i in range(40)))
    facts = facts_of(path, "--config", config("n_clusters = 2\ncolumns = ['a,b', 'c']"))
    assert list(facts["used"]) == ["a,b", "c"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n-cluster = 3", "has the key 'n-cluster'. Did you mean 'n-clusters'"),
        ("config = 'x'", "has the key 'config'."),
        ("[fit]\nseed = 3", "has the key 'fit'."),
        ("n-clusters = 2.5", "'2.5' is not a valid integer"),
        ("seed = true", "'True' is not a valid integer"),
        ("tfidf = 3", "has tfidf = 3. It should be true or false."),
        ("seed = [1, 2]", "has seed = [1, 2]. It should be one value."),
        ("scale = 'much'", "'much' is not one of"),
        ("n-clusters 3", "is not a TOML file"),
        (
            "seed = [{a" + ".a" * 5_000 + " = 1}]",
            "has seed = [{'a': {'a': {'a': {'a': {'a': {...}}}}}}]. It should be one",
        ),
        (
            "columns = ['a', ['b']]",
            "has columns = ['a', ['b']]. It should be one value, or a list of them.",
        ),
        ("a = " + "[" * 5_000, "is not a TOML file of options: its lists or tables"),
        ("seed = " + "9" * 5_000, "is not a TOML file: Exceeds the limit"),
        (
            "n-clusters = 2\nn_clusters = 3",
            "has the keys 'n-clusters' and 'n_clusters', which are the same option.",
        ),
        (
            "n-outliers = 3\ncontamination = 0.1",
            "Set either --n-outliers or --contamination, not both.",
        ),
    ],
)
def test_bad_files_are_one_sentence(data, config, text, message):
    result = run_corral("fit", data, "--config", config(text))
    assert result.exit_code == 2
    assert message in only_line(result.stderr)


def test_a_file_may_begin_with_the_mark_of_windows(data, config):
    facts = facts_of(data, "--config", config("\ufeffn-clusters = 3"))
    assert len(facts["clusters"]) == 3


def test_a_missing_file_is_one_sentence(data):
    result = run_corral("fit", data, "--config", "nowhere.toml")
    assert result.exit_code == 2
    assert "'nowhere.toml' does not exist" in only_line(result.stderr)


def test_options_of_the_file_are_in_the_command_of_the_report(data, config, tmp_path):
    report = tmp_path / "report.html"
    run_corral("fit", data, "--config", config(GOOD), "--report", report)
    page = report.read_text()
    assert "--scale robust" in page
    assert "--exclude note" in page


def test_compare_takes_a_file_too(data, config):
    text = "methods = ['cor', 'lof']\nn-clusters = 3\nn-outliers = 3"
    result = run_corral("compare", data, "--config", config(text), "--json")
    assert list(json.loads(result.stdout)["methods"]) == ["cor", "lof"]


def test_empty_lists_are_as_if_not_given(data, config, tmp_path):
    # Also where the call is told, as in the report.
    words = ("--config", config("exclude = []\n"), "--report", tmp_path / "r.html")
    result = run_corral("fit", data, *FIT, *words)
    assert result.exit_code == 0, result.output
