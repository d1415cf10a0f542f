"""The nodes run on rclpy's default executor too, where the fast one does not exist."""

from __future__ import annotations

from pathlib import Path

import pytest
from rclpy.executors import SingleThreadedExecutor
from support.ros_rigs import LockstepRun, write_rig

from rig_common.ros import executor


def test_the_default_executor_does_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, 'make_executor',
                        lambda context: SingleThreadedExecutor(context=context))
    rig = write_rig(tmp_path, {'baro': {'type': 'barometer', 'mount': {'body': 'plate'},
                                        'rate_hz': 50.0, 'delay_range_s': [0.02, 0.02]}})
    with LockstepRun(rig) as run:
        assert isinstance(run.spinner.executor, SingleThreadedExecutor)
        run.run(1.03)
        heard = run.recorder.heard['baro/pressure']
        assert heard.arrivals_ns[:51] == [(20 * k + 20) * 1_000_000 for k in range(51)]
