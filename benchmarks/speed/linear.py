"""A fit on four times as many rows, against itself."""

from benchmarks.speed._data import make_noisy_blobs
from benchmarks.speed._measure import Options, Row, alternate, at_most, middle
from corral import COR

# Four times the rows, and 15 % for what grows a little faster: caches, distinct codes.
_LIMIT = 4.6


def measure(options: Options) -> list[Row]:
    """Answer: does the time of a fit grow linearly with the rows?"""
    n_samples = 250_000 if options.quick else 1_000_000
    X = make_noisy_blobs(n_samples)
    quarter = X[: n_samples // 4]

    def fit_all(seed: int) -> None:
        COR(n_clusters=5, contamination=0.01, random_state=seed).fit(X)

    def fit_quarter(seed: int) -> None:
        COR(n_clusters=5, contamination=0.01, random_state=seed).fit(quarter)

    seconds = alternate(options.rounds(3, 5), fit_all, fit_quarter)
    what = f"linear: blobs, {n_samples:,} rows / {len(quarter):,} rows"
    return [Row(what, *middle(seconds), at_most(_LIMIT))]
