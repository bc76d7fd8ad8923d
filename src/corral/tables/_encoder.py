"""TableEncoder: from a user's table to rows that any method takes, and back."""

from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from corral._sklearn_compat import StrOptions, _fit_context
from corral.tables._arrow import need_arrow
from corral.tables._columns import (
    ColumnPlan,
    check_finite,
    family_of,
    plan_column,
    plan_matrix,
    to_numbers,
    to_texts,
)
from corral.tables._rows import (
    Matrix,
    as_matrix,
    as_table,
    check_known,
    choose_columns,
    is_matrix,
    name_columns,
    read_rows,
)


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn a table into rows for a method.

    1. Tell what each column is: a number, a date, a truth value, a category or text.
    2. Leave out columns that tell nothing or cannot be used, and say why.
    3. Turn dates (seconds since 1970) and truth values (0 and 1) into numbers, and
       scale them. Categories stay as they are.

    Parameters
    ----------
    columns : list of str, default=None
        Use these columns only. None means all.

    exclude : list of str, default=None
        Use all but these columns.

    id_column : str, default=None
        The column that names rows. It is kept aside.

    scale : {"auto", "standard", "robust", "none"}, default="auto"
        "standard" gives numbers the mean 0 and the standard deviation 1, "robust" the
        median 0 and the distance 1 between quartiles. Sparse rows are not shifted.
        "auto" is "standard", and "none" for sparse rows and tf-idf.

    tfidf : bool, default=False
        Split the columns with free text into words and weigh each word by how rare it
        is; if there are none, take the numbers for counts of words.

    categories : bool, default=True
        Whether the method uses categories. If not, such columns are left out.

    Attributes
    ----------
    feature_names_out_ : list of str
        Names of the output's columns: of columns, or words.
    numeric_names_ : list of str
        The columns of the table that are used as numbers.
    categorical_names_ : list of str
        Those that are used as categories.
    text_names_ : list of str
        Those that are split into words.
    kinds_ : dict of str to str
        "number", "date", "boolean", "category", "text" or "id" of each column that was
        looked at, used or not.
    dropped_ : dict of str to str
        Columns that are not used, and why.
    n_missing_ : dict of str to int
        Missing cells of the columns that are used, where there are any.
    scale_ : {"standard", "robust", "none"}
        How numbers are scaled.

    See Also
    --------
    TableModel : A method with its encoder.

    Notes
    -----
    Texts are a category if they have at most 20 distinct values, or the square root of
    the number of rows if that is more, and less than one for two rows. Texts that are
    all numbers or all dates count as these.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from corral.tables import TableEncoder
    >>> table = pa.table({"size": [1.0, 3.0, None, 5.0], "color": list("rgrg"),
    ...                   "made": ["Bonn"] * 4})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.kinds_
    {'size': 'number', 'color': 'category', 'made': 'category'}
    >>> encoder.dropped_
    {'made': "every row has the same value 'Bonn'"}
    >>> encoder.n_missing_
    {'size': 1}
    >>> encoder.transform(table).column("size").to_pylist()
    [-1.224744871391589, 0.0, None, 1.224744871391589]
    """

    _parameter_constraints: ClassVar[dict] = {
        "columns": [list, tuple, str, None],
        "exclude": [list, tuple, str, None],
        "id_column": [str, None],
        "scale": [StrOptions({"auto", "standard", "robust", "none"})],
        "tfidf": ["boolean"],
        "categories": ["boolean"],
    }

    # Set by fit: how each used column is read, the scaler and the weights of words,
    # None where there are none, and the width of a matrix, zero for a table.
    _plans: list[ColumnPlan]
    _scaler: Any
    _words: Any
    _n_columns: int
    _is_sparse: bool

    def __init__(
        self,
        *,
        columns=None,
        exclude=None,
        id_column=None,
        scale="auto",
        tfidf=False,
        categories=True,
    ):
        self.columns = columns
        self.exclude = exclude
        self.id_column = id_column
        self.scale = scale
        self.tfidf = tfidf
        self.categories = categories

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, table, y=None):
        """Learn what the columns are and how to scale them.

        Parameters
        ----------
        table : data frame, pyarrow.Table, sparse matrix or ndarray
            With a row for each row.
        y : Ignored
            Here because scikit-learn passes it.

        Returns
        -------
        self : TableEncoder
            The fitted encoder.
        """
        self._encode(read_rows(table), is_fit=True)
        return self

    def fit_transform(self, table, y=None):
        """Learn from a table and encode it.

        Parameters
        ----------
        table : data frame, pyarrow.Table, sparse matrix or ndarray
            With a row for each row.
        y : Ignored
            Here because scikit-learn passes it.

        Returns
        -------
        X : ndarray, csr_array or pyarrow.Table
            As :meth:`transform` gives it.
        """
        self._validate_params()
        return self._encode(read_rows(table), is_fit=True)

    def transform(self, table):
        """Encode a table.

        Parameters
        ----------
        table : data frame, pyarrow.Table, sparse matrix or ndarray
            With the columns of the fit; others are ignored.

        Returns
        -------
        X : ndarray, csr_array or pyarrow.Table
            An array of numbers with NaN for missing cells, CSR for sparse rows and
            words, or a table if there are categories, with null for missing cells.
        """
        check_is_fitted(self)
        return self._encode(read_rows(table), is_fit=False)

    def ids(self, table):
        """Return what rows are called.

        Parameters
        ----------
        table : data frame, pyarrow.Table, sparse matrix or ndarray

        Returns
        -------
        ids : list of str
            Of the id column; the numbers of the rows from 0 if there is none, also in
            new rows that come without it.
        """
        rows = read_rows(table)
        if self.id_column is None or self.id_column not in name_columns(rows):
            return [str(row) for row in range(rows.shape[0])]
        column = as_table(rows)[self.id_column]
        return [_write_value(value) for value in column.to_pylist()]

    def format_value(self, name, table, row):
        """Return the user's own value of a feature as text.

        Parameters
        ----------
        name : str
            Of ``feature_names_out_``, or as ``explain`` names a category, such as
            "color = red".
        table : data frame, pyarrow.Table, sparse matrix or ndarray
        row : int

        Returns
        -------
        text : str
            "missing" if the cell is; for a word, how often the row has it.
        """
        rows = read_rows(table)
        if self.text_names_:
            text = self._join_texts(as_table(rows).slice(row, 1))[0]
            return str(self._words.build_analyzer()(text).count(name))
        if is_matrix(rows):
            return _write_value(rows[row, name_columns(rows).index(name)].item())
        if name not in rows.column_names:
            names = self.categorical_names_
            name = next(each for each in names if name.startswith(f"{each} = "))
        return _write_value(rows[name][row].as_py())

    def __sklearn_is_fitted__(self):
        return hasattr(self, "feature_names_out_")

    def _encode(self, rows, *, is_fit: bool):
        """Encode rows; learn how to do it first if ``is_fit``."""
        if is_fit:
            self._plan(rows)
        if self.text_names_:
            return self._weigh_texts(rows, is_fit=is_fit)
        numbers = self._numbers(rows, is_fit=is_fit)
        if self.tfidf:
            numbers = self._weigh_counts(numbers, is_fit=is_fit)
        numbers = self._rescale(numbers, is_fit=is_fit)
        if is_fit:
            self.feature_names_out_ = [plan.name for plan in self._plans]
        if not self.categorical_names_:
            return numbers
        return self._join(numbers, rows, is_fit=is_fit)

    def _plan(self, rows) -> None:
        """Decide which columns are used and how, and set what tells it."""
        names = name_columns(rows)
        chosen = choose_columns(names, self.columns, self.exclude, self.id_column)
        self.__dict__.pop("feature_names_out_", None)
        self.n_missing_: dict[str, int] = {}
        self._n_columns = rows.shape[1] if is_matrix(rows) else 0
        self._is_sparse = sparse.issparse(rows)
        if self._n_columns:
            plans = plan_matrix(rows, names, set(chosen))
        else:
            plans = self._plan_columns(rows, chosen)
        self._plans = self._keep(plans)
        self.kinds_ = {plan.name: plan.kind for plan in plans}
        if self.id_column is not None:
            self.kinds_[self.id_column] = "id"
        self.text_names_ = self._named("text")
        self.categorical_names_ = self._named("category")
        self.numeric_names_ = self._named("number", "date", "boolean")

    def _named(self, *kinds: str) -> list[str]:
        return [plan.name for plan in self._plans if plan.kind in kinds]

    def _plan_columns(self, table, chosen: list[str]) -> list[ColumnPlan]:
        is_asked = self.columns is not None
        plans = [
            plan_column(name, table[name], is_asked=is_asked, wants_text=self.tfidf)
            for name in chosen
        ]
        wrong = [plan for plan in plans if plan.reason and not plan.is_silent]
        if is_asked and wrong:
            raise ValueError(
                f"columns names what cannot be used. {_list_reasons(wrong)}"
            )
        return plans

    def _keep(self, plans: list[ColumnPlan]) -> list[ColumnPlan]:
        """Return the plans of the columns that are used; note why others are not."""
        kinds = {plan.kind for plan in plans if not plan.reason}
        if self.tfidf and "text" in kinds:
            others = {*kinds} - {"text"}
            unused = dict.fromkeys(others, "tf-idf uses the columns of text only")
        elif self.tfidf:
            unused = {"category": "tf-idf uses words or counts of words only"}
        elif not self.categories:
            unused = {"category": "a category, and this method uses numbers only"}
        else:
            unused = {}
        reasons = {
            plan.name: plan.reason or unused.get(plan.kind, "") for plan in plans
        }
        self.dropped_ = {name: reason for name, reason in reasons.items() if reason}
        kept = [plan for plan in plans if plan.name not in self.dropped_]
        if not kept:
            listed = "; ".join(f"{name!r}: {why}" for name, why in reasons.items())
            raise ValueError(f"No column can be used. {listed}.")
        return kept

    def _numbers(self, rows, *, is_fit: bool) -> Matrix:
        """Return the numeric columns, of shape (n_samples, n_numeric)."""
        if self._n_columns:
            return self._matrix(rows, is_fit=is_fit)
        table = as_table(rows)
        if not is_fit:
            wanted = [plan.name for plan in self._plans]
            check_known(wanted, table.column_names, "The fit used")
        plans = [plan for plan in self._plans if plan.kind != "category"]
        numbers = np.empty((table.num_rows, len(plans)))
        for j, plan in enumerate(plans):
            numbers[:, j] = to_numbers(table[plan.name], plan.name, plan.family)
            check_finite(numbers[:, j], plan.name)
            if is_fit:
                self._note_missing(plan.name, np.count_nonzero(np.isnan(numbers[:, j])))
        return numbers

    def _matrix(self, rows, *, is_fit: bool) -> Matrix:
        matrix = as_matrix(rows, self._n_columns, is_sparse=self._is_sparse)
        if len(self._plans) < self._n_columns:
            matrix = matrix[:, [int(plan.name.split()[1]) for plan in self._plans]]
        matrix = matrix.astype(np.float32 if matrix.dtype == np.float32 else np.float64)
        cells = matrix.data if self._is_sparse else matrix
        is_nan = np.isnan(cells)
        if is_fit and not self._is_sparse:
            for plan, n_missing in zip(self._plans, is_nan.sum(axis=0), strict=True):
                self._note_missing(plan.name, n_missing)
        if np.isinf(cells).any() or (self._is_sparse and is_nan.any()):
            at = sparse.coo_array(matrix)
            is_wrong = ~np.isfinite(at.data) if self._is_sparse else np.isinf(at.data)
            wrong = np.flatnonzero(is_wrong)[0]
            raise ValueError(
                f"Column {self._plans[at.col[wrong]].name!r} holds {at.data[wrong]} in "
                f"row {at.row[wrong]}. Put a number there, or exclude the column."
            )
        return matrix

    def _note_missing(self, name: str, n_missing) -> None:
        if n_missing:
            self.n_missing_[name] = int(n_missing)

    def _rescale(self, numbers: Matrix, *, is_fit: bool) -> Matrix:
        if is_fit:
            is_thin = sparse.issparse(numbers)
            auto = "none" if is_thin else "standard"
            self.scale_ = auto if self.scale == "auto" else self.scale
            self._scaler = None
            if self.scale_ != "none" and numbers.shape[1]:
                self._scaler = _fit_scaler(self.scale_, numbers)
                self._check_scales()
        return numbers if self._scaler is None else self._scaler.transform(numbers)

    def _check_scales(self) -> None:
        # A variance that overflows has the scale 1.
        sizes = getattr(self._scaler, "var_", self._scaler.scale_)
        wrong = np.flatnonzero(~np.isfinite(sizes))
        if len(wrong):
            raise ValueError(
                f"Column {self.numeric_names_[wrong[0]]!r} has numbers too large to be "
                "squared. Divide them by a large number, or exclude the column."
            )

    def _weigh_texts(self, rows, *, is_fit: bool) -> sparse.csr_array:
        """Return the weights of the words of each row."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        texts = self._join_texts(rows)
        if is_fit:
            for name in self.text_names_:
                self._note_missing(name, as_table(rows)[name].null_count)
            try:
                self._words = TfidfVectorizer().fit(texts)
            except ValueError as error:
                raise ValueError(
                    f"The texts of {', '.join(map(repr, self.text_names_))} have no "
                    "words of two letters or more. Choose other columns."
                ) from error
        weights = sparse.csr_array(self._words.transform(texts))
        weights = self._rescale(weights, is_fit=is_fit)
        if is_fit:
            self.feature_names_out_ = self._words.get_feature_names_out().tolist()
        return weights

    def _join_texts(self, rows) -> list[str]:
        """Return the text of each row, of all columns of text."""
        table = as_table(rows)
        check_known(self.text_names_, table.column_names, "The fit used")
        columns = [_to_texts(table, name).to_pylist() for name in self.text_names_]
        return [" ".join(filter(None, cells)) for cells in zip(*columns, strict=True)]

    def _weigh_counts(self, numbers: Matrix, *, is_fit: bool) -> sparse.csr_array:
        """Return the weights of numbers that count words; missing cells count none."""
        from sklearn.feature_extraction.text import TfidfTransformer

        if not sparse.issparse(numbers):
            numbers = np.nan_to_num(numbers, nan=0.0)
        counts = sparse.csr_array(numbers)
        if counts.nnz and counts.data.min() < 0:
            at = counts.tocoo()
            wrong = at.data.argmin()
            raise ValueError(
                f"tf-idf needs counts of words, but column "
                f"{self.numeric_names_[at.col[wrong]]!r} holds {at.data[wrong]:g} in "
                f"row {at.row[wrong]}. Counts should be 0 or more."
            )
        if is_fit:
            self._words = TfidfTransformer().fit(counts)
        return sparse.csr_array(self._words.transform(counts))

    def _join(self, numbers: Matrix, rows, *, is_fit: bool):
        """Return numbers and categories as a table, in the order of the columns."""
        pa = need_arrow()
        table = as_table(rows)
        places = {name: j for j, name in enumerate(self.numeric_names_)}
        arrays = []
        for name in self.feature_names_out_:
            if name in places:
                arrays.append(pa.array(numbers[:, places[name]], from_pandas=True))
                continue
            arrays.append(_to_texts(table, name))
            if is_fit:
                self._note_missing(name, arrays[-1].null_count)
        return pa.Table.from_arrays(arrays, names=self.feature_names_out_)


