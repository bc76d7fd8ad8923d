"""Fit an estimator, and time its stages as far as it tells them."""

import logging
import time
from typing import Any

import numpy as np

from benchmarks.paper.results import Result

# COR reports the number of codes when its partitions are there and the fusion starts.
_STAGE_LOGGER = "corral"
_STAGE_WORD = "codes"


class _StageClock(logging.Handler):
    """Notes when COR says that its basic partitions are done."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.partitions_done: float | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if self.partitions_done is None and _STAGE_WORD in record.getMessage():
            self.partitions_done = time.perf_counter()

    def __enter__(self) -> "_StageClock":
        self._logger = logging.getLogger(_STAGE_LOGGER)
        self._level, self._propagate = self._logger.level, self._logger.propagate
        self._logger.setLevel(logging.INFO)
        self._logger.propagate = False
        self._logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)
        self._logger.setLevel(self._level)
        self._logger.propagate = self._propagate


def fit(estimator: Any, X: Any, has_clusters: bool) -> Result:
    """Return what the estimator finds in the rows.

    Detectors say +1 for rows that are no outliers; here these are 0.
    """
    with _StageClock() as clock:
        start = time.perf_counter()
        estimator.fit(X)
        end = time.perf_counter()
    seconds = {"total": end - start}
    if clock.partitions_done is not None:
        seconds["partitions"] = clock.partitions_done - start
        seconds["fusion"] = end - clock.partitions_done
    labels = np.asarray(estimator.labels_)
    if not has_clusters:
        labels = np.where(labels == -1, -1, 0)
    scores = getattr(estimator, "outlier_scores_", None)
    return Result(labels.astype(np.int32), scores, has_clusters, seconds)
