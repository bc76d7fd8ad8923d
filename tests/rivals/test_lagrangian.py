"""Lagrangian clustering: bounds, relaxation, search and the memory it asks for."""

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, milp
from scipy.sparse import csr_matrix
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from corral.rivals._exemplars import guess_cost, read_bytes, search_cost
from corral.rivals._lagrangian import (
    LagrangianClustering,
    move_to_medians,
    relax,
    round_exemplars,
    solve_program,
)


def draw(seed, n_samples=12, n_features=2):
    return np.random.default_rng(seed).normal(size=(n_samples, n_features))


def slow_optimum(distances, creation_cost, n_outliers):
    """Solve the integer program as it is written, with y, x and o side by side."""
    n = len(distances)
    objective = np.concatenate(
        [np.full(n, creation_cost), distances.ravel(), np.zeros(n)]
    )
    rows, low, high = [], [], []
    for i in range(n):
        row = np.zeros(len(objective))
        row[n + i * n : n + (i + 1) * n] = 1
        row[n + n * n + i] = 1
        rows.append(row)
        low.append(1)
        high.append(1)
        for j in range(n):
            row = np.zeros(len(objective))
            row[n + i * n + j] = 1
            row[j] = -1
            rows.append(row)
            low.append(-np.inf)
            high.append(0)
    row = np.zeros(len(objective))
    row[n + n * n :] = 1
    rows.append(row)
    low.append(n_outliers)
    high.append(n_outliers)
    result = milp(
        objective,
        constraints=LinearConstraint(np.array(rows), low, high),
        integrality=np.ones(len(objective)),
        bounds=(0, 1),
    )
    return result.fun


def slow_relax(distances, creation_cost, n_outliers, multipliers):
    """Take the best x, y and o of the relaxed program one by one; return its value."""
    n = len(distances)
    order = sorted(range(n), key=lambda i: (-multipliers[i], i))
    o = [1 if i in order[:n_outliers] else 0 for i in range(n)]
    x = np.zeros((n, n))
    y = np.zeros(n)
    for j in range(n):
        mu = creation_cost
        for i in range(n):
            mu += min(distances[i, j] - multipliers[i], 0)
        if mu < 0:
            y[j] = 1
            for i in range(n):
                if distances[i, j] < multipliers[i]:
                    x[i, j] = 1
    value = creation_cost * y.sum() + (distances * x).sum()
    subgradient = np.zeros(n)
    for i in range(n):
        subgradient[i] = 1 - x[i].sum() - o[i]
        value += multipliers[i] * subgradient[i]
    return value, y, subgradient


def check_outcome(model, X, n_outliers):
    """What every fit has to fulfil, from its exemplars alone."""
    distances = cdist(X, X[model.exemplars_])
    order = sorted(range(len(X)), key=lambda i: (-distances[i].min(), i))
    labels = distances.argmin(axis=1)
    np.testing.assert_array_equal(model.nearest_labels_, labels)
    labels[order[:n_outliers]] = -1
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_array_equal(model.outlier_scores_, distances.min(axis=1))
    kept = distances.min(axis=1)[labels >= 0].sum()
    expected = kept + model.creation_cost_ * len(model.exemplars_)
    assert model.objective_ == pytest.approx(expected)


@pytest.mark.parametrize("n_outliers", [0, 1, 3])
@pytest.mark.parametrize("creation_cost", [0.3, 1.0, 4.0])
def test_optimum_is_between_bound_and_objective(seed, n_outliers, creation_cost):
    X = draw(seed, n_samples=9)
    model = LagrangianClustering(creation_cost=creation_cost, n_outliers=n_outliers)
    model.fit(X)
    optimum = slow_optimum(cdist(X, X), creation_cost, n_outliers)
    assert model.lower_bound_ <= optimum + 1e-9
    assert optimum <= model.objective_ + 1e-9
    gap = (model.objective_ - model.lower_bound_) / model.objective_
    assert model.gap_ == pytest.approx(gap)
    check_outcome(model, X, n_outliers)


@pytest.mark.parametrize("n_outliers", [0, 2])
def test_relax_is_the_literal_relaxation(seed, n_outliers):
    rng = np.random.default_rng(seed)
    distances = cdist(*[draw(seed)] * 2)
    for scale in (0.0, 0.3, 1.0, 3.0):
        multipliers = scale * rng.random(len(distances))
        relaxed = relax(distances, 0.7, n_outliers, multipliers)
        value, y, subgradient = slow_relax(distances, 0.7, n_outliers, multipliers)
        assert relaxed.bound == pytest.approx(value)
        np.testing.assert_array_equal(relaxed.reduced_costs < 0, y == 1)
        np.testing.assert_array_equal(relaxed.subgradient, subgradient)


