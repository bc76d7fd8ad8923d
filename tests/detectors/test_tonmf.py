"""TONMF against a dense version that follows the paper block by block."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import estimator_checks

import corral.detectors._tonmf as module
from corral.detectors._tonmf import TONMF

ALPHA, BETA = 1.5, 0.2


def counts(seed, n_samples=30, n_features=12, rate=1.0):
    return np.random.default_rng(seed).poisson(rate, (n_samples, n_features)) * 1.0


def write_objective(A, W, H, Z, alpha=ALPHA, beta=BETA):
    """The objective as it is written, with A of terms x documents."""
    fit = 0.5 * np.sum((A - W @ H - Z) ** 2)
    return fit + alpha * np.linalg.norm(Z, axis=0).sum() + beta * np.abs(H).sum()


def best_Z(A, W, H, alpha=ALPHA):
    Z = np.zeros_like(A)
    for i in range(A.shape[1]):
        residual = A[:, i] - W @ H[:, i]
        norm = np.linalg.norm(residual)
        if norm > alpha:
            Z[:, i] = (1 - alpha / norm) * residual
    return Z


def without(A, W, H, Z, j):
    """What is left for topic j: the rank-one residual."""
    return A - Z - W @ H + np.outer(W[:, j], H[j])


def best_topic(A, W, H, Z, j):
    left = without(A, W, H, Z, j)
    return np.maximum(0, left @ H[j] / (H[j] @ H[j]))


def best_row(A, W, H, Z, j, beta=BETA):
    left = without(A, W, H, Z, j)
    return np.maximum(0, (left.T @ W[:, j] - beta) / (W[:, j] @ W[:, j]))


def descend_densely(A, W, H, n_rounds, watch=lambda *blocks: None):
    """Run the paper's descent with every matrix written out."""
    W, H = W.copy(), H.copy()
    for _ in range(n_rounds):
        Z = best_Z(A, W, H)
        watch(A, W, H, Z, "Z", None)
        for j in range(W.shape[1]):
            W[:, j] = best_topic(A, W, H, Z, j)
            watch(A, W, H, Z, "W", j)
        for j in range(W.shape[1]):
            H[j] = best_row(A, W, H, Z, j)
            watch(A, W, H, Z, "H", j)
    return W, H


def start(X, seed, n_components=4):
    squares = (X**2).sum(axis=1)
    return squares, module.draw_start(
        X, squares, n_components, np.random.RandomState(seed)
    )


@pytest.mark.parametrize("as_sparse", [False, True])
def test_rounds_are_those_of_the_dense_version(seed, as_sparse):
    X = counts(seed)
    squares, state = start(X, seed)
    first = state.factors
    W, H = descend_densely(X.T, first.topics, first.mixtures.T, 5)
    rows = sparse.csr_array(X) if as_sparse else X
    assert (state.residuals > ALPHA).any()
    for _ in range(5):
        state = module.update(rows, squares, state, ALPHA, BETA)
    assert state.factors.topics == pytest.approx(W, abs=1e-10)
    assert state.factors.mixtures == pytest.approx(H.T, abs=1e-10)
    truth = np.linalg.norm(X - H.T @ W.T, axis=1)
    assert state.residuals == pytest.approx(truth)
    written = write_objective(X.T, W, H, best_Z(X.T, W, H))
    assert state.objective(ALPHA, BETA) == pytest.approx(written)


def test_each_block_is_at_its_optimum(seed):
    # No step away from the block just set lowers the objective, as it is written.
    rng = np.random.default_rng(seed)
    seen = []

    def watch(A, W, H, Z, name, j):
        value = write_objective(A, W, H, Z)
        for size in (1e-4, 1e-2, 1.0):
            blocks = {"W": W.copy(), "H": H.copy(), "Z": Z.copy()}
            place = {"W": np.s_[:, j], "H": np.s_[j], "Z": np.s_[:]}[name]
            step = size * rng.normal(size=blocks[name][place].shape)
            # A step in a few places only, as a step in many mostly goes up.
            step *= rng.random(step.shape) < 0.2
            blocks[name][place] += step
            if name != "Z":
                np.maximum(blocks[name], 0, out=blocks[name])
            seen.append(write_objective(A, **blocks) - value)

    X = counts(seed)
    factors = start(X, seed)[1].factors
    descend_densely(X.T, factors.topics, factors.mixtures.T, 3, watch)
    assert min(seen) > -1e-10
    assert max(seen) > 0.1


