"""Measures: names, order and units do not count, and bounds hold."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from corral import metrics
from tests.properties.strategies import labelings, orders

PAIRED = [
    metrics.nmi_score,
    metrics.rn_score,
    metrics.outlier_jaccard_score,
    metrics.outlier_f_score,
]
RANKING = [metrics.outlier_roc_auc_score, metrics.outlier_average_precision_score]


def draw_ranking(data):
    """Draw labels of both kinds of rows, and scores, many of which tie."""
    (labels,) = data.draw(labelings(1, min_rows=2))
    assume(0 < np.count_nonzero(labels == -1) < len(labels))
    elements = st.integers(-3, 3).map(float)
    return labels, data.draw(hnp.arrays(np.float64, len(labels), elements=elements))


@pytest.mark.parametrize("score", PAIRED)
@given(data=st.data())
def test_clusters_may_have_any_names(score, data):
    true, found = data.draw(labelings())
    names = 3 * np.append(data.draw(orders(5)), 0)
    renamed = np.where(found == -1, -1, names[found])
    assert score(true, renamed) == pytest.approx(score(true, found), abs=1e-12)


@pytest.mark.parametrize("score", PAIRED)
@given(data=st.data())
def test_rows_may_come_in_any_order(score, data):
    true, found = data.draw(labelings())
    order = data.draw(orders(len(true)))
    expected = score(true, found)
    assert score(true[order], found[order]) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("score", PAIRED)
@given(pair=labelings())
def test_both_labelings_count_alike(score, pair):
    true, found = pair
    assert score(true, found) == pytest.approx(score(found, true), abs=1e-12)


@pytest.mark.parametrize("score", PAIRED)
@given(pair=labelings())
def test_no_score_is_above_that_of_the_truth(score, pair):
    true, found = pair
    assert -1 <= score(true, found) <= 1 + 1e-12
    assert score(true, true) == pytest.approx(1)


@pytest.mark.parametrize("score", [metrics.nmi_score, *PAIRED[2:], *RANKING])
@given(data=st.data())
def test_rows_that_all_occur_twice_count_alike(score, data):
    """Exempt is R_n, which counts pairs: equal rows are pairs, too."""
    pair = draw_ranking(data) if score in RANKING else data.draw(labelings())
    twice = (np.repeat(each, 2) for each in pair)
    assert score(*twice) == pytest.approx(score(*pair), abs=1e-12)


@pytest.mark.parametrize("score", RANKING)
@given(data=st.data())
def test_only_the_order_of_scores_counts(score, data):
    true, scores = draw_ranking(data)
    expected = score(true, scores)
    assert 0 <= expected <= 1
    for other in (1e300 * scores, scores * 5e-324, np.arctan(scores) - 7):
        assert score(true, other) == expected
    order = data.draw(orders(len(true)))
    assert score(true[order], scores[order]) == pytest.approx(expected, abs=1e-12)


@given(data=st.data())
def test_scores_the_other_way_round_have_the_other_part_of_the_area(data):
    true, scores = draw_ranking(data)
    area = metrics.outlier_roc_auc_score(true, scores)
    assert metrics.outlier_roc_auc_score(true, -scores) == pytest.approx(1 - area)


@given(data=st.data())
def test_units_of_a_measure_do_not_count_in_the_overall_score(data):
    shape = data.draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    values = data.draw(hnp.arrays(np.float64, shape, elements=st.floats(0.01, 1)))
    units = data.draw(hnp.arrays(np.float64, shape[1], elements=st.floats(1e-3, 1e3)))
    expected = metrics.overall_score(values)
    assert 0 < expected.max() <= 1 + 1e-12
    np.testing.assert_allclose(metrics.overall_score(values * units), expected)
