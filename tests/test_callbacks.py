"""Reports on a fit as scikit-learn's callbacks and the log get them."""

import logging
import subprocess
import sys
import threading
from functools import partial

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from corral import COR
from corral import _callbacks as callbacks
from corral._callbacks import CallbackMixin, log_progress, tell_callbacks
from corral._progress import FUSING, LABELLING, LEARNING, report
from corral._sklearn_compat import _fit_context

try:
    from sklearn.callback import ProgressBar
except ImportError:
    ProgressBar = None

needs_callbacks = pytest.mark.skipif(
    ProgressBar is None, reason="scikit-learn has callbacks from 1.9 on"
)


class Stages(CallbackMixin, StandardScaler):
    """An estimator whose fit reports what the test says, and nothing else."""

    reports: tuple = ()

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        with tell_callbacks(self, X, y, sample_weight):
            for each in self.reports:
                if isinstance(each, Exception):
                    raise each
                report(*each)
            self.mean_ = np.mean(X, axis=0)
            return self


class Recorder:
    """A callback that writes down all it is told."""

    max_propagation_depth = None

    def __init__(self):
        self.events = []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, metadata=None):
        self.events.append(("begin", context.task_name))
        if context.task_name == "fit":
            self.X, self.metadata = X, metadata

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.events.append(("end", context.task_name))
        if context.task_name == "fit":
            self.fitted = fitted_estimator

    def count(self, kind, name):
        return self.events.count((kind, name))

    @property
    def main(self):
        """What was told, without the steps of the stages."""
        return [each for each in self.events if "step of" not in each[1]]


def record(*reports):
    """Return what a callback is told about a fit with these reports."""
    recorder = Recorder()
    model = Stages().set_callbacks(recorder)
    model.reports = reports
    model.fit(np.eye(3))
    return recorder


@needs_callbacks
def test_stages_are_tasks_one_after_the_other():
    recorder = record(
        (LEARNING, 1, 2), (LEARNING, 2, 2), (LABELLING, 5, 5), (FUSING, 1, 3)
    )
    expected = ["setup", ("begin", "fit")]
    for stage in (LEARNING, LABELLING, FUSING):
        expected += [("begin", stage), ("end", stage)]
    assert recorder.main == [*expected, ("end", "fit"), "teardown"]


@needs_callbacks
def test_steps_follow_what_is_done():
    recorder = record((LEARNING, 0, 10), (LEARNING, 3, 10), (LEARNING, 4, 10))
    assert recorder.count("end", f"step of {LEARNING}") == 4
    assert recorder.count("begin", f"step of {LEARNING}") == 4


@needs_callbacks
def test_many_rows_make_a_hundred_steps():
    recorder = record(*((LABELLING, k, 10**6) for k in range(10**5, 10**6 + 1, 10**5)))
    assert recorder.count("end", f"step of {LABELLING}") == 100


@needs_callbacks
@pytest.mark.parametrize(
    "strange",
    [
        (LEARNING, 1, 4),
        (FUSING, 9, 4),
        ("polishing", 1, 2),
        (LABELLING, 0, 0),
    ],
    ids=["a stage that was over", "more than all", "an unknown stage", "no rows"],
)
def test_reports_of_another_fit_do_no_harm(strange):
    reports = [(LEARNING, 4, 4), (FUSING, 1, 4), strange, (FUSING, 2, 4)]
    recorder = record(*reports)
    assert recorder.count("begin", LEARNING) == 1
    assert recorder.count("begin", FUSING) == 1
    n_steps = recorder.count("end", f"step of {FUSING}")
    assert n_steps == (4 if strange[0] == FUSING else 2)
    assert recorder.events[-1] == "teardown"


@needs_callbacks
def test_callback_gets_the_data_and_the_fitted_estimator():
    recorder = record()
    np.testing.assert_array_equal(recorder.X, np.eye(3))
    assert recorder.metadata == {"sample_weight": None}
    np.testing.assert_allclose(recorder.fitted.mean_, 1 / 3)


@needs_callbacks
def test_failed_fit_tears_the_callback_down():
    recorder = Recorder()
    model = Stages().set_callbacks(recorder)
    model.reports = ((LEARNING, 1, 2), RuntimeError("no more"))
    with pytest.raises(RuntimeError, match="no more"):
        model.fit(np.eye(3))
    assert recorder.events[-1] == "teardown"
    assert recorder.count("end", "fit") == 0
    # Nobody watches any longer.
    report(LEARNING, 2, 2)
    assert recorder.events[-1] == "teardown"


@needs_callbacks
def test_pipeline_hands_its_callback_on():
    recorder = Recorder()
    model = Stages()
    model.reports = ((FUSING, 1, 1),)
    make_pipeline(StandardScaler(), model).set_callbacks(recorder).fit(np.eye(3))
    assert recorder.count("begin", FUSING) == 1
    assert recorder.count("end", FUSING) == 1


def test_estimator_without_callbacks_is_left_alone():
    # As with scikit-learn before 1.9.
    class Plain:
        pass

    plain = Plain()
    with tell_callbacks(plain):
        report(LEARNING, 1, 2)
    assert vars(plain) == {}


SETTINGS = {"n_clusters": 3, "n_outliers": 6, "n_partitions": 8, "random_state": 0}