def test_z_by_hand():
    # The residual (3, 4) has norm 5: with alpha = 2, 3/5 of it goes to Z and the loss
    # is 2 * 2 / 2 + 2 * 3 = 8; the residual (0.6, 0.8) stays, for 1 / 2.
    factors = module.Factors(np.zeros((2, 1)), np.zeros((2, 1)))
    state = module.State(factors, np.array([5.0, 1.0]))
    assert state.objective(2.0, 0.1) == pytest.approx(8.5)
    assert 1 - module._keep(state.residuals, 2.0) == pytest.approx([0.6, 0.0])
    A = np.array([[3.0, 0.6], [4.0, 0.8]])
    Z = best_Z(A, np.zeros((2, 1)), np.zeros((1, 2)), alpha=2.0)
    assert pytest.approx(np.array([[1.8, 0.0], [2.4, 0.0]])) == Z


@pytest.mark.parametrize("alpha", [0.3, 2.0, 100.0])
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_objective_never_rises(seed, alpha, beta):
    X = counts(seed, 40, 20)
    with pytest.warns(ConvergenceWarning):
        model = TONMF(
            3, alpha=alpha, beta=beta, max_iter=60, tol=0.0, random_state=seed
        ).fit(X)
    history = model.objective_history_
    assert len(history) == model.n_iter_ + 1 == 61
    assert (np.diff(history) <= 1e-12 * history[0]).all()
    assert history[-1] < history[0]
    assert model.objective_ == history[-1]


def multiply(X, W):
    return module.Products((X**2).sum(axis=1), X @ W, W.T @ W)


def solve(X, W, alpha):
    mixtures, n_moving = module.solve_mixtures(multiply(X, W), alpha, BETA)
    assert n_moving == 0
    return mixtures


@pytest.mark.parametrize("alpha", [0.5, 2.0, 50.0])
def test_mixtures_solve_the_convex_problem(seed, alpha):
    # Against a general solver, on the Huber loss that is left when z is at its best.
    X, W = counts(seed, 8), np.random.default_rng(seed).random((12, 3))
    mixtures = solve(X, W, alpha)

    def cost(h, row):
        norm = np.linalg.norm(row - W @ h)
        huber = norm**2 / 2 if norm <= alpha else alpha * norm - alpha**2 / 2
        return huber + BETA * h.sum()

    for row, mixture in zip(X, mixtures, strict=True):
        best = minimize(
            cost, np.ones(3), (row,), bounds=[(0, None)] * 3, options={"ftol": 1e-15}
        )
        assert cost(mixture, row) <= best.fun + 1e-9
        assert mixture == pytest.approx(best.x, abs=1e-3)


@pytest.mark.parametrize("alpha", [0.5, 3.0, 50.0])
def test_mixtures_are_at_rest_under_the_paper_s_updates(seed, alpha):
    # The longer steps of the solver end where the block updates with z do.
    X, W = counts(seed, 8), np.random.default_rng(seed).random((12, 3))
    H = solve(X, W, alpha).T
    Z = best_Z(X.T, W, H, alpha)
    for j in range(3):
        assert best_row(X.T, W, H, Z, j) == pytest.approx(H[j], abs=1e-7)


