import pytest

from corral.report._charts import (
    draw_agreement,
    draw_map,
    history_chart,
    score_chart,
)


def test_score_chart_spans_the_drawing():
    # The strangest row is at the left, the last at the right, and rank 10 half-way.
    chart = score_chart([1, 10, 100], [4.0, 1.0, 0.0], n_outliers=9)
    x, y = zip(*chart.points, strict=True)
    assert x == pytest.approx((0, 50, 100))
    assert y == pytest.approx((0, 75, 100))
    assert [tick.text for tick in chart.x_ticks] == ["1", "10", "100"]
    assert 45 < chart.cut < 50


def test_history_chart_ticks_are_whole_iterations():
    chart = history_chart([100.0 - index for index in range(41)])
    assert [tick.text for tick in chart.x_ticks] == ["1", "10", "20", "30", "40"]
    assert chart.points[-1][0] == 100


@pytest.mark.parametrize(
    "values",
    [[0.0], [5.0, 5.0], [-3.0, -3.0], [1e9, 1e9 - 1e-6], [1e-9, 0.0], [1e300, 0.0]],
    ids=["one", "flat", "flat negative", "all but flat", "tiny", "huge"],
)
def test_charts_of_nasty_values_stay_inside(values):
    # Positions are within the drawing, and the axis has few ticks.
    for chart in (
        history_chart(values),
        score_chart(range(1, len(values) + 1), values, n_outliers=0),
    ):
        assert all(0 <= x <= 100 and -0.01 <= y <= 100.01 for x, y in chart.points)
        assert 2 <= len(chart.y_ticks) <= 8
        assert chart.cut is None


def test_map_draws_each_row_once():
    # Clusters 0 and 8 share a colour; a row outside of the view is at its edge.
    drawing = draw_map(
        {
            "x": [0.5, 0.25, 0.75, -7.0],
            "y": [0.5, 0.0, 1.0, 0.25],
            "labels": [0, 8, 1, -1],
        }
    )
    assert drawing.clusters == [
        (0, "M50.00 50.00h.01M25.00 98.50h.01"),
        (1, "M75.00 1.50h.01"),
    ]
    assert drawing.outliers == "M1.50 75.00h.01"
    assert drawing.n_outside == 1
    assert [name for name, _, _ in drawing.names] == [0, 1, 8]


def test_agreement_joins_equal_neighbours():
    # Two rows that always agree are a square of two lines; unknown and zero are blank.
    drawing = draw_agreement(
        {
            "groups": [{"size": 2}, {"size": 1}],
            "percents": [[100, 100, 0], [100, 100, None], [0, None, 100]],
        }
    )
    assert drawing.size == 3
    assert drawing.shades == [(1.0, "M0 0.5h2M0 1.5h2M2 2.5h1")]
    assert drawing.borders == [2]
    assert drawing.middles == pytest.approx([100 / 3, 250 / 3])
