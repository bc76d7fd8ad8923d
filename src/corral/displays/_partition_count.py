"""How results change with the number of basic partitions, as Figure 1 of the paper."""

from itertools import combinations
from numbers import Integral

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from corral.displays._drawing import COLORS, clear_spines, open_axes
from corral.metrics import nmi_score, outlier_jaccard_score

_MEASURES = {"NMI": nmi_score, "outlier Jaccard": outlier_jaccard_score}

# Width of all boxes of a count together; the distance of two counts is 1.
_GROUP_WIDTH = 0.7


class PartitionCountDisplay:
    """Boxes of two measures for each number of basic partitions.

    The measures are the normalised mutual information of the clusters and the Jaccard
    index of the outliers. They compare each run with the truth if it is known. If not,
    they compare the runs with each other: where runs with other seeds agree, more
    partitions change little.

    It is recommended to use :meth:`from_estimator` or :meth:`from_predictions`. All
    parameters are stored as attributes.

    Parameters
    ----------
    counts : list of int
        Numbers of basic partitions.
    scores : dict of str to ndarray of shape (n_counts, n_values)
        The values of each measure.
    has_truth : bool, default=False
        Whether runs were compared with the truth.

    Attributes
    ----------
    boxes_ : dict of str to dict
        The artists of each measure, as ``boxplot`` of matplotlib returns them.
    ax_ : matplotlib Axes
        Axes with the picture.
    figure_ : matplotlib Figure
        Figure that holds the axes.

    See Also
    --------
    ConsensusDisplay : How well the partitions of one fit agree.

    References
    ----------
    .. [1] H. Liu, J. Li, Y. Wu and Y. Fu, "Clustering with Outlier Removal", IEEE
       Transactions on Knowledge and Data Engineering 33(6), 2021, Figure 1.
       https://doi.org/10.1109/TKDE.2019.2954317

    Examples
    --------
    >>> import numpy as np
    >>> from corral import COR
    >>> from corral.displays import PartitionCountDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (50, 2)), rng.normal(9, 1, (50, 2))])
    >>> display = PartitionCountDisplay.from_estimator(
    ...     COR(n_clusters=2, n_outliers=2), X, counts=(5, 10), n_repeats=3
    ... )
    >>> display.scores["NMI"].shape
    (2, 3)
    """

    def __init__(self, *, counts, scores, has_truth=False):
        self.counts = counts
        self.scores = scores
        self.has_truth = has_truth

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        *,
        counts=(10, 30, 50, 70, 90),
        n_repeats=10,
        y=None,
        random_state=0,
        ax=None,
        **kwargs,
    ):
        """Fit an estimator again and again, and draw how its results vary.

        Parameters
        ----------
        estimator : COR or KCC
            What to fit; it is cloned and stays as it is.
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows.
        counts : sequence of int, default=(10, 30, 50, 70, 90)
            Numbers of basic partitions.
        n_repeats : int, default=10
            Number of fits for each count, with other seeds.
        y : array-like of shape (n_samples,), default=None
            The true clusters, -1 for outliers. None compares the runs of a count
            with each other.
        random_state : int, RandomState instance or None, default=0
            Makes the seeds, which are the same for all counts.
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes new ones.
        **kwargs : dict
            Passed to :meth:`plot`.

        Returns
        -------
        display : PartitionCountDisplay
            What was drawn.
        """
        _check_parameters(estimator)
        _check_repeats(n_repeats, has_truth=y is not None)
        counts = _read_counts(counts)
        rng = check_random_state(random_state)
        seeds = rng.randint(np.iinfo(np.int32).max, size=n_repeats).tolist()
        labels = {
            count: [_fit_labels(estimator, X, count, seed) for seed in seeds]
            for count in counts
        }
        return cls.from_predictions(labels, y=y, ax=ax, **kwargs)

    @classmethod
    def from_predictions(cls, labels, *, y=None, ax=None, **kwargs):
        """Draw results that are there already.

        Parameters
        ----------
        labels : dict of int to array-like of shape (n_repeats, n_samples)
            For each number of partitions the labels of several runs, -1 for outliers.
        y : array-like of shape (n_samples,), default=None
            The true clusters, -1 for outliers. None compares the runs of a count
            with each other.
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes new ones.
        **kwargs : dict
            Passed to :meth:`plot`.

        Returns
        -------
        display : PartitionCountDisplay
            What was drawn.
        """
        counts = _read_counts(labels)
        for runs in labels.values():
            _check_repeats(len(runs), has_truth=y is not None)
        scores = {
            name: [_compare(measure, labels[count], y) for count in counts]
            for name, measure in _MEASURES.items()
        }
        display = cls(
            counts=counts,
            # Counts may have been run more or less often.
            scores={name: _stack(values) for name, values in scores.items()},
            has_truth=y is not None,
        )
        return display.plot(ax, **kwargs)

    def plot(self, ax=None, **kwargs):
        """Draw the boxes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes new ones.
        **kwargs : dict
            Passed to ``boxplot`` of matplotlib.

        Returns
        -------
        display : PartitionCountDisplay
            This object.
        """
        ax = open_axes(ax)
        width = _GROUP_WIDTH / len(self.scores)
        places = np.arange(len(self.counts))
        self.boxes_ = {}
        for j, (name, values) in enumerate(self.scores.items()):
            shift = (j - (len(self.scores) - 1) / 2) * width
            self.boxes_[name] = ax.boxplot(
                [each[~np.isnan(each)] for each in values],
                positions=places + shift,
                **{**_box_style(COLORS[j], 0.8 * width), **kwargs},
            )
        boxes = [artists["boxes"][0] for artists in self.boxes_.values()]
        ax.legend(boxes, list(self.boxes_), frameon=False, loc="best")
        ax.set_xticks(places, [str(count) for count in self.counts])
        compared = "with the truth" if self.has_truth else "of runs with other seeds"
        ax.set(xlabel="basic partitions", ylabel=f"agreement {compared}")
        # Measures end at 0 and 1, and tiny differences should look tiny.
        low, high = ax.get_ylim()
        high = min(high, 1.02)
        ax.set_ylim(max(min(low, high - 0.1), -0.02), high)
        ax.yaxis.grid(visible=True, color="0.9", linewidth=0.8)
        ax.set_axisbelow(True)
        clear_spines(ax)
        self.ax_ = ax
        self.figure_ = ax.figure
        return self


