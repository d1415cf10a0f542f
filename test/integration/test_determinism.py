"""The same rig and seed give the same messages without ROS, in one process, and in many."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from support.body_sensors import PLATE
from support.processes import Processes
from support.ros_rigs import MS, LockstepRun, Recorder, topics_of, write_rig

from rig_common.digest import StreamDigests
from rig_common.ros.executor import Spinner, close_node, ros_context
from sensor_rig.inprocess import InProcessRig
from sensor_rig.nodes.building import make_sync
from sensor_rig.rigfile import RigConfig, load_rig
from sensor_rig.running.node_plan import planned_nodes

SENSORS: dict[str, Any] = {
    'imu': {
        'type': 'imu',
        'mount': {'body': 'plate'},
        'rate_hz': 200.0,
        'delay_range_s': [0.002, 0.004],
        'jitter_s': 0.002,
        'accel': {'noise_density': [0.01, 0.01, 0.01], 'bandwidth_hz': 80.0},
        'gyro': {'noise_density': [0.001, 0.001, 0.001]},
        'clock': {'offset_s': 0.3, 'drift_ppm': 50.0, 'stamp_jitter_s': 0.0001},
    },
    'encoder': {
        'type': 'joint_state',
        'joints': ['hinge'],
        'rate_hz': 30.0,
        'noise': 0.01,
        'loss': {'probability': 0.2, 'burst_mean': 3.0},
    },
    'mag': {
        'type': 'magnetometer',
        'mount': {'body': 'plate'},
        'rate_hz': 75.0,
        'delay_range_s': [0.02, 0.05],
        'jitter_s': 0.02,
        'random_walk': 1.0e-7,
    },
    'lidar': {
        'type': 'lidar2d',
        'mount': {'body': 'plate', 'pos_m': [0.0, 0.0, 0.3]},
        'rate_hz': 25.0,
        'num_rays': 60,
        'segments': 5,
        'noise': 0.01,
        'delay_range_s': [0.01, 0.02],
        'jitter_s': 0.01,
    },
    'gnss': {'type': 'gnss', 'mount': {'body': 'plate'}, 'rate_hz': 25.0},
    'camera': {
        'type': 'camera',
        'mount': {'body': 'world', 'pos_m': [-0.6, 0.0, 0.1]},
        'rate_hz': 25.0,
        'width': 32,
        'height': 24,
        'delay_range_s': [0.02, 0.02],
        'shot_noise': 2.0,
    },
}
STALLS = {'probability': 0.02, 'duration_range_s': [0.05, 0.1]}
MEASURED: dict[str, Any] = {
    'imu': {
        **SENSORS['imu'],
        'jitter_s': 0.0,
        'link': 'line',
        'latency': {'model': 'gamma', 'mean_s': 0.002, 'sigma_s': 0.001, 'correlation': 0.5},
        'clock': {'drift_ppm': 50.0, 'white_fm': 1e-6, 'servo': {'kind': 'ptp', 'sigma_s': 1e-4}},
    },
    'encoder': {
        **SENSORS['encoder'],
        'order': 'fifo',
        'loss': {
            'probability': 0.1,
            'burst_mean': 3.0,
            'bad_probability': 0.5,
            'duplicate_probability': 0.2,
        },
        'clock': {
            'servo': {'kind': 'ntp', 'period_s': 0.3, 'sigma_s': 1e-3},
            'random_walk_fm': 1e-5,
            'resolution_s': 1e-6,
            'counter_bits': 32,
        },
    },
    'mag': {
        **SENSORS['mag'],
        'jitter_s': 0.0,
        'order': 'fifo',
        'latency': {
            'model': 'mixture',
            'weights': [0.8, 0.2],
            'means_s': [0.005, 0.04],
            'sigmas_s': [0.001, 0.005],
            'correlation': -0.1,
            'stalls': STALLS,
        },
    },
    'lidar': {**SENSORS['lidar'], 'link': 'line', 'clock': {'stamp_point': 'end'}},
    'camera': {
        **SENSORS['camera'],
        'link': 'line',
        'size_bytes': 20_000,
        'loss': {'packet_probability': 0.01},
    },
}
"""The same with timing as it is measured: distributions, correlation, a link, other clocks."""
LINE = {
    'line': {
        'bandwidth_bps': 8.0e6,
        'queue_bytes': 30_000,
        'reliable': True,
        'round_trip_s': 0.004,
    }
}
LIGHT = {name: SENSORS[name] for name in ('imu', 'encoder', 'mag')}
SECONDS = 2.0


def without_ros(rig: RigConfig, seconds: float) -> StreamDigests:
    digests = StreamDigests()
    plain, heard = InProcessRig(rig, arrays=False), topics_of(rig)
    for _ in range(round(seconds * 1e3)):
        for message in plain.step():
            if message.topic in heard:
                digests.add(message.topic, message.data)
    return digests


def cut(recorder: Recorder, counts: dict[str, int]) -> dict[str, str]:
    """Return the digests of the first `counts` messages: the runs end a few ticks apart."""
    digests = StreamDigests()
    for topic, count in counts.items():
        assert len(recorder.heard[topic].messages) >= count
        for raw in recorder.heard[topic].messages[:count]:
            digests.add(topic, raw)
    return digests.hex()


def test_one_process_is_equal_to_no_ros(tmp_path: Path) -> None:
    """Heavy truth from worker threads and sweeps of several parts are among the sensors."""
    rig = write_rig(tmp_path, SENSORS, skip_unavailable=True)
    expected = without_ros(rig, SECONDS)
    assert min(expected.counts.values()) > 40
    assert len(expected.counts) >= 4
    with LockstepRun(rig, [('imu', 'camera'), ('encoder', 'mag', 'lidar', 'gnss')]) as run:
        run.run(SECONDS + 0.05)
        assert cut(run.recorder, expected.counts) == expected.hex()


@pytest.mark.parametrize(('name', 'seconds'), [('demo', 0.5), ('everything', 0.25)])
def test_a_shipped_rig_in_one_process_is_equal_to_no_ros(name: str, seconds: float) -> None:
    rig = load_rig(name).with_world(
        lockstep=True, real_time_factor=0.0, skip_unavailable=True, lockstep_timeout_s=60.0
    )
    expected = without_ros(rig, seconds)
    assert len(expected.counts) >= 5
    with LockstepRun(rig, extra=[lambda: make_sync(rig)] if rig.sync else []) as run:
        run.run(seconds + 0.05)
        assert cut(run.recorder, expected.counts) == expected.hex()


def test_several_environments_are_equal_to_no_ros(tmp_path: Path) -> None:
    rig = write_rig(tmp_path, {'encoder': SENSORS['encoder'], 'mag': SENSORS['mag']}, num_envs=3)
    expected = without_ros(rig, 1.0)
    assert len(expected.counts) == 6
    with LockstepRun(rig) as run:
        run.run(1.05)
        assert cut(run.recorder, expected.counts) == expected.hex()


def test_samples_that_overtake_each_other_arrive_at_the_same_ticks(tmp_path: Path) -> None:
    """A node promises to send nothing before a time: that of the next arrival, not capture."""
    drawn = {'model': 'gamma', 'mean_s': 0.02, 'sigma_s': 0.02}
    rig = write_rig(
        tmp_path,
        {
            'encoder': {**SENSORS['encoder'], 'rate_hz': 200.0, 'latency': drawn},
            'mag': {**SENSORS['mag'], 'rate_hz': 500.0, 'delay_range_s': [0.02, 0.02]},
        },
    )
    expected: dict[str, list[int]] = {}
    plain = InProcessRig(rig, arrays=False)
    for ms in range(1000):
        for message in plain.step():
            expected.setdefault(message.topic, []).append(ms * MS)
    with LockstepRun(rig) as run:
        run.run(1.05)
        assert expected == {
            topic: run.recorder.heard[topic].arrivals_ns[: len(times)]
            for topic, times in expected.items()
        }


CONTROLLER = """
class Swing:
    rate_hz = 100.0
    reads = ('encoder', 'imu')

    def __init__(self, model, num_envs):
        pass

    def act(self, seen):
        angle = seen.readings['encoder'].values[:, 0]
        spin = seen.readings['imu'].values[:, 2]
        return {'motor': 0.5 - 4.0 * angle - 0.1 * spin}
