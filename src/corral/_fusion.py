"""Stage 3: K-means-- on codes, setting aside the samples that fit nowhere."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from corral._codes import Codes, one_hot_rows
from corral._divergences import Divergence
from corral._linkage import list_linkage_starts
from corral._outliers import SetAside, costliest, set_aside
from corral._progress import FUSING, report
from corral._threads import Threads

# Codes are handled in blocks of this many slots, so that their one-hot rows fit the
# cache; those of small sets of codes are kept from one iteration to the next.
_BLOCK_SLOTS = 2**19
_KEPT_SLOTS = 2**23

# Restarts run side by side while codes times restarts are no more than this.
_RESTART_CODES = 2**21

# Restarts from linkage come to rest on so many samples. With more, the best one then
# does a few iterations on all of them, which moves its centres hardly more.
_LINKAGE_SAMPLES = 2**13
_FINISHING_ITERATIONS = 10

# How much equal sizes of clusters count against their separation; see separation.
_BALANCE = 0.15


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
    if settings.init != "linkage":
        return problem.solve_best(rng.spawn(settings.n_init)).to_fusion(codes)
    sample = problem.sample(_LINKAGE_SAMPLES, rng)
    best = sample.solve_linkage(rng)
    if sample is not problem:
        best = problem.finish(best)
    return best.to_fusion(codes)


class Restart:
    """One restart of the fusion: where it is, and its best state so far."""

    def __init__(self, centers: np.ndarray, *, is_even: bool = False) -> None:
        self.centers = centers
        self.shares = np.full(len(centers), 1 / len(centers))
        # Whether clusters count as equally large, whatever they are.
        self.is_even = is_even
        self.history: list[float] = []
        self.converged = False
        self._state: (
            tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, SetAside] | None
        ) = None

    @property
    def objective(self) -> float:
        """The lowest objective, which is the last one."""
        return self.history[-1]

    @property
    def members(self) -> tuple[np.ndarray, SetAside]:
        """The labels of the codes in the best state, and what was set aside."""
        assert self._state is not None
        return self._state[2], self._state[4]

    def note(
        self, objective: float, labels: np.ndarray, costs: np.ndarray, aside: SetAside
    ) -> None:
        """Take note of an iteration, and of whether it was the last."""
        if self.history and not objective < self.objective:
            self.converged = True
        # It can rise by rounding, or where samples have unequal weights: the state
        # before was the best then.
        if not self.history or objective <= self.objective:
            self.history.append(objective)
            self._state = (self.centers, self.shares, labels, costs, aside)

    def to_fusion(self, codes: Codes) -> Fusion:
        """Return the outcome."""
        assert self._state is not None
        centers, shares, labels, costs, aside = self._state
        return Fusion(
            centers=centers,
            shares=shares,
            code_labels=labels,
            code_costs=costs,
            outliers=aside.list_samples(codes),
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
        self._block_codes = max(_BLOCK_SLOTS // codes.rows.shape[1], 1)
        self._blocks = range(0, self.n_codes, self._block_codes)
        self._kept: dict[int, sparse.csr_array] | None = None
        self.keep_codes(_KEPT_SLOTS)
        self.n_known = self._count_known()

    def keep_codes(self, n_slots: int) -> None:
        """Keep the one-hot rows of codes if they have no more slots than this."""
        if self._kept is None and self.codes.rows.size <= n_slots:
            self._kept = {}

    def _count_known(self) -> np.ndarray:
        """Return how many labels of each code are not missing."""
        missing = self.codes.book.n_labels + 1
        n_known = np.empty(self.n_codes)
        for start in self._blocks:
            here = slice(start, start + self._block_codes)
            known = self.codes.rows[here] != missing
            n_known[here] = np.count_nonzero(known, axis=1)
        return n_known

    def solve_best(self, streams: list[np.random.Generator]) -> Restart:
        """Restart with each of these streams; return the best, the first of these."""
        best: Restart | None = None
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
        labels, aside = restart.members
        return len(np.unique(labels[self.weights > aside.code_weights]))

    def separation(self, restart: Restart) -> float:
        r"""Return how well the fine partitions tell the clusters apart.

        It is :math:`I / (H^{1 - b} (\log K)^b)` with the mean mutual information I of
        clusters and labels, and the entropy H of the clusters: the share of the
        question "which cluster?" that a label answers, with a little of a bonus for
        clusters of equal size. The objective prefers few large clusters where they
        touch, and equal ones where they do not.
        """
        labels, aside = restart.members
        kept = self.weights - aside.code_weights
        sizes = np.bincount(labels, kept, minlength=self.settings.n_clusters)
        entropy = _entropy(sizes / sizes.sum())
        if entropy <= 0:
            return 0.0
        information = []
        for j in self.settings.separating:
            joint = self.codes.count_jointly(labels, kept, self.settings.n_clusters, j)
            information.append(_mutual_information(joint / max(joint.sum(), 1e-300)))
        most = np.log(self.settings.n_clusters)
        return float(np.mean(information) / entropy ** (1 - _BALANCE) / most**_BALANCE)

    def sample(self, n_samples: int, rng: np.random.Generator) -> "Problem":
        """Return the same problem on some of the samples; itself if it has no more."""
        n_all = len(self.codes.inverse)
        if n_all <= n_samples:
            return self
        pool = np.arange(n_all)
        if self.sample_weight is not None:
            pool = np.flatnonzero(self.sample_weight)
        chosen = np.sort(rng.permutation(pool)[:n_samples])
        return Problem(
            self.codes.take(chosen),
            self.divergence,
            self.scale_settings(len(chosen)),
            self.threads,
            None if self.sample_weight is None else self.sample_weight[chosen],
            None if self.cost_offsets is None else self.cost_offsets[chosen],
        )

    def scale_settings(self, n_samples: int) -> FusionSettings:
        """Return the settings for so many of the samples."""
        n_all, settings = len(self.codes.inverse), self.settings
        n_outliers = round(settings.n_outliers * n_samples / n_all)
        n_outliers = min(n_outliers, max(n_samples - settings.n_clusters, 0))
        return replace(settings, n_outliers=n_outliers)

    def finish(self, found: Restart, n_iter: int = _FINISHING_ITERATIONS) -> Restart:
        """Go on for a little with what came to rest on some of the samples."""
        restart = Restart(found.centers, is_even=found.is_even)
        restart.shares = found.shares
        self.solve([restart], min(n_iter, self.settings.max_iter) - 1)
        if not restart.converged:
            # Nobody asks for the means after the last iteration.
            self.place([restart])
        restart.converged = found.converged
        return restart

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
            restart.note(self.measure(costs, kept, aside), labels, costs, aside)
            if not restart.converged:
                # An emptied cluster is refilled before the means are taken.
                members.append((restart, self.refill(labels, costs, kept), kept))
        return members

    def one_hot(self, start: int) -> sparse.csr_array:
        """Return the one-hot rows of the block that begins with code ``start``."""
        if self._kept is not None and start in self._kept:
            return self._kept[start]
        rows = self.codes.rows[start : start + self._block_codes]
        block = one_hot_rows(rows, self.codes.book)
        if self._kept is not None:
            self._kept[start] = block
        return block

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
        table = np.concatenate(tables, axis=1)
        labels = np.empty((len(tables), self.n_codes), dtype=np.int32)
        costs = np.empty((len(tables), self.n_codes))

        def work(start: int) -> None:
            here = slice(start, start + self._block_codes)
            block_costs = self.one_hot(start) @ table
            block_costs = block_costs.reshape(len(block_costs), len(tables), -1)
            labels[:, here] = block_costs.argmin(axis=2).T
            costs[:, here] = block_costs.min(axis=2).T

        for _ in self.threads.map(work, self._blocks):
            pass
        return labels, costs

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
            sizes[empty] += 1
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
        book = self.codes.book

        def work(start: int) -> np.ndarray:
            here = slice(start, start + self._block_codes)
            return self.one_hot(start).T @ memberships(here)

        sums = sum(self.threads.map(work, self._blocks)).T
        sums = np.where(book.is_label, sums, 0)
        # A missing label counts neither for nor against any label of its partition.
        known = np.add.reduceat(sums, book.offsets, axis=1)[:, book.partition_of_slot]
        return np.divide(sums, known, out=np.zeros_like(sums), where=known > 0)

    def draw_start(self, rng: np.random.Generator) -> np.ndarray:
        """Draw centres to start from."""
        return _STARTS[self.settings.init](self, rng)


def _entropy(shares: np.ndarray) -> float:
    shares = shares[shares > 0]
    return float(-(shares @ np.log(shares)))


def _mutual_information(joint: np.ndarray) -> float:
    sides = _entropy(joint.sum(axis=0)) + _entropy(joint.sum(axis=1))
    return sides - _entropy(joint.ravel())


def _start_random_partition(problem: Problem, rng: np.random.Generator) -> np.ndarray:
    """Put every sample into a random cluster: all centres start near the mean."""
    n_clusters = problem.settings.n_clusters
    counts = problem.codes.counts
    shares = rng.multinomial(counts, np.full(n_clusters, 1 / n_clusters))
    mean_weights = (problem.weights / counts)[:, None]
    return problem.means(lambda here: shares[here] * mean_weights[here])


def _start_random_codes(problem: Problem, rng: np.random.Generator) -> np.ndarray:
    """Take the codes of K random samples, no code twice."""
    positive = np.flatnonzero(problem.weights > 0)
    shares = problem.weights[positive] / problem.weights[positive].sum()
    chosen = rng.choice(
        positive, size=problem.settings.n_clusters, replace=False, p=shares
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
