"""The numbers of ELKI, an independent implementation, on rows without ties."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from corral.detectors import COF, LDOF, LOF, FastABOD

FOLDER = Path(__file__).parent / "elki"
SCRIPT = Path(__file__).parents[2] / "scripts" / "elki"
JARS = [Path(f"/usr/share/java/{name}.jar") for name in ("elki", "trove-3")]

# What ELKI's numbers are, as multiples of our scores, for k neighbours. Its COF
# multiplies by k + 1 where the published formula has k. It gives the ABOF itself.
FACTORS = {
    LOF: lambda k: 1,
    COF: lambda k: (k + 1) / k,
    LDOF: lambda k: 1,
    FastABOD: lambda k: -1,
}


def run_elki(name, k, path):
    command = [sys.executable, SCRIPT, "run", name, str(k), path]
    finished = subprocess.run(command, check=True, capture_output=True, text=True)
    return np.array(finished.stdout.split(), dtype=float)


@pytest.mark.parametrize("detector", FACTORS)
def test_scores_are_the_stored_ones_of_elki(detector):
    X = np.loadtxt(FOLDER / "rows.csv", delimiter=",")
    theirs = np.loadtxt(FOLDER / f"{detector.__name__.lower()}.csv")
    ours = detector(10).fit(X).outlier_scores_
    # Scikit-learn's LOF adds 1e-10 to distances; ELKI's ABOF loses digits by taking
    # the difference of two sums.
    np.testing.assert_allclose(FACTORS[detector](10) * ours, theirs, rtol=1e-9)


@pytest.mark.skipif(
    not (SCRIPT.exists() and all(jar.exists() for jar in JARS)),
    reason="ELKI is not installed: run scripts/elki install",
)
@pytest.mark.parametrize("detector", FACTORS)
def test_scores_are_those_of_elki_today(detector, tmp_path):
    X = np.random.default_rng(1).normal(size=(80, 4)).round(6)
    np.savetxt(tmp_path / "rows.csv", X, delimiter=",", fmt="%.6f")
    theirs = run_elki(detector.__name__, 15, tmp_path / "rows.csv")
    ours = detector(15).fit(X).outlier_scores_
    np.testing.assert_allclose(FACTORS[detector](15) * ours, theirs, rtol=1e-8)