def _check_parameters(estimator) -> None:
    if not {"n_partitions", "random_state"} <= set(estimator.get_params(deep=False)):
        raise TypeError(
            f"{type(estimator).__name__} has no n_partitions and random_state to vary. "
            "Use COR or KCC; of a CORDetector, give the estimator."
        )


def _check_repeats(n_repeats: int, *, has_truth: bool) -> None:
    if n_repeats < (1 if has_truth else 2):
        least = "at least 1" if has_truth else "at least 2, or y should be given"
        raise ValueError(f"n_repeats={n_repeats} should be {least}.")


def _read_counts(counts) -> list[int]:
    found = list(counts)
    wrong = [each for each in found if not isinstance(each, Integral) or each < 1]
    if wrong or not found:
        raise ValueError(
            f"counts={found} should be whole numbers of partitions, each at least 1, "
            "and at least one of them."
        )
    return [int(each) for each in found]


def _fit_labels(estimator, X, count: int, seed: int) -> np.ndarray:
    model = clone(estimator).set_params(n_partitions=count, random_state=seed)
    return model.fit(X).labels_


def _compare(measure, runs, y) -> np.ndarray:
    """Compare runs with the truth, or each pair of them if it is not known."""
    if y is not None:
        return np.array([measure(y, run) for run in runs])
    return np.array([measure(one, other) for one, other in combinations(runs, 2)])


def _stack(values: list[np.ndarray]) -> np.ndarray:
    """Return values of unequal number as rows, with NaN at the ends of short ones."""
    rows = np.full((len(values), max(map(len, values))), np.nan)
    for row, each in zip(rows, values, strict=True):
        row[: len(each)] = each
    return rows


def _box_style(color: str, width: float) -> dict:
    line = {"color": color, "linewidth": 1.2}
    return {
        "widths": width,
        "patch_artist": True,
        "boxprops": {"facecolor": f"{color}40", "edgecolor": color, "linewidth": 1.2},
        "medianprops": {"color": color, "linewidth": 2.2},
        "whiskerprops": line,
        "capprops": line,
        "flierprops": {"marker": ".", "markeredgecolor": color, "markersize": 5},
        # Otherwise each call takes over the ticks of the one before.
        "manage_ticks": False,
    }
