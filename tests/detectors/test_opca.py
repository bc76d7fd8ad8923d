"""Over-sampling PCA against copies made by hand and the paper's formula."""

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import spearmanr
from sklearn.exceptions import ConvergenceWarning

import corral.detectors._principal as module
from corral.detectors._opca import OPCA

METHODS = ["online", "one_pass", "power"]
EXACT = ["online", "power"]


def dominant(rows):
    """Return the dominant eigenvector of the covariance of rows."""
    return np.linalg.eigh(np.cov(rows.T, bias=True))[1][:, -1]


def duplicate_and_compare(X, n_copies):
    """Score each row by the angle that n_copies of it make: the definition."""
    u = dominant(X)
    scores = []
    for row in X:
        turned = dominant(np.vstack([X, np.tile(row, (n_copies, 1))]))
        scores.append(1 - abs(turned @ u))
    return np.array(scores)


def update_row_by_row(X, beta):
    """Score each row by the paper's least-squares update, one at a time."""
    u = dominant(X)
    deviations = X - X.mean(axis=0)
    projections = [u @ x for x in deviations]
    q = sum(y * x for y, x in zip(projections, deviations, strict=True))
    scale = sum(y**2 for y in projections)
    scores = []
    for y, x in zip(projections, deviations, strict=True):
        turned = (beta * q + y * x) / (beta * scale + y**2)
        scores.append(1 - abs(turned @ u) / (np.linalg.norm(turned)))
    return np.array(scores)


def stretched(seed, n_samples=60, n_features=5):
    """Return a cloud with one long axis, away from the origin and turned."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features)) * [4.0, *[1.0] * (n_features - 1)]
    rotation = np.linalg.qr(rng.normal(size=(n_features, n_features)))[0]
    return X @ rotation + rng.normal(size=n_features) * 5


@pytest.mark.parametrize("ratio", [0.1, 0.5])
def test_power_form_is_that_of_real_copies(seed, ratio):
    X = stretched(seed)
    found = OPCA(ratio, method="power").fit(X).outlier_scores_
    assert found == pytest.approx(duplicate_and_compare(X, round(ratio * 60)), abs=1e-7)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_power_form_is_that_of_real_copies_with_more_features_than_rows(
    seed, as_sparse
):
    # Here the covariance would be larger than X and is never written out.
    X = np.random.default_rng(seed).poisson(0.7, (20, 30)) * 1.0
    rows = sparse.csr_array(X) if as_sparse else X
    model = OPCA(0.2, method="power", max_iter=20000).fit(rows)
    assert isinstance(model._form.spread, module.Products)
    assert model.outlier_scores_ == pytest.approx(duplicate_and_compare(X, 4), abs=1e-5)
    assert -model.score_samples(rows[3:9]) == pytest.approx(model.outlier_scores_[3:9])


@pytest.mark.parametrize("ratio", [0.02, 0.1, 2.0])
def test_online_form_is_the_paper_s_update(seed, ratio):
    X = stretched(seed)
    truth = update_row_by_row(X, 1 / (60 * ratio))
    assert OPCA(ratio).fit(X).outlier_scores_ == pytest.approx(truth, abs=1e-10)


def pass_over_rows(X):
    """Apply the paper's update row after row to sums, from ones of weight 1e-4."""
    q, scale = 1e-4 * np.ones(X.shape[1]), 1e-4
    for x in X - X.mean(axis=0):
        y = q / scale @ x
        q, scale = q + y * x, scale + y**2
    return q / np.linalg.norm(q), scale


