"""Fits whose answers have to be the same everywhere, and a program that writes them.

``python -m tests.sameness.fits answers.npz`` fits in an interpreter of its own, so that
answers can be compared over environments and machines.
"""

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from corral import COR, all_methods

# Small rows by default; CORRAL_SAMENESS=1 asks for larger ones and more of everything.
IS_BROAD = os.environ.get("CORRAL_SAMENESS") == "1"

# What models say of the rows of the fit, and what they are asked about others.
ATTRIBUTES = (
    "labels_",
    "nearest_labels_",
    "outlier_scores_",
    "outlier_confidence_",
    "label_confidence_",
    "offset_",
    "n_clusters_",
    "n_outliers_",
)
QUESTIONS = ("predict", "score_samples", "transform")


class Fit(NamedTuple):
    """An estimator to make, the rows to fit it on, and rows to ask it about."""

    make: Callable
    X: object
    asked: object


def draw_mixed(rng, n_samples, n_features):
    """Return groups that touch, noise, and rows of which some occur more than once."""
    centers = rng.normal(scale=3, size=(4, n_features))
    X = centers[rng.integers(4, size=n_samples)]
    X = X + rng.normal(size=X.shape)
    n_noise = n_samples // 20
    X[:n_noise] = rng.uniform(-12, 12, (n_noise, n_features))
    X[n_noise : 2 * n_noise] = np.round(X[n_noise : 2 * n_noise])
    return X[rng.permutation(n_samples)]


def draw_counts(rng, n_samples, n_features):
    """Return sparse rows of counts, as of words in texts, many of them at a tie."""
    topics = rng.dirichlet(np.full(n_features, 0.05), size=3)
    rows = [rng.multinomial(30, topics[i % 3]) for i in range(n_samples)]
    return sparse.csr_array(np.array(rows, dtype=float))


def list_fits(seed, is_broad=IS_BROAD):
    """Return all fits by name: COR in its variants, and every other method."""
    rng = np.random.default_rng(seed)
    n_samples, n_wide = (3000, 800) if is_broad else (400, 150)
    dense = draw_mixed(rng, n_samples, 5)
    wide = draw_mixed(rng, n_wide, 600)
    texts = draw_counts(rng, n_wide, 600)
    holes = np.where(rng.random(dense.shape) < 0.03, np.nan, dense)
    plane, few = dense[:n_wide, :2], dense[: n_wide // 2, :2]
    numbers = {"n_clusters": 4, "n_outliers": n_wide // 20, "random_state": seed}

    def cor(X, **parameters):
        return Fit(lambda **jobs: COR(**numbers | parameters | jobs), X, X[::3])

    fits = {
        "cor": cor(dense),
        "cor chosen": cor(few, n_clusters="auto", n_outliers="auto", k_max=5),
        "cor all rows": cor(dense, max_samples=None),
        "cor few rows": cor(dense, max_samples=200),
        "cor float32": cor(dense.astype(np.float32)),
        "cor missing": cor(holes),
        "cor sparse": cor(texts),
        "cor cosine": cor(texts, metric="cosine"),
        "cor wide": cor(wide),
        "cor rfs": cor(dense, strategy="rfs"),
        "cor random codes": cor(dense, init="random-codes"),
        "cor paper": Fit(
            lambda **jobs: COR.paper(
                4, n_outliers=numbers["n_outliers"], random_state=seed, **jobs
            ),
            dense,
            dense[::3],
        ),
    }
    for name, method in all_methods().items():
        if name == "cor":
            continue
        X = texts if name == "tonmf" else plane
        fits[name] = Fit(_make_later(method, numbers), X, X[::3])
        if is_broad and method.takes_sparse:
            fits[f"{name} sparse"] = Fit(_make_later(method, numbers), texts, texts)
    return fits


def _make_later(method, numbers):
    """Return what makes an estimator with those parameters that it knows."""

    def make(**jobs):
        if method.name == "cor-detector":
            return method.make(estimator=COR(**numbers | jobs))
        known = method.parameters
        return method.make(
            **{key: value for key, value in (numbers | jobs).items() if key in known}
        )

    return make


def answer(model, asked):
    """Return all that a fitted model says."""
    said = {name: getattr(model, name) for name in ATTRIBUTES if hasattr(model, name)}
    for name in QUESTIONS:
        if hasattr(model, name):
            said[name] = getattr(model, name)(asked)
    return {name: np.asarray(value) for name, value in said.items()}


def fit_and_answer(fit, **jobs):
    """Fit and return all that the model says."""
    return answer(fit.make(**jobs).fit(fit.X), fit.asked)


def list_differences(expected, found):
    """Return the names of the answers whose bits differ."""
    assert set(expected) == set(found)
    return [
        name
        for name in expected
        if expected[name].dtype != found[name].dtype
        or expected[name].tobytes() != found[name].tobytes()
    ]


def answer_all(seed, names):
    """Return the answers of these fits, each by the name of the fit and its own."""
    fits = list_fits(seed)
    return {
        f"{name}/{key}": value
        for name in names
        for key, value in fit_and_answer(fits[name]).items()
    }


def main():
    """Write the answers of all fits to a file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("path", type=Path, help="an .npz file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--name", action="append", help="of a fit; all if none is given"
    )
    options = parser.parse_args()
    names = options.name or list(list_fits(options.seed))
    np.savez(options.path, **answer_all(options.seed, names))


if __name__ == "__main__":
    main()