def _to_texts(table, name: str):
    column = table[name]
    if family_of(column.type) == "other":
        raise ValueError(
            f"Column {name!r} holds cells of the type {column.type}, but texts in the "
            "fit. Give it the type that it had."
        )
    return to_texts(column)


def _list_reasons(plans: list[ColumnPlan]) -> str:
    return "; ".join(f"{plan.name!r}: {plan.reason}" for plan in plans) + "."


def _fit_scaler(scale: str, numbers: Matrix):
    """Return scikit-learn's scaler, fitted; it skips missing cells."""
    from sklearn.preprocessing import RobustScaler, StandardScaler

    is_dense = not sparse.issparse(numbers)
    # Numbers that overflow are found by their scale.
    with np.errstate(over="ignore", invalid="ignore"):
        standard = StandardScaler(with_mean=is_dense).fit(numbers)
        if scale == "standard":
            return standard
        robust = RobustScaler(with_centering=is_dense, unit_variance=False)
        robust.fit(numbers)
    # Where half of the numbers are the same, quartiles do not tell the scale.
    is_flat = _quartile_range(numbers) == 0
    robust.scale_ = np.where(is_flat, standard.scale_, robust.scale_)
    return robust


def _quartile_range(numbers: Matrix) -> np.ndarray:
    if sparse.issparse(numbers):
        columns = numbers.tocsc()
        return np.array(
            [np.ptp(_quartiles(columns[:, [j]])) for j in range(columns.shape[1])]
        )
    low, high = np.nanpercentile(numbers, [25, 75], axis=0)
    return high - low


def _quartiles(column) -> np.ndarray:
    return np.percentile(column.toarray(), [25, 75])


def _write_value(value: Any) -> str:
    """Return a cell as text, much as the user wrote it."""
    if value is None or value != value:
        return "missing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.10g}"
    return str(value)
