"""The keys of what the page gets, as JSON."""

from typing import Any, TypedDict


class Opening(TypedDict):
    """What does not change with the numbers of clusters and outliers.

    Attributes
    ----------
    source : str
        Name of the file.
    n_samples, n_features : int
        Rows, and columns that are used.
    dropped : dict of str to str
        Columns that are not used, and why.
    max_clusters, max_outliers : int
        Where the sliders end; numbers beyond can be typed.
    start : [int, int]
        The first numbers of clusters and outliers.
    chosen : [int, int]
        Those that the rows suggest.
    runner_up : [int, int] or None
    reason : str
        Why the chosen ones were chosen.
    map : dict or None
        Where rows are drawn: ``rows``, ``ids``, ``x``, ``y``, ``axes``, ``variance``,
        ``is_shifted``.
    name : str
        With which the names of the files begin, unless told.
    folder : str
        Where the files go.
    """

    source: str
    n_samples: int
    n_features: int
    dropped: dict[str, str]
    max_clusters: int
    max_outliers: int
    start: list[int]
    chosen: list[int]
    runner_up: list[int] | None
    reason: str
    map: dict[str, Any] | None
    name: str
    folder: str


class Cluster(TypedDict):
    """A cluster.

    Attributes
    ----------
    label : int
    size : int
        Number of rows.
    stability : float or None
        From 0 to 1; None if it is not known.
    """

    label: int
    size: int
    stability: float | None


class StrangeRow(TypedDict):
    """A row of the table.

    Attributes
    ----------
    row : int
    id : str
    score : float
    is_outlier : bool
        False for the rows that are next to be set aside.
    nearest_label : int
    confidence : float or None
        In which share of the cases, with other partitions, the row is an outlier; None
        if that is not known.
    reasons : list of str
    """

    row: int
    id: str
    score: float
    is_outlier: bool
    nearest_label: int
    confidence: float | None
    reasons: list[str]


class View(TypedDict):
    """What was found with some numbers of clusters and outliers.

    Attributes
    ----------
    n_clusters, n_outliers : int
    labels, nearest_labels : list of int
        Of the rows that are drawn.
    scores : list of float
        Of the same.
    clusters : list of Cluster
    rows : list of StrangeRow
        The strangest outliers, then the rows that are next.
    chart : dict
        The cost curve: ``points``, ``x_ticks``, ``y_ticks``, ``cut``.
    cut : float or None
        Rows with a higher score are outliers.
    n_at_cut : int
        Outliers that tie with rows that are kept.
    objective : float
        Mean cost of a row that is kept.
    doubts : str or None
        How sure the labels are, in words; None if that is not known.
    warnings : list of str
    command : str
        What gives the same on the command line.
    seconds : dict of str to float
        ``fuse``, and all the ``rest``.
    """

    n_clusters: int
    n_outliers: int
    labels: list[int]
    nearest_labels: list[int]
    scores: list[float]
    clusters: list[Cluster]
    rows: list[StrangeRow]
    chart: dict[str, Any]
    cut: float | None
    n_at_cut: int
    objective: float
    doubts: str | None
    warnings: list[str]
    command: str
    seconds: dict[str, float]
