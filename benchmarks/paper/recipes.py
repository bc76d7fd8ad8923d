"""How rows are prepared: one rule for all sets of a kind, stated in advance.

Which rows these are and which method gets them plays no part. To change the scaling of
numeric rows everywhere, change the line ``numeric=`` of ``OURS``.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import StandardScaler

from benchmarks.paper.datasets import Dataset, Rows


def _standardise(X: np.ndarray) -> np.ndarray:
    return StandardScaler().fit_transform(X)


def _tf_idf(X: sparse.csr_array) -> sparse.csr_array:
    """Weigh terms by their rarity; rows of unit length."""
    return sparse.csr_array(TfidfTransformer().fit_transform(X))


def _as_is(X):
    return X


_SCALINGS: dict[str, Callable] = {
    "standardised": _standardise,
    "tf-idf": _tf_idf,
    "as they are": _as_is,
}


@dataclass(frozen=True)
class Recipe:
    """What is done to the rows, and by which distance methods compare them.

    Attributes
    ----------
    numeric, text : str
        Scaling of numeric rows and of term counts.
    text_metric : str
        Distance between texts in the K-means runs of COR and KCC.
    rival_text_metric : str
        The same in the other methods that have a choice.
    """

    numeric: str
    text: str
    text_metric: str
    rival_text_metric: str

    def metrics(self, kind: str) -> tuple[str, str]:
        """Return the distance of COR and KCC, and that of the other methods."""
        if kind == "text":
            return self.text_metric, self.rival_text_metric
        return "euclidean", "euclidean"


OURS = Recipe(
    numeric="standardised",
    text="tf-idf",
    text_metric="cosine",
    rival_text_metric="cosine",
)

# The authors' own package runs K-means by cosine on raw counts. The paper's numbers for
# K-means itself (tr11: NMI 9.6) are near those of Euclidean distance on raw counts.
PAPER = Recipe(
    numeric="as they are",
    text="as they are",
    text_metric="cosine",
    rival_text_metric="euclidean",
)

RECIPES = {"ours": OURS, "paper": PAPER}


def prepare(dataset: Dataset, recipe: Recipe) -> Rows:
    """Return the rows as a recipe wants them, in the order of the file."""
    scaling = recipe.text if dataset.kind == "text" else recipe.numeric
    return _SCALINGS[scaling](dataset.X)


def shuffle(n_samples: int, seed: int) -> np.ndarray:
    """Return the order in which a run sees the rows; some files are sorted by label."""
    return np.random.default_rng(seed).permutation(n_samples)


def back_to_file(found: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return what was found for shuffled rows in the order of the file."""
    result = np.empty_like(found)
    result[order] = found
    return result
