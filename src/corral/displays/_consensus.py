"""How often the partitions put two rows together, as a heat map."""

import numpy as np
from sklearn.utils import check_random_state

from corral._consensus import consensus
from corral.displays._drawing import open_axes
from corral.displays._outcome import choose_rows, find_holder, read_found, read_vector

# Outliers are few, and a random sample would miss them: they get up to this share.
_OUTLIER_SHARE = 0.2

# Fewer rows make a band too thin for a name of its own; as a share of all rows drawn.
_MIN_BAND = 0.03


class ConsensusDisplay:
    """Share of the partitions in which two rows have the same label.

    Rows are ordered by cluster, and the outliers come last. Clear-cut clusters are
    bright squares on a dark ground; a square that falls apart, or two that merge, say
    that another number of clusters may fit better. Outliers agree with few rows.

    It is recommended to use :meth:`from_estimator` or :meth:`from_predictions`. All
    parameters are stored as attributes.

    Parameters
    ----------
    shares : ndarray of shape (n_rows, n_rows)
        From 0 to 1; NaN where no partition knows both rows.
    labels : ndarray of shape (n_rows,)
        Cluster of each row, -1 for outliers; rows of a cluster are neighbours.
    rows : ndarray of shape (n_rows,), default=None
        The place of each of these rows in the data.

    Attributes
    ----------
    image_ : matplotlib AxesImage
        The heat map.
    colorbar_ : matplotlib Colorbar or None
        What the colours mean; None if it was not wanted.
    ax_ : matplotlib Axes
        Axes with the picture.
    figure_ : matplotlib Figure
        Figure that holds the axes.

    See Also
    --------
    PartitionCountDisplay : How many partitions are enough.

    Examples
    --------
    >>> import numpy as np
    >>> from corral import COR
    >>> from corral.displays import ConsensusDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (50, 2)), rng.normal(9, 1, (50, 2))])
    >>> model = COR(n_clusters=2, n_outliers=2, random_state=0).fit(X)
    >>> display = ConsensusDisplay.from_estimator(model, X, n_rows=30)
    >>> display.shares.shape
    (30, 30)
    """

    def __init__(self, *, shares, labels, rows=None):
        self.shares = shares
        self.labels = labels
        self.rows = rows

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        *,
        n_rows=200,
        random_state=0,
        extra_partitions=None,
        ax=None,
        **kwargs,
    ):
        """Draw how well the partitions of a fit agree on its rows.

        Parameters
        ----------
        estimator : COR, CORDetector or KCC
            Fitted.
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows of the fit; the matrix of labels if it was fitted on one.
        n_rows : int, default=200
            Number of random rows to compare. Outliers take up to a fifth of the
            places, as a random sample would hold few of them.
        random_state : int, RandomState instance or None, default=0
            Seed of the choice of rows.
        extra_partitions : array-like of shape (n_samples, n_extra), default=None
            Needed if they were given to fit.
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes new ones.
        **kwargs : dict
            Passed to :meth:`plot`.

        Returns
        -------
        display : ConsensusDisplay
            What was drawn.
        """
        labels = read_found(estimator, X).labels
        rng = check_random_state(random_state)
        rows = choose_rows(labels, n_rows, _OUTLIER_SHARE, rng)
        scores = find_holder(estimator, "outlier_scores_").outlier_scores_
        rows = rows[_order(labels[rows], scores[rows])]
        shares = consensus(estimator, X, rows, extra_partitions=extra_partitions)
        return cls(shares=shares, labels=labels[rows], rows=rows).plot(ax, **kwargs)

    @classmethod
    def from_predictions(cls, shares, labels, *, ax=None, **kwargs):
        """Draw an agreement that is there already.

        Parameters
        ----------
        shares : array-like of shape (n_rows, n_rows)
            How often two rows have the same label, from 0 to 1.
        labels : array-like of shape (n_rows,)
            Cluster of each row, -1 for outliers.
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes new ones.
        **kwargs : dict
            Passed to :meth:`plot`.

        Returns
        -------
        display : ConsensusDisplay
            What was drawn.
        """
        labels = read_vector(labels, "labels")
        shares = np.asarray(shares, dtype=np.float64)
        if shares.shape != (len(labels), len(labels)):
            raise ValueError(
                f"shares has shape {shares.shape}; it should be ({len(labels)}, "
                f"{len(labels)}), as labels has {len(labels)} entries."
            )
        rows = _order(labels, np.zeros(len(labels)))
        display = cls(shares=shares[np.ix_(rows, rows)], labels=labels[rows], rows=rows)
        return display.plot(ax, **kwargs)

    def plot(self, ax=None, *, cmap="cividis", colorbar=True, **kwargs):
        """Draw the heat map.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes new ones.
        cmap : str or matplotlib Colormap, default="cividis"
            Colours of the shares.
        colorbar : bool, default=True
            Whether to say what the colours mean.
        **kwargs : dict
            Passed to ``imshow`` of matplotlib.

        Returns
        -------
        display : ConsensusDisplay
            This object.
        """
        ax = open_axes(ax)
        style = {"vmin": 0, "vmax": 1, "interpolation": "nearest", **kwargs}
        self.image_ = ax.imshow(self.shares, cmap=cmap, **style)
        # Pairs that no partition knows must not look like pairs that never agree.
        ax.set_facecolor("0.8")
        bands = _find_bands(self.labels)
        for _, start, _ in bands[1:]:
            ax.axhline(start - 0.5, color="white", linewidth=0.8)
            ax.axvline(start - 0.5, color="white", linewidth=0.8)
        _name_bands(ax, bands, len(self.labels))
        self.colorbar_ = None
        if colorbar:
            self.colorbar_ = ax.figure.colorbar(self.image_, ax=ax)
            self.colorbar_.set_label("share of the partitions that agree")
        self.ax_ = ax
        self.figure_ = ax.figure
        return self


def _order(labels: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return rows by cluster, outliers last, and from normal to strange in each."""
    return np.lexsort((scores, labels, labels == -1))


def _find_bands(labels: np.ndarray) -> list[tuple[int, int, int]]:
    """Return label, start and stop of each stretch of rows with the same label."""
    starts = np.flatnonzero(np.diff(labels, prepend=labels[0] - 1))
    stops = np.append(starts[1:], len(labels))
    return [
        (int(labels[start]), int(start), int(stop))
        for start, stop in zip(starts, stops, strict=True)
    ]


def _name_bands(ax, bands: list[tuple[int, int, int]], n_rows: int) -> None:
    """Write the clusters beside the map, where there is room."""
    wide = [band for band in bands if band[2] - band[1] >= _MIN_BAND * n_rows]
    middles = [(start + stop - 1) / 2 for _, start, stop in wide]
    names = ["outliers" if label == -1 else str(label) for label, _, _ in wide]
    ax.set_yticks(middles, names)
    ax.set_xticks([])
    ax.tick_params(length=0)
    ax.set_ylabel("cluster")
