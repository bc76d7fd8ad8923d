"""TableEncoder: from a user's table to rows that any method takes, and back."""

from collections.abc import Iterator
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
    to_numbers,
    to_texts,
)
from corral.tables._encoded import EncodedSource
from corral.tables._look import (
    MatrixLook,
    TableLook,
    find_wrong,
    refuse_wrong,
    take_floats,
)
from corral.tables._pieces import HeldRows, is_source, peek, read_pieces
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
from corral.tables._scales import (
    Moments,
    Scales,
    find_quartiles,
    find_quartiles_by_pieces,
    robust_scales,
    standard_scales,
)

# From here on, floats cannot tell one whole number from the next.
_WHOLE = 2**53


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
    texts_ : list of str
        The columns that should come as texts in new rows, too: the id column, and those
        used as categories or words that were texts in the fit. In a file of CSV they
        may look like numbers, and 01 would be read as 1; give them to
        :func:`read_table` as its ``texts``.

    See Also
    --------
    TableModel : A method with its encoder.

    Notes
    -----
    Texts are a category if they have at most 20 distinct values, or the square root of
    the number of rows if that is more, and less than one for two rows. Texts that are
    all numbers or all dates count as these. More than 131,072 distinct texts are not
    counted but estimated, with a standard error of 0.3 %.

    A source (:mod:`corral.sources`) is read piece by piece, once to tell its columns
    apart and to measure them, and five times more for quartiles. A table in memory is
    taken in the same pieces, so the same rows give the same numbers to the last bit,
    wherever they are kept: means and variances are those of pieces of 32,768 rows
    (fewer if there are more than 128 columns), counted from the first row and joined
    in order.

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

    # Set by fit: how each used column is read, the scales and the weights of words,
    # None where there are none, and the width of a matrix, zero for a table.
    _plans: list[ColumnPlan]
    _scales: Scales | None
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

    @property
    def texts_(self):
        names = [] if self.id_column is None else [self.id_column]
        return names + self._list_texts()

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, table, y=None):
        """Learn what the columns are and how to scale them.

        Parameters
        ----------
        table : data frame, pyarrow.Table, sparse matrix, ndarray or source
            With a row for each row. A source is read in pieces, and never held.
        y : Ignored
            Here because scikit-learn passes it.

        Returns
        -------
        self : TableEncoder
            The fitted encoder.
        """
        self._learn(table if is_source(table) else HeldRows(table))
        return self

    def fit_transform(self, table, y=None):
        """Learn from a table and encode it.

        Parameters
        ----------
        table : data frame, pyarrow.Table, sparse matrix, ndarray or source
            With a row for each row.
        y : Ignored
            Here because scikit-learn passes it.

        Returns
        -------
        X : ndarray, csr_array, pyarrow.Table or EncodedSource
            As :meth:`transform` gives it.
        """
        rows = table if is_source(table) else read_rows(table)
        return self.fit(rows).transform(rows)

    def transform(self, table):
        """Encode a table.

        Parameters
        ----------
        table : data frame, pyarrow.Table, sparse matrix, ndarray or source
            With the columns of the fit; others are ignored.

        Returns
        -------
        X : ndarray, csr_array, pyarrow.Table or EncodedSource
            An array of numbers with NaN for missing cells, CSR for sparse rows and
            words, or a table if there are categories, with null for missing cells. A
            source gives a source, which encodes rows when they are read. One of a file
            of CSV gives the columns that were texts in the fit as they are written.
        """
        check_is_fitted(self)
        if is_source(table):
            return EncodedSource(self, self._keep_texts(table))
        return self._encode(read_rows(table))

    def ids(self, table, start=0, stop=None):
        """Return what rows are called.

        Parameters
        ----------
        table : data frame, pyarrow.Table, sparse matrix, ndarray or source
        start : int, default=0
            The first row that is asked for.
        stop : int, default=None
            The row after the last; None is the end.

        Returns
        -------
        ids : list of str
            Of the id column; the numbers of the rows from 0 if there is none, also in
            new rows that come without it.
        """
        source = table if is_source(table) else HeldRows(table)
        stop = source.shape[0] if stop is None else stop
        if self.id_column is not None:
            rows = read_rows(source.read(start, stop))
            if self.id_column in name_columns(rows):
                return _write_ids(as_table(rows)[self.id_column], self.id_column)
        return [str(row) for row in range(start, stop)]

    def format_value(self, name, table, row):
        """Return the user's own value of a feature as text.

        Parameters
        ----------
        name : str
            Of ``feature_names_out_``, or as ``explain`` names a category, such as
            "color = red".
        table : data frame, pyarrow.Table, sparse matrix, ndarray or source
        row : int

        Returns
        -------
        text : str
            "missing" if the cell is; for a word, how often the row has it.
        """
        if is_source(table):
            table, row = table.read(row, row + 1), 0
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

    def _learn(self, source) -> None:
        """Learn from all rows of a source, in memory or not."""
        self._check_source(source)
        self.__dict__.pop("feature_names_out_", None)
        look = self._look(source)
        plans = look.plan()
        self._check_asked(plans)
        self._plans = self._keep(plans)
        self.kinds_ = {plan.name: plan.kind for plan in plans}
        if self.id_column is not None:
            self.kinds_[self.id_column] = "id"
        self.text_names_ = self._named("text")
        self.categorical_names_ = self._named("category")
        self.numeric_names_ = self._named("number", "date", "boolean")
        names = [*self.numeric_names_, *self.categorical_names_, *self.text_names_]
        missing = zip(names, look.count_missing(names), strict=True)
        self.n_missing_ = {name: n for name, n in missing if n}
        self._choose_scale()
        if self.tfidf:
            self._learn_words(source.rows)
        else:
            self.feature_names_out_ = [plan.name for plan in self._plans]
            self._scales = self._learn_scales(source, look)

    def _check_source(self, source) -> None:
        if self.tfidf and is_source(source):
            raise ValueError(
                f"tfidf=True needs all rows in memory, but {source!r} is read in "
                "pieces. Read a sample of the rows, or all of them, with read_table."
            )

    def _look(self, source) -> TableLook | MatrixLook:
        """Look at all rows, and note of what kind they are."""
        first = peek(source)
        names = name_columns(first)
        chosen = choose_columns(names, self.columns, self.exclude, self.id_column)
        if self.id_column is not None:
            # Before the work, for which ids that cannot be told are too late.
            _write_ids(as_table(first)[self.id_column], self.id_column)
        self._n_columns = first.shape[1] if is_matrix(first) else 0
        self._is_sparse = sparse.issparse(first)
        look: TableLook | MatrixLook
        if self._n_columns:
            is_measured = not self.tfidf and self._scale_of(self._is_sparse) != "none"
            look = MatrixLook(names, chosen, is_measured=is_measured)
        else:
            is_asked = self.columns is not None
            look = TableLook(chosen, is_asked=is_asked, wants_text=self.tfidf)
        for start, rows in read_pieces(source, is_sparse=self._is_sparse):
            look.add(rows, start)
        return look

    def _list_texts(self) -> list[str]:
        """Return the columns whose cells are told apart as the texts that they were."""
        plans = (plan for plan in self._plans if plan.kind in ("category", "text"))
        return [plan.name for plan in plans if plan.family == "text"]

    def _keep_texts(self, source):
        """Return a source that reads as texts what was texts in the fit, if it can."""
        with_texts = getattr(source, "with_texts", None)
        return source if with_texts is None else with_texts(self._list_texts())

    def _named(self, *kinds: str) -> list[str]:
        return [plan.name for plan in self._plans if plan.kind in kinds]

    def _check_asked(self, plans: list[ColumnPlan]) -> None:
        wrong = [plan for plan in plans if plan.reason and not plan.is_silent]
        if self.columns is not None and wrong:
            raise ValueError(
                f"columns names what cannot be used. {_list_reasons(wrong)}"
            )

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

    def _encode(self, rows, first_row: int = 0):
        """Encode rows; ``first_row`` is the number of the first, for errors."""
        if self.text_names_:
            return self._rescale(self._weigh_texts(rows))
        numbers = self._numbers(rows, first_row)
        if self.tfidf:
            numbers = self._weigh_counts(numbers)
        numbers = self._rescale(numbers)
        return self._join(numbers, rows) if self.categorical_names_ else numbers

    def _numbers(self, rows, first_row: int = 0) -> Matrix:
        """Return the numeric columns, of shape (n_samples, n_numeric)."""
        if self._n_columns:
            return self._matrix(rows, first_row)
        table = as_table(rows)
        wanted = [plan.name for plan in self._plans]
        check_known(wanted, table.column_names, "The fit used")
        plans = [plan for plan in self._plans if plan.kind != "category"]
        numbers = np.empty((table.num_rows, len(plans)))
        for j, plan in enumerate(plans):
            numbers[:, j] = self._column(table, plan, first_row)
        return numbers

    def _column(self, table, plan: ColumnPlan, first_row: int = 0) -> np.ndarray:
        numbers = to_numbers(table[plan.name], plan.name, plan.family, first_row)
        check_finite(numbers, plan.name, first_row)
        return numbers

    def _matrix(self, rows, first_row: int) -> Matrix:
        matrix = as_matrix(rows, self._n_columns, is_sparse=self._is_sparse)
        places = np.array([int(plan.name.split()[1]) for plan in self._plans])
        matrix = take_floats(matrix, places)
        wrong = find_wrong(matrix)
        if wrong:
            row, column, value = min(wrong)
            refuse_wrong(self._plans[column].name, first_row + row, value)
        return matrix

    def _choose_scale(self) -> None:
        self.scale_ = self._scale_of(self._is_sparse or self.tfidf)
        self._scales = None

    def _scale_of(self, is_thin: bool) -> str:
        """Return how numbers are scaled, which may be sparse."""
        auto = "none" if is_thin else "standard"
        return auto if self.scale == "auto" else self.scale

    def _learn_scales(self, source, look: TableLook | MatrixLook) -> Scales | None:
        """Return the scales of the numeric columns, if they are to be scaled."""
        if self.scale_ == "none" or not self.numeric_names_:
            return None
        moments = look.moments(self.numeric_names_)
        is_shifted = not self._is_sparse
        self._check_moments(moments)
        if self.scale_ == "standard":
            return standard_scales(moments, is_shifted=is_shifted)
        quartiles = self._find_quartiles(source, moments)
        return robust_scales(quartiles, moments, is_shifted=is_shifted)

    def _find_quartiles(self, source, moments: Moments) -> np.ndarray:
        if not self._n_columns:
            return find_quartiles_by_pieces(
                lambda places: self._read_columns(source, places), moments.n_known
            )
        if is_source(source):
            raise ValueError(
                f"scale='robust' needs all rows in memory if they are sparse or have "
                f"many columns, but {source!r} is read in pieces. Choose "
                "scale='standard' or scale='none'."
            )
        return find_quartiles(self._numbers(source.rows))

    def _read_columns(self, source, places) -> Iterator[list[np.ndarray]]:
        """Read some of the numeric columns of a table, piece by piece."""
        plans = {plan.name: plan for plan in self._plans}
        wanted = [plans[self.numeric_names_[place]] for place in places]
        for start, table in read_pieces(source, is_sparse=False):
            yield [self._column(table, plan, start) for plan in wanted]

    def _rescale(self, numbers: Matrix) -> Matrix:
        return numbers if self._scales is None else self._scales.apply(numbers)

    def _check_moments(self, moments: Moments) -> None:
        wrong = np.flatnonzero(~np.isfinite(moments.variance))
        if len(wrong):
            raise ValueError(
                f"Column {self.numeric_names_[wrong[0]]!r} has numbers too large to be "
                "squared. Divide them by a large number, or exclude the column."
            )

    def _learn_words(self, rows) -> None:
        """Learn how rare words are, and the scales of their weights."""
        if self.text_names_:
            self._words = self._count_texts(rows)
            names = self._words.get_feature_names_out().tolist()
            weights = self._weigh_texts(rows)
        else:
            from sklearn.feature_extraction.text import TfidfTransformer

            numbers = self._numbers(rows)
            self._words = TfidfTransformer().fit(self._to_counts(numbers))
            names = self.numeric_names_
            weights = self._weigh_counts(numbers)
        if self.scale_ != "none":
            moments = Moments(len(names))
            for _, piece in read_pieces(HeldRows(weights), is_sparse=True):
                moments.add(piece)
            self._scales = standard_scales(moments, is_shifted=False)
            if self.scale_ == "robust":
                quartiles = find_quartiles(weights)
                self._scales = robust_scales(quartiles, moments, is_shifted=False)
        self.feature_names_out_ = names

    def _count_texts(self, rows):
        from sklearn.feature_extraction.text import TfidfVectorizer

        try:
            return TfidfVectorizer().fit(self._join_texts(rows))
        except ValueError as error:
            raise ValueError(
                f"The texts of {', '.join(map(repr, self.text_names_))} have no words "
                "of two letters or more. Choose other columns."
            ) from error

    def _weigh_texts(self, rows) -> sparse.csr_array:
        """Return the weights of the words of each row."""
        return sparse.csr_array(self._words.transform(self._join_texts(rows)))

    def _join_texts(self, rows) -> list[str]:
        """Return the text of each row, of all columns of text."""
        table = as_table(rows)
        check_known(self.text_names_, table.column_names, "The fit used")
        columns = [_to_texts(table, name).to_pylist() for name in self.text_names_]
        return [" ".join(filter(None, cells)) for cells in zip(*columns, strict=True)]

    def _weigh_counts(self, numbers: Matrix) -> sparse.csr_array:
        """Return the weights of numbers that count words."""
        return sparse.csr_array(self._words.transform(self._to_counts(numbers)))

    def _to_counts(self, numbers: Matrix) -> sparse.csr_array:
        """Return numbers that count words as sparse rows; missing cells count none."""
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
        return counts

    def _join(self, numbers: Matrix, rows):
        """Return numbers and categories as a table, in the order of the columns."""
        pa = need_arrow()
        table = as_table(rows)
        places = {name: j for j, name in enumerate(self.numeric_names_)}
        arrays = [
            pa.array(numbers[:, places[name]], from_pandas=True)
            if name in places
            else _to_texts(table, name)
            for name in self.feature_names_out_
        ]
        return pa.Table.from_arrays(arrays, names=self.feature_names_out_)


