"""Latency of single actuators: ranges per environment, jitter per command, interpolation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rig_common.errors import RigError
from rig_common.validation import validated
from sim_sensors.world.config.world import WorldConfig
from sim_sensors.world.world import make_world
from sim_sensors.world.world_base import WorldBase

ARM = """
<mujoco>
  <worldbody>
    <body name="arm"><joint name="shoulder" axis="0 1 0"/><geom size="0.1"/>
      <body pos="0 0 1"><joint name="elbow" axis="0 1 0"/><geom size="0.1"/></body></body>
  </worldbody>
  <actuator><motor name="lift" joint="shoulder"/><motor name="bend" joint="elbow"/></actuator>
</mujoco>
"""
DT_S = 0.001


def world_of(tmp_path: Path, num_envs: int = 1, seed: int = 3, **keys: Any) -> WorldBase:
    (tmp_path / 'arm.xml').write_text(ARM)
    config = validated(
        WorldConfig,
        {'model': str(tmp_path / 'arm.xml'), 'timestep_s': DT_S, 'num_envs': num_envs, **keys},
        'world',
    )
    return make_world(config, seed=seed)


def outputs(world: WorldBase, steps: int) -> np.ndarray:
    """Return [steps, num_envs, 2] what the actuators got of a command that counts the steps."""
    got = []
    for step in range(steps):
        world.command_all(np.full((world.num_envs, 2), float(step + 1)))
        world.step()
        got.append(np.array(world.bound('ctrl')))
    return np.array(got)


def steps_late(world: WorldBase, steps: int = 60) -> np.ndarray:
    """Return [num_envs, 2] by how many steps the newest command is late."""
    return steps - outputs(world, steps)[-1]


def test_every_environment_draws_its_own_latency(tmp_path: Path) -> None:
    keys = {'actuators': {'lift': {'delay_range_s': [0.005, 0.02]}}}
    late = steps_late(world_of(tmp_path, 40, **keys))
    assert late[:, 0].min() >= 5 and late[:, 0].max() <= 20 and len(set(late[:, 0])) > 5
    assert (late[:, 1] == 0).all(), 'only the named one is late'
    np.testing.assert_array_equal(late, steps_late(world_of(tmp_path, 40, **keys)))
    few = steps_late(world_of(tmp_path, 3, **keys))
    np.testing.assert_array_equal(few, late[:3])
    assert not np.array_equal(late, steps_late(world_of(tmp_path, 40, seed=4, **keys)))


def test_an_episode_draws_anew(tmp_path: Path) -> None:
    world = world_of(tmp_path, 20, actuators={'*': {'delay_range_s': [0.0, 0.03]}})
    first = steps_late(world)
    world.reset(np.arange(10))
    start = outputs(world, 1)
    assert (start[0, :10] <= 1.0).all(), 'a reset forgets what was on its way'
    second = 60 - outputs(world, 60)[-1]
    assert not np.array_equal(first[:10], second[:10])
    np.testing.assert_array_equal(first[10:], second[10:])


def test_jitter_lets_the_newest_command_hold_that_has_arrived(tmp_path: Path) -> None:
    world = world_of(
        tmp_path, 3, actuators={'lift': {'delay_range_s': [0.004, 0.004], 'jitter_s': 0.0035}}
    )
    late_ns = []
    got = []
    for step in range(80):
        world.command_all(np.full((3, 2), float(step + 1)))
        late_ns.append(world.actuation._latencies.jitter_ns(np.arange(2), step * 1_000_000)[:, 0])
        world.step()
        got.append(np.array(world.bound('ctrl'))[:, 0])
    arrival_ns = np.array(late_ns) + 1_000_000 * np.arange(80)[:, None] + 4_000_000
    for step in range(80):
        for env in range(3):
            here = np.flatnonzero(arrival_ns[:, env] <= step * 1_000_000)
            assert got[step][env] == (here.max() + 1 if len(here) else 0.0)
    assert len(np.unique(80 - np.array(got)[20:], axis=0)) > 5


@pytest.mark.parametrize('way', ['linear', 'cubic'])
def test_each_actuator_is_interpolated_as_it_says(tmp_path: Path, way: str) -> None:
    keys = {'delay_range_s': [0.0025, 0.0025]}
    world = world_of(tmp_path, actuators={'lift': {**keys, 'interpolation': way}, 'bend': keys})
    got = outputs(world, 30)[-1, 0]
    assert got[0] == pytest.approx(27.5) and got[1] == 27.0


def test_joints_patterns_and_added_actuators_are_named(tmp_path: Path) -> None:
    world = world_of(
        tmp_path,
        actuators={
            'elbow': {'delay_range_s': [0.003, 0.003]},
            'extra': {'joint': 'shoulder', 'type': 'motor', 'delay_range_s': [0.006, 0.006]},
        },
    )
    world.command_all(np.zeros((1, 3)))
    assert world.actuation._latencies.high_s.tolist() == [0.006, 0.003, 0.006]


@pytest.mark.parametrize(
    ('actuators', 'text'),
    [
        (
            {'lft': {'delay_range_s': [0.0, 0.1]}},
            r"world.actuators.lft is 'lft'.*did you mean 'lift'",
        ),
        ({'lift': {'delay_range_s': [0.2, 0.1]}}, 'the first must not be larger'),
        ({'lift': {'kp': 3.0}}, 'kp is given without a joint'),
        ({'lift': {'jitter_s': 0.01, 'interpolation': 'linear'}}, 'only zoh'),
    ],
)
def test_mistakes_are_named(tmp_path: Path, actuators: dict[str, Any], text: str) -> None:
    with pytest.raises(RigError, match=text):
        world_of(tmp_path, actuators=actuators)