@pytest.mark.parametrize("as_sparse", [False, True])
def test_one_pass_is_the_paper_s_update_from_row_to_row(seed, as_sparse, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_VALUES", 64)
    X = stretched(seed)
    u, scale = pass_over_rows(X)
    model = OPCA(0.2, method="one_pass").fit(sparse.csr_array(X) if as_sparse else X)
    assert np.abs(model.direction_) == pytest.approx(np.abs(u))
    assert model.explained_variance_ == pytest.approx(scale / 60)
    for x, score in zip(X - X.mean(axis=0), model.outlier_scores_, strict=True):
        turned = scale / (60 * 0.2) * u + (u @ x) * x
        cosine = abs(turned @ u) / np.linalg.norm(turned)
        assert score == pytest.approx(1 - cosine, abs=1e-10)


def test_one_pass_comes_near_the_exact_direction(seed):
    X = np.tile(stretched(seed), (20, 1))
    model = OPCA(method="one_pass").fit(X)
    assert abs(model.direction_ @ dominant(X)) > 0.99


@pytest.mark.parametrize(
    ("name", "jaccard"), [("ecoli", 5.88), ("yeast", 26.71), ("glass", 14.71)]
)
def test_one_pass_gives_the_published_numbers(data_folder, name, jaccard):
    # The paper on COR, its table of outlier detectors: Jaccard index in percent.
    with np.load(data_folder / f"{name}.npz") as data:
        X, is_outlier = data["X"], data["y"] == -1
    model = OPCA(forgetting=0.1, method="one_pass", n_outliers=is_outlier.sum()).fit(X)
    found = model.labels_ == -1
    share = (found & is_outlier).sum() / (found | is_outlier).sum()
    assert 100 * share == pytest.approx(jaccard, abs=0.005)


@pytest.mark.parametrize("method", METHODS)
def test_forgetting_is_the_ratio_said_otherwise(seed, method):
    X = stretched(seed)
    model = OPCA(0.9, forgetting=0.1, method=method, random_state=0).fit(X)
    assert model.ratio_ == pytest.approx(1 / 6)
    same = OPCA(1 / 6, method=method, random_state=0).fit(X)
    assert model.outlier_scores_ == pytest.approx(same.outlier_scores_)


def test_by_hand():
    # Along the x axis: u = (1, 0), mean 0, variance (4 + 4 + 0 + 0) / 4 = 2 along it
    # and 1/2 across. The row (2, 1) has y = 2 and is 1 off the line: the update is
    # (2 / r + 4, 2 * 1) = (8, 2) for r = 1/2.
    X = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    model = OPCA(0.5).fit(X)
    assert model.direction_ == pytest.approx([1.0, 0.0])
    assert model.explained_variance_ == pytest.approx(2.0)
    assert model.outlier_scores_ == pytest.approx(0.0)
    assert -model.score_samples([[2.0, 1.0]]) == pytest.approx(1 - 8 / np.sqrt(68))
    # Exactly: the matrix (2, 0; 0, 1/2) + 1/3 (4, 2; 2, 1) has its long axis at the
    # angle t with tan 2t = 2 * 2/3 / (10/3 - 5/6).
    exact = OPCA(0.5, method="power").fit(X)
    angle = np.arctan2(2 * 2 / 3, (2 + 4 / 3) - (1 / 2 + 1 / 3)) / 2
    assert -exact.score_samples([[2.0, 1.0]]) == pytest.approx(1 - np.cos(angle))


def test_only_the_power_form_sees_a_far_row_at_a_right_angle():
    X = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    far = [[0.0, 50.0]]
    assert OPCA(0.5).fit(X).score_samples(far) == pytest.approx(0.0)
    assert OPCA(0.5, method="power").fit(X).score_samples(far) == pytest.approx(-1.0)


def test_power_iteration_leaves_a_direction_that_a_better_one_beats():
    # The row (0, 1.5, 1.5) is at a right angle to u = (1, 0, 0), and in their plane u
    # is the best; but with the second axis the row makes a longer one.
    half = np.diag([2.0, 1.9, 0.1]) * np.sqrt(3)
    X = np.concatenate([half, -half])
    row = np.array([0.0, 1.5, 1.5])
    weight = 0.4 / 1.4
    whole = np.diag([4.0, 3.61, 0.01]) + weight * np.outer(row, row)
    assert row @ whole @ row / (row @ row) < 4.0 < np.linalg.eigvalsh(whole)[-1]
    model = OPCA(0.4, method="power", max_iter=20000).fit(X)
    assert model.direction_ == pytest.approx([1.0, 0.0, 0.0])
    assert model.score_samples([row]) == pytest.approx(-1.0)


def test_online_form_approximates_the_exact_one(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 4)) * [5.0, 1.0, 1.0, 1.0]
    X[:10] += rng.normal(size=(10, 4)) * 8
    online = OPCA(0.05).fit(X).outlier_scores_
    exact = OPCA(0.05, method="power").fit(X).outlier_scores_
    assert spearmanr(online, exact)[0] > 0.95


