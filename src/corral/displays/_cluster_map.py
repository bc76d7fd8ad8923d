"""A map of the rows: clusters in colours, outliers as crosses."""

import numpy as np
from sklearn.utils import check_random_state

from corral._consensus import take_rows
from corral._visible import spell_out
from corral.displays._drawing import (
    OUTLIER_COLOR,
    OUTLIER_MARK,
    clear_spines,
    cluster_style,
    open_axes,
)
from corral.displays._outcome import (
    Found,
    choose_rows,
    count_rows,
    find_holder,
    name_clusters,
    read_found,
    read_vector,
)
from corral.displays._plane import lay_out, read_numbers

# Outliers are drawn before others, but the clusters have to be seen, too.
_OUTLIER_SHARE = 0.5

# A longer legend hides the map.
_MAX_NAMES = 12


class ClusterMapDisplay:
    """Rows in the plane, coloured by cluster, with the outliers marked.

    Two features are drawn as they are. More are reduced to two directions: principal
    ones, or the first singular ones if X is sparse. The directions are those of the
    rows in clusters, so that outliers do not turn the map.

    It is recommended to use :meth:`from_estimator` or :meth:`from_predictions`. All
    parameters are stored as attributes.

    Parameters
    ----------
    points : ndarray of shape (n_points, 2)
        Where the rows lie.
    labels : ndarray of shape (n_points,)
        Cluster of each row, -1 for outliers.
    rows : ndarray of shape (n_points,), default=None
        The place of each of these rows in the data.
    axis_names : tuple of (str, str), default=("", "")
        What the two directions are.
    is_detector : bool, default=False
        Whether the rows that are no outliers are called inliers.

    Attributes
    ----------
    clusters_ : dict of int to matplotlib PathCollection
        The points of each cluster.
    outliers_ : matplotlib PathCollection or None
        The points of the outliers; None if there are none.
    ax_ : matplotlib Axes
        Axes with the picture.
    figure_ : matplotlib Figure
        Figure that holds the axes.

    See Also
    --------
    ConsensusDisplay : How well the partitions agree on the clusters.

    Examples
    --------
    >>> import numpy as np
    >>> from corral import COR
    >>> from corral.displays import ClusterMapDisplay
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> X[7] = [20.0, 20.0]
    >>> model = COR(n_clusters=2, n_outliers=1, random_state=0).fit(X)
    >>> display = ClusterMapDisplay.from_estimator(model, X)
    >>> display.points[display.labels == -1]
    array([[20., 20.]])
    """

    def __init__(
        self, *, points, labels, rows=None, axis_names=("", ""), is_detector=False
    ):
        self.points = points
        self.labels = labels
        self.rows = rows
        self.axis_names = axis_names
        self.is_detector = is_detector

    @classmethod
    def from_estimator(
        cls, estimator, X, *, n_rows=5000, random_state=0, ax=None, **kwargs
    ):
        """Draw the rows of a fit.

        Parameters
        ----------
        estimator : object
            A fitted COR, or another joint method or detector.
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows of the fit. Columns that are not numbers are left out, and
            missing cells are put in the middle of their column.
        n_rows : int, default=5000
            Largest number of rows to draw. Where there are more, random ones are
            drawn; outliers take up to half of the places.
        random_state : int, RandomState instance or None, default=0
            Seed of the choice of rows.
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes new ones.
        **kwargs : dict
            Passed to :meth:`plot`.

        Returns
        -------
        display : ClusterMapDisplay
            What was drawn.
        """
        found = read_found(estimator, X)
        holder = find_holder(estimator, "labels_")
        return cls._make(
            X,
            found,
            n_rows=n_rows,
            random_state=random_state,
            is_cosine=getattr(holder, "metric", None) == "cosine",
            names=getattr(holder, "feature_names_in_", None),
            categorical_features=getattr(holder, "categorical_features", None),
        ).plot(ax, **kwargs)

    @classmethod
    def from_predictions(
        cls, X, labels, *, n_rows=5000, random_state=0, ax=None, **kwargs
    ):
        """Draw rows with labels that are there already.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows.
        labels : array-like of shape (n_samples,)
            Cluster of each row, -1 for outliers.
        n_rows : int, default=5000
            Largest number of rows to draw.
        random_state : int, RandomState instance or None, default=0
            Seed of the choice of rows.
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes new ones.
        **kwargs : dict
            Passed to :meth:`plot`.

        Returns
        -------
        display : ClusterMapDisplay
            What was drawn.
        """
        found = Found(read_vector(labels, "labels"), is_detector=False)
        if count_rows(X) != len(found.labels):
            raise ValueError(
                f"labels has {len(found.labels)} entries but X has {count_rows(X)} "
                "rows. Give both for the same rows."
            )
        display = cls._make(X, found, n_rows=n_rows, random_state=random_state)
        return display.plot(ax, **kwargs)

    @classmethod
    def _make(
        cls,
        X,
        found: Found,
        *,
        n_rows: int,
        random_state,
        is_cosine: bool = False,
        names=None,
        categorical_features=None,
    ):
        rng = check_random_state(random_state)
        rows = np.sort(choose_rows(found.labels, n_rows, _OUTLIER_SHARE, rng))
        labels = found.labels[rows]
        values = read_numbers(take_rows(X, rows), names, categorical_features)
        points, axis_names = lay_out(values, labels >= 0, is_cosine, rng)
        return cls(
            points=points,
            labels=labels,
            rows=rows,
            axis_names=axis_names,
            is_detector=found.is_detector,
        )

    def plot(self, ax=None, *, outlier_kwargs=None, **kwargs):
        """Draw the map.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes new ones.
        outlier_kwargs : dict, default=None
            Passed to ``scatter`` of matplotlib for the outliers.
        **kwargs : dict
            Passed to ``scatter`` of matplotlib for the clusters.

        Returns
        -------
        display : ClusterMapDisplay
            This object.
        """
        # Beside the map in a figure of our own; elsewhere there may be no room.
        place: dict = {"framealpha": 0.7}
        if ax is None:
            place = {"loc": "upper left", "bbox_to_anchor": (1, 1), "frameon": False}
        ax = open_axes(ax)
        self.clusters_ = {}
        names = name_clusters(Found(self.labels, self.is_detector))
        for cluster, name in names.items():
            style = {"s": 14, "linewidths": 0, "alpha": 0.8, **cluster_style(cluster)}
            label = name if len(names) <= _MAX_NAMES else None
            self.clusters_[cluster] = ax.scatter(
                *self.points[self.labels == cluster].T,
                **{**style, "label": label, **kwargs},
            )
        self.outliers_ = None
        is_outlier = self.labels == -1
        if is_outlier.any():
            style = {"s": 30, "linewidths": 1.2, "label": "outliers"}
            style |= {"color": OUTLIER_COLOR, "marker": OUTLIER_MARK}
            self.outliers_ = ax.scatter(
                *self.points[is_outlier].T, **{**style, **(outlier_kwargs or {})}
            )
        # Names of columns are words, not formulas, whatever stands in them.
        across, up = map(spell_out, self.axis_names)
        ax.set_xlabel(across, parse_math=False)
        ax.set_ylabel(up, parse_math=False)
        if is_outlier.any() or len(names) <= _MAX_NAMES:
            ax.legend(markerscale=1.3, **place)
        clear_spines(ax)
        self.ax_ = ax
        self.figure_ = ax.figure
        return self
