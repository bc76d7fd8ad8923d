"""What the page asks for, and what it may not."""

import pytest

from corral.explore._session import Session
from tests.explore.conftest import TOKEN

NUMBERS = {"n_clusters": 3, "n_outliers": 3}


def ask(client, path, content):
    answer = client.post(f"/{TOKEN}/{path}", json=content)
    return answer.status_code, answer.json()


def test_opening_and_view_go_together(client, session):
    opening = client.get(f"/{TOKEN}/opening").json()
    assert opening["n_samples"] == 150
    assert opening["chosen"] == list(session.chosen)
    status, view = ask(client, "view", NUMBERS)
    assert status == 200
    assert len(view["labels"]) == len(opening["map"]["x"]) == 150
    assert view["labels"].count(-1) == 3
    assert view["command"].startswith("corral fit ")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_clusters": 0}, "n_clusters=0 should be a whole number from 1 on"),
        ({"n_clusters": -1}, "n_clusters=-1 should be"),
        ({"n_outliers": -1}, "n_outliers=-1 should be a whole number from 0 on"),
        ({"n_clusters": 2.5}, "n_clusters=2.5 should be"),
        ({"n_clusters": True}, "n_clusters=True should be"),
        ({"n_clusters": "3"}, "n_clusters=3 should be"),
        ({"n_clusters": None}, "n_clusters=None should be"),
        ({"n_outliers": 10**400}, "should be a whole number"),
        ({"n_outliers": 148}, "3 clusters and 148 outliers need 152 rows"),
        ({"more": 1}, "should have n_clusters, n_outliers, and no more"),
    ],
)
def test_bad_numbers_are_sentences(client, faults, change, message):
    status, answer = ask(client, "view", NUMBERS | change)
    assert status == 422
    assert message in answer["error"]
    assert faults == []


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"3", b"{", b"\xff", b"[" * 3000, b'{"n_clusters": NaN}']
)
def test_what_is_no_request_is_a_sentence(client, body):
    answer = client.post(
        f"/{TOKEN}/view", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 422
    assert answer.json()["error"].startswith("The request ")


def test_numbers_that_the_codes_do_not_support_are_sentences(client, faults):
    status, answer = ask(client, "view", {"n_clusters": 150, "n_outliers": 0})
    # As many clusters as rows: either all codes are distinct, or there are too few.
    assert status in (200, 422)
    assert faults == []
    assert status == 200 or "distinct codes" in answer["error"]


def test_an_unforeseen_error_is_told_and_kept(client, faults, monkeypatch):
    def fail(*_):
        raise RuntimeError("the sky fell")

    monkeypatch.setattr(Session, "view", fail)
    status, answer = ask(client, "view", NUMBERS)
    assert status == 500
    assert "the sky fell" in answer["error"]
    assert [str(each) for each in faults] == ["the sky fell"]


def test_save_asks_before_it_replaces(client, tmp_path):
    asked = NUMBERS | {"name": "mine", "replace": False}
    status, answer = ask(client, "save", asked)
    assert status == 200
    names = {"mine-labels.csv", "mine-report.html", "mine-command.sh"}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert answer["files"][0] == str(tmp_path / "mine-labels.csv")
    before = (tmp_path / "mine-labels.csv").read_bytes()
    other = asked | {"n_outliers": 5}
    status, answer = ask(client, "save", other)
    assert (status, set(answer["exist"])) == (409, names)
    assert (tmp_path / "mine-labels.csv").read_bytes() == before
    status, _ = ask(client, "save", other | {"replace": True})
    assert status == 200
    assert (tmp_path / "mine-labels.csv").read_bytes() != before


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        ".",
        "..",
        ".hidden",
        "../up",
        "a/b",
        "a\\b",
        "/etc/passwd",
        "C:x",
        "a\0b",
        "a\nb",
        "-rf",
        "a*",
        "nul",
        "COM1.x",
        "x" * 101,
        "x.",
        "x ",
        "a%2fb",
        "a\u202eb",
        "a\uff0fb",
        "~",
    ],
    ids=repr,
)
def test_names_are_plain(client, tmp_path, name):
    asked = NUMBERS | {"name": name, "replace": True}
    status, answer = ask(client, "save", asked)
    assert status == 422
    assert "cannot begin the names of files" in answer["error"]
    assert list(tmp_path.iterdir()) == []


def test_save_takes_texts_and_truth_values_only(client, tmp_path):
    for change in ({"name": 3}, {"name": ["a"]}, {"replace": 1}, {"replace": "yes"}):
        asked = NUMBERS | {"name": "a", "replace": True} | change
        assert ask(client, "save", asked)[0] == 422
    assert list(tmp_path.iterdir()) == []
