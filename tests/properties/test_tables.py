"""Tables: neither the unit of a column of numbers nor the names of categories count."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from corral import COR
from corral.tables import TableModel
from tests.properties.methods import fit
from tests.slow_twins import same_clustering


def draw_table(data):
    """Draw two groups that numbers and colours tell apart, and one far row."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    size = np.append(np.repeat([1.0, 9.0], 15) + rng.normal(0, 0.3, 30), 90)
    color = np.append(np.repeat(["red", "blue"], 15), "blue")
    return pd.DataFrame({"size": size, "color": color})


def solve(table):
    model = TableModel(COR(2, n_outliers=1, n_partitions=20, random_state=0))
    return fit(model, table).labels_


@given(data=st.data())
def test_units_and_names_of_a_table_change_nothing(data):
    table = draw_table(data)
    words = st.text("abcxyz ", min_size=1, max_size=5).map(str.strip).filter(bool)
    names = data.draw(st.lists(words, min_size=2, max_size=2, unique=True))
    unit = 2.0 ** data.draw(st.integers(-20, 20))
    other = pd.DataFrame(
        {
            "size": unit * table["size"],
            "color": table["color"].map(dict(zip(["red", "blue"], names, strict=True))),
        }
    )
    labels = solve(table)
    assert labels[30] == -1
    assert same_clustering(solve(other), labels)
