"""A fit tells how far it is."""

import threading

import numpy as np

from corral import COR
from corral._progress import FUSING, LABELLING, LEARNING, report, watch


def test_all_stages_report_and_come_to_their_end(seed):
    X = np.random.default_rng(seed).normal(size=(20000, 4))
    told = []
    with watch(lambda *each: told.append(each)):
        COR(3, n_partitions=20, n_jobs=2, random_state=seed).fit(X)
    stages = list(dict.fromkeys(stage for stage, _, _ in told))
    assert stages == [LEARNING, LABELLING, FUSING]
    for stage in (LEARNING, LABELLING):
        here = [(done, total) for name, done, total in told if name == stage]
        assert here[-1][0] == here[-1][1]
        assert all(done <= total for done, total in here)
    assert max(done for stage, done, _ in told if stage == LABELLING) == 20000


def test_nobody_is_told_after_the_watch(seed):
    told = []
    with watch(lambda *each: told.append(each)):
        report(FUSING, 1, 2)
    report(FUSING, 2, 2)
    assert told == [(FUSING, 1, 2)]


def test_a_callback_may_fit_and_ask_models_itself():
    X = np.random.default_rng(0).normal(size=(60, 2))
    seen = []

    def fit_another(*report):
        if not seen:
            COR(2, n_partitions=4, random_state=0, n_jobs=2).fit(X).predict(X)
        seen.append(report)

    def run():
        with watch(fit_another):
            COR(2, n_partitions=4, random_state=0).fit(X)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(timeout=20)
    assert not thread.is_alive()
    assert {stage for stage, _, _ in seen} >= {LEARNING, LABELLING, FUSING}
