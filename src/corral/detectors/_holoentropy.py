"""Outliers among categories: rows whose removal lowers the holoentropy most."""

from decimal import Decimal
from numbers import Integral, Real
from typing import ClassVar, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
from scipy.special import xlogy
from sklearn.utils.validation import validate_data

from corral._sklearn_compat import Interval
from corral.detectors._base import Detector

# The factor of a value that the fit has not seen: the line through the factors of
# values seen twice and once, one step on.
_UNSEEN_FACTOR = 2 * np.log(2)


# Differences of numbers up to this size are numbers.
_HUGE = 2.0**1000


class Holoentropy(Detector):
    r"""Rows of categories with values that are rare where few values prevail.

    The holoentropy of categorical columns is their joint entropy plus their total
    correlation, which is the sum of the entropies H of the columns; a column with less
    entropy has more weight. The score of a row is its outlier factor, the sum over its
    values with the number n(x) of rows that have each:

    .. math::

        \mathrm{OF}(x) = \sum_j w_j\, \delta(n(x_j)), \qquad
        \delta(n) = (n - 1) \log(n - 1) - n \log n, \qquad
        w_j = 2 \left( 1 - \frac{1}{1 + e^{-H_j}} \right).

    Parameters
    ----------
    n_outliers : int, default=None
        Number of outliers. Excludes ``contamination``.
    contamination : float, default=None
        Share of outliers, at most 0.5. 0.05 if both are None.
    n_bins : int or None, default=10
        Cut columns of measured numbers into so many bins of equal width, each of which
        is a category. Those are columns of floats that hold more distinct values than
        this, and not only whole numbers below 2**53 in size (2**24 in float32), from
        where on every float is whole. None to take each distinct value as a category.

    Attributes
    ----------
    outlier_scores_ : ndarray of shape (n_samples,)
        The outlier factor of each row, at most 0; higher is stranger.
    labels_ : ndarray of shape (n_samples,)
        +1 for inliers and -1 for outliers; exactly ``n_outliers_`` rows are -1.
    n_outliers_ : int
        Number of outliers.
    offset_ : float
        Rows with ``score_samples`` below it are outliers.
    category_counts_ : list of dict
        For each column, how many rows have each value, or each bin counted from 0.
        None stands for missing values.
    bins_ : list
        For each column, the lower end, upper end and width of its bins, or None.
    entropies_ : ndarray of shape (n_features,)
        Entropy of each column, in nats.
    weights_ : ndarray of shape (n_features,)
        Weight of each column, from 1 for a constant one towards 0.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X has such.

    See Also
    --------
    corral.COR : Clusters and outliers by the holoentropy of basic partitions.

    Notes
    -----
    With the weights held fixed, removing row x from n rows lowers the weighted
    holoentropy :math:`W = \sum_j w_j H_j` by exactly

    .. math::

        \frac{1}{n - 1} \Bigl( \mathrm{OF}(x) - \sum_j w_j\, \delta(n) - W \Bigr),

    in which only the outlier factor depends on the row: the order of the rows by score
    is their order by how much the holoentropy falls without them. For several rows at
    once it is an approximation. It does not hold with weights computed anew from the
    rows that remain: :math:`w H` itself falls with H once H is above 1.28 nats, so that
    removing a rare value of such a column would raise W. For large counts,
    :math:`\delta(n) \approx -1 - \log n`: a value seen twice as often costs a row
    :math:`w_j \log 2`.

    A value that occurs once counts 0, the most that a value of the fit can count. New
    rows are scored with the counts and weights of the fit; a value that the fit has
    not seen counts :math:`w_j\, 2 \log 2`, the step from twice to once taken once more.

    This is the single-pass method of the paper, ITB-SP. Its step-by-step method,
    ITB-SS, removes the strangest row and updates all counts before it looks for the
    next one. Differs from the paper: the paper takes outliers only among rows whose
    removal lowers the holoentropy; here the number of outliers is as asked for.

    Each distinct value of a column is a category, be it text, a truth value or a
    number. Numbers that are measured, not counted, are nearly all distinct, which would
    give all rows the same score; so they are cut into bins (``n_bins``), which is not
    in the paper. A value beyond the bins of the fit is one that the fit has not seen,
    as is one that is not a number. Whole numbers are not cut: a column of them without
    duplicates, as a running number, counts 0 in every row. If all columns are such,
    all scores are 0 and say nothing; leave such columns out, or bin them beforehand.

    Missing values (None, NaN, NaT and the nulls of data frames) are one category of
    their own. Numbers are compared by value, so that the same number as an integer and
    as a float is one category, but a float32 and a float64 are mostly not. A list with
    text and numbers becomes all text, as NumPy makes it; use a data frame for columns
    of different kinds.

    A constant column adds the same to all rows, as does one without duplicates, which
    adds 0. Duplicates have equal scores, and of rows with equal scores the first are
    outliers. Sparse input is refused.

    Time is in proportion to the number of entries of X, times the logarithm of
    ``n_samples`` for columns that NumPy can sort. Columns are worked on one after the
    other; memory is a few columns beside X, and the distinct values of all. The columns
    of a data frame are first made NumPy arrays, which copies those of some types.

    References
    ----------
    S. Wu and S. Wang, "Information-Theoretic Outlier Detection for Large-Scale
    Categorical Data", IEEE Transactions on Knowledge and Data Engineering 25(3),
    pp. 589-602, 2013, doi:10.1109/TKDE.2011.261.

    Examples
    --------
    >>> from corral.detectors import Holoentropy
    >>> X = [["red", "round"], ["red", "round"], ["red", "round"], ["blue", "long"]]
    >>> detector = Holoentropy(n_outliers=1).fit(X)
    >>> detector.labels_
    array([ 1,  1,  1, -1])
    >>> detector.predict([["red", "round"], ["green", "round"]])
    array([ 1, -1])
    """

    _parameter_constraints: ClassVar[dict] = {
        **Detector._parameter_constraints,
        "n_bins": [Interval(Integral, 2, None, closed="left"), None],
    }

    _accepts_sparse = False

    def __init__(self, *, n_outliers=None, contamination=None, n_bins=10):
        self.n_outliers = n_outliers
        self.contamination = contamination
        self.n_bins = n_bins

    def _fit(self, X) -> np.ndarray:
        n_samples, n_features = X.shape
        scores = np.zeros(n_samples)
        self.bins_ = [find_bins(column, self.n_bins) for column in X.columns]
        self.category_counts_ = []
        self.entropies_ = np.empty(n_features)
        self.weights_ = np.empty(n_features)
        for j, column in enumerate(X.columns):
            distinct = self._categorize(column, j)
            counts = distinct.count_rows()
            self.category_counts_.append(counts)
            self.entropies_[j] = measure_entropy(list(counts.values()), n_samples)
            self.weights_[j] = 2 * (1 - 1 / (1 + np.exp(-self.entropies_[j])))
            scores += self._weigh(distinct, j)
        return scores

    def _score(self, X) -> np.ndarray:
        scores = np.zeros(X.shape[0])
        for j, column in enumerate(X.columns):
            scores += self._weigh(self._categorize(column, j), j)
        return scores

    def _categorize(self, column: np.ndarray, j: int) -> "Distinct":
        bins = self.bins_[j]
        return find_distinct(column if bins is None else bins.place(column))

    def _weigh(self, distinct: "Distinct", j: int) -> np.ndarray:
        """Return what column j adds to the score of each row."""
        counts = self.category_counts_[j]
        seen = np.array([counts.get(value, 0) for value in distinct.values])
        return (self.weights_[j] * outlier_factor(seen))[distinct.places]

    def _read(self, X, *, reset: bool) -> "Columns":
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if 0 in frame.shape:
                raise ValueError(
                    f"X has 0 sample(s) or 0 feature(s): its shape is {frame.shape}. "
                    f"{type(self).__name__} needs at least 1 of each."
                )
            return Columns([_read_series(each) for each in frame.iter_columns()])
        # Any kind of value is a category; missing and infinite ones are, too.
        X = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)
        return Columns(list(X.T))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


