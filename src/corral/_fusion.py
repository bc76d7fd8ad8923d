"""Stage 3: K-means-- on codes, setting aside the samples that fit nowhere."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from corral._codes import CodeBook, Codes, OneHot, one_hot_rows
from corral._divergences import Divergence
from corral._linkage import list_linkage_starts
from corral._outliers import SetAside, costliest, set_aside
from corral._progress import FUSING, report
from corral._threads import Threads

# Restarts run side by side while codes times restarts are no more than this.
_RESTART_CODES = 2**21

# How much equal sizes of clusters count against their separation.
_BALANCE = 0.15

# Terms of an entropy are whole multiples of this, so that their sum has no rounding:
# clusters that only have other numbers are as well separated to the last bit.
_ENTROPY_STEP = 2.0**-44


@dataclass(frozen=True)
class Fusion:
    """Clusters of codes, and the samples that were set aside.

    Attributes
    ----------
    centers : ndarray of shape (n_clusters, n_slots)
        Share of each label in each cluster: the centres in partition space.
    shares : ndarray of shape (n_clusters,)
        Share of each cluster in the samples kept.
    code_labels : ndarray of shape (n_codes,)
        Nearest cluster of each code.
    code_costs : ndarray of shape (n_codes,)
        Cost of each code in its nearest cluster.
    outliers : ndarray of shape (n_outliers,)
        Samples set aside, sorted.
    objective : float
        Mean cost of a sample that was kept, Eq. (2) of the paper.
    history : ndarray of shape (n_iter,)
        The objective after each iteration; never rises.
    converged : bool
    """

    centers: np.ndarray
    shares: np.ndarray
    code_labels: np.ndarray
    code_costs: np.ndarray
    outliers: np.ndarray
    objective: float
    history: np.ndarray
    converged: bool


@dataclass(frozen=True)
class FusionSettings:
    """How codes are fused; see the parameters of COR."""

    n_clusters: int
    n_outliers: int
    init: str
    n_init: int
    max_iter: int
    # If there are any, restarts are compared by how well these partitions tell the
    # clusters apart, and not by their objective.
    separating: Sequence[int] = ()

    def scale(self, n_samples: int, n_all: int) -> "FusionSettings":
        """Return the settings for so many of all samples."""
        if n_samples == n_all:
            return self
        n_outliers = round(self.n_outliers * n_samples / n_all)
        n_outliers = min(n_outliers, max(n_samples - self.n_clusters, 0))
        return replace(self, n_outliers=n_outliers)


def fuse_codes(
    codes: Codes,
    divergence: Divergence,
    settings: FusionSettings,
    rng: np.random.Generator,
    threads: Threads,
    *,
    sample_weight: np.ndarray | None = None,
    cost_offsets: np.ndarray | None = None,
) -> Fusion:
    r"""Cluster codes while setting samples aside; keep the best of several restarts.

    Minimises the mean cost of the samples that are kept by Algorithm 1 of the paper:
    K-means-- with the divergence as distance; with :class:`BernoulliKL` that is its
    Eq. (2), :math:`\sum_k p_k HL(C_k)`. Works on codes and their weights, which gives
    the same result as working on samples.

    Parameters
    ----------
    codes : Codes
    divergence : Divergence
    settings : FusionSettings
    rng : numpy Generator
        Each restart gets a stream of its own.
    threads : Threads
    sample_weight : ndarray of shape (n_samples,) or None
    cost_offsets : ndarray of shape (n_samples,) or None
        Added to each sample's cost before the costliest are set aside.

    Returns
    -------
    fusion : Fusion
        The one with the lowest objective, or with the best separation if the settings
        say so; the first of these.
    """
    problem = Problem(codes, divergence, settings, threads, sample_weight, cost_offsets)
    return problem.solve_best(rng).to_fusion(codes)


class Placed(NamedTuple):
    """Where codes are: their clusters, what they cost there, and what is set aside."""

    labels: np.ndarray
    costs: np.ndarray
    aside: SetAside


class Restart:
    """One restart of the fusion: where it is, and its best state so far."""

    def __init__(self, centers: np.ndarray, *, is_even: bool = False) -> None:
        self.centers = centers
        self.shares = np.full(len(centers), 1 / len(centers))
        # Whether clusters count as equally large, whatever they are.
        self.is_even = is_even
        self.history: list[float] = []
        self.converged = False
        self._best: tuple[np.ndarray, np.ndarray, Any] | None = None

    @property
    def objective(self) -> float:
        """The lowest objective, which is the last one."""
        return self.history[-1]

    @property
    def best(self) -> tuple[np.ndarray, np.ndarray, Any]:
        """Centres and shares in the best state, and where that puts codes or rows."""
        assert self._best is not None
        return self._best

    def note(self, objective: float, placed: Any) -> None:
        """Take note of an iteration, and of whether it was the last."""
        if self.history and not objective < self.objective:
            self.converged = True
        # It can rise by rounding, or where samples have unequal weights: the state
        # before was the best then.
        if not self.history or objective <= self.objective:
            self.history.append(objective)
            self._best = (self.centers, self.shares, placed)

    def to_fusion(self, codes: Codes) -> Fusion:
        """Return the outcome of a restart on codes in memory."""
        centers, shares, placed = self.best
        return Fusion(
            centers=centers,
            shares=shares,
            code_labels=placed.labels,
            code_costs=placed.costs,
            outliers=placed.aside.list_samples(codes),
            objective=self.objective,
            history=np.array(self.history),
            converged=self.converged,
        )


class Problem:
    """What stays the same in all restarts of the fusion."""

    def __init__(
        self, codes, divergence, settings, threads, sample_weight, cost_offsets
    ) -> None:
        self.codes: Codes = codes
        self.divergence: Divergence = divergence
        self.settings: FusionSettings = settings
        self.sample_weight: np.ndarray | None = sample_weight
        self.cost_offsets: np.ndarray | None = cost_offsets
        self.weights = codes.weigh(sample_weight)
        self.n_codes = len(codes.rows)
        self.threads: Threads = threads
        self._one_hot = OneHot(codes)
        self._one_hot.keep()
        self.n_known = self._one_hot.count_known()

    def solve_best(self, rng: np.random.Generator) -> Restart:
        """Restart as often as the settings say; return the best, the first of these."""
        if self.settings.init == "linkage":
            return self.solve_linkage(rng)
        best: Restart | None = None
        streams = rng.spawn(self.settings.n_init)
        # Restarts share products, as many at a time as need little memory.
        step = max(_RESTART_CODES // self.n_codes, 1)
        for first in range(0, len(streams), step):
            here = streams[first : first + step]
            found = self.solve_all([self.draw_start(each) for each in here])
            best = self.choose(([] if best is None else [best]) + found)
        assert best is not None
        return best

    def solve_linkage(self, rng: np.random.Generator) -> Restart:
        """Restart from the branches of trees; return the best."""
        members = list_linkage_starts(
            self.codes,
            self.weights,
            self.weigh_strange(self.settings.n_outliers),
            self.settings.n_clusters,
            self.settings.n_init,
            rng,
        )
        return self.choose(
            self.solve_all([self.means(each.__getitem__) for each in members])
        )

    def weigh_strange(self, n_samples: int) -> np.ndarray:
        """Return how much of each code's weight is in the costliest offsets."""
        if self.cost_offsets is None:
            return np.zeros(self.n_codes)
        strange = costliest(self.cost_offsets, n_samples)
        weights = None
        if self.sample_weight is not None:
            weights = self.sample_weight[strange]
        codes = self.codes.inverse[strange]
        return np.bincount(codes, weights, minlength=self.n_codes)

    def solve_all(self, starts: list[np.ndarray]) -> list[Restart]:
        """Restart from each of these centres.

        Where clusters can hardly be told apart, it can be cheapest to have fewer. As
        the number was asked for, they then count as equally large.
        """
        restarts = self.solve([Restart(centers) for centers in starts])
        most = max(self.n_filled(each) for each in restarts)
        if self.settings.separating and most < self.settings.n_clusters:
            even = [Restart(centers, is_even=True) for centers in starts]
            restarts += self.solve(even)
        return restarts

    def choose(self, restarts: list[Restart]) -> Restart:
        """Return the best of some restarts, the first if several are."""
        if not self.settings.separating:
            return min(restarts, key=lambda each: each.objective)
        return max(
            restarts, key=lambda each: (self.n_filled(each), self.separation(each))
        )

    def n_filled(self, restart: Restart) -> int:
        """Return how many clusters kept a sample."""
        placed = restart.best[2]
        kept = self.weights > placed.aside.code_weights
        return len(np.unique(placed.labels[kept]))

    def separation(self, restart: Restart) -> float:
        """Return how well the fine partitions tell the clusters apart."""
        placed = restart.best[2]
        kept = self.weights - placed.aside.code_weights
        n_clusters = self.settings.n_clusters
        sizes = np.bincount(placed.labels, kept, minlength=n_clusters)
        joint = (
            self.codes.count_jointly(placed.labels, kept, n_clusters, j)
            for j in self.settings.separating
        )
        return measure_separation(sizes, joint)

    def solve(
        self, restarts: list[Restart], max_iter: int | None = None
    ) -> list[Restart]:
        """Iterate each of these until its objective rests; return them."""
        for _ in range(self.settings.max_iter if max_iter is None else max_iter):
            active = [each for each in restarts if not each.converged]
            report(FUSING, len(restarts) - len(active), len(restarts))
            if not active:
                break
            # Step 8: the mean of each cluster.
            self.update(self.place(active))
        return restarts

    def place(
        self, restarts: list[Restart]
    ) -> list[tuple[Restart, np.ndarray, np.ndarray]]:
        """Put samples to the nearest centres and set the costliest aside.

        Returns
        -------
        members : list of tuples
            Of the restarts that do not rest yet, for :meth:`update`.
        """
        # Steps 5 to 7: distances, the o costliest aside, the rest to the nearest.
        all_labels, all_costs = self.assign(restarts)
        members = []
        for restart, labels, costs in zip(restarts, all_labels, all_costs, strict=True):
            aside = self.set_aside(costs)
            kept = self.weights - aside.code_weights
            objective = self.measure(costs, kept, aside)
            restart.note(objective, Placed(labels, costs, aside))
            if not restart.converged:
                # An emptied cluster is refilled before the means are taken.
                members.append((restart, self.refill(labels, costs, kept), kept))
        return members

    def assign(self, restarts: list[Restart]) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest cluster of each code and the cost of the code there.

        Parameters
        ----------
        restarts : list of Restart

        Returns
        -------
        labels, costs : ndarray of shape (n_restarts, n_codes)
        """
        tables = [
            self.divergence.cost_table(each.centers, self.codes.book, each.shares)
            for each in restarts
        ]
        return self._one_hot.find_nearest(tables, self.threads)

    def set_aside(self, costs: np.ndarray) -> SetAside:
        """Choose the samples to set aside at these costs of the codes."""
        return set_aside(
            costs,
            self.codes,
            self.settings.n_outliers,
            sample_weight=self.sample_weight,
            cost_offsets=self.cost_offsets,
        )

    def measure(self, costs: np.ndarray, kept: np.ndarray, aside: SetAside) -> float:
        """Return the mean cost of the samples that are kept."""
        if not kept.any():
            raise ValueError(
                f"The {self.settings.n_outliers} outliers have all of sample_weight. "
                "Lower the number of outliers."
            )
        total = float(costs @ kept)
        if self.cost_offsets is not None:
            total += aside.kept_offsets
        return total / float(kept.sum())

    def refill(
        self, labels: np.ndarray, costs: np.ndarray, kept: np.ndarray
    ) -> np.ndarray:
        """Give each cluster that kept no sample the costliest code of another.

        Its labels then cost nothing. With a price on naming a small cluster the
        objective can rise all the same, and the restart ends at the state before.
        """
        n_clusters = self.settings.n_clusters
        sizes = np.bincount(labels[kept > 0], minlength=n_clusters)
        if sizes.all():
            return labels
        labels = labels.copy()
        donors = np.flatnonzero((kept > 0) & (costs > 0))
        donors = donors[np.argsort(-costs[donors], kind="stable")]
        for empty in np.flatnonzero(sizes == 0):
            donors = donors[sizes[labels[donors]] > 1]
            if not len(donors):
                break
            sizes[labels[donors[0]]] -= 1
            labels[donors[0]] = empty
            donors = donors[1:]
        return labels

    def update(self, members: list[tuple[Restart, np.ndarray, np.ndarray]]) -> None:
        """Set the centres of restarts to the means of their clusters.

        Parameters
        ----------
        members : list of tuples
            A restart, the label of each code and how much of its weight is kept. The
            centre of a cluster without any weight stays as it is.
        """
        if not members:
            return
        n_clusters = self.settings.n_clusters

        def memberships(here: slice) -> np.ndarray:
            n_codes = len(self.weights[here])
            shares = np.zeros((n_codes, len(members), n_clusters))
            for number, (_, labels, kept) in enumerate(members):
                shares[np.arange(n_codes), number, labels[here]] = kept[here]
            return shares.reshape(n_codes, -1)

        all_means = self.means(memberships).reshape(len(members), n_clusters, -1)
        for (restart, labels, kept), means in zip(members, all_means, strict=True):
            sizes = np.bincount(labels, kept, minlength=n_clusters)
            filled = sizes[:, None] > 0
            restart.centers = np.where(filled, means, restart.centers)
            if not restart.is_even:
                # A cluster is named once for each label that is known.
                named = np.bincount(labels, kept * self.n_known, minlength=n_clusters)
                if named.any():
                    restart.shares = named / named.sum()

    def means(self, memberships: Callable[[slice], np.ndarray]) -> np.ndarray:
        """Return the share of each label in each cluster.

        Parameters
        ----------
        memberships : callable
            Given a slice of the codes, returns how much of each code's weight is in
            each cluster, of shape (n_codes in the slice, n_clusters).

        Returns
        -------
        shares : ndarray of shape (n_clusters, n_slots)
        """
        sums = self._one_hot.add_up(memberships, self.threads)
        return take_means(sums, self.codes.book)

    def draw_start(self, rng: np.random.Generator) -> np.ndarray:
        """Draw centres to start from."""
        return _STARTS[self.settings.init](self, rng)


def measure_separation(sizes: np.ndarray, joint: Iterable[np.ndarray]) -> float:
    r"""Return how well partitions tell clusters apart.

    It is :math:`I / (H^{1 - b} (\log K)^b)` with the mean mutual information I of
    clusters and labels, and the entropy H of the clusters: the share of the question
    "which cluster?" that a label answers, with a little of a bonus for clusters of
    equal size. The objective prefers few large clusters where they touch, and equal
    ones where they do not.

    Where labels are missing, a partition answers for the samples that have one, and the
    question is theirs: a row that is known nearly nowhere would else be a cluster by
    itself that is told apart all too well.

    Parameters
    ----------
    sizes : ndarray of shape (n_clusters,)
    joint : iterable of ndarray of shape (n_clusters, n_labels)
        How many samples of each cluster have each label, partition by partition.
    """
    (entropy,) = _entropies(sizes[:, None], np.zeros(1, dtype=np.intp))
    if entropy <= 0:
        return 0.0
    information = _scale_information(list(joint), entropy)
    most = np.log(len(sizes))
    return float(np.mean(information) / entropy ** (1 - _BALANCE) / most**_BALANCE)


def take_means(sums: np.ndarray, book: CodeBook) -> np.ndarray:
    """Return the share of each label in each cluster.

    Parameters
    ----------
    sums : ndarray of shape (n_slots, n_clusters)
        How much weight each slot has in each cluster.
    book : CodeBook

    Returns
    -------
    shares : ndarray of shape (n_clusters, n_slots)
    """
    sums = np.where(book.is_label, sums.T, 0)
    # A missing label counts neither for nor against any label of its partition.
    known = np.add.reduceat(sums, book.offsets, axis=1)[:, book.partition_of_slot]
    return np.divide(sums, known, out=np.zeros_like(sums), where=known > 0)


def _entropies(counts: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the entropy of each group of columns, which begin there."""
    widths = np.diff(starts, append=counts.shape[1])
    totals = np.add.reduceat(counts.sum(axis=0), starts)
    shares = counts / np.repeat(np.maximum(totals, 1e-300), widths)
    logarithms = np.log(np.where(shares > 0, shares, 1))
    terms = np.rint(shares * logarithms / _ENTROPY_STEP) * _ENTROPY_STEP
    return -np.add.reduceat(terms.sum(axis=0), starts)


