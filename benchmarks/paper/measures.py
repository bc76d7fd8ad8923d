"""What a result is worth, in percent. Nothing here knows data sets or methods."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from benchmarks.paper.results import Result
from corral import metrics


@dataclass(frozen=True)
class Measure:
    """A number between truth and result; higher is better.

    Attributes
    ----------
    label : str
        As in the tables.
    needs : {"clusters", "outliers", "scores"}
        What of the result it looks at.
    function : callable
        Of the true labels and of labels or scores.
    """

    label: str
    needs: Literal["clusters", "outliers", "scores"]
    function: Callable[[np.ndarray, np.ndarray], float]


MEASURES = {
    "nmi": Measure("NMI", "clusters", metrics.nmi_score),
    "rn": Measure("R_n", "clusters", metrics.rn_score),
    "jaccard": Measure("Jaccard", "outliers", metrics.outlier_jaccard_score),
    "f": Measure("F-measure", "outliers", metrics.outlier_f_score),
    "auc": Measure("ROC AUC", "scores", metrics.outlier_roc_auc_score),
    "ap": Measure(
        "Average precision", "scores", metrics.outlier_average_precision_score
    ),
}


def measure(name: str, truth: np.ndarray, result: Result) -> float | None:
    """Return a measure in percent; None where the result has not what it looks at."""
    wanted = MEASURES[name]
    if wanted.needs == "scores":
        found = result.scores
    elif wanted.needs == "clusters" and not result.has_clusters:
        found = None
    else:
        found = result.labels
    return None if found is None else 100 * float(wanted.function(truth, found))