class Columns(NamedTuple):
    """The columns of X, each of its own type.

    Attributes
    ----------
    columns : list of ndarray of shape (n_samples,)
    """

    columns: list[np.ndarray]

    @property
    def shape(self) -> tuple[int, int]:
        """Return (n_samples, n_features)."""
        return len(self.columns[0]), len(self.columns)


class Distinct(NamedTuple):
    """The distinct values of a column, and where they are.

    Attributes
    ----------
    values : list
        As Python's own types; None for missing.
    places : ndarray of shape (n_samples,)
        Which of the values each row has.
    """

    values: list
    places: np.ndarray

    def count_rows(self) -> dict:
        """Return how many rows have each value."""
        n_rows = np.bincount(self.places, minlength=len(self.values))
        return dict(zip(self.values, n_rows.tolist(), strict=True))


class Bins(NamedTuple):
    """Bins of equal width.

    Attributes
    ----------
    low, high : float
        The range of the fit.
    width : float
    """

    low: float
    high: float
    width: float

    def place(self, column: np.ndarray) -> np.ndarray:
        """Return the bin of each value; those out of range get numbers of their own."""
        values = self._read_numbers(column)
        unit = _choose_unit(self.low, self.high)
        # What is out of range may be infinitely many bins away.
        with np.errstate(over="ignore"):
            places = (unit * values - unit * self.low) / (unit * self.width)
        places = np.floor(places)
        last = round((unit * self.high - unit * self.low) / (unit * self.width)) - 1
        # The upper end belongs to the last bin, and rounding must not say otherwise.
        places = np.where(values <= self.high, np.minimum(places, last), places)
        return np.where(values > self.high, np.maximum(places, last + 1), places)

    def _read_numbers(self, column: np.ndarray) -> np.ndarray:
        """Return a column as floats: what is no number, as one below all of the fit."""
        if column.dtype.kind in "biuf":
            return column.astype(np.float64)
        below = self.low - self.width
        return np.array([_read_number(value, below) for value in column])