def _scale_information(joint: list[np.ndarray], entropy: float) -> np.ndarray:
    """Return the mutual information as if the clusters of known labels had an entropy.

    Of each partition, all of them at once. Where all labels are known, the clusters
    have that entropy, and the scale is exactly 1.
    """
    widths = [each.shape[1] for each in joint]
    starts = np.cumsum([0, *widths[:-1]])
    counts = np.concatenate(joint, axis=1)
    clusters = np.add.reduceat(counts, starts, axis=1)
    of_clusters = _entropies(clusters, np.arange(len(joint)))
    sides = of_clusters + _entropies(counts.sum(axis=0)[None], starts)
    information = sides - _entropies(counts, starts)
    scales = np.zeros(len(joint))
    np.divide(entropy, of_clusters, out=scales, where=of_clusters > 0)
    return scales * information


def _start_random_partition(problem: Problem, rng: np.random.Generator) -> np.ndarray:
    """Put every sample into a random cluster: all centres start near the mean."""
    n_clusters = problem.settings.n_clusters
    counts = problem.codes.counts
    shares = rng.multinomial(counts, np.full(n_clusters, 1 / n_clusters))
    mean_weights = (problem.weights / counts)[:, None]
    return problem.means(lambda here: shares[here] * mean_weights[here])