@needs_callbacks
def test_callback_of_cor_sees_all_stages(planted):
    recorder = Recorder()
    model = COR(**SETTINGS).set_callbacks(recorder).fit(planted.X)
    stages = [name for kind, name in recorder.main[1:-1] if kind == "begin"]
    assert stages == ["fit", LEARNING, LABELLING, FUSING]
    assert recorder.count("end", f"step of {LABELLING}") == 100
    np.testing.assert_array_equal(recorder.fitted.labels_, model.labels_)


@needs_callbacks
def test_callback_changes_no_result(planted):
    plain = COR(**SETTINGS).fit(planted.X)
    watched = COR(**SETTINGS).set_callbacks(Recorder()).fit(planted.X)
    np.testing.assert_array_equal(watched.labels_, plain.labels_)
    assert set(vars(watched)) - set(vars(plain)) == {"_skl_callbacks"}


@needs_callbacks
def test_progress_bar_of_scikit_learn_names_the_stages(planted, capsys):
    pytest.importorskip("rich")
    bar = ProgressBar()
    COR(**SETTINGS).set_callbacks(bar).fit(planted.X)
    shown = capsys.readouterr().out
    for stage in (LEARNING, LABELLING, FUSING):
        assert f"COR - {stage}" in shown
    # The fit and its three stages.
    assert shown.count("100%") == 4


def test_stages_of_cor_are_logged(planted, caplog):
    with log_progress(1):
        COR(**SETTINGS).fit(planted.X)
    said = " ".join(caplog.messages)
    for stage in (LEARNING, LABELLING, FUSING):
        assert f"{stage}: done in" in said


def test_verbose_logs_the_stages(planted, caplog):
    COR(**SETTINGS, verbose=1).fit(planted.X)
    assert sum("done in" in line for line in caplog.messages) == 3


def test_verbose_leaves_a_lower_level_as_it_is(planted, caplog):
    with caplog.at_level(logging.DEBUG, "corral"):
        COR(3, n_partitions=5, n_outliers=6, n_resamples=0, verbose=1).fit(planted.X)
        assert logging.getLogger("corral").level == logging.DEBUG
    assert sum("done in" in line for line in caplog.messages) == 3


def test_log_has_a_line_for_each_stage(caplog):
    with log_progress(1):
        for k in range(5):
            report(LEARNING, k, 4)
        report(FUSING, 1, 9)
    assert [line.partition(" in ")[0] for line in caplog.messages] == [
        "learning partitions: done",
        "fusing: done",
    ]
    assert {record.name for record in caplog.records} == {"corral"}
    assert {record.levelno for record in caplog.records} == {logging.INFO}


def test_long_stage_is_logged_now_and_then(caplog, monkeypatch):
    now = iter([10.0, 11.0, 12.5, 13.0, 14.6, 16.0, 16.5, 17.5])
    monkeypatch.setattr(callbacks.time, "perf_counter", lambda: next(now))
    with log_progress(1):
        for k in range(1, 6):
            report(LEARNING, k, 9)
        report(LABELLING, 1, 9)
        report(LABELLING, 9, 9)
    # The fit began at 10, and learning ended at 16.
    assert caplog.messages == [
        "learning partitions: 2 of 9",
        "learning partitions: 4 of 9",
        "learning partitions: done in 6.00 s",
        "labelling rows: done in 1.50 s",
    ]


def test_verbose_2_logs_every_report(caplog):
    with log_progress(2):
        report(LEARNING, 1, 4)
        report(LEARNING, 2, 4)
    assert caplog.messages[:2] == [f"{LEARNING}: 1 of 4", f"{LEARNING}: 2 of 4"]


def test_verbose_0_logs_nothing(caplog):
    with log_progress(0):
        report(LEARNING, 1, 4)
    assert caplog.messages == []


def test_logger_is_put_back_even_if_fits_overlap(request):
    logger = logging.getLogger("corral")
    request.addfinalizer(partial(logger.setLevel, logger.level))
    logger.setLevel(logging.ERROR)
    handlers = list(logger.handlers)
    inside, may_leave = threading.Event(), threading.Event()

    def fit():
        with log_progress(1):
            inside.set()
            may_leave.wait(5)

    other = threading.Thread(target=fit)
    with log_progress(1):
        other.start()
        inside.wait(5)
        assert logger.isEnabledFor(logging.INFO)
    assert logger.isEnabledFor(logging.INFO)
    may_leave.set()
    other.join()
    assert logger.level == logging.ERROR
    assert logger.handlers == handlers


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )


def test_lines_go_to_stderr_and_only_inside_the_block():
    done = run(
        "from corral._callbacks import log_progress, logger\n"
        "from corral._progress import report\n"
        "with log_progress(1):\n    report('fusing', 1, 2)\n"
        "logger.info('unseen')\n"
        "with log_progress(1):\n    report('fusing', 1, 2)\n"
    )
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("corral: fusing: done in") for line in lines)


def test_lines_are_not_doubled_where_logging_is_set_up():
    done = run(
        "import logging; logging.basicConfig(format='mine %(message)s')\n"
        "from corral._callbacks import log_progress\n"
        "from corral._progress import report\n"
        "with log_progress(1):\n    report('fusing', 1, 2)\n"
    )
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("mine fusing")


def test_older_scikit_learn_needs_no_callbacks():
    # Where there is no sklearn.callback, the mixin adds nothing.
    done = run(
        "import sys; sys.modules['sklearn.callback'] = None\n"
        "from corral._callbacks import CallbackMixin, tell_callbacks\n"
        "model = CallbackMixin()\n"
        "with tell_callbacks(model): pass\n"
        "print(hasattr(model, 'set_callbacks'), vars(model))\n"
    )
    assert done.stdout == "False {}\n"