@pytest.mark.parametrize("method", METHODS)
def test_scores_are_between_0_and_1(seed, method):
    X = stretched(seed) * 3
    model = OPCA(5.0, method=method).fit(X)
    new = np.random.default_rng(seed).normal(size=(50, 5)) * 1e4
    for scores in (model.outlier_scores_, -model.score_samples(new)):
        assert scores.min() >= 0.0
        assert scores.max() <= 1.0


@pytest.mark.parametrize("method", EXACT)
def test_scores_stay_when_rows_are_moved_turned_and_scaled(seed, method):
    X = stretched(seed)
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(5, 5)))[0]
    scores = OPCA(method=method).fit(X).outlier_scores_
    for other in (X @ rotation, X + 1e3, X * 1e-6, X[:, ::-1] * -1e6):
        moved = OPCA(method=method).fit(other).outlier_scores_
        assert moved == pytest.approx(scores, abs=1e-7)


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize("as_sparse", [False, True])
def test_planted_rows_are_found(seed, method, as_sparse):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100, 4)) * [6.0, 1.0, 1.0, 1.0]
    X[:4] = rng.choice([-1.0, 1.0], (4, 4)) * [10.0, 8.0, 8.0, 8.0]
    rows = sparse.csr_array(X) if as_sparse else X
    labels = OPCA(method=method, n_outliers=4).fit_predict(rows)
    assert np.flatnonzero(labels == -1).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("method", METHODS)
def test_sparse_rows_are_scored_like_dense_ones(seed, method):
    X = np.random.default_rng(seed).poisson(0.5, (80, 7)) * 1.0
    dense = OPCA(method=method, max_iter=5000).fit(X)
    thin = OPCA(method=method, max_iter=5000).fit(sparse.csr_array(X))
    assert thin.outlier_scores_ == pytest.approx(dense.outlier_scores_, abs=1e-7)
    assert thin.direction_ == pytest.approx(dense.direction_, abs=1e-7)
    assert thin.score_samples(X[:5]) == pytest.approx(dense.score_samples(X[:5]))