def _to_texts(table, name: str):
    column = table[name]
    if family_of(column.type) == "other":
        raise ValueError(
            f"Column {name!r} holds cells of the type {column.type}, but texts in the "
            "fit. Give it the type that it had."
        )
    return to_texts(column, name)


def _list_reasons(plans: list[ColumnPlan]) -> str:
    return "; ".join(f"{plan.name!r}: {plan.reason}" for plan in plans) + "."


def _write_ids(column: Any, name: str) -> list[str]:
    """Return what rows are called; cells that differ give names that differ."""
    pa = need_arrow()
    is_single = pa.types.is_float32(column.type)
    try:
        values = column.to_pylist()
    except (pa.ArrowException, ValueError, LookupError) as error:
        # Such as times in a zone that is not known here.
        raise ValueError(
            f"Column {name!r} is of the type {str(column.type)[:60]}, which cannot "
            "name rows here. Turn it into texts, or name the rows by another column."
        ) from error
    return [_write_id(value, is_single) for value in values]


def _write_id(value: Any, is_single: bool) -> str:
    if not isinstance(value, float) or _is_whole(value) or np.isnan(value):
        return _write_value(value)
    # The shortest text that no other number of that many bits has.
    return str(np.float32(value)) if is_single else repr(value)


def _write_value(value: Any) -> str:
    """Return a cell as text, much as the user wrote it."""
    if value is None or value != value:
        return "missing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if _is_whole(value) else f"{value:.10g}"
    return str(value)


def _is_whole(value: float) -> bool:
    """Return whether a float is a whole number that no other is rounded to.

    pandas turns whole numbers into floats where a cell of the column is missing.
    """
    return value.is_integer() and abs(value) < _WHOLE
