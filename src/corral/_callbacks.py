"""How far a fit is, for scikit-learn's callbacks and for the log."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from corral._progress import FUSING, LABELLING, LEARNING, watch

# TODO(scikit-learn>=1.9): callbacks are there always.
try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:
    CallbackSupportMixin = object

logger = logging.getLogger("corral")

_STAGES = (LEARNING, LABELLING, FUSING)

# A stage has at most so many tasks: a callback needs no more, and each is kept.
_MAX_STEPS = 100

# Seconds between two lines on the same stage.
_LOG_INTERVAL = 2.0


class CallbackMixin(CallbackSupportMixin):
    """Mixin of the estimators that scikit-learn's callbacks can watch.

    It gives ``set_callbacks`` where the installed scikit-learn has callbacks, from
    version 1.9 on, and nothing elsewhere.
    """


@contextmanager
def tell_callbacks(estimator, X=None, y=None, sample_weight=None) -> Iterator[None]:
    """Tell the callbacks of an estimator how far the fit in the ``with`` block is.

    The fit is a task with a subtask for each stage, which is done in steps. A callback
    cannot stop a fit: what it returns is not looked at. It may be called from another
    thread than that of the fit, but from one at a time.

    Parameters
    ----------
    estimator : CallbackMixin
        Its ``fit`` has to be decorated by scikit-learn, which tears callbacks down.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features), \
            default=None
        Passed on to the callbacks, as are the others.
    y : object, default=None
        Passed on.
    sample_weight : array-like of shape (n_samples,), default=None
        Passed on.
    """
    if not hasattr(estimator, "_init_callback_context"):
        yield
        return
    fit = estimator._init_callback_context(max_subtasks=len(_STAGES))
    data = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
    fit.call_on_fit_task_begin(estimator=estimator, **data)
    if getattr(estimator, "_skl_callbacks", None):
        tasks = _Tasks(estimator, fit)
        with watch(tasks.take):
            yield
        tasks.end_stage()
    else:
        yield
    # Nothing to put back: the estimator is fitted by now.
    fit.call_on_fit_task_end(estimator=estimator, **data, reconstruction_attributes={})


class _Tasks:
    """Turns reports on stages into tasks of scikit-learn's callbacks.

    Reports of fits inside the fit, such as those of a callback, may come in between.
    They can make a stage look further than it is, but a step never comes twice, nor a
    stage.
    """

    def __init__(self, estimator, fit) -> None:
        self._estimator = estimator
        self._fit = fit
        self._contexts: dict = {}
        self._stage: str | None = None
        self._n_done = 0

    def take(self, stage: str, done: int, total: int) -> None:
        """Take a report; see :func:`~corral._progress.watch`."""
        if stage != self._stage:
            if stage not in _STAGES or stage in self._contexts or total < 1:
                return
            self._begin_stage(stage, min(total, _MAX_STEPS))
        context = self._contexts[stage]
        n_steps = context.max_subtasks
        for _ in range(self._n_done, min(n_steps * done // total, n_steps)):
            step = context.subcontext(task_name=f"step of {stage}")
            step.call_on_fit_task_begin(estimator=self._estimator)
            step.call_on_fit_task_end(estimator=self._estimator)
            self._n_done += 1

    def _begin_stage(self, stage: str, n_steps: int) -> None:
        self.end_stage()
        context = self._fit.subcontext(task_name=stage, max_subtasks=n_steps)
        context.call_on_fit_task_begin(estimator=self._estimator)
        self._contexts[stage] = context
        self._stage = stage
        self._n_done = 0

    def end_stage(self) -> None:
        """End the stage that is under way, if any."""
        if self._stage is not None:
            context = self._contexts[self._stage]
            context.call_on_fit_task_end(estimator=self._estimator)
        self._stage = None


@contextmanager
def log_progress(verbose: int) -> Iterator[None]:
    """Log the stages of the fits in the ``with`` block.

    The lines go to the logger "corral". If no handler would show them, they are shown
    on stderr.

    Parameters
    ----------
    verbose : int
        0 logs nothing; 1 logs each stage when it is over, and every few seconds
        before; 2 logs every report.
    """
    if not verbose:
        yield
        return
    log = _StageLog(_LOG_INTERVAL if verbose == 1 else 0.0)
    with _stderr.shown():
        with watch(log.take):
            yield
        log.end_stage()


class _StageLog:
    """Writes reports on stages to the log, not too many of them.

    A stage reports when something is done, so it began at the last report of the one
    before.
    """

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._stage: str | None = None
        self._began = self._wrote = self._heard = time.perf_counter()

    def take(self, stage: str, done: int, total: int) -> None:
        """Take a report; see :func:`~corral._progress.watch`."""
        if stage != self._stage:
            self.end_stage()
            self._stage = stage
        self._heard = time.perf_counter()
        if self._heard - self._wrote >= self._interval:
            self._wrote = self._heard
            logger.info("%s: %d of %d", stage, done, total)

    def end_stage(self) -> None:
        """Write how long the stage that is under way took, if any."""
        if self._stage is not None:
            logger.info("%s: done in %.2f s", self._stage, self._heard - self._began)
        self._began = self._wrote = self._heard
        self._stage = None


class _Stderr:
    """Shows the log of the package on stderr, as long as somebody wants to see it.

    Several fits may want that at the same time: the first one in changes the logger,
    and the last one out puts it back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_viewers = 0
        self._level = logging.NOTSET
        self._handler: logging.Handler | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show what is logged in the ``with`` block."""
        with self._lock:
            if self._n_viewers == 0:
                self._change()
            self._n_viewers += 1
        try:
            yield
        finally:
            with self._lock:
                self._n_viewers -= 1
                if self._n_viewers == 0:
                    self._put_back()

    def _change(self) -> None:
        self._level = logger.level
        if not logger.isEnabledFor(logging.INFO):
            logger.setLevel(logging.INFO)
        # Whoever has set up logging has said where lines go.
        if not logger.hasHandlers():
            self._handler = logging.StreamHandler()
            self._handler.setFormatter(logging.Formatter("corral: %(message)s"))
            logger.addHandler(self._handler)

    def _put_back(self) -> None:
        logger.setLevel(self._level)
        if self._handler is not None:
            logger.removeHandler(self._handler)
            self._handler = None


_stderr = _Stderr()
