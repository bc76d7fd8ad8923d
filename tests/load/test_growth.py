"""Fits in a row, each with another seed, leave nothing behind."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from corral import COR, all_methods
from tests.conftest import plant
from tests.load.memory import count_held, read_status, traced

N_ROWS = 120
# No negative numbers, for the methods that take none.
X = np.abs(plant(0, n_per_cluster=38, n_outliers=6).X)
GIVEN = {"n_clusters": 3, "n_outliers": 6, "n_partitions": 10, "n_neighbors": 10}
# Forests of 100 trees take long, and hold nothing that ten do not hold.
GIVEN["n_estimators"] = 10
GIVEN["estimator"] = COR(3, n_outliers=6, n_partitions=10)

# Ten times as many for the few fits of the default: NumPy keeps 1 to 2 kB of each of
# the first ones for later, in lists of small arrays. A copy of the rows is twice the
# bar.
MANY_ROWS = np.concatenate([X + 0.01 * number for number in range(10)])
MOST_PER_FIT = MANY_ROWS.nbytes / 2
# Over a thousand fits, such lists hardly count: labels that are kept are five times
# the bar.
MOST_PER_FIT_OF_MANY = 100
# Of the whole process, over all fits: what its allocators do not give back.
MOST_OF_PROCESS = 32 * 2**20


def make_method(name, seed):
    method = all_methods()[name]
    given = GIVEN | {"random_state": seed}
    return method.make(**{k: v for k, v in given.items() if k in method.parameters})


def make_cor(seed, **parameters):
    given = {"n_clusters": 3, "n_outliers": 6, "n_partitions": 10}
    return COR(**(given | parameters), random_state=seed)


def fit_paper(seed):
    COR.paper(3, n_outliers=6, n_partitions=10, random_state=seed).fit(X)


def fit_chosen(seed):
    COR(k_max=3, n_partitions=10, random_state=seed).fit(X)


def fit_sparse_rows(seed):
    make_cor(seed, metric="cosine").fit(csr_array(X))


def fit_missing_cells(seed):
    rows = X.copy()
    rows[seed % N_ROWS, 0] = np.nan
    make_cor(seed).fit(rows)


def fit_weighted_rows(seed):
    make_cor(seed).fit(X, sample_weight=np.arange(1, N_ROWS + 1))


def fit_blocks(seed):
    rows = X + seed
    make_cor(seed).fit(lambda: iter(np.array_split(rows, 3)))


def fit_and_answer(seed):
    model = make_cor(seed).fit(X)
    model.predict(X + seed)
    model.score_samples(X + seed)
    model.explain(X[:5])
    assert model.outlier_confidence_.shape == (N_ROWS,)


VARIANTS = {
    each.__name__: each
    for each in (
        fit_paper,
        fit_chosen,
        fit_sparse_rows,
        fit_missing_cells,
        fit_weighted_rows,
        fit_blocks,
        fit_and_answer,
    )
}


def check_growth(fit, n_fits, most_per_fit, figures, name):
    """Fit often; the first tenth fills what is kept on purpose.

    Of the other tenths, what most leave counts: in one of them, Python may renew its
    table of interned texts, which takes 4 MB that were not counted before.
    """
    held, process = [], []
    with traced():
        for tenth in np.array_split(np.arange(n_fits), 10):
            for seed in tenth.tolist():
                fit(seed)
            held.append(count_held())
            process.append(read_status("VmRSS"))
    per_fit = np.median(np.diff(held)) / (n_fits / 10)
    of_process = process[-1] - process[0]
    figures.append(
        f"{name:18} {n_fits:5} fits: {per_fit:6.0f} bytes per fit stay, "
        f"process {of_process / 2**20:+6.1f} MB"
    )
    assert per_fit < most_per_fit, "bytes stay"
    assert of_process < MOST_OF_PROCESS, "the process grows"


def test_twenty_fits_leave_nothing(figures):
    def fit(seed):
        make_cor(seed).fit(MANY_ROWS)

    check_growth(fit, 20, MOST_PER_FIT, figures, "cor")


@pytest.mark.parametrize("name", VARIANTS)
def test_a_thousand_fits_of_cor_leave_nothing(name, soak, figures):
    if not soak:
        pytest.skip("takes minutes: set CORRAL_SOAK=1")
    check_growth(VARIANTS[name], 1000, MOST_PER_FIT_OF_MANY, figures, name)


@pytest.mark.parametrize("name", all_methods())
def test_a_thousand_fits_of_any_method_leave_nothing(name, soak, figures):
    if not soak:
        pytest.skip("takes minutes: set CORRAL_SOAK=1")

    def fit(seed):
        make_method(name, seed).fit(X)

    check_growth(fit, 1000, MOST_PER_FIT_OF_MANY, figures, name)


@pytest.mark.parametrize(
    ("keep", "bar"),
    [
        (lambda seed: MANY_ROWS + seed, MOST_PER_FIT),
        (lambda seed: np.full(N_ROWS, seed, dtype=np.int32), MOST_PER_FIT_OF_MANY),
    ],
    ids=["rows", "labels"],
)
def test_what_a_fit_keeps_is_noticed(keep, bar):
    kept = []
    with pytest.raises(AssertionError, match="bytes stay"):
        check_growth(lambda seed: kept.append(keep(seed)), 50, bar, [], "kept")
