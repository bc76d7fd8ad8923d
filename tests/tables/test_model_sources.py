"""A method fitted to rows that are read in pieces."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone

from corral import COR, CORDetector, all_methods
from corral.tables import TableModel, _pieces
from corral.tables._pieces import PIECE_ROWS
from tests.tables.blocks import Blocks

N = 300


def make_table(n=N):
    rng = np.random.default_rng(0)
    size = np.concatenate([rng.normal(1, 0.2, n // 2), rng.normal(9, 0.2, n - n // 2)])
    size[-1] = 60.0
    return pa.table(
        {
            "id": [f"row {i}" for i in range(n)],
            "size": size,
            "count": pa.array(rng.integers(0, 5, n), mask=rng.random(n) < 0.1),
            "color": ["red"] * (n // 2) + ["blue"] * (n - n // 2),
        }
    )


class Watched(COR):
    """COR that keeps what it was fitted to, and reads it itself if it is a source."""

    def fit(self, X, y=None, sample_weight=None):
        self.given_ = X
        rows = X.read(0, X.shape[0]) if hasattr(X, "read") else X
        return super().fit(rows, y, sample_weight)


def make_model(**settings):
    return TableModel(Watched(2, n_outliers=1, random_state=0), **settings)


@pytest.mark.parametrize("is_detector", [False, True])
def test_a_source_gives_the_labels_of_the_table(is_detector):
    table = make_table()
    model = make_model(id_column="id")
    if is_detector:
        model.set_params(estimator=CORDetector(model.estimator))
    source = Blocks(table, 7)
    on_source, on_table = clone(model).fit(source), clone(model).fit(table)
    np.testing.assert_array_equal(on_source.labels_, on_table.labels_)
    np.testing.assert_array_equal(on_source.outlier_scores_, on_table.outlier_scores_)
    assert np.flatnonzero(on_source.labels_ == -1).tolist() == [N - 1]
    cor = on_source.estimator_.estimator_ if is_detector else on_source.estimator_
    assert cor.given_.shape == (N, 3)
    assert cor.given_.names == ["size", "count", "color"]
    assert cor.categorical_features == ["color"]


def test_results_are_taken_over_as_they_are():
    model = make_model(id_column="id").fit(Blocks(make_table(), 7))
    assert model.labels_ is model.estimator_.labels_
    assert model.outlier_scores_ is model.estimator_.outlier_scores_


def test_new_rows_may_come_from_a_source():
    model = make_model(id_column="id").fit(make_table())
    table = make_table(PIECE_ROWS + 10)
    source = Blocks(table, 1000)
    np.testing.assert_array_equal(model.predict(source), model.predict(table))
    scores = model.score_samples(source)
    np.testing.assert_array_equal(scores, model.score_samples(table))
    assert source.most_read == PIECE_ROWS
    assert model.encode(source).read(2, 4).equals(model.encode(table.slice(2, 2)))


def test_wide_rows_are_asked_for_in_shorter_pieces(monkeypatch):
    table = make_table(300)
    model = make_model(id_column="id").fit(table)
    expected = model.score_samples(table)
    monkeypatch.setattr(_pieces, "PIECE_CELLS", 130 * table.num_columns)
    source = Blocks(table, 1000)
    np.testing.assert_array_equal(model.score_samples(source), expected)
    assert source.most_read == 130


def test_other_methods_answer_for_a_source_but_are_not_fitted_to_one():
    table = make_table()
    source = Blocks(table, 7)
    model = TableModel(all_methods()["lof"].make(), id_column="id")
    words = r"LOF needs all rows in memory, but Blocks\(shape=\(300, 4\)\) is read in"
    with pytest.raises(ValueError, match=words):
        model.fit(source)
    model.fit(table)
    np.testing.assert_array_equal(model.predict(source), model.predict(table))
    with pytest.raises(ValueError, match=words):
        model.encode(source)


def test_reasons_need_rows_in_memory():
    source = Blocks(make_table(), 7)
    model = make_model(id_column="id").fit(source)
    with pytest.raises(ValueError, match="explain needs rows in memory.*source.read"):
        model.explain(source)
    assert model.explain(source.read(3, 9)).num_rows == 6