def test_repeated_entries_of_a_sparse_row_are_added():
    X = np.array([[2.0, 0.0], [-2.0, 0.3], [0.5, 1.0], [0.0, -1.0]])
    rows, columns = [0, 0, 1, 1, 2, 2, 3], [0, 0, 0, 1, 0, 1, 1]
    values = [1.5, 0.5, -2.0, 0.3, 0.5, 1.0, -1.0]
    indptr = np.searchsorted(rows, range(5))
    twice = sparse.csr_matrix((values, columns, indptr), shape=(4, 2))
    assert OPCA().fit(twice).outlier_scores_ == pytest.approx(
        OPCA().fit(X).outlier_scores_
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("as_sparse", [False, True])
def test_block_size_does_not_matter(seed, method, as_sparse, monkeypatch):
    X = np.random.default_rng(seed).poisson(0.5, (40, 60)) * 1.0
    rows = sparse.csr_array(X) if as_sparse else X
    whole = OPCA(method=method, max_iter=20000, random_state=0).fit(rows)
    monkeypatch.setattr(module, "BLOCK_VALUES", 200)
    parts = OPCA(method=method, max_iter=20000, random_state=0).fit(rows)
    assert parts.outlier_scores_ == pytest.approx(whole.outlier_scores_, abs=1e-7)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("as_sparse", [False, True])
def test_a_row_has_its_score_whatever_stands_beside_it(method, as_sparse):
    # To the last bit, so that a row at the threshold keeps its label.
    for seed in range(30):
        X = stretched(seed, 17, [2, 5, 19][seed % 3])
        rows = sparse.csr_array(X) if as_sparse else X
        model = OPCA(method=method, tol=1e-3, n_outliers=4, random_state=0).fit(rows)
        alone = [-model.score_samples(rows[[i]])[0] for i in range(17)]
        assert np.array_equal(alone, model.outlier_scores_)
        assert np.array_equal(model.predict(rows), model.labels_)


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("size", [2.0**-1060, 1e-170, 1e-150, 1e150, 1e160, 1e307])
def test_rows_of_any_size_have_the_scores_of_ordinary_ones(method, as_sparse, size):
    X = np.random.default_rng(0).normal(size=(60, 4)) * [2.0, 1.0, 1.0, 1.0]
    X[:, 3] = 3.0
    rows = sparse.csr_array(X * size) if as_sparse else X * size
    model = OPCA(method=method, random_state=0).fit(rows)
    small = 1e-3 if size < 1e-300 else 1e-7
    truth = OPCA(method=method, random_state=0).fit(X)
    assert model.outlier_scores_ == pytest.approx(truth.outlier_scores_, abs=small)
    assert model.outlier_scores_.max() > 0.01
    assert model.mean_ == pytest.approx(truth.mean_ * size, rel=1e-3)
    assert np.array_equal(model.predict(rows), model.labels_)


def test_a_huge_constant_column_hides_no_others():
    # 1e160 is squared to infinity, and the others beside it to 0.
    X = np.random.default_rng(0).normal(size=(60, 4)) * [3.0, 1.0, 1.0, 0.0]
    scores = OPCA(random_state=0).fit(X).outlier_scores_
    X[:, 3] = 2.0**530
    assert not OPCA(random_state=0).fit(X).outlier_scores_.any()
    X[:, :3] *= 2.0**500
    found = OPCA(random_state=0).fit(X).outlier_scores_
    assert found == pytest.approx(scores, abs=1e-5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("far", [1e92, 1e292])
def test_new_rows_may_be_far_beyond_those_of_the_fit(seed, method, far):
    model = OPCA(method=method, random_state=0).fit(stretched(seed))
    new = np.random.default_rng(seed).normal(size=(9, 5)) * 1e8
    near = -model.score_samples(new)
    assert -model.score_samples(new * far) == pytest.approx(near, abs=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("offset", [1e6, 1e9])
def test_sparse_rows_with_a_large_constant_are_scored_like_dense_ones(
    seed, method, offset
):
    X = np.random.default_rng(seed).poisson(0.5, (80, 5)) * [4.0, 1, 1, 1, 1]
    X = np.column_stack([X, np.full(80, offset), X[:, 0] + offset])
    plain = OPCA(method=method, random_state=0).fit(X - X.mean(axis=0))
    dense = OPCA(method=method, random_state=0).fit(X)
    thin = OPCA(method=method, random_state=0).fit(sparse.csr_array(X))
    assert dense.outlier_scores_ == pytest.approx(plain.outlier_scores_, abs=1e-6)
    assert thin.outlier_scores_ == pytest.approx(dense.outlier_scores_, abs=1e-9)
    assert np.array_equal(thin.labels_, dense.labels_)


def test_settings_changed_after_the_fit_change_no_answer(seed):
    X = stretched(seed)
    for method in METHODS:
        model = OPCA(method=method, random_state=0).fit(X)
        model.set_params(ratio=5.0, forgetting=3.0, method="power", max_iter=1, tol=0.0)
        assert np.array_equal(model.score_samples(X), -model.outlier_scores_)


@pytest.mark.parametrize("method", METHODS)
def test_new_rows_do_not_depend_on_what_became_of_the_old(seed, method):
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(12, 20)), rng.normal(size=(3, 20))
    model = OPCA(method=method, max_iter=20000).fit(X)
    before = model.score_samples(new)
    X[:] = 0
    assert np.array_equal(model.score_samples(new), before)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("n_samples", [1, 2, 7, 1000])
def test_rows_that_are_all_equal_score_0(method, as_sparse, n_samples):
    # 0.1 has no exact mean, so the deviations are not 0 but rounding.
    X = np.full((n_samples, 3), 0.1) * [1.0, 3.0, 1e6]
    rows = sparse.csr_array(X) if as_sparse else X
    model = OPCA(method=method, n_outliers=0).fit(rows)
    assert model.explained_variance_ == 0.0
    assert not model.direction_.any()
    assert not model.outlier_scores_.any()
    assert not model.score_samples(X[:1] + 1).any()


@pytest.mark.parametrize("method", METHODS)
def test_one_feature_has_one_direction(method):
    model = OPCA(method=method).fit([[1.0], [2.0], [30.0]])
    assert model.direction_ == pytest.approx([1.0])
    assert model.outlier_scores_ == pytest.approx(0.0)


@pytest.mark.parametrize("method", EXACT)
def test_constant_columns_and_duplicates_change_nothing(seed, method):
    X = stretched(seed)
    scores = OPCA(method=method).fit(X).outlier_scores_
    wider = OPCA(method=method).fit(np.column_stack([X, np.full(60, 7.7)]))
    assert wider.outlier_scores_ == pytest.approx(scores, abs=1e-7)
    twice = OPCA(method=method).fit(np.concatenate([X, X]))
    assert twice.outlier_scores_ == pytest.approx(np.tile(scores, 2), abs=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_float32_rows(seed, method):
    X = stretched(seed)
    narrow = OPCA(method=method).fit(X.astype(np.float32))
    assert narrow.outlier_scores_ == pytest.approx(
        OPCA(method=method).fit(X).outlier_scores_, abs=1e-4
    )


def test_direction_is_that_of_a_full_decomposition_though_others_are_close(seed):
    # 200 axes within 2 % of each other: the Krylov space has to be restarted.
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 200)) * np.linspace(1, 1.02, 200)
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True))
    model = OPCA().fit(X)
    assert model.explained_variance_ == pytest.approx(values[-1])
    assert abs(model.direction_ @ vectors[:, -1]) == pytest.approx(1)


