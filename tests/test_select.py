"""Choosing the number of clusters and of outliers."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.cluster import KMeans

import corral
from corral import COR, select
from corral._criteria import Borders
from corral._reasons import Choice
from corral._search import Answer, Limits
from corral._tails import Gaps
from corral.datasets import (
    make_blobs_with_outliers,
    make_moons_with_noise,
    make_sparse_text,
)


@pytest.mark.parametrize(("n_clusters", "n_outliers"), [(1, 10), (3, 0), (6, 30)])
def test_planted_numbers_are_found(n_clusters, n_outliers):
    X, _ = make_blobs_with_outliers(
        400, 3, n_clusters=n_clusters, n_outliers=n_outliers, random_state=3
    )
    found = select(X, random_state=0)
    assert (found.n_clusters_, found.n_outliers_) == (n_clusters, n_outliers)


def test_moons_are_two():
    X, _ = make_moons_with_noise(500, n_outliers=15, random_state=0)
    found = select(X, random_state=0)
    assert found.n_clusters_ == 2
    assert abs(found.n_outliers_ - 15) <= 3


@pytest.fixture(scope="module")
def blobs():
    return make_blobs_with_outliers(
        300, 3, n_clusters=4, n_outliers=12, random_state=0
    )[0]


@pytest.fixture(scope="module")
def found(blobs):
    return select(blobs, random_state=0)


def test_what_was_chosen_can_be_fitted_and_sets_aside_the_planted_rows(found):
    X, y = make_blobs_with_outliers(300, 3, n_clusters=4, n_outliers=12, random_state=0)
    model = COR(found.n_clusters_, n_outliers=found.n_outliers_, random_state=0).fit(X)
    np.testing.assert_array_equal(model.labels_ == -1, y == -1)


def test_table_has_the_choice_once_and_every_number_of_clusters(found):
    table = found.table
    chosen = table[table["is_chosen"]]
    assert chosen[["n_clusters", "n_outliers"]].to_numpy().tolist() == [[4, 12]]
    beside = table[table["n_outliers"] == 12]
    assert set(range(1, 11)) <= set(beside["n_clusters"])
    for name in ("told", "border", "description_length", "stability", "objective"):
        assert beside[name].notna().all()
    assert beside["told"].between(0, 1 + 1e-9).all()
    assert beside["stability"].between(-1, 1).all()
    # Curves over the numbers of outliers have the objective alone.
    assert table["objective"].notna().all()
    assert len(table["n_outliers"].unique()) > 5


def test_reason_names_the_numbers_and_the_runner_up(found):
    assert "4 clusters" in found.reason
    assert "12 strangest rows" in found.reason
    k, o = found.runner_up
    assert f"The runner-up is {k} cluster" in found.reason
    assert (k, o) != (found.n_clusters_, found.n_outliers_)
    assert found.gap_numbers.tolist() == list(range(1, 300 // 4 + 1))
    assert found.gap_numbers[found.gap_widths.argmax()] == 12


def test_same_seed_same_answer_for_any_number_of_threads(blobs, found):
    again = select(blobs, random_state=0, n_jobs=2)
    assert again.reason == found.reason
    assert again.table.equals(found.table)


def test_ranges_are_kept_to(blobs):
    found = select(blobs, (2, 3), (0, 5), random_state=0)
    assert 2 <= found.n_clusters_ <= 3
    assert found.n_outliers_ <= 5
    found = select(blobs, (6, 7), (20, 20), random_state=0)
    assert 6 <= found.n_clusters_ <= 7
    assert found.n_outliers_ == 20


def test_a_single_pair_is_taken_as_it_is(blobs):
    found = select(blobs, (5, 5), (9, 9), random_state=0)
    assert (found.n_clusters_, found.n_outliers_) == (5, 9)


def test_many_rows_are_searched_in_part_and_the_reason_says_so(blobs, monkeypatch):
    monkeypatch.setattr("corral._search._SEARCH_ROWS", 200)
    found = select(blobs, random_state=0)
    assert (found.n_clusters_, found.n_outliers_) == (4, 12)
    assert found.n_searched == 200
    assert "200 random rows of 300" in found.reason


@pytest.mark.parametrize("n_outliers", [20, "auto"])
def test_a_part_may_have_more_outliers_than_its_share(monkeypatch, n_outliers):
    # Each that is left over is told apart from all else, as no cluster is.
    monkeypatch.setattr("corral._search._SEARCH_ROWS", 200)
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = 40 * np.eye(3, 5)[rng.integers(3, size=600)] + rng.normal(size=(600, 5))
        far = rng.normal(size=(20, 5))
        X[:20] = far / np.linalg.norm(far, axis=1, keepdims=True) * 500
        model = COR(n_outliers=n_outliers, n_partitions=20, random_state=seed)
        model.set_params(n_resamples=0, k_max=6).fit(X)
        found.append((model.n_clusters_, model.n_outliers_))
    assert found == [(3, 20)] * 3


def test_groups_too_small_for_a_cluster_are_outliers():
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0.0], [30.0, 0.0], [0.0, 30.0]])
    X = np.repeat(centers, [100, 100, 8], axis=0) + rng.normal(size=(208, 2))
    found = select(X, random_state=0)
    assert (found.n_clusters_, found.n_outliers_) == (2, 8)
    assert (
        select(X, min_cluster_share=0.0, o_range=(0, 0), random_state=0).n_clusters_
        == 3
    )


def test_equal_rows_are_one_cluster_without_outliers():
    found = select(np.ones((30, 2)), random_state=0)
    assert (found.n_clusters_, found.n_outliers_) == (1, 0)


def test_categories_alone_have_clusters_and_no_gaps():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1, 2], 40)
    words = np.array(["red", "green", "blue"])
    X = pandas.DataFrame(
        {f"word {j}": words[(kind + rng.integers(3)) % 3] for j in range(6)}
    )
    found = select(X, categorical_features=list(X.columns), random_state=0)
    assert (found.n_clusters_, found.n_outliers_) == (3, 0)
    assert "no gaps" in found.reason


def test_sparse_rows_with_cosine_distance_and_their_topics():
    X, _ = make_sparse_text(
        200, 300, n_clusters=3, n_outliers=0, document_length=60, random_state=0
    )
    assert select(X, metric="cosine", random_state=0).n_clusters_ == 3


def test_missing_cells_do_not_hide_the_clusters(blobs):
    X = blobs.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.02] = np.nan
    assert select(X, random_state=0).n_clusters_ == 4


def test_few_rows_are_no_error():
    found = select(np.arange(8.0)[:, None], random_state=0)
    assert found.n_clusters_ >= 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"k_range": (3, 2)}, r"k_range=\(3, 2\) should be two whole numbers"),
        ({"k_max": 0}, "k_max=0 should be a whole number, 1 or more"),
        ({"k_range": 3}, "k_range=3 should be two whole numbers"),
        ({"k_range": (2, 301)}, r"k_range=\(2, 301\) should be .* from 1 to 300"),
        ({"o_range": (0, 300)}, r"o_range=\(0, 300\) should be .* from 0 to 299"),
        ({"min_cluster_share": "a"}, "min_cluster_share='a' should be at least 0"),
        ({"contamination_max": 1.0}, "contamination_max=1.0 should be at least 0"),
    ],
)
def test_wrong_limits_are_refused(blobs, arguments, words):
    with pytest.raises(ValueError, match=words):
        select(blobs, **arguments)


def draw_in_noise(n_clusters, seed, n_samples=600):
    """Return round clusters in the plane, and 15 % noise all over the box."""
    rng = np.random.default_rng(seed)
    n_noise = int(0.15 * n_samples)
    centers = np.array([[0, 0], [8, 0], [4, 7]])[:n_clusters]
    X = centers[rng.integers(n_clusters, size=n_samples - n_noise)]
    X = X + rng.normal(size=X.shape)
    noise = rng.uniform(X.min(axis=0) - 3, X.max(axis=0) + 3, (n_noise, 2))
    return np.concatenate([X, noise])


@pytest.mark.parametrize("n_clusters", [2, 3])
def test_clusters_in_noise_are_found(n_clusters):
    found = [
        select(draw_in_noise(n_clusters, seed), k_max=6, random_state=seed)
        for seed in range(3)
    ]
    assert sum(each.n_clusters_ == n_clusters for each in found) >= 2
    # Noise lies far out or among the rows of a cluster; what lies far out is counted.
    assert np.median([each.n_outliers_ for each in found]) == pytest.approx(90, rel=0.6)


def test_clusters_that_touch_are_two():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    X[1000:, 0] += 3.5
    found = select(X, k_max=6, random_state=0)
    assert found.n_clusters_ == 2
    assert found.n_outliers_ <= 40
    # They are seen without the rows between them, or by the valley there.
    assert "at the emptiest places" in found.reason or "they meet" in found.reason


@pytest.mark.parametrize("n_features", [2, 10])
def test_one_crowd_is_one(n_features):
    X = np.random.default_rng(0).normal(size=(400, n_features))
    found = select(X, k_max=6, random_state=0)
    assert (found.n_clusters_, found.n_outliers_) == (1, 0)
    assert found.reason.startswith("No two groups can be told apart: all rows are one")
    assert "No gap between the strangest rows is a sign of outliers" in found.reason


def explain(
    how="told",
    outliers="none",
    *,
    n_asked=0,
    n_small=0,
    told=0.97,
    n_searched=1000,
    **choice,
):
    """Return the reason for a choice among 1,000 rows, without any rows."""
    n_cut, n_clusters = 3, 3 - bool(n_small)
    answer = Answer(n_asked, n_asked + n_small, n_cut, n_clusters, how, [], True)
    gaps = Gaps(np.where(np.arange(101) == 40, 123.4, 2.5), 10.2)
    borders = SimpleNamespace(borders=Borders(0.61, 4.0))
    search = SimpleNamespace(
        limits=Limits((1, 10), (0, 100)),
        n_samples=1000,
        n_searched=n_searched,
        told=lambda o: {n_asked: {1: 1.0, n_cut: told, n_cut + 1: 0.55}}[o],
        candidates=lambda o: {n_asked: {n_cut: borders}}[o],
    )
    choice = {"how": outliers, "n_outliers": 0} | choice
    return Choice(answer, **choice).explain(gaps, search)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"how": "asked"}, "3 clusters, because that was asked for. "),
        ({"how": "crowd"}, "No two groups can be told apart: all rows are one crowd. "),
        (
            {"how": "told"},
            "Any two of 3 clusters are told apart to 97% or more, while of more, two "
            "would be told apart to 55% only. ",
        ),
        (
            {"how": "told", "told": 0.999},
            "Any two of 3 clusters are told apart, while of more, two ",
        ),
        (
            {"how": "touching"},
            "Any two of 3 clusters are told apart to 97% or more; where they meet, "
            "rows lie at emptier places than 61% of the others. ",
        ),
        (
            {"how": "told", "n_asked": 100},
            "Without the 10% of the rows at the emptiest places, any two of 3 clusters "
            "are told apart to 97% or more, while ",
        ),
        (
            {"how": "touching", "n_asked": 250},
            "Without the 25% of the rows at the emptiest places, any two of 3 clusters "
            "are told apart to 97% or more; where they meet, ",
        ),
        (
            {"how": "told", "n_small": 1},
            "Any two of 3 groups are told apart to 97% or more, while ",
        ),
    ],
)
def test_reason_says_why_there_are_so_many_clusters(asked, words):
    assert explain(**asked).startswith(words)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            {},
            " No gap between the strangest rows is a sign of outliers: the widest is "
            "123 times as wide as expected, and 10.2 would be a sign.",
        ),
        (
            {"outliers": "gap", "n_outliers": 40, "n_beyond": 40},
            " Below the 40 strangest rows is a gap 123 times as wide as expected; 10.2 "
            "is a sign of outliers.",
        ),
        # Outliers were sure to be there, and no gap is wide.
        (
            {"outliers": "gap", "n_outliers": 1, "n_beyond": 1},
            " Below the strangest row is a gap 2.5 times as wide as expected; 10.2 "
            "would be a sign of outliers.",
        ),
        (
            {"outliers": "excess", "n_outliers": 70},
            " 70 rows more lie far out of the clusters than the tails of these have.",
        ),
        (
            {"outliers": "asked", "n_outliers": 70},
            " 70 rows set aside, because that was asked for.",
        ),
        (
            {"n_small": 8, "n_outliers": 8},
            " would be a sign. 8 rows in groups too small for a cluster count as "
            "outliers.",
        ),
        ({"runner_up": (1, 5)}, " The runner-up is 1 cluster and 5 outliers."),
        (
            {"n_searched": 300},
            " Clusters were searched in 300 random rows of 1,000, gaps in all.",
        ),
    ],
)
def test_reason_says_why_there_are_so_many_outliers(asked, words):
    assert explain(**asked).endswith(words)


def test_numbers_are_chosen_with_any_divergence(blobs):
    model = COR(divergence="holoentropy", random_state=0).fit(blobs)
    assert (model.n_clusters_, model.n_outliers_) == (4, 12)


def test_select_is_public():
    assert corral.select is select
    assert "select" in corral.__all__


def test_fit_chooses_what_select_chooses_and_equals_the_fit_with_it_given(blobs, found):
    auto = COR(random_state=0).fit(blobs)
    assert auto.selection_.reason == found.reason
    assert (auto.n_clusters_, auto.n_outliers_) == (4, 12)
    given = COR(4, n_outliers=12, k_range="auto", random_state=0).fit(blobs)
    np.testing.assert_array_equal(auto.labels_, given.labels_)
    np.testing.assert_array_equal(auto.outlier_scores_, given.outlier_scores_)
    assert given.selection_ is None


def test_one_number_can_be_given_and_the_other_chosen(blobs):
    outliers = COR(3, random_state=0).fit(blobs)
    assert (outliers.n_clusters_, outliers.n_outliers_) == (3, 12)
    assert "3 clusters, because that was asked for" in outliers.selection_.reason
    given = COR(3, n_outliers=12, random_state=0).fit(blobs)
    np.testing.assert_array_equal(outliers.labels_, given.labels_)
    clusters = COR(n_outliers=12, random_state=0).fit(blobs)
    assert (clusters.n_clusters_, clusters.n_outliers_) == (4, 12)
    share = COR(contamination=0.04, random_state=0).fit(blobs)
    assert (share.n_clusters_, share.n_outliers_) == (4, 12)


def test_a_given_number_of_outliers_is_never_changed(blobs):
    for n_outliers in (0, 7, 20):
        model = COR(n_outliers=n_outliers, k_max=6, random_state=0).fit(blobs)
        assert model.n_outliers_ == n_outliers == (model.labels_ == -1).sum()


def test_limits_of_the_choice_are_kept_to(blobs):
    model = COR(k_max=3, contamination_max=0.01, random_state=0).fit(blobs)
    assert model.n_clusters_ <= 3
    assert model.n_outliers_ <= 3


def test_rows_without_weight_do_not_count_in_the_choice(blobs):
    plain = COR(random_state=0).fit(blobs)
    far = blobs[:5] + 1000
    model = COR(random_state=0).fit(
        np.concatenate([blobs, far]), sample_weight=np.repeat([1.0, 0.0], [300, 5])
    )
    assert (model.n_clusters_, model.selection_.n_outliers_) == (4, 12)
    # They are as strange as outliers, and do not take the places of these.
    np.testing.assert_array_equal(model.labels_[:300] == -1, plain.labels_ == -1)
    assert (model.labels_[300:] == -1).all()
    assert model.n_outliers_ == 17


def test_more_clusters_than_codes_are_refused_in_words():
    words = "Only 1 distinct codes were found for n_clusters=3. Raise n_partitions"
    with pytest.raises(ValueError, match=words):
        COR(3, random_state=0).fit(np.ones((50, 3)))
    with pytest.raises(ValueError, match=words):
        select(np.ones((50, 3)), k_range=(3, 5), random_state=0)


def test_few_rows_have_few_clusters():
    assert select(np.arange(8.0)[:, None], random_state=0).n_clusters_ == 1


def test_nearly_all_rows_can_be_set_aside(blobs):
    model = COR(n_outliers=298, n_partitions=20, random_state=0).fit(blobs)
    assert (model.labels_ == -1).sum() == 298
    model = COR(n_outliers=60, random_state=0).fit(
        blobs, sample_weight=np.repeat([1.0, 0.0], [20, 280])
    )
    assert (model.labels_ == -1).sum() == 60


def test_a_limit_that_stops_the_search_is_named(blobs):
    found = select(blobs, k_max=3, random_state=0)
    assert "a larger limit than 3 may find them" in found.reason
    assert "k_max is 1" in COR(k_max=1, random_state=0).fit(blobs).selection_.reason


def test_runs_that_see_a_part_of_the_features_do_not_hide_clusters():
    # Three groups differ in three columns; two more hold noise, and cells are missing.
    rng = np.random.default_rng(0)
    X = np.concatenate(
        [8 * np.eye(3, 5)[k] + rng.normal(size=(50, 5)) for k in range(3)]
    )
    X[rng.random(X.shape) < 0.01] = np.nan
    assert COR(random_state=0).fit(X).n_clusters_ == 3


def test_paper_can_choose_its_number_of_clusters(blobs):
    model = COR.paper("auto", n_outliers=12, random_state=0).fit(blobs)
    assert model.n_clusters_ == 4


def test_numbers_are_chosen_from_labels_alone(blobs):
    labels = np.column_stack(
        [
            KMeans(k, n_init=1, random_state=k).fit(blobs).labels_
            for k in (3, 4, 5, 6, 7, 9, 12, 15, 18, 20)
        ]
    )
    model = COR(partitions="precomputed", random_state=0).fit(labels)
    assert model.n_clusters_ == 4


@pytest.mark.parametrize("n_samples", [1, 2, 3, 7, 12])
def test_few_rows_are_fitted(n_samples):
    X = np.random.default_rng(0).normal(size=(n_samples, 2))
    model = COR(random_state=0).fit(X)
    assert 1 <= model.n_clusters_ <= max(n_samples // 5, 1)
    assert len(model.labels_) == n_samples


def test_one_partition_has_no_halves_that_could_agree():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(c, 1, (30, 2)) for c in (0, 9)])
    table = COR(n_partitions=1, n_resamples=0, random_state=0).fit(X).selection_.table
    assert np.isnan(np.asarray(table["stability"], dtype=float)).all()
