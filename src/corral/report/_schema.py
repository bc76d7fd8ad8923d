"""The keys of a summary.

A summary holds only dicts, lists, strings, numbers, True, False and None, so that JSON
gives back what it was given.
"""

from typing import Any, Literal, TypedDict


class Run(TypedDict):
    """The run in single numbers; None where the method has no such number."""

    method: str  # name of the class
    kind: Literal["joint", "detector"]  # a detector has no clusters
    is_training: bool  # whether the rows are those of the fit
    n_samples: int
    n_all: int | None  # all rows, if these are a random part of them
    n_features: int | None  # None where the fit had labels only
    n_clusters: int
    n_outliers: int
    n_partitions: int | None
    n_codes: int | None
    n_iter: int | None
    objective: float | None
    n_missing: dict[str, int]  # missing cells of the columns that have any


class ClusterFeature(TypedDict):
    """What makes a cluster different from the rows of all clusters."""

    name: str  # for a category "name = value"
    # Mean of a number or date, share of the rows, or mean in units that users lack.
    kind: Literal["number", "date", "share", "scaled"]
    value: float | str  # in the cluster; a date as "2024-05-01"
    usual: float | str  # the same over the rows of all clusters
    difference: float  # in standard deviations over the rows of all clusters


class Cluster(TypedDict):
    """One cluster, without the rows that were set aside."""

    label: int
    size: int
    share: float  # of all rows
    stability: float | None  # from 0 to 1; None where the method does not know it
    features: list[ClusterFeature]  # empty without X


class Scores(TypedDict):
    """The outlier scores from high to low; only some ranks where rows are many."""

    ranks: list[int]  # from 1
    values: list[float]
    cut: float | None  # rows with a higher score are outliers; None where none are
    n_at_cut: int  # outliers that tie at the cut with rows that are kept


class Reason(TypedDict):
    """One column that sets a row apart from its nearest cluster."""

    name: str  # for a category "name = value"
    kind: Literal["number", "category"]
    difference: float  # in spreads of the cluster; for a category its surprise
    value: str | None  # the user's own value
    words: str  # such as "height is 4.2 spreads above its cluster (212)"


class StrangeRow(TypedDict):
    """One of the rows with the highest scores."""

    row: int  # from 0
    id: str
    score: float
    is_outlier: bool
    nearest_label: int
    disagreement: float | None  # share of the partitions that disagree
    # Probabilities of being set aside and of the nearest cluster under resampled
    # partitions; None where the method does not know them.
    outlier_confidence: float | None
    label_confidence: float | None
    reasons: list[Reason]
    values: dict[str, str]  # the user's own values; empty if they were not given


class RowMap(TypedDict):
    """Rows in the plane, the strangest first; (0, 0) to (1, 1) is the first view."""

    axes: list[str]  # what the two axes are
    variance: float | None  # share of the variance that the map keeps
    is_shifted: bool  # whether rows on the same place are drawn side by side
    rows: list[int]
    ids: list[str]
    x: list[float]
    y: list[float]
    labels: list[int]  # -1 for outliers
    nearest_labels: list[int]
    scores: list[float]
    names: list[str]  # of the columns that are reasons
    reasons: list[list[float]]  # of each row: place in names, difference, place, ...
    is_category: list[bool]  # of each name


class Group(TypedDict):
    """Rows of one cluster, or the outliers, in the agreement of pairs."""

    label: int  # -1 for outliers
    size: int
    within: float | None  # mean agreement of its pairs; None without any
    between: float | None  # mean agreement with rows of the other groups


class Agreement(TypedDict):
    """In how many of 100 partitions two rows of a sample have the same label."""

    groups: list[Group]  # in the order of the rows
    percents: list[list[int | None]]  # None where no partition knows both


class Points(TypedDict):
    """A curve."""

    numbers: list[int]  # of clusters or outliers, from few to many
    values: list[float]


class CurveOfK(TypedDict):
    """A curve over numbers of outliers, for one number of clusters."""

    n_clusters: int
    points: Points


class Candidate(TypedDict):
    """A number of clusters and of outliers that might have been chosen."""

    n_clusters: int
    n_outliers: int
    # The other columns of Selection.table by name; None where they are not known.
    criteria: dict[str, float | None]
    is_chosen: bool
    is_runner_up: bool


class SelectionSummary(TypedDict):
    """Why a number of clusters and of outliers was chosen."""

    n_clusters: int
    n_outliers: int
    runner_up: list[int] | None  # clusters and outliers
    reason: str  # in words
    told: Points | None  # by clusters; None where their number was given
    told_threshold: float  # should be above it
    gaps: Points | None  # by outliers; without gaps of no width
    gap_threshold: float  # wider gaps are signs of outliers
    objectives: list[CurveOfK]  # empty where one number of outliers was tried
    n_searched: int  # rows that clusters were searched in
    n_candidates: int
    candidates: list[Candidate]  # the chosen one and those beside it


class Confidence(TypedDict):
    """How sure the labels are under resampled partitions."""

    n_sure: int  # rows whose nearest cluster has a probability of 0.9 or more
    n_kept_in_doubt: int  # kept, but set aside with a probability of 0.25 or more
    n_aside_in_doubt: int  # set aside, but kept with a probability of 0.25 or more
    words: str


class Summary(TypedDict):
    """All that a report says."""

    run: Run
    selection: SelectionSummary | None  # None where both numbers were given
    confidence: Confidence | None  # None where the method does not know
    clusters: list[Cluster]  # by label; empty for a detector
    map: RowMap | None
    scores: Scores
    strangest: list[StrangeRow]  # strangest first
    agreement: Agreement | None
    objective_history: list[float]  # one value per iteration; empty without any
    settings: dict[str, Any]  # the parameters; strings where JSON has no such value
    versions: dict[str, str]
    python: str  # the line that makes the model
    command: str | None
    is_seeded: bool  # whether another run gives the same