def test_sign_of_the_direction_is_defined(seed):
    X = stretched(seed)
    first = OPCA(random_state=0).fit(X).direction_
    assert first[np.argmax(np.abs(first))] > 0
    assert OPCA(random_state=1).fit(-X).direction_ == pytest.approx(first)


def test_equal_leading_variances_give_one_of_the_directions_by_seed():
    X = np.concatenate([np.eye(3), -np.eye(3)])
    first, second = (OPCA(random_state=7).fit(X) for _ in range(2))
    assert np.array_equal(first.direction_, second.direction_)
    assert np.linalg.norm(first.direction_) == pytest.approx(1)
    assert first.explained_variance_ == pytest.approx(1 / 3)
    other = OPCA(random_state=8).fit(X).direction_
    assert abs(other @ first.direction_) < 0.999


def test_no_outliers_are_found_if_none_are_wanted(planted):
    model = OPCA(n_outliers=0).fit(planted.X)
    assert (model.labels_ == 1).all()
    assert (model.predict(planted.X * 100) == 1).all()


def test_power_iteration_that_does_not_rest_says_so(seed):
    with pytest.warns(ConvergenceWarning, match=r"after max_iter=2 power iterations"):
        model = OPCA(method="power", max_iter=2, tol=0.0).fit(stretched(seed))
    assert model.n_iter_ == 2


def test_warnings_point_at_the_caller():
    X = stretched(0)
    with pytest.warns(ConvergenceWarning) as caught:
        model = OPCA(method="power", max_iter=2, tol=0.0).fit(X)
    assert caught[0].filename == __file__
    with pytest.warns(ConvergenceWarning, match="after max_iter=2 ") as caught:
        model.score_samples(X)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"ratio": 0.0}, r"'ratio' parameter of OPCA must be a float in the range"),
        ({"forgetting": -1.0}, r"'forgetting' parameter of OPCA must be"),
        ({"method": "svd"}, r"'method' parameter of OPCA must be a str among"),
        ({"n_outliers": 60}, r"n_outliers=60 should be smaller than n_samples=60"),
        ({"n_outliers": 1, "contamination": 0.1}, r"Set either n_outliers or contam"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        OPCA(**parameters).fit(stretched(0))
