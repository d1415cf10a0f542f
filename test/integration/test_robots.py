"""The rigs that ship for robots: each keeps its pose, and its offsets converge to the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.rendering import needs_renderer

from sensor_rig.inprocess import InProcessRig
from sensor_rig.rigfile import RigConfig, load_rig

UPRIGHT = {'quadruped': ('trunk', 0.32, 0.03), 'drone': ('drone', 1.15, 0.5)}
"""Body that must stay upright, its height, and how far it may be from that, m."""
WITHIN_MS = {
    'quadruped': {'lidar': 3.0, 'head_camera': 5.0},
    'arm': {'tracker': 2.0, 'wrist_force': 2.0, 'hand_camera': 8.0},
    'drone': {'tracker': 3.0, 'camera': 5.0},
    'hand': {'index_imu': 0.5, 'middle_imu': 0.5, 'ring_imu': 0.5, 'thumb_imu': 0.5},
}
"""How far each offset to the IMU may be off after `SETTLED_S`, ms."""
SETTLED_S = 15.0
SEEING = ('camera', 'depth_camera')


def without(rig: RigConfig, kinds: tuple[str, ...]) -> RigConfig:
    """Return a rig without the sensors of some types, and without sync."""
    kept = {name: each for name, each in rig.sensors.items() if each.type not in kinds}
    return replace(rig, sensors=kept, sync=None)


@pytest.mark.parametrize('name', list(WITHIN_MS))
def test_it_keeps_its_pose_while_it_moves(name):
    rig = InProcessRig(without(load_rig(name), SEEING), messages=False, arrays=False)
    world = rig.world
    gyro = []
    for tick in range(4000):
        rig.step()
        if tick % 20 == 0:
            gyro.append(world.sensordata[0].copy())
        if tick % 500 == 0 and name in UPRIGHT:
            body, height_m, room_m = UPRIGHT[name]
            index = world.model.body(body).id
            assert world.bound('xmat')[0, index][8] > 0.85
            assert world.bound('xpos')[0, index, 2] == pytest.approx(height_m, abs=room_m)
    assert np.std(np.array(gyro)[100:], axis=0).max() > 0.05  # it does move
    servo = world.actuation.servo
    if servo is not None:  # and stays near what it is told
        lengths = world.bound('actuator_length')[0, servo.chosen]
        assert np.abs(lengths - world.actuation.lengths[0]).max() < 0.25


def errors_ms(rig: InProcessRig) -> dict[str, float]:
    """Return by how much each estimated offset to the IMU is off, ms."""
    config, now_s = rig.config, rig.elapsed_ns / 1e9
    imu = config.sync.imu_sensor_id

    def clock_s(name: str) -> float:
        clock = config.sensors[name].clock
        return clock.offset_s + clock.drift_ppm * 1e-6 * now_s

    return {
        name: 1e3
        * (rig.sync.engine.offset(name, imu).offset_ns * 1e-9 - clock_s(name) + clock_s(imu))
        for name in config.sync.inputs
        if name != imu
    }


def test_the_offsets_of_fingertips_converge():
    config = load_rig('hand')
    kept = {name: each for name, each in config.sensors.items() if each.type == 'imu'}
    rig = InProcessRig(replace(config, sensors=kept), arrays=False)
    for _ in range(9_000):
        rig.step()
    errors = errors_ms(rig)
    assert max(map(abs, errors.values())) < 1.0, errors


@pytest.mark.long
@needs_renderer
@pytest.mark.parametrize('name', list(WITHIN_MS))
def test_the_offsets_of_a_robot_converge(name):
    rig = InProcessRig(load_rig(name), arrays=False)
    for _ in range(int(SETTLED_S * 1000)):
        rig.step()
    errors = errors_ms(rig)
    assert {each: abs(errors[each]) < limit for each, limit in WITHIN_MS[name].items()} == (
        dict.fromkeys(WITHIN_MS[name], True)
    ), errors