def test_relax_in_blocks_is_relax_at_once(monkeypatch):
    distances = cdist(*[draw(0, 40)] * 2)
    multipliers = np.random.default_rng(1).random(40)
    whole = relax(distances, 2.0, 3, multipliers)
    monkeypatch.setattr("corral.rivals._exemplars._BLOCK_ENTRIES", 7 * 40)
    parts = relax(distances, 2.0, 3, multipliers)
    assert parts.bound == pytest.approx(whole.bound)
    np.testing.assert_allclose(parts.reduced_costs, whole.reduced_costs)
    np.testing.assert_array_equal(parts.subgradient, whole.subgradient)


def test_any_multipliers_bound_the_optimum(seed):
    rng = np.random.default_rng(seed)
    distances = cdist(*[draw(seed, n_samples=8)] * 2)
    optimum = slow_optimum(distances, 1.0, 2)
    for _ in range(200):
        multipliers = rng.exponential(rng.choice([0.1, 0.5, 1, 3]), size=8)
        assert relax(distances, 1.0, 2, multipliers).bound <= optimum + 1e-9


def test_more_steps_never_lower_the_bound_nor_raise_the_objective(seed):
    distances = cdist(*[draw(seed, n_samples=30)] * 2)
    solutions = [
        solve_program(distances, 2.0, 2, np.zeros(30), max_iter=n, tol=0.0)[0]
        for n in range(1, 60)
    ]
    bounds = [each.lower_bound for each in solutions]
    objectives = [each.objective for each in solutions]
    assert (np.diff(bounds) >= 0).all()
    assert (np.diff(objectives) <= 0).all()
    assert bounds[-1] > bounds[0]


def test_solve_program_returns_the_multipliers_of_its_bound(seed):
    distances = cdist(*[draw(seed, n_samples=30)] * 2)
    solution, multipliers = solve_program(
        distances, 2.0, 2, np.zeros(30), max_iter=40, tol=0.0
    )
    assert relax(distances, 2.0, 2, multipliers).bound == solution.lower_bound


def test_round_exemplars_opens_one_if_none_is_open():
    distances = cdist(*[draw(0)] * 2)
    multipliers = np.zeros(len(distances))
    relaxed = relax(distances, 1.0, 1, multipliers)
    assert (relaxed.reduced_costs > 0).all()
    exemplars = round_exemplars(distances, 1.0, 1, multipliers, relaxed)
    assert exemplars.tolist() == [0]


def test_move_to_medians_by_hand():
    """Exemplars at the ends of two groups go to their middles; one row stays out."""
    positions = np.array([[0.0], [1.0], [2.0], [20.0], [21.0], [22.0], [99.0]])
    distances = cdist(positions, positions)
    moved = move_to_medians(distances, np.array([0, 5]), 1)
    assert moved.tolist() == [1, 4]


def test_gap_closes_on_separate_groups(planted):
    model = LagrangianClustering(3, n_outliers=6, tol=1e-6).fit(planted.X)
    assert model.gap_ <= 1e-6
    np.testing.assert_array_equal(np.flatnonzero(model.labels_ == -1), planted.outliers)
    for label in range(3):
        assert len(np.unique(planted.y[model.labels_ == label])) == 1


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 5, 8])
def test_search_finds_the_number_of_clusters(seed, n_clusters):
    # Of rows without groups, there may be no creation cost that gives so many.
    groups = np.arange(60) % n_clusters
    X = draw(seed, n_samples=60) + 20 * groups[:, None]
    model = LagrangianClustering(n_clusters, n_outliers=3, max_iter=2000, tol=0.01)
    model.fit(X)
    assert len(model.exemplars_) == n_clusters
    check_outcome(model, X, 3)
    again = LagrangianClustering(
        creation_cost=model.creation_cost_, n_outliers=3, max_iter=2000, tol=0.01
    ).fit(X)
    # Both are within tol of the same optimum.
    assert again.objective_ == pytest.approx(model.objective_, rel=0.02)


def test_creation_cost_overrides_n_clusters(planted):
    model = LagrangianClustering(7, creation_cost=200.0, n_outliers=6).fit(planted.X)
    assert len(model.exemplars_) == 3
    assert model.creation_cost_ == 200.0


def test_guess_cost_by_hand():
    """The second exemplar saves 29, the third saves 1: the guess is between them."""
    positions = np.array([[0.0], [1.0], [2.0], [30.0]])
    distances = cdist(positions, positions)
    assert guess_cost(distances, 2, 0) == pytest.approx(np.sqrt(29 * 1))


class Counted:
    def __init__(self, n):
        self.exemplars = range(n)


@pytest.mark.parametrize("first", [1e-9, 0.01, 5.0, 90.0, 1e9])
def test_search_cost_bisects_from_anywhere(first):
    tried = search_cost(lambda cost: Counted(int(100 / cost)), 7, first, 1e-3, 1e4)
    assert len(tried[-1].exemplars) == 7
    assert len(tried) < 25


def test_search_cost_ends_where_a_number_is_jumped_over():
    costs = []

    def solve(cost):
        costs.append(cost)
        return Counted(9 if cost < 3.0 else 2)

    search_cost(solve, 5, 1.0, 1e-3, 1e4)
    assert costs[-1] == pytest.approx(3.0, rel=1e-3)
    assert len(costs) < 40


