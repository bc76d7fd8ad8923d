import pytest

from corral.report._charts import history_chart, score_chart


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
