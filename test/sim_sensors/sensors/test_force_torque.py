"""Wrenches against statics, and what a strain-gauge cell adds against its formulas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.sensor_run import decode, feed, make_sensor, run

from rig_common.errors import RigError
from sim_sensors.timing.arrays.layout import Array

G = 9.81
BENCH = """
<mujoco>
  <worldbody>
    <geom type="plane" size="5 5 0.1"/>
    <body name="base" pos="2 0 1">
      <body name="tool" pos="0 0 0" euler="0 0 20">
        <geom name="stick" type="box" size="0.15 0.02 0.02" pos="0.15 0 0" mass="0.5"/>
        <geom name="load" type="sphere" size="0.03" pos="0.3 0 0" mass="1.5"/>
      </body>
    </body>
    <body name="crate" pos="0 0 0.1"><freejoint/>
      <geom type="box" size="0.1 0.1 0.1" mass="2"/></body>
  </worldbody>
</mujoco>
"""
EXACT: dict[str, Any] = {'noise': 0.0, 'torque_noise_nm': 0.0, 'rate_hz': 100.0}
RPY = [0.4, -0.3, 0.9]


def test_a_wrist_carries_the_weight_on_its_lever(tmp_path: Path) -> None:
    keys = {
        'type': 'force_torque',
        'mount': {'body': 'tool', 'pos_m': [0.05, 0.0, 0.0], 'rpy_rad': RPY},
        **EXACT,
    }
    done = run(tmp_path, BENCH, {'ft': keys}, 0.05)
    turn = Rotation.from_euler('z', 20, degrees=True) * Rotation.from_euler('xyz', RPY)
    weights = {0.15: 0.5, 0.3: 1.5}  # lever along the tool, mass
    axis = Rotation.from_euler('z', 20, degrees=True).apply([1.0, 0.0, 0.0])
    force = np.array([0.0, 0.0, 2.0 * G])
    torque = sum(
        np.cross((lever - 0.05) * axis, [0.0, 0.0, mass * G]) for lever, mass in weights.items()
    )
    np.testing.assert_allclose(done.values('ft', 'force')[-1], turn.inv().apply(force), atol=1e-6)
    np.testing.assert_allclose(
        done.values('ft', 'torque')[-1], turn.inv().apply(torque), atol=1e-6
    )
    message = decode('geometry_msgs/msg/WrenchStamped', done.messages('ft')[-1]['wrench'])
    assert message.wrench.force.z == done.values('ft', 'force')[-1, 2]


def test_contact_force_carries_the_crate_about_the_mount(tmp_path: Path) -> None:
    place = np.array([0.08, -0.02, 0.03])
    keys = {
        'type': 'contact_force',
        'mount': {'body': 'crate', 'pos_m': place.tolist(), 'rpy_rad': RPY},
        **EXACT,
    }
    done = run(tmp_path, BENCH, {'cf': keys}, 2.0)
    turn = Rotation.from_euler('xyz', RPY)
    force = np.array([0.0, 0.0, 2.0 * G])
    np.testing.assert_allclose(done.values('cf', 'force')[-1], turn.inv().apply(force), atol=0.02)
    # in equilibrium the contacts act through the centre of mass
    torque = np.cross(-place, force)
    np.testing.assert_allclose(
        done.values('cf', 'torque')[-1], turn.inv().apply(torque), atol=2e-3
    )


def test_a_sensor_that_nothing_carries_is_refused(tmp_path: Path) -> None:
    for body, sentence in (('world', 'is attached to nothing'), ('crate', 'floats')):
        with pytest.raises(RigError, match=sentence):
            run(tmp_path, BENCH, {'ft': {'type': 'force_torque', 'mount': {'body': body}}}, 0.0)


# ---- the cell -----------------------------------------------------------------------------------


def cell(**keys: Any) -> Any:
    return make_sensor('ft', **{'type': 'force_torque', **EXACT, **keys})


def through(rows: Array, **keys: Any) -> Array:
    return feed(cell(**keys), np.asarray(rows, float), period_s=0.01)[:, 0]


def test_range_and_deadband() -> None:
    rows = np.array([[50.0, -50.0, 0.3, 4.0, -4.0, 0.01]])
    out = through(
        rows,
        force_range_n=40.0,
        torque_range_nm=3.0,
        force_deadband_n=0.5,
        torque_deadband_nm=0.02,
    )
    np.testing.assert_array_equal(out, [[40.0, -40.0, 0.0, 3.0, -3.0, 0.0]])


def test_cross_talk_in_units_of_the_ranges() -> None:
    rows = np.diag([100.0, 100.0, 100.0, 5.0, 5.0, 5.0])
    out = through(rows, cross_talk=0.02, force_range_n=200.0, torque_range_nm=10.0)
    relative = out / [200.0, 200.0, 200.0, 10.0, 10.0, 10.0]
    np.testing.assert_allclose(relative, 0.5 * (0.02 + 0.98 * np.eye(6)))


def test_low_pass_follows_a_step_exponentially() -> None:
    rows = np.zeros((40, 6))
    rows[5:, 2] = 10.0
    out = through(rows, bandwidth_hz=4.0)[:, 2]
    time_s = (np.arange(40) - 4) * 0.01
    expected = np.where(time_s > 0.0, 10.0 * (1.0 - np.exp(-2 * np.pi * 4.0 * time_s)), 0.0)
    np.testing.assert_allclose(out, expected, atol=1e-9)


def test_overload_leaves_a_bias_for_good() -> None:
    rows = np.zeros((6, 6))
    rows[1, 0], rows[3, 0], rows[3, 1] = 300.0, -150.0, 90.0
    out = through(rows, overload_n=100.0, overload_bias=0.1)
    np.testing.assert_allclose(out[:, 0], [0.0, 320.0, 20.0, -130.0, 20.0, 20.0])
    np.testing.assert_allclose(out[:, 1], [0.0, 0.0, 0.0, 90.0, 0.0, 0.0])


def test_an_impact_between_two_captures_is_an_overload_too(tmp_path: Path) -> None:
    keys = {
        'type': 'contact_force',
        'mount': {'body': 'crate'},
        **EXACT,
        'rate_hz': 2.0,
        'overload_n': 40.0,
        'overload_bias': 0.5,
    }
    dropped = BENCH.replace('pos="0 0 0.1"><freejoint', 'pos="0 0 0.3"><freejoint')
    done = run(tmp_path, dropped, {'cf': keys}, 2.0)
    assert np.abs(done.truth('cf', 'force')).max() < 40.0, 'no capture sees the impact'
    left = done.values('cf', 'force')[-1] - done.truth('cf', 'force')[-1]
    assert left[2] > 10.0


def test_noise_of_forces_and_torques() -> None:
    out = through(np.zeros((3000, 6)), noise=0.5, torque_noise_nm=0.02)
    np.testing.assert_allclose(out.std(axis=0), [0.5] * 3 + [0.02] * 3, rtol=0.06)
