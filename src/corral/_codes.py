"""Stage 2: label rows to codes, the distinct ones among them and how often each is."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from corral._threads import Threads

# Codes are handled in blocks of this many slots, so that their one-hot rows fit the
# cache; those of small sets of codes are kept from one use to the next.
_BLOCK_SLOTS = 2**19
_KEPT_SLOTS = 2**23


@dataclass(frozen=True)
class CodeBook:
    """How labels are written in a code.

    In partition j with ``n_labels[j]`` labels, a code holds the label itself, or
    ``n_labels[j]`` for a label that was not there when the partition was made, or
    ``n_labels[j] + 1`` for a missing label. Each of these is a slot; the slots of all
    partitions in a row are the columns of the one-hot matrix [B, unseen, missing],
    which is never built.

    Attributes
    ----------
    n_labels : ndarray of shape (n_partitions,)
    """

    n_labels: np.ndarray

    @cached_property
    def offsets(self) -> np.ndarray:
        """First slot of each partition, of shape (n_partitions,)."""
        return np.cumsum(self.n_labels + 2) - (self.n_labels + 2)

    @cached_property
    def n_slots(self) -> int:
        """Number of slots of all partitions together."""
        return int((self.n_labels + 2).sum())

    @cached_property
    def partition_of_slot(self) -> np.ndarray:
        """The partition that each slot belongs to, of shape (n_slots,)."""
        return np.repeat(np.arange(len(self.n_labels)), self.n_labels + 2)

    @cached_property
    def is_label(self) -> np.ndarray:
        """Whether a slot is that of a label, of shape (n_slots,)."""
        is_label = np.ones(self.n_slots, dtype=bool)
        is_label[self.offsets + self.n_labels] = False
        is_label[self.offsets + self.n_labels + 1] = False
        return is_label

    @cached_property
    def is_missing(self) -> np.ndarray:
        """Whether a slot is that of a missing label, of shape (n_slots,)."""
        is_missing = np.zeros(self.n_slots, dtype=bool)
        is_missing[self.offsets + self.n_labels + 1] = True
        return is_missing

    @property
    def dtype(self) -> np.dtype:
        """Smallest type that holds a code."""
        return np.min_scalar_type(int(self.n_labels.max(initial=0)) + 1)


@dataclass(frozen=True)
class Codes:
    """The distinct label rows of a data set.

    Attributes
    ----------
    book : CodeBook
    rows : ndarray of shape (n_codes, n_partitions), unsigned
        In an order that depends on the codes only, not on the order of the samples.
    inverse : ndarray of shape (n_samples,)
        The code of each sample.
    counts : ndarray of shape (n_codes,)
        How many samples have the code.
    """

    book: CodeBook
    rows: np.ndarray
    inverse: np.ndarray
    counts: np.ndarray

    def take(self, samples: np.ndarray) -> "Codes":
        """Return the codes of some samples, in the same order."""
        present, inverse = np.unique(self.inverse[samples], return_inverse=True)
        return Codes(self.book, self.rows[present], inverse, np.bincount(inverse))

    def count_jointly(
        self, clusters: np.ndarray, kept: np.ndarray, n_clusters: int, partition: int
    ) -> np.ndarray:
        """Return how many samples of each cluster have each label of a partition.

        Parameters
        ----------
        clusters : ndarray of shape (n_codes,)
        kept : ndarray of shape (n_codes,)
            How many samples of each code count.
        n_clusters : int
        partition : int

        Returns
        -------
        counts : ndarray of shape (n_clusters, n_labels + 1)
            The last column is for labels that were not there when the partition was
            made. Samples without a label are left out.
        """
        n_slots = self.book.n_labels[partition] + 2
        places = clusters.astype(np.intp) * n_slots + self.rows[:, partition]
        counts = np.bincount(places, kept, minlength=n_clusters * n_slots)
        return counts.reshape(n_clusters, n_slots)[:, :-1]

    def weigh(self, sample_weight: np.ndarray | None) -> np.ndarray:
        """Return the weight of each code, of shape (n_codes,), float64."""
        if sample_weight is None:
            return self.counts.astype(np.float64)
        return np.bincount(self.inverse, sample_weight, minlength=len(self.rows))


def one_hot_rows(rows: np.ndarray, book: CodeBook) -> sparse.csr_array:
    """Return codes as rows of a one-hot matrix, of shape (n_rows, n_slots)."""
    n_rows, n_partitions = rows.shape
    return sparse.csr_array(
        (
            np.ones(rows.size),
            (rows + book.offsets.astype(np.int32)).ravel(),
            np.arange(n_rows + 1, dtype=np.int32) * n_partitions,
        ),
        shape=(n_rows, book.n_slots),
    )


class OneHot:
    """Codes as rows of a one-hot matrix, for products with tables of slots.

    Parameters
    ----------
    codes : Codes
    """

    def __init__(self, codes: Codes) -> None:
        self._codes = codes
        self._block_codes = max(_BLOCK_SLOTS // codes.rows.shape[1], 1)
        self._starts = range(0, len(codes.rows), self._block_codes)
        self._kept: dict[int, sparse.csr_array] | None = None

    def keep(self, n_slots: int | None = None) -> None:
        """Keep the rows from one use to the next if they have no more slots.

        None means so many as are kept by default.
        """
        n_slots = _KEPT_SLOTS if n_slots is None else n_slots
        if self._kept is None and self._codes.rows.size <= n_slots:
            self._kept = {}

    def block(self, start: int) -> sparse.csr_array:
        """Return the rows of the block that begins with code ``start``."""
        if self._kept is not None and start in self._kept:
            return self._kept[start]
        rows = self._codes.rows[start : start + self._block_codes]
        block = one_hot_rows(rows, self._codes.book)
        if self._kept is not None:
            self._kept[start] = block
        return block

    def count_known(self) -> np.ndarray:
        """Return how many labels of each code are not missing."""
        missing = self._codes.book.n_labels + 1
        n_known = np.empty(len(self._codes.rows))
        for start in self._starts:
            here = slice(start, start + self._block_codes)
            known = self._codes.rows[here] != missing
            n_known[here] = np.count_nonzero(known, axis=1)
        return n_known

    def find_nearest(
        self, tables: list[np.ndarray], threads: Threads
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the cheapest cluster of each code and what the code costs there.

        Parameters
        ----------
        tables : list of ndarray of shape (n_slots, n_clusters)
            What each slot costs in each cluster; one table for each answer.
        threads : Threads

        Returns
        -------
        labels, costs : ndarray of shape (n_tables, n_codes)
        """
        table = np.concatenate(tables, axis=1)
        n_codes = len(self._codes.rows)
        labels = np.empty((len(tables), n_codes), dtype=np.int32)
        costs = np.empty((len(tables), n_codes))

        def work(start: int) -> None:
            here = slice(start, start + self._block_codes)
            block_costs = self.block(start) @ table
            block_costs = block_costs.reshape(len(block_costs), len(tables), -1)
            labels[:, here] = block_costs.argmin(axis=2).T
            costs[:, here] = block_costs.min(axis=2).T

        for _ in threads.map(work, self._starts):
            pass
        return labels, costs

    def add_up(
        self, memberships: Callable[[slice], np.ndarray], threads: Threads
    ) -> np.ndarray:
        """Return how much weight each slot has in each cluster.

        Parameters
        ----------
        memberships : callable
            Given a slice of the codes, returns how much of each code's weight is in
            each cluster, of shape (n_codes in the slice, n_clusters).
        threads : Threads

        Returns
        -------
        sums : ndarray of shape (n_slots, n_clusters)
        """

        def work(start: int) -> np.ndarray:
            here = slice(start, start + self._block_codes)
            return self.block(start).T @ memberships(here)

        return sum(threads.map(work, self._starts))


