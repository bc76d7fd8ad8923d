"""One thing after the other, and the newest view wins."""

import asyncio
import threading

import pytest

from corral.explore._worker import OutdatedError, Worker


def test_waiting_views_are_dropped_for_the_newest():
    done, gate = [], threading.Event()

    def work(name):
        gate.wait(5)
        done.append(name)
        return name

    async def main():
        worker = Worker()
        tasks = [
            asyncio.create_task(worker.run_newest(lambda name=name: work(name)))
            for name in "abcd"
        ]
        await asyncio.sleep(0.05)
        gate.set()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        worker.end()
        return answers

    answers = asyncio.run(main())
    # "a" was newest when its turn came or had been overtaken; "d" is answered for sure.
    assert answers[-1] == "d"
    assert all(isinstance(each, OutdatedError) for each in answers[1:-1])
    assert done[-1] == "d"
    assert len(done) <= 2


def test_saves_are_never_dropped_and_never_run_beside_a_view():
    running, most = 0, 0

    def work():
        nonlocal running, most
        running += 1
        most = max(most, running)
        threading.Event().wait(0.01)
        running -= 1
        return "saved"

    async def main():
        worker = Worker()
        saves = [asyncio.create_task(worker.run(work)) for _ in range(3)]
        view = asyncio.create_task(worker.run_newest(work))
        answers = await asyncio.gather(*saves, view)
        worker.end()
        return answers

    assert asyncio.run(main()) == ["saved"] * 4
    assert most == 1


def test_errors_reach_who_asked():
    async def main():
        worker = Worker()
        with pytest.raises(ZeroDivisionError):
            await worker.run(lambda: 1 / 0)
        worker.end()

    asyncio.run(main())
