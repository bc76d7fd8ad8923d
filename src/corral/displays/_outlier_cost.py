"""The outlier scores of all rows, from the strangest down, with the cut."""

import numpy as np

from corral._decision import find_cut
from corral._notebook import short_number
from corral.displays._drawing import (
    COLORS,
    OUTLIER_COLOR,
    OUTLIER_MARK,
    clear_spines,
    open_axes,
)
from corral.displays._outcome import find_holder, read_vector

# With more outliers, marks on the curve hide it.
_MAX_MARKS = 200


class OutlierCostDisplay:
    """The sorted curve of outlier scores with the cut.

    A sharp bend just left of the cut says that the number of outliers fits the data; a
    cut on a smooth slope says that it is a matter of choice.

    It is recommended to use :meth:`from_estimator` or :meth:`from_predictions`. All
    parameters are stored as attributes.

    Parameters
    ----------
    scores : ndarray of shape (n_samples,)
        Outlier scores from high to low.
    is_outlier : ndarray of shape (n_samples,), bool
        Which of these rows are outliers.
    cut : float, default=None
        Rows with a higher score are outliers.
    rows : ndarray of shape (n_samples,), default=None
        The place of each of these rows in the data.

    Attributes
    ----------
    line_ : matplotlib Line2D
        The curve.
    outlier_line_ : matplotlib Line2D
        The outliers on the curve.
    cut_line_ : matplotlib Line2D or None
        The cut; None if there is none.
    ax_ : matplotlib Axes
        Axes with the picture.
    figure_ : matplotlib Figure
        Figure that holds the axes.

    See Also
    --------
    ClusterMapDisplay : Where clusters and outliers lie.

    Examples
    --------
    >>> import numpy as np
    >>> from corral import COR
    >>> from corral.displays import OutlierCostDisplay
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> X[7] = [20.0, 20.0]
    >>> model = COR(n_clusters=2, n_outliers=1, random_state=0).fit(X)
    >>> display = OutlierCostDisplay.from_estimator(model)
    >>> int(display.rows[0])
    7
    """

    def __init__(self, *, scores, is_outlier, cut=None, rows=None):
        self.scores = scores
        self.is_outlier = is_outlier
        self.cut = cut
        self.rows = rows

    @classmethod
    def from_estimator(cls, estimator, *, X=None, ax=None, log_rank=False, **kwargs):
        """Draw the scores of a fitted estimator.

        Parameters
        ----------
        estimator : object
            A fitted COR, or another joint method or detector.
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features), \
                default=None
            Rows to score anew. None draws the scores of the rows of the fit.
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes new ones.
        log_rank : bool, default=False
            Whether ranks are on a logarithmic scale, which shows the first ones best.
        **kwargs : dict
            Passed to ``plot`` of matplotlib, for the curve.

        Returns
        -------
        display : OutlierCostDisplay
            What was drawn.
        """
        holder = find_holder(estimator, "outlier_scores_" if X is None else "offset_")
        if X is None:
            scores, labels = holder.outlier_scores_, holder.labels_
        else:
            _check_scores_rows(estimator)
            scores, labels = -estimator.score_samples(X), estimator.predict(X)
        return cls.from_predictions(
            scores,
            labels,
            cut=find_cut(holder),
            ax=ax,
            log_rank=log_rank,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls, scores, labels, *, cut=None, ax=None, log_rank=False, **kwargs
    ):
        """Draw scores that are there already.

        Parameters
        ----------
        scores : array-like of shape (n_samples,)
            Outlier score of each row; higher is stranger.
        labels : array-like of shape (n_samples,)
            -1 for outliers, anything else for other rows.
        cut : float, default=None
            Rows with a higher score are outliers. None draws no cut.
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes new ones.
        log_rank : bool, default=False
            Whether ranks are on a logarithmic scale.
        **kwargs : dict
            Passed to ``plot`` of matplotlib, for the curve.

        Returns
        -------
        display : OutlierCostDisplay
            What was drawn.
        """
        scores = read_vector(scores, "scores")
        labels = read_vector(labels, "labels")
        if len(scores) != len(labels):
            raise ValueError(
                f"scores has {len(scores)} entries but labels has {len(labels)}. Give "
                "both for the same rows."
            )
        is_outlier = labels == -1
        # Of rows with the same score, outliers come first, as the cut has them.
        rows = np.lexsort((~is_outlier, -scores))
        display = cls(
            scores=scores[rows], is_outlier=is_outlier[rows], cut=cut, rows=rows
        )
        return display.plot(ax, log_rank=log_rank, **kwargs)

    def plot(self, ax=None, *, log_rank=False, **kwargs):
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes new ones.
        log_rank : bool, default=False
            Whether ranks are on a logarithmic scale.
        **kwargs : dict
            Passed to ``plot`` of matplotlib, for the curve.

        Returns
        -------
        display : OutlierCostDisplay
            This object.
        """
        ax = open_axes(ax)
        ranks = np.arange(1, len(self.scores) + 1)
        n_outliers = int(np.count_nonzero(self.is_outlier))
        style = {"color": COLORS[0], "linewidth": 1.5, **kwargs}
        (self.line_,) = ax.plot(ranks, self.scores, **style)
        (self.outlier_line_,) = ax.plot(
            ranks[self.is_outlier],
            self.scores[self.is_outlier],
            linestyle="none",
            color=OUTLIER_COLOR,
            marker=OUTLIER_MARK if n_outliers <= _MAX_MARKS else ".",
            markersize=5,
            label=f"outliers ({n_outliers:,})",
        )
        self.cut_line_ = None
        if self.cut is not None:
            self.cut_line_ = ax.axhline(
                self.cut,
                color="0.35",
                linestyle="--",
                linewidth=1,
                label=f"cut at {short_number(self.cut)}",
            )
        if log_rank:
            ax.set_xscale("log")
            ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.set(xlabel="rank of the row, strangest first", ylabel="outlier score")
        ax.legend(loc="upper right", frameon=False)
        clear_spines(ax)
        self.ax_ = ax
        self.figure_ = ax.figure
        return self


def _check_scores_rows(estimator) -> None:
    lacking = [
        name for name in ("score_samples", "predict") if not hasattr(estimator, name)
    ]
    if lacking:
        raise TypeError(
            f"{type(estimator).__name__} has no {' and no '.join(lacking)}, so rows "
            "cannot be scored anew. Leave X out to draw the rows of the fit."
        )