@pytest.mark.parametrize("alpha", [0.5, 50.0])
def test_mixtures_of_topics_that_are_nearly_alike_come_to_rest(seed, alpha):
    # Sweeps alone are not done with these after 2000; ten topics of four terms.
    rng = np.random.default_rng(seed)
    X, W = counts(seed, 30, 4), rng.random((4, 1)) + 0.1 * rng.random((4, 10))
    H = solve(X, W, alpha).T
    residuals = X.T - W @ H
    weights = np.minimum(1.0, alpha / np.linalg.norm(residuals, axis=0).clip(1e-12))
    slopes = W.T @ (weights * residuals) - BETA
    # No topic would gain by more, and none in use by less.
    assert slopes.max() < 1e-7
    assert slopes[H > 0] == pytest.approx(0, abs=1e-7)


def test_scores_are_residuals_with_the_topics_held(seed):
    X = counts(seed)
    model = TONMF(3, alpha=ALPHA, beta=BETA, random_state=seed).fit(X)
    W = model.components_.T
    H = solve(X, W, ALPHA).T
    truth = np.linalg.norm(X.T - W @ H, axis=0)
    assert model.outlier_scores_ == pytest.approx(truth)
    norms = np.linalg.norm(best_Z(X.T, W, H), axis=0)
    assert model.outlier_norms_ == pytest.approx(norms, abs=1e-12)
    assert np.count_nonzero(norms) > 0


def test_sparse_rows_are_scored_like_dense_ones(seed):
    X = counts(seed, 50, 25, rate=0.3)
    dense = TONMF(4, alpha=ALPHA, random_state=seed).fit(X)
    thin = TONMF(4, alpha=ALPHA, random_state=seed).fit(sparse.csr_matrix(X))
    assert thin.outlier_scores_ == pytest.approx(dense.outlier_scores_, rel=1e-6)
    assert thin.components_ == pytest.approx(dense.components_, rel=1e-6, abs=1e-9)
    assert thin.score_samples(X[:5]) == pytest.approx(dense.score_samples(X[:5]))


def topic_data(seed, n_samples=150, n_odd=6):
    """Return documents of three topics with words of their own; odd ones come first."""
    rng = np.random.default_rng(seed)
    words = np.full((3, 40), 0.001)
    for topic in range(3):
        words[topic, 10 * topic : 10 * topic + 10] = 0.1
    words /= words.sum(axis=1, keepdims=True)
    X = rng.multinomial(60, words[rng.integers(3, size=n_samples)]) * 1.0
    for row in X[:n_odd]:
        # A few words from anywhere.
        row[:] = 0.0
        row[rng.choice(40, 4, replace=False)] = 15.0
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_odd_documents_are_found(seed, as_sparse):
    X = topic_data(seed)
    rows = sparse.csr_array(X) if as_sparse else X
    # One start in a hundred ends with two topics in one; the objective tells.
    starts = [TONMF(3, alpha=0.5, n_outliers=6, random_state=i) for i in range(3)]
    best = min((each.fit(rows) for each in starts), key=lambda each: each.objective_)
    assert np.flatnonzero(best.labels_ == -1).tolist() == list(range(6))
    assert np.array_equal(best.predict(rows), best.labels_)


def test_new_rows_are_scored_without_the_old(seed):
    X = topic_data(seed)
    model = TONMF(3, alpha=0.5, random_state=seed).fit(X)
    some = [0, 9, 77]
    assert -model.score_samples(X[some]) == pytest.approx(model.outlier_scores_[some])
    new = X[[10, 11, 10]]
    new[2] = np.roll(new[2], 5)
    scores = model.score_samples(new)
    assert scores[2] < scores[:2].min()


def test_a_document_of_the_topics_has_almost_no_residual(seed):
    X = topic_data(seed)
    model = TONMF(3, alpha=0.5, beta=0.0, random_state=seed).fit(X)
    exact = np.random.default_rng(seed).random((5, 3)) @ model.components_
    assert model.score_samples(exact) == pytest.approx(0, abs=1e-8)
    assert model.score_samples(sparse.csr_array(exact)) == pytest.approx(0, abs=1e-8)


