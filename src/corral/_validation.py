"""Checks at the door: what comes in, and whether its parts agree."""

from typing import Any, NamedTuple, NoReturn

import narwhals.stable.v1 as nw
import numpy as np
from scipy import sparse
from sklearn.utils import get_tags
from sklearn.utils.validation import check_array, validate_data

from corral._blocks import find_size, tidy_rows
from corral._sklearn_compat import _check_sample_weight

# Float input keeps its precision; anything else becomes float64.
_FLOATS = (np.float64, np.float32)

# Sums of numbers times this are no larger than numbers can be.
_SMALL = 2.0**-64

# Values may be as large as this part of the largest number of their precision, so that
# their differences are numbers, too.
_USABLE_PART = 2.0**-1

# Squares of numbers up to this size, and of one over it, are numbers, and so are sums
# of many.
_LARGEST_SQUARED = 2.0**500


class Features(NamedTuple):
    """The columns of X, parted by how they are used.

    Attributes
    ----------
    numbers : ndarray or CSR of shape (n_samples, n_numbers), or None
        None if every column is categorical.
        Missing cells hold the mean of their column.
    categories : list of ndarray of shape (n_samples,)
    n_samples : int
    missing : ndarray of shape (n_samples, n_numbers), bool, or None
        The cells of ``numbers`` that are missing; None if none is.
    """

    numbers: Any
    categories: list[np.ndarray]
    n_samples: int
    missing: np.ndarray | None = None


def read_features(estimator, X, *, reset: bool) -> Features:
    """Check X and part its numeric columns from its categorical ones.

    Parameters
    ----------
    estimator : COR
        Gets ``n_features_in_`` and, for a data frame, ``feature_names_in_`` when
        ``reset``; is compared with X otherwise.
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
    reset : bool
    """
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return _read_frame(estimator, frame)
    if estimator.categorical_features is None:
        # A sum of huge numbers, by which scikit-learn looks for infinite ones, may be
        # none.
        with np.errstate(over="ignore", invalid="ignore"):
            numbers = validate_data(
                estimator,
                X,
                reset=reset,
                accept_sparse="csr",
                dtype=_FLOATS,
                ensure_all_finite=_finite_rule(estimator, X),
            )
        numbers = _narrow_indices(tidy_rows(numbers))
        return _part_missing(numbers, [], numbers.shape[0])
    return _read_array(estimator, X, reset=reset)


def _finite_rule(estimator, X) -> bool | str:
    """Return what is asked of numbers: NaN is a missing cell for some estimators."""
    # The empty cells of sparse rows are zeros, so a NaN there is an error.
    if sparse.issparse(X) or not get_tags(estimator).input_tags.allow_nan:
        return True
    return "allow-nan"


def _part_missing(numbers, categories: list, n_samples: int) -> Features:
    """Return the features with missing numbers filled in and marked."""
    check_sizes(numbers)
    if sparse.issparse(numbers):
        return Features(numbers, categories, n_samples)
    # The sum tells whether to look at all; it may overflow where nothing is missing.
    with np.errstate(over="ignore", invalid="ignore"):
        is_known = not np.isnan(numbers.sum(dtype=np.float64))
    missing = None if is_known else np.isnan(numbers)
    if missing is None or not missing.any():
        return Features(numbers, categories, n_samples)
    known = ~missing
    means = take_known_means(add_up_known(numbers, known), known.sum(axis=0))
    filled = np.where(missing, means.astype(numbers.dtype), numbers)
    return Features(filled, categories, n_samples, missing)


