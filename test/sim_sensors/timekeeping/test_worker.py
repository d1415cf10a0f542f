"""The threads that make heavy truth: order, waiting, errors, ends, under pressure."""

from __future__ import annotations

import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from support.ros_rigs import MS, LockstepRun, write_rig

from rig_common.cdr import read_stamp_ns
from sim_sensors.timekeeping.worker import Worker

pytestmark = pytest.mark.ros


@pytest.fixture(autouse=True)
def _switch_often():
    """Let Python change threads as often as it can, so that a race has its chance."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_jobs_are_done_in_order_and_waited_for() -> None:
    worker, done = Worker('test'), []
    for k in range(5000):
        worker.do(lambda k=k: done.append(k))
        if k % 97 == 0:
            assert worker.wait(10.0) and done == list(range(k + 1))
    assert worker.wait(10.0)
    assert done == list(range(5000))
    worker.close()
    assert not any(thread.name == 'test' for thread in threading.enumerate())


def test_an_error_comes_out_in_the_caller_and_nothing_is_done_after_it() -> None:
    worker, done = Worker('test'), []
    worker.do(lambda: done.append(1))
    worker.do(lambda: 1 // 0)
    worker.do(lambda: done.append(2))
    with pytest.raises(ZeroDivisionError):
        worker.wait(10.0)
    with pytest.raises(ZeroDivisionError):
        worker.raise_error()
    assert done == [1]
    worker.close()


def test_waiting_ends_at_its_limit() -> None:
    worker, go = Worker('test'), threading.Event()
    worker.do(lambda: go.wait(30.0) and None)
    begun = time.monotonic()
    assert not worker.wait(0.05)
    assert time.monotonic() - begun < 10.0
    go.set()
    assert worker.wait(10.0)
    worker.close()


LIDAR = {
    'type': 'lidar3d',
    'mount': {'body': 'plate'},
    'rate_hz': 20.0,
    'delay_range_s': [0.002, 0.002],
}


def test_heavy_sensors_side_by_side_lose_nothing_over_resets(tmp_path: Path) -> None:
    """Every capture of four heavy sensors comes out once, in order, whatever the threads do."""
    sensors = {f'lidar_{n}': dict(LIDAR, eager=True) for n in range(4)}
    rig = write_rig(tmp_path, sensors, lockstep_timeout_s=60.0)
    with LockstepRun(rig) as run:
        for episode in range(3):
            run.run(0.5)
            for topic, heard in run.recorder.heard.items():
                if topic.startswith('truth/time/'):
                    times = [read_stamp_ns(raw) for raw in heard.messages]
                    assert times == sorted(set(times)), topic
                    spacings = {b - a for a, b in pairwise(times)}
                    assert len(times) >= 9 and spacings == {50 * MS}, (topic, episode, times)
            run.world.loop.reset(episode + 1, 5)
            run.until(lambda: run.now_s < 0.2)
    assert not any(thread.name.startswith('truth of') for thread in threading.enumerate())