def test_small_residuals_keep_their_digits(seed, monkeypatch):
    # From products alone, a residual of 1e-9 would drown in rounding.
    monkeypatch.setattr(module, "_BLOCK_VALUES", 30)
    rng = np.random.default_rng(seed)
    topics, mixtures = rng.random((12, 2)), rng.random((7, 2))
    X = mixtures @ topics.T
    X[:, 0] += 1e-9
    for rows in (X, sparse.csr_array(X)):
        products = multiply(X, topics)
        found = module._measure_residuals(rows, topics, products, mixtures)
        assert found == pytest.approx(1e-9, rel=1e-5)


def test_empty_documents_score_0(seed):
    X = counts(seed)
    X[[3, 8]] = 0
    model = TONMF(3, alpha=ALPHA, random_state=seed).fit(X)
    assert model.outlier_scores_[[3, 8]].tolist() == [0, 0]
    assert np.delete(model.outlier_scores_, [3, 8]).min() > 0


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("beta", [0.0, 0.1])
def test_rows_of_zeros_only(as_sparse, beta):
    X = np.zeros((5, 4))
    model = TONMF(2, beta=beta).fit(sparse.csr_array(X) if as_sparse else X)
    assert not model.outlier_scores_.any()
    assert model.objective_ == 0.0
    assert model.score_samples(np.ones((1, 4))) == pytest.approx(-2.0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_more_topics_than_rows_or_terms(seed):
    X = counts(seed, 5, 3)
    model = TONMF(8, beta=0.0, max_iter=500, n_outliers=1, random_state=seed).fit(X)
    assert model.components_.shape == (3, 3)
    assert np.isfinite(model.components_).all()
    one = TONMF(1, beta=0.0, max_iter=500, random_state=seed).fit(X)
    assert model.objective_ < one.objective_


def test_a_penalty_too_high_for_any_topic_leaves_all_rows_as_they_are(seed):
    # H falls to 0 at once; the topics, now free, stay as they are.
    X = counts(seed)
    model = TONMF(3, beta=1e6, random_state=seed).fit(X)
    assert model.outlier_scores_ == pytest.approx(np.linalg.norm(X, axis=1))
    assert np.isfinite(model.components_).all()


def test_duplicates_and_all_rows_equal(seed):
    X = counts(seed)
    model = TONMF(3, alpha=ALPHA, random_state=seed).fit(np.concatenate([X, X]))
    assert model.outlier_scores_[:30] == pytest.approx(model.outlier_scores_[30:])
    same = TONMF(1, beta=0.0, n_outliers=0).fit(np.full((6, 4), 3.0))
    assert same.outlier_scores_ == pytest.approx(0, abs=1e-7)
    assert (same.labels_ == 1).all()


def test_one_row():
    model = TONMF(1, beta=0.0, n_outliers=0, random_state=0).fit([[3.0, 4.0]])
    assert model.outlier_scores_ == pytest.approx(0, abs=1e-6)
    # The one topic explains (0.6, 0.8) * 4.8 of (8, 0) and leaves 6.4.
    assert model.score_samples([[8.0, 0.0]]) == pytest.approx(-6.4)


def test_float32_rows(seed):
    X = counts(seed) / 7
    wide = TONMF(3, alpha=0.2, max_iter=1000, random_state=seed).fit(X)
    narrow = TONMF(3, alpha=0.2, max_iter=1000, random_state=seed).fit(
        X.astype(np.float32)
    )
    assert narrow.outlier_scores_ == pytest.approx(wide.outlier_scores_, rel=1e-3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_outliers_train,
        estimator_checks.check_outliers_fit_predict,
    ],
)
def test_sklearn_checks_of_detectors_on_rows_that_are_not_negative(check, monkeypatch):
    # The checks as they are use negative values whatever the tags of the estimator.
    def make_blobs(**parameters):
        X, y = datasets.make_blobs(**parameters)
        return X - X.min(), y

    monkeypatch.setattr(estimator_checks, "make_blobs", make_blobs)
    check("TONMF", TONMF(2, alpha=1.0))


def test_same_seed_same_result(seed):
    X = counts(seed)
    first, second = (TONMF(3, random_state=seed).fit(X) for _ in range(2))
    assert np.array_equal(first.components_, second.components_)
    assert np.array_equal(first.outlier_scores_, second.outlier_scores_)