def add_up_known(numbers: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the sums of the cells that are known, times a small power of two.

    The sum of huge numbers is none.
    """
    return np.where(known, numbers * _SMALL, 0).sum(axis=0, dtype=np.float64)


def take_known_means(sums: np.ndarray, n_known: np.ndarray) -> np.ndarray:
    """Return the means of the cells that are known.

    Rounded to the digits that do not depend on how rows are cut into blocks.

    Parameters
    ----------
    sums : ndarray of shape (n_columns,)
        As :func:`add_up_known` returns them, of all rows.
    n_known : ndarray of shape (n_columns,)
    """
    digits, exponents = np.frexp(sums / np.maximum(n_known, 1) / _SMALL)
    return np.ldexp(np.rint(np.ldexp(digits, 32)), exponents - 32)


def find_complete(missing: np.ndarray, known: np.ndarray | None) -> np.ndarray:
    """Return which rows lack none of the features that some row has.

    Parameters
    ----------
    missing : ndarray of shape (n_rows, n_numbers), bool
    known : ndarray of shape (n_numbers,), bool, or None
        The features that some row has; None means all.

    Returns
    -------
    is_complete : ndarray of shape (n_rows,), bool
    """
    lacking = missing if known is None else missing[:, known]
    return np.logical_not(np.any(lacking, axis=1))


def read_rows(estimator, X, *, reset: bool, accept_sparse: bool = True):
    """Check X, all of whose columns have to be numbers.

    Parameters
    ----------
    estimator : estimator
        Gets ``n_features_in_`` and, for a data frame, ``feature_names_in_`` when
        ``reset``; is compared with X otherwise.
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
    reset : bool
    accept_sparse : bool

    Returns
    -------
    rows : ndarray or CSR of shape (n_samples, n_features), float32 or float64
        An array is in C order; a sparse matrix has sorted indices, of 32 bits if that
        is enough, and no entry twice.
    """
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        _check_numeric(
            list(frame.iter_columns()), "Turn them into numbers, or drop them."
        )
        _check_any_row(estimator, frame)
        rows = _check_numbers(
            _stack(list(frame.iter_columns()), frame), estimator, order="C"
        )
    else:
        # See read_features.
        with np.errstate(over="ignore", invalid="ignore"):
            rows = validate_data(
                estimator,
                X,
                reset=reset,
                accept_sparse="csr" if accept_sparse else False,
                dtype=_FLOATS,
                order="C",
            )
    check_sizes(rows)
    return _narrow_indices(tidy_rows(rows))


def _narrow_indices(rows):
    """Return sparse rows with indices that all of scikit-learn takes, if they fit."""
    if not sparse.issparse(rows) or rows.indices.dtype == np.int32:
        return rows
    if max(rows.nnz, *rows.shape) > np.iinfo(np.int32).max:
        return rows
    parts = rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return type(rows)(parts, shape=rows.shape)


def _check_numbers(values, estimator, **rules) -> np.ndarray:
    """Return numbers as an array of float32 or float64, as the rules say."""
    # See read_features.
    with np.errstate(over="ignore", invalid="ignore"):
        return check_array(
            values, dtype=_FLOATS, input_name="X", estimator=estimator, **rules
        )


def check_sizes(numbers) -> None:
    """Refuse numbers whose differences are too large to be numbers.

    Parameters
    ----------
    numbers : ndarray or CSR of shape (n_samples, n_features), float32 or float64
        NaN means that a cell is missing.
    """
    values = numbers.data if sparse.issparse(numbers) else numbers
    limit = _USABLE_PART * float(np.finfo(values.dtype).max)
    if find_size(values) <= limit:
        return
    is_huge = np.abs(numbers) > limit
    row, column = (int(places[0]) for places in is_huge.nonzero())
    advice = "Divide the columns by their largest size, or leave such rows out."
    if values.dtype == np.float32:
        advice = f"Give X as float64. {advice}"
    raise ValueError(
        f"X holds {numbers[row, column]:g} in row {row} and numeric column {column}, "
        f"too large for {values.dtype} to compute with: values should be at most "
        f"{limit:.3g} in size. {advice}"
    )


def check_squares(largest: float, what: str, *, is_fit: bool = True) -> None:
    """Refuse rows whose distances are too large or too small to be squared.

    Parameters
    ----------
    largest : float
        The largest size of what is squared.
    what : str
        What it is the largest of, in words.
    is_fit : bool, default=True
        Whether it is the largest of all rows, which must not be too small either.
    """
    low, high = 1 / _LARGEST_SQUARED, _LARGEST_SQUARED
    if largest <= high and (largest >= low or largest == 0 or not is_fit):
        return
    raise ValueError(
        f"The largest {what} is about {largest:.3g}, which cannot be squared: it "
        f"should be from {low:.3g} to {high:.3g}. Divide the columns of X by their "
        "largest size, or leave out rows that are far beyond all others."
    )


def check_scores(scores: np.ndarray, name: str) -> None:
    """Refuse scores that are no numbers.

    Parameters
    ----------
    scores : ndarray of shape (n_samples,) or (n_samples, n_clusters)
    name : str
        Of the method that gave them.
    """
    wrong = np.argwhere(~np.isfinite(scores))[:, 0]
    if len(wrong):
        n_rows = len(np.unique(wrong))
        first = f"row {wrong[0]}"
        rows, more = first, ""
        if n_rows > 1:
            rows, more = f"{n_rows} rows", f", the first is {first}"
        raise ValueError(
            f"{name} gives {rows} a score that is not a number{more}. Values are too "
            "large or too small to be squared: divide the columns of X by their "
            "largest size and look at such rows. Or the metric cannot compare them, as "
            "a constant row has no correlation: leave them out or choose another "
            "metric."
        )


def _check_numeric(columns: list, advice: str) -> None:
    unusable = [
        f"{column.name!r} ({column.dtype})"
        for column in columns
        if not (column.dtype.is_numeric() or column.dtype == nw.Boolean)
    ]
    if unusable:
        raise ValueError(
            f"X has columns that are not numbers: {', '.join(unusable)}. {advice}"
        )


def _check_any_row(estimator, frame: nw.DataFrame) -> None:
    if len(frame) == 0:
        name = type(estimator).__name__
        raise ValueError(f"X has 0 sample(s); {name} needs at least 1.")


def _read_frame(estimator, frame: nw.DataFrame) -> Features:
    names = list(frame.columns)
    is_category = find_categories(estimator.categorical_features, len(names), names)
    columns = list(frame.iter_columns())
    numbers = [each for each, yes in zip(columns, is_category, strict=True) if not yes]
    _check_numeric(
        numbers,
        "Name them in categorical_features to use each as a partition of its own, or "
        "drop them.",
    )
    _check_any_row(estimator, frame)
    categories = [
        each.to_numpy() for each, yes in zip(columns, is_category, strict=True) if yes
    ]
    if not numbers:
        return Features(None, categories, len(frame))
    values = _stack(numbers, None if categories else frame)
    checked = _check_numbers(
        values, estimator, ensure_all_finite=_finite_rule(estimator, values)
    )
    return _part_missing(checked, categories, len(frame))


def _stack(columns: list, frame: nw.DataFrame | None) -> np.ndarray:
    """Return columns as an array, at once where they are a whole frame of numbers."""
    values = None if frame is None else frame.to_numpy()
    if values is not None and values.dtype != object:
        return values
    return np.column_stack([_to_array(column) for column in columns])


def _to_array(column) -> np.ndarray:
    """Return a column of numbers or truth values, NaN where a cell is missing."""
    values = column.to_numpy()
    if values.dtype != object:
        return values
    # Objects, because pandas has a missing value that is no number.
    is_known = ~column.is_null().to_numpy().astype(bool)
    numbers = np.full(len(values), np.nan)
    numbers[is_known] = values[is_known].astype(np.float64)
    return numbers


def _read_array(estimator, X, *, reset: bool) -> Features:
    X = validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite=False)
    is_category = find_categories(estimator.categorical_features, X.shape[1], None)
    categories = list(X[:, is_category].T)
    numbers = None
    if not is_category.all():
        numbers = _check_numbers(
            X[:, ~is_category],
            estimator,
            ensure_all_finite=_finite_rule(estimator, X),
        )
    if numbers is None:
        return Features(None, categories, X.shape[0])
    return _part_missing(numbers, categories, X.shape[0])


def find_categories(
    categorical_features, n_features: int, names: list[str] | None
) -> np.ndarray:
    """Return which columns are categorical, of shape (n_features,), bool."""
    is_category = np.zeros(n_features, dtype=bool)
    if categorical_features is None:
        return is_category
    chosen = np.atleast_1d(np.asarray(categorical_features))
    if chosen.dtype.kind in "UST" or all(isinstance(each, str) for each in chosen):
        chosen = chosen.astype(str)
        unknown = sorted(set(chosen.tolist()) - set(names or []))
        if unknown:
            raise ValueError(
                f"categorical_features={unknown} are not columns of X. "
                f"X has {names or 'no column names'}."
            )
        return np.isin(np.array(names), chosen)
    if chosen.dtype.kind == "b":
        if len(chosen) != n_features:
            raise ValueError(
                f"categorical_features has {len(chosen)} entries but X has "
                f"{n_features} columns."
            )
        return chosen
    outside = chosen[(chosen < -n_features) | (chosen >= n_features)]
    if len(outside):
        raise ValueError(
            f"categorical_features={outside.tolist()} should be columns of X, which "
            f"has {n_features}."
        )
    is_category[chosen.astype(np.intp)] = True
    return is_category


def read_label_matrix(partitions, *, name: str = "partitions") -> np.ndarray:
    """Check a matrix of labels; -1, NaN and None mean missing.

    Returns
    -------
    labels : ndarray of shape (n_samples, n_partitions), int64
    """
    frame = nw.from_native(partitions, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        partitions = frame.to_numpy()
    values = np.asarray(partitions)
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(
            f"{name} has shape {values.shape}; it should be (n_samples, n_partitions) "
            "with at least one row and one column."
        )
    try:
        values = values.astype(np.float64) if values.dtype.kind not in "iub" else values
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} should hold whole numbers, one label per row and partition. "
            "Columns of text are used through categorical_features."
        ) from None
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), -1, values)
    labels = values.astype(np.int64)
    if not np.array_equal(labels, values) or labels.min() < -1:
        wrong = values[(labels != values) | (labels < -1)].flat[0]
        raise ValueError(
            f"{name} holds {wrong}; labels should be whole numbers from 0 up, or -1 "
            "for a missing one."
        )
    return labels


def check_labelled(columns: list[tuple[np.ndarray, np.ndarray]]) -> None:
    """Refuse rows that have no label in any of these columns."""
    silent = np.flatnonzero(np.logical_and.reduce([gone for _, gone in columns]))
    if len(silent):
        refuse_unlabelled(len(silent), int(silent[0]))


def refuse_unlabelled(n_rows: int, first: int) -> NoReturn:
    """Say that rows have no label in any partition, all of which are given."""
    raise ValueError(
        f"{n_rows} rows have no label in any partition, the first is row {first}. Fill "
        "their missing cells, drop them, or add a partition in which they have a label."
    )


def read_sample_weight(sample_weight, n_samples: int) -> np.ndarray | None:
    """Check the weights and scale them to a mean of 1; None if all are the same."""
    if sample_weight is None:
        return None
    # It looks at the shape of X only.
    like = np.empty((n_samples, 0))
    weights = _check_sample_weight(sample_weight, like, dtype=np.float64, copy=True)
    if (weights < 0).any():
        raise ValueError(
            f"sample_weight has a negative value {weights.min()}; weights should be 0 "
            "or more."
        )
    if not weights.any():
        # Some releases of scikit-learn take them.
        raise ValueError(
            "sample_weight is 0 for all rows; at least one non-zero weight is needed."
        )
    if (weights == weights[0]).all():
        return None
    weights /= weights.max()
    return weights / weights.mean()


def count_outliers(
    n_outliers: int | None, contamination: float | None, n_samples: int, n_clusters: int
) -> int:
    """Return the number of outliers that the two parameters ask for."""
    if n_outliers is not None and contamination is not None:
        raise ValueError(
            "Set either n_outliers or contamination, not both. Got "
            f"n_outliers={n_outliers} and contamination={contamination}."
        )
    if n_samples < n_clusters:
        raise ValueError(
            f"n_samples={n_samples} should be >= n_clusters={n_clusters}. Lower "
            "n_clusters."
        )
    asked, lower = f"n_outliers={n_outliers}", "n_outliers"
    if n_outliers is None:
        contamination = 0.05 if contamination is None else contamination
        n_outliers = round(contamination * n_samples)
        asked = f"contamination={contamination}, which makes {n_outliers} outliers,"
        lower = "contamination"
    limit = f"n_samples={n_samples}"
    if n_clusters > 0:
        limit = (
            f"n_samples - n_clusters = {n_samples} - {n_clusters} = "
            f"{n_samples - n_clusters}"
        )
    if n_outliers > 0 and n_outliers >= n_samples - n_clusters:
        lower += " or n_clusters" if n_clusters > 1 else ""
        raise ValueError(f"{asked} should be smaller than {limit}. Lower {lower}.")
    return n_outliers