def find_bins(column: np.ndarray, n_bins: int | None) -> Bins | None:
    """Return the bins of a float column, None if its values are categories."""
    if n_bins is None or column.dtype.kind != "f":
        return None
    values = column[np.isfinite(column)].astype(np.float64)
    if len(np.unique(values)) <= n_bins:
        return None
    # From here on, floats are whole because they are large, not because they count.
    limit = 2 / np.finfo(column.dtype).eps
    if np.abs(values).max() < limit and np.array_equal(values, np.rint(values)):
        return None
    low, high = float(values.min()), float(values.max())
    unit = _choose_unit(low, high)
    return Bins(low, high, (unit * high - unit * low) / n_bins / unit)


def _choose_unit(low: float, high: float) -> float:
    """Return a power of two in which differences of huge numbers are numbers."""
    return 2.0**-4 if max(high, -low) > _HUGE else 1.0


def find_distinct(column: np.ndarray) -> Distinct:
    """Return the distinct values of a column.

    Parameters
    ----------
    column : ndarray of shape (n_samples,)
        Of any type; objects have to be hashable.

    Returns
    -------
    distinct : Distinct
    """
    if column.dtype.kind in "biufUS":
        values, places = np.unique(column, return_inverse=True)
        return Distinct([_name(value) for value in values.tolist()], places)
    known: dict = {}
    found = [known.setdefault(_name(value), len(known)) for value in column]
    return Distinct(list(known), np.array(found, dtype=np.intp))


def measure_entropy(counts: list[int], n_samples: int) -> float:
    """Return the entropy of a column with these counts, in nats."""
    # In ascending order, so that the sum does not depend on the names of the values.
    shares = np.sort(counts) / n_samples
    return float(-xlogy(shares, shares).sum())


def outlier_factor(counts: np.ndarray) -> np.ndarray:
    """Return delta(n) of each count, and its continuation for 0."""
    rest = np.maximum(counts - 1, 0)
    factors = xlogy(rest, rest) - xlogy(counts, counts)
    return np.where(counts == 0, _UNSEEN_FACTOR, factors)


def _read_series(series) -> np.ndarray:
    values = series.to_numpy()
    if values.ndim != 1:
        raise TypeError(
            f"Column {series.name!r} of X holds values that cannot be a category "
            f"({series.dtype}). Categories should be text, numbers or other hashable "
            "values."
        )
    is_null = series.is_null().to_numpy()
    if is_null.any() and values.dtype.kind != "f":
        # Nulls of other types have as many names as there are libraries.
        values = values.astype(object)
        values[is_null] = None
    return values


def _name(value):
    """Return the value by which a category is known: None for missing ones."""
    if isinstance(value, np.generic):
        value = value.item()
    _check_hashable(value)
    try:
        # NaN and NaT are the values that differ from themselves.
        return None if value is None or value != value else value
    except TypeError:
        # The missing value of pandas will not say whether it differs from itself.
        return None


def _check_hashable(value) -> None:
    try:
        hash(value)
    except TypeError as error:
        raise TypeError(
            f"X has a value that cannot be a category ({error}). Categories should be "
            "text, numbers or other hashable values."
        ) from None


def _read_number(value, otherwise: float) -> float:
    """Return a value as a float: NaN for missing ones, or what is said otherwise."""
    name = _name(value)
    if name is None:
        return np.nan
    return float(name) if isinstance(name, Real | Decimal) else otherwise