def test_closest_number_is_taken_with_a_warning():
    """Two pairs of equal rows have two clusters whatever a cluster costs."""
    X = np.repeat([[0.0], [5.0]], 4, axis=0)
    model = LagrangianClustering(3, n_outliers=0)
    with pytest.warns(ConvergenceWarning, match=r"n_clusters=3; .* gives 2 clusters"):
        model.fit(X)
    assert model.labels_.tolist() == [0] * 4 + [1] * 4


def test_stopping_early_is_announced():
    model = LagrangianClustering(creation_cost=1.0, max_iter=3, n_outliers=2)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=3 with gap_=0.* tol=0.001"):
        model.fit(draw(0, 30))
    assert model.n_iter_ == 3


def test_all_rows_equal():
    """The gap that remains is L / n, as the docstring says."""
    X = np.ones((10, 3))
    model = LagrangianClustering(creation_cost=2.0, n_outliers=3).fit(X)
    assert model.labels_.tolist() == [-1] * 3 + [0] * 7
    assert model.objective_ == 2.0
    assert model.gap_ == pytest.approx(0.3, abs=0.01)
    model = LagrangianClustering(1, n_outliers=0).fit(X)
    assert model.labels_.tolist() == [0] * 10


def test_memory_is_refused_before_it_is_taken():
    X = np.zeros((20_000, 1))
    message = (
        r"n_samples=20000 needs 3200000000 bytes, memory_limit='1GiB' allows "
        r"1073741824\. Fit a subsample .* raise memory_limit, or use COR"
    )
    with pytest.raises(MemoryError, match=message):
        LagrangianClustering(2).fit(X)


def test_memory_limit_is_what_is_needed():
    X = draw(0, 20)
    LagrangianClustering(2, memory_limit=8 * 20**2, n_outliers=0).fit(X)
    with pytest.raises(MemoryError, match="needs 3200 bytes"):
        LagrangianClustering(2, memory_limit=8 * 20**2 - 1, n_outliers=0).fit(X)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(5, 5), ("7B", 7), ("1.5 GiB", 3 * 2**29), ("2GB", 2 * 10**9), ("1kB", 1000)],
)
def test_read_bytes(limit, expected):
    assert read_bytes(limit) == expected


@pytest.mark.parametrize("limit", ["much", "2", "-1GB", "2 gigabytes"])
def test_read_bytes_refuses(limit):
    with pytest.raises(ValueError, match=r"memory_limit=.* should be a number of byte"):
        read_bytes(limit)


def test_predict_answers_the_rows_of_the_fit_one_by_one(planted):
    model = LagrangianClustering(3, n_outliers=6).fit(planted.X)
    np.testing.assert_array_equal(model.predict(planted.X), model.labels_)
    alone = np.concatenate([model.predict(row[None]) for row in planted.X])
    np.testing.assert_array_equal(alone, model.labels_)
    np.testing.assert_array_equal(
        model.score_samples(planted.X), -model.outlier_scores_
    )


def test_without_outliers_nothing_is_one(planted):
    model = LagrangianClustering(3, n_outliers=0).fit(planted.X[planted.y >= 0])
    assert model.labels_.min() == 0
    assert model.predict([[1e9] * 4]).min() >= 0


def test_kinds_of_input_agree(planted):
    expected = LagrangianClustering(3, n_outliers=6).fit(planted.X).labels_
    for X in (csr_matrix(planted.X), planted.X.astype(np.float32)):
        model = LagrangianClustering(3, n_outliers=6).fit(X)
        np.testing.assert_array_equal(model.labels_, expected)
        np.testing.assert_array_equal(model.predict(X), expected)
    wide = np.column_stack([planted.X, np.full(len(planted.X), 7.0)])
    model = LagrangianClustering(3, n_outliers=6).fit(wide)
    np.testing.assert_array_equal(model.labels_, expected)


def test_metric_is_used(planted):
    """Squared distances: the objective is that of K-medoids with squares."""
    model = LagrangianClustering(3, n_outliers=6, metric="sqeuclidean").fit(planted.X)
    squares = cdist(planted.X, model.cluster_centers_, "sqeuclidean").min(axis=1)
    kept = model.labels_ >= 0
    expected = squares[kept].sum() + 3 * model.creation_cost_
    assert model.objective_ == pytest.approx(expected)
    np.testing.assert_array_equal(np.flatnonzero(~kept), planted.outliers)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"metric": "precomputed"}, r"metric='precomputed' is not known: X should"),
        ({"creation_cost": 0.0}, r"'creation_cost' parameter .* must be"),
        ({"creation_cost": 1.0, "n_outliers": 12}, r"n_outliers=12 should be smaller"),
        ({"n_clusters": 13}, r"n_samples=12 should be >= n_clusters=13"),
        ({"memory_limit": 0}, r"'memory_limit' parameter .* must be"),
        ({"max_iter": 0}, r"'max_iter' parameter .* must be"),
        ({"n_outliers": 1, "contamination": 0.1}, r"either n_outliers or contaminat"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        LagrangianClustering(**parameters).fit(draw(0))