def _start_random_codes(problem: Problem, rng: np.random.Generator) -> np.ndarray:
    """Take the codes of K random samples, no code twice."""
    chosen = rng.choice(
        problem.n_codes,
        size=problem.settings.n_clusters,
        replace=False,
        p=problem.weights / problem.weights.sum(),
    )
    return _centers_at(problem, chosen)


def _start_kmeans_plusplus(problem: Problem, rng: np.random.Generator) -> np.ndarray:
    """Take a random sample's code, then ever others in proportion to their cost."""
    chosen: list[int] = []
    chances = problem.weights
    for _ in range(problem.settings.n_clusters):
        if not chances.any():
            # All others agree with a chosen code as far as they have labels.
            chances = problem.weights.copy()
            chances[chosen] = 0
        chosen.append(int(rng.choice(problem.n_codes, p=chances / chances.sum())))
        _, costs = problem.assign([Restart(_centers_at(problem, np.array(chosen)))])
        # Chosen codes cost next to nothing, but with a large eps not quite nothing.
        costs[0, chosen] = 0
        chances = problem.weights * costs[0]
    return _centers_at(problem, np.array(chosen))


def _centers_at(problem: Problem, chosen: np.ndarray) -> np.ndarray:
    """Return centres that are codes themselves."""
    slots = one_hot_rows(problem.codes.rows[chosen], problem.codes.book).toarray()
    return np.where(problem.codes.book.is_label, slots, 0)


_STARTS = {
    "random-partition": _start_random_partition,
    "random-codes": _start_random_codes,
    "k-means++": _start_kmeans_plusplus,
}
