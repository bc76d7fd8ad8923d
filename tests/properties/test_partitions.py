"""Given partitions: only who is together counts, not names, order or how often."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from corral import COR
from corral.rivals import KCC
from tests.properties.methods import Outcome, assert_same, fit, tell
from tests.properties.strategies import (
    N_LABELS,
    numbers_for,
    orders,
    partitions,
    planted_partitions,
)

_GIVEN = {"partitions": "precomputed", "random_state": 0}
MODELS = {
    "cor": lambda k, o: COR(k, n_outliers=o, n_resamples=0, **_GIVEN),
    "cor, holoentropy": lambda k, o: COR(
        k, n_outliers=o, divergence="holoentropy", n_resamples=0, **_GIVEN
    ),
    "kcc": lambda k, o: KCC(k, outlier_cluster=False, **_GIVEN),
}


def solve(name, labels, n_clusters, n_outliers, **given) -> Outcome:
    """Fuse partitions; too few distinct codes make no case."""
    try:
        return tell(fit(MODELS[name](n_clusters, n_outliers), labels, **given))
    except ValueError as error:
        assume("distinct codes" not in str(error))
        raise


def draw_planted(data, name):
    """Draw label rows, and how many of them are strange.

    None is for KCC, which sets no row aside: either cluster may have them.
    """
    labels, n_strange = data.draw(planted_partitions())
    return (labels[n_strange:], 0) if name == "kcc" else (labels, n_strange)


def take(outcome, rows):
    return Outcome(*(each[rows] for each in outcome))


@pytest.mark.parametrize("name", MODELS)
@given(data=st.data())
def test_rows_may_come_in_any_order(name, data):
    labels, n_strange = draw_planted(data, name)
    order = data.draw(orders(len(labels)))
    expected = take(solve(name, labels, 2, n_strange), order)
    assert_same(solve(name, labels[order], 2, n_strange), expected, 1e-9)


@pytest.mark.parametrize("name", MODELS)
@given(data=st.data())
def test_labels_may_have_any_names(name, data):
    labels, n_strange = draw_planted(data, name)
    names = 7 * data.draw(orders(N_LABELS))
    expected = solve(name, labels, 2, n_strange)
    assert_same(solve(name, names[labels], 2, n_strange), expected, 1e-9)


@pytest.mark.parametrize("name", MODELS)
@given(data=st.data())
def test_partitions_may_come_in_any_order(name, data):
    labels, n_strange = draw_planted(data, name)
    order = data.draw(orders(labels.shape[1]))
    expected = solve(name, labels, 2, n_strange)
    assert_same(solve(name, labels[:, order], 2, n_strange), expected, 1e-9)


@pytest.mark.parametrize("name", MODELS)
@given(data=st.data())
def test_weights_are_rows_that_occur_more_than_once(name, data):
    """Without outliers, as each row counts as one of them, whatever its weight.

    Strange rows are left out: either cluster may have them.
    """
    labels, n_strange = data.draw(planted_partitions())
    labels = labels[n_strange:]
    weights = data.draw(hnp.arrays(np.int64, len(labels), elements=st.integers(1, 3)))
    repeated = np.repeat(np.arange(len(labels)), weights)
    expected = solve(name, labels[repeated], 2, 0)
    found = take(solve(name, labels, 2, 0, sample_weight=weights), repeated)
    assert_same(found, expected, 1e-9)


@given(data=st.data())
def test_any_partitions_set_aside_as_many_rows_as_asked(data):
    labels = data.draw(partitions(missing=True))
    n_clusters, n_outliers = data.draw(numbers_for(len(labels)))
    found = solve("cor", labels, n_clusters, n_outliers)
    aside = found.labels == -1
    assert np.count_nonzero(aside) == n_outliers
    assert found.labels.max() < n_clusters
    assert np.isfinite(found.scores).all()
    assert found.scores[aside].min(initial=np.inf) >= found.scores[~aside].max()
