"""Which share of a fit is spent outside of matrix products.

Run from the root of the repository: ``python -m benchmarks.scale.products``.
"""

import argparse
import cProfile
import pstats
import tempfile
from pathlib import Path

from benchmarks.scale._rows import write_npy
from corral import COR

# Where products are: scores of rows and centres, sparse products with tables of slots,
# and distances.
_PRODUCTS = ("score", "csr_matvecs", "csc_matvecs", "c_einsum")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e6)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        write_npy(path, int(options.rows))
        profile = cProfile.Profile()
        model = COR(10, contamination=0.001, random_state=0, n_jobs=1)
        profile.runcall(model.fit, path)
    stats = pstats.Stats(profile)
    inside = sum(
        own
        for (_, _, name), (_, _, own, _, _) in stats.stats.items()  # type: ignore[attr-defined]
        if any(part in name for part in _PRODUCTS)
    )
    total = stats.total_tt  # type: ignore[attr-defined]
    print(f"{int(options.rows):,} rows, one thread: {total:.1f} s, ", end="")
    print(f"{1 - inside / total:.0%} of them outside of matrix products")


if __name__ == "__main__":
    main()