def test_repeated_entries_of_a_sparse_row_are_added():
    twice = sparse.csr_matrix(
        ([1.0, 2.0, 1.0, 4.0], [0, 0, 1, 1], [0, 3, 4]), shape=(2, 2)
    )
    model = TONMF(1, random_state=0).fit(twice)
    same = TONMF(1, random_state=0).fit([[3.0, 1.0], [0.0, 4.0]])
    assert model.outlier_scores_ == pytest.approx(same.outlier_scores_)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_negative_values_are_refused(seed, as_sparse):
    X = counts(seed)
    model = TONMF(2, random_state=0).fit(X)
    X[4, 2] = -0.25
    rows = sparse.csr_array(X) if as_sparse else X
    message = r"the smallest value of X is -0.25, and all should be 0 or more"
    with pytest.raises(ValueError, match=message):
        TONMF(2).fit(rows)
    with pytest.raises(ValueError, match=message):
        model.score_samples(rows)


def test_a_descent_cut_short_says_so(seed):
    message = r"The descent stopped at max_iter=2 rounds; .* above tol=1e-09"
    with pytest.warns(ConvergenceWarning, match=message):
        TONMF(3, max_iter=2, tol=1e-9).fit(counts(seed))


def test_warnings_point_at_the_caller(monkeypatch):
    X = counts(0)
    with pytest.warns(ConvergenceWarning, match="The descent stopped") as caught:
        TONMF(3, max_iter=2, tol=1e-9).fit(X)
    assert caught[0].filename == __file__
    monkeypatch.setattr(module, "_MAX_SWEEPS", 1)
    message = r"The mixtures of 30 rows still moved after 1 sweeps"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        model = TONMF(3, alpha=ALPHA, random_state=0).fit(X)
    assert caught[0].filename == __file__
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        model.score_samples(X)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_row_has_its_score_whatever_stands_beside_it(as_sparse):
    # To the last bit, so that a row at the threshold keeps its label.
    for seed in range(30):
        n_features = [4, 9, 37][seed % 3]
        X = np.abs(np.random.default_rng(seed).normal(size=(11, n_features)))
        rows = sparse.csr_array(X) if as_sparse else X
        model = TONMF(3, alpha=1.0, n_outliers=4, random_state=0).fit(rows)
        alone = [-model.score_samples(rows[[i]])[0] for i in range(11)]
        assert np.array_equal(alone, model.outlier_scores_)


def test_a_row_at_the_threshold_keeps_its_label_alone():
    X = np.abs(np.random.default_rng(2).normal(size=(40, 5)))
    model = TONMF(3, alpha=1.0, n_outliers=4, random_state=0).fit(X)
    alone = [model.predict(X[[i]])[0] for i in range(40)]
    assert np.array_equal(alone, model.labels_)


def test_settings_changed_after_the_fit_change_no_answer(seed):
    X = counts(seed)
    model = TONMF(3, alpha=ALPHA, beta=BETA, max_iter=1000, random_state=0).fit(X)
    model.set_params(alpha=0.01, beta=5.0)
    assert np.array_equal(model.score_samples(X), -model.outlier_scores_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, r"'n_components' parameter of TONMF must be an int"),
        ({"alpha": 0.0}, r"'alpha' parameter of TONMF must be a float in the range"),
        ({"beta": -0.1}, r"'beta' parameter of TONMF must be a float in the range"),
        ({"n_outliers": 30}, r"n_outliers=30 should be smaller than n_samples=30"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        TONMF(**parameters).fit(counts(0))


def test_there_are_no_more_topics_than_features():
    X = np.abs(np.random.default_rng(0).normal(size=(40, 3)))
    model = TONMF(random_state=0).fit(X)
    assert model.components_.shape == (3, 3)
    np.testing.assert_array_equal(
        TONMF(3, random_state=0).fit(X).outlier_scores_, model.outlier_scores_
    )