"""


def test_a_controller_in_the_loop_sees_and_does_the_same_without_ros(tmp_path: Path) -> None:
    """It reads what is late, noisy and lost, in the world node too."""
    (tmp_path / 'swinging.py').write_text(CONTROLLER)
    driven = PLATE.replace(
        '<keyframe>', '<actuator><motor name="motor" joint="hinge"/></actuator><keyframe>'
    )
    rig = write_rig(
        tmp_path,
        {name: MEASURED[name] for name in ('imu', 'encoder', 'lidar')},
        model=driven,
        links=LINE,
        driver={'type': 'python', 'class': 'swinging:Swing'},
    )
    expected = without_ros(rig, 1.0)
    still = without_ros(rig.with_world(driver='none'), 1.0)
    assert expected.hex()['imu/data_raw'] != still.hex()['imu/data_raw']
    with LockstepRun(rig) as run:
        run.run(1.05)
        assert cut(run.recorder, expected.counts) == expected.hex()


def test_another_seed_gives_other_messages(tmp_path: Path) -> None:
    a = without_ros(write_rig(tmp_path, LIGHT), 0.3).hex()
    b = without_ros(write_rig(tmp_path, LIGHT, seed=6), 0.3).hex()
    assert all(a[topic] != b[topic] for topic in a)


@pytest.mark.parametrize('measured', [False, True])  # with camera, LiDAR and a shared link
def test_many_processes_are_equal_to_no_ros(
    tmp_path: Path, processes: Processes, measured: bool
) -> None:
    more = {'links': LINE} if measured else {}
    rig = write_rig(
        tmp_path,
        MEASURED if measured else LIGHT,
        lockstep_timeout_s=60.0,
        skip_unavailable=True,
        **more,
    )
    expected = without_ros(rig, SECONDS)
    with ros_context([]) as context:
        spinner = Spinner(context)
        recorder = Recorder(topics_of(rig))
        spinner.add(recorder)
        commands = {node.name: node.command() for node in planned_nodes(rig)}
        commands['world'] += ['-p', 'world.wait_for:=[recorder]']
        for command in commands.values():
            assert command[0] == sys.executable
            processes.start(*command)
        while any(
            len(recorder.heard[topic].messages) < count for topic, count in expected.counts.items()
        ):
            spinner.turn(0.05)
            assert all(process.exit_code is None for process in processes.started)
        assert cut(recorder, expected.counts) == expected.hex()
        processes.stop_all()
        spinner.close()
        close_node(recorder)


def test_bundles_are_equal_to_no_ros(tmp_path: Path) -> None:
    sync = {
        'reference_sensor_id': 'mag',
        'required_sensors': ['mag', 'imu'],
        'imu_sensor_id': 'imu',
        'inputs': {'encoder': {'deadline_s': 0.1}},
    }
    rig = write_rig(tmp_path, LIGHT, sync=sync)
    plain = InProcessRig(rig, arrays=False)
    expected = StreamDigests()
    for _ in range(round(SECONDS * 1e3)):
        plain.step()
        for bundle in plain.bundles:
            for output in plain.outputs(bundle):
                expected.add(output.topic, output.raw)
    assert min(expected.counts.values()) > 40
    with LockstepRun(
        rig,
        extra=[lambda: make_sync(rig), lambda: Bundles(expected.counts, plain)],
        wait_for=['sync'],
    ) as run:
        bundles = run.extra[1]
        assert isinstance(bundles, Bundles)
        run.until(lambda: bundles.complete)
        assert bundles.digests.hex() == expected.hex()


class Bundles(Recorder):
    """Records the first messages of each of the sync node's topics."""

    def __init__(self, counts: dict[str, int], plain: InProcessRig) -> None:
        assert plain.sync is not None
        topics = plain.sync.output_topics()
        self._counts = counts
        super().__init__({topic: topics[topic] for topic in counts}, name='bundles')

    def _on_message(self, topic: str, raw: bytes) -> None:
        if self.digests.counts.get(topic, 0) < self._counts[topic]:
            self.digests.add(topic, raw)

    @property
    def complete(self) -> bool:
        return self.digests.counts == self._counts
