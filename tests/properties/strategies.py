"""Rows, labels and partitions, as hypothesis draws them."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

# Where numbers begin to be special: beyond some of them squares, or even differences,
# are no numbers, or those of float32 are not.
SIZES = [
    *(0.0, 5e-324, 1e-310, 1e-300, 1e-200, 1e-160, 1e-154, 1e-100, 1e-45, 1e-38, 1e-20),
    *(1.0, 3.0, 1e12, 1e15, 1e19, 1e20, 1e30, 2e37, 3e38, 1e60, 1e100, 1e150, 1e154),
    *(1e155, 1e200, 1e290, 1e300, 1e306, 1e307, 1.7e308),
]

# Label rows have labels below this one.
N_LABELS = 9


@st.composite
def whole_rows(draw, min_rows=1, max_rows=12, max_columns=3, span=3):
    """Draw rows of small whole numbers: many are equal, or equally far from others."""
    shape = draw(
        st.tuples(st.integers(min_rows, max_rows), st.integers(1, max_columns))
    )
    return draw(hnp.arrays(np.float64, shape, elements=st.integers(-span, span)))


@st.composite
def spread_rows(draw, min_rows=8, max_rows=24, max_columns=3, min_columns=1):
    """Draw rows in general position: groups, and a few rows beside them.

    They are multiples of 2**-12 of size 32 at most, so that moderate shifts, powers of
    two and float32 hold them without rounding.
    """
    n_rows = draw(st.integers(min_rows, max_rows))
    n_columns = draw(st.integers(min_columns, max_columns))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    centers = rng.uniform(-8, 8, (draw(st.integers(1, 3)), n_columns))
    X = centers[rng.integers(len(centers), size=n_rows)]
    X = X + rng.normal(scale=0.5, size=X.shape)
    n_far = draw(st.integers(0, n_rows // 4))
    X[:n_far] += rng.normal(scale=8, size=(n_far, n_columns))
    return np.rint(np.clip(X, -32, 32) * 2**12) / 2**12


@st.composite
def extreme_rows(draw, n_columns=None):
    """Draw rows of any sizes that floats have, some in float32."""
    shape = draw(st.integers(1, 10)), n_columns or draw(st.integers(1, 3))
    sizes = np.array(draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=3)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    chosen = rng.choice(
        sizes,
        {"all": shape, "rows": (shape[0], 1), "columns": shape[1]}[
            draw(st.sampled_from(["all", "rows", "columns"]))
        ],
    )
    factors = draw(
        st.sampled_from([rng.normal(size=shape), rng.integers(-2, 3, shape)])
    )
    largest = np.finfo(np.float64).max
    with np.errstate(over="ignore", under="ignore"):
        X = np.clip(chosen * factors, -largest, largest)
    if draw(st.booleans()):
        return X
    largest = np.finfo(np.float32).max
    return np.clip(X, -largest, largest).astype(np.float32)


@st.composite
def numbers_for(draw, n_rows, max_clusters=4):
    """Draw how many clusters, from 1, and how many outliers, up to the most."""
    n_clusters = draw(st.integers(1, min(n_rows, max_clusters)))
    return n_clusters, draw(st.integers(0, max(n_rows - n_clusters - 1, 0)))


@st.composite
def partitions(draw, min_rows=4, max_rows=16, max_partitions=6, missing=False):
    """Draw a matrix of labels; -1 means missing, and no row misses all."""
    n_rows = draw(st.integers(min_rows, max_rows))
    n_partitions = draw(st.integers(1, max_partitions))
    least = -1 if missing else 0
    labels = hnp.arrays(
        np.int64, (n_rows, n_partitions), elements=st.integers(least, 3)
    )
    return draw(labels.map(_label_all))


@st.composite
def planted_partitions(draw):
    """Draw label rows of two groups that hardly anything confuses, and strange ones.

    Which restart of the fusion is kept then depends on no tie.

    Returns
    -------
    labels : ndarray of shape (n_rows, 12)
    n_strange : int
        The first so many rows are in neither group.
    """
    sizes = draw(st.tuples(st.integers(7, 9), st.integers(10, 12)))
    n_strange = draw(st.integers(0, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    labels = np.repeat(np.repeat([0, 1], sizes)[:, None], 12, axis=1)
    is_noise = rng.random(labels.shape) < 0.05
    labels = np.where(is_noise, 1 - labels, labels)
    strange = rng.integers(2, N_LABELS, (n_strange, 12))
    return np.concatenate([strange, labels]), n_strange


def _label_all(labels):
    labels = labels.copy()
    labels[(labels == -1).all(axis=1), 0] = 0
    return labels


@st.composite
def labelings(draw, n_labelings=2, min_rows=1, max_rows=20):
    """Draw labels of the same rows, from 0 up and -1, several times."""
    n_rows = draw(st.integers(min_rows, max_rows))
    labels = hnp.arrays(np.int64, n_rows, elements=st.integers(-1, 4))
    return [draw(labels) for _ in range(n_labelings)]


@st.composite
def orders(draw, n_rows):
    """Draw an order of so many rows."""
    return np.array(draw(st.permutations(range(n_rows))), dtype=np.intp)


def few_numbers_for(n_rows):
    """Draw a few clusters, and as many outliers as leave some rows to each."""
    return st.tuples(st.integers(1, 3), st.integers(0, n_rows // 2))