@dataclass(frozen=True)
class _BlockCodes:
    """Distinct codes of one block, in the order of their keys."""

    keys: np.ndarray
    rows: np.ndarray
    inverse: np.ndarray


def make_keys(codes: Codes) -> np.ndarray:
    """Return the keys of codes, of shape (n_codes,), the same in all blocks.

    Two codes share a key by chance once in some 2**60 pairs.
    """
    key_maker = _KeyMaker(codes.book, seed=0)
    # A few at a time: they are made wider on the way.
    step = max(_BLOCK_SLOTS // codes.rows.shape[1], 1)
    starts = range(0, len(codes.rows), step)
    parts = [key_maker.keys(codes.rows[start : start + step].T) for start in starts]
    return np.concatenate(parts)


class CodeCollisionError(RuntimeError):
    """Two different codes have the same key."""


def encode(
    book: CodeBook,
    n_blocks: int,
    read_labels: Callable[[int, int], np.ndarray],
    threads: Threads,
) -> Codes:
    """Find the distinct codes of all samples, block by block.

    A code's key is 64 bits made of two random sums of its labels. Every sample is
    compared with the code that it was given, so codes that share a key are noticed,
    and other random numbers are taken: the result is exact.

    Parameters
    ----------
    book : CodeBook
    n_blocks : int
    read_labels : callable
        ``read_labels(number of the thread, index of the block)`` returns labels of
        shape (n_partitions, n_rows).
    threads : Threads

    Returns
    -------
    codes : Codes
    """
    attempt = 0
    while True:
        try:
            return _encode(book, n_blocks, read_labels, threads, attempt)
        except CodeCollisionError:
            attempt += 1


def _encode(book, n_blocks, read_labels, threads, attempt) -> Codes:
    key_maker = _KeyMaker(book, seed=attempt)
    blocks: list[_BlockCodes | None] = [None] * n_blocks

    def work(number: int, share: range) -> None:
        for index in share:
            blocks[index] = _encode_block(read_labels(number, index), key_maker, book)

    threads.share(n_blocks, work)
    return _merge_blocks(book, blocks)


class _KeyMaker:
    """Random sums of labels, exact in float64 and so computed by a product.

    The sum of ``a_j * label_j`` with random whole numbers a_j below 2**m tells two
    different codes apart with probability 1 - 2**-m. Two sums are mixed into one key.
    """

    def __init__(self, book: CodeBook, seed: int) -> None:
        largest_sum = int((book.n_labels + 1).sum())
        bits = 53 - largest_sum.bit_length()
        rng = np.random.default_rng(seed)
        self._factors = rng.integers(
            2**bits, size=(2, len(book.n_labels)), dtype=np.int64
        ).astype(np.float64)

    def keys(self, labels: np.ndarray) -> np.ndarray:
        """Return the key of each column of ``labels``."""
        sums = (self._factors @ labels.astype(np.float64)).astype(np.uint64)
        # An odd factor permutes the 64-bit numbers, so nothing of a sum is lost.
        return sums[0] * np.uint64(0x9E3779B97F4A7C15) + sums[1]


def _encode_block(
    labels: np.ndarray, key_maker: _KeyMaker, book: CodeBook
) -> _BlockCodes:
    keys = key_maker.keys(labels)
    keys, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    distinct = labels[:, first]
    if len(keys) < labels.shape[1] and not np.array_equal(
        np.take(distinct, inverse, axis=1), labels
    ):
        raise CodeCollisionError
    rows = np.ascontiguousarray(distinct.T, dtype=book.dtype)
    return _BlockCodes(keys, rows, inverse.astype(np.int32))


def _merge_blocks(book: CodeBook, blocks: list) -> Codes:
    all_keys = np.concatenate([block.keys for block in blocks])
    keys, first, place = np.unique(all_keys, return_index=True, return_inverse=True)
    borders = np.cumsum([len(block.keys) for block in blocks])[:-1]
    rows = np.empty((len(keys), len(book.n_labels)), dtype=book.dtype)
    inverses = []
    # Each code is written by the last block that has it, then compared in all.
    places = np.split(place, borders)
    for block, where in zip(blocks, places, strict=True):
        rows[where] = block.rows
        inverses.append(where.astype(np.int32)[block.inverse])
    for index, where in enumerate(places):
        if not np.array_equal(rows[where], blocks[index].rows):
            raise CodeCollisionError
        blocks[index] = None
    inverse = np.concatenate(inverses)
    return Codes(book, rows, inverse, np.bincount(inverse, minlength=len(keys)))
