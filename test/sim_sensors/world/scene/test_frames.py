"""The tree of frames: one parent each, all reached from the world, all where MuJoCo has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.sensor_run import make_sensor

from rig_common.errors import RigError
from sensor_rig.rigfile import load_rig
from sim_sensors.interface.sensor import Sensor, frame_pose
from sim_sensors.world.config.world import WorldConfig
from sim_sensors.world.scene.frames import WORLD_FRAME, Base, FrameTree, PlacedFrame
from sim_sensors.world.scene.pose_messages import frame_tree
from sim_sensors.world.world import make_world

SCENE = """
<mujoco>
  <worldbody>
    <body name="pole" pos="3 1 0" euler="0 0 40"><geom size="0.1"/>
      <body name="bracket" pos="0 0 2" euler="0 30 0"><geom size="0.1"/></body></body>
    <body name="target" mocap="true" pos="0 4 0"><geom size="0.1"/></body>
    <body name="base" pos="0 0 1"><freejoint/><geom size="0.2"/>
      <body pos="0.3 0 0.1" euler="20 0 0"><joint axis="0 1 0"/><geom size="0.1"/>
        <body name="hand" pos="0.5 0.1 0"><joint axis="0 0 1"/><geom size="0.1"/></body></body>
      <body name="mast" pos="-0.2 0 0.4" euler="0 0 90"><geom size="0.1"/></body>
      <body name="idle" pos="0 0.3 0"><joint axis="0 1 0"/><geom size="0.1"/></body></body>
  </worldbody>
</mujoco>
"""
PLACE = {'pos_m': [0.1, -0.2, 0.3], 'rpy_rad': [0.4, -0.5, 0.6]}
PARENTS = {
    'on_world': 'world',
    'on_bracket': 'bracket',
    'bracket': 'pole',
    'pole': 'world',
    'on_target': 'target',
    'target': 'world',
    'on_base': 'base',
    'base': 'odom',
    'odom': 'map',
    'map': 'world',
    'on_hand_optical': 'hand',
    'hand': 'base',
    'on_mast': 'mast',
    'mast': 'base',
}
STILL = {
    'on_world',
    'on_bracket',
    'bracket',
    'pole',
    'on_target',
    'on_base',
    'on_hand_optical',
    'on_mast',
    'mast',
    'odom',
    'map',
}


def sensor(name: str, body: str, kind: str = 'range', **keys: Any) -> Sensor[Any]:
    return make_sensor(name, type=kind, **{'mount': {'body': body, **PLACE}, **keys})


def compiled(sensors: Iterable[Sensor[Any]]) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return the scene with the sensors on it, in a pose that no symmetry helps."""
    spec = mujoco.MjSpec.from_string(SCENE)
    for each in sensors:
        each.mount(spec)
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[:] = np.random.default_rng(3).normal(size=model.nq)
    data.mocap_pos[:], data.mocap_quat[:] = (1.0, 2.0, 3.0), (0.5, 0.5, -0.5, 0.5)
    mujoco.mj_forward(model, data)
    return model, data


def tree_of(model: mujoco.MjModel, sensors: Sequence[Sensor[Any]], **world: Any) -> FrameTree:
    """Return the frames of the scene, whose robot is the free body."""
    base = Base(model.body('base').id, is_mobile=True)
    return FrameTree(model, sensors, WorldConfig(model='scene.xml', **world), base)


def in_world(placed: Iterable[PlacedFrame], frame: str) -> tuple[np.ndarray, Rotation]:
    """Follow the parents of `frame` up to the world, as tf2 does."""
    parents = {each.child: each for each in placed}
    pos, turn = np.zeros(3), Rotation.identity()
    for _ in range(len(parents)):
        if frame == WORLD_FRAME:
            break
        link = parents[frame]
        own = Rotation.from_quat(np.roll(link.quat_wxyz, -1))
        pos, turn, frame = own.apply(pos) + link.pos_m, own * turn, link.parent
    assert frame == WORLD_FRAME
    return pos, turn


def test_every_frame_is_where_mujoco_has_its_site() -> None:
    sensors = [
        sensor('on_hand', 'hand', 'camera'),
        *(sensor(f'on_{body}', body) for body in ('world', 'bracket', 'target', 'base', 'mast')),
    ]
    model, data = compiled(sensors)
    tree = tree_of(model, sensors)
    tree.begin(data)
    fixed, moving = tree.fixed(), tree.moving(data)
    assert {each.child: each.parent for each in [*fixed, *moving]} == PARENTS
    assert len(fixed) + len(moving) == len(PARENTS)
    assert {each.child for each in fixed} == STILL
    for each in sensors:
        pos, turn = in_world([*fixed, *moving], each.frame_id)
        site = data.site(each.name)
        mount = Rotation.from_matrix(site.xmat.reshape(3, 3))
        expected = mount * Rotation.from_quat(np.roll(each.frame_quat_wxyz, -1))
        np.testing.assert_allclose(pos, site.xpos, atol=1e-12)
        assert (expected.inv() * turn).magnitude() < 1e-9, each.name
    assert not tree.conflicts


def test_a_sensor_on_a_body_without_a_name_hangs_on_the_next_one_that_has_one() -> None:
    spec = mujoco.MjSpec.from_string(SCENE)
    nameless = spec.body('hand').parent
    nameless.add_site(name='elbow', pos=PLACE['pos_m'])
    elbow = make_sensor('elbow', type='range', mount={'site': 'elbow'})
    elbow.mount(spec)
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[:] = np.random.default_rng(4).normal(size=model.nq)
    mujoco.mj_forward(model, data)
    tree = tree_of(model, [elbow])
    tree.begin(data)
    found = {each.child: each.parent for each in tree.moving(data)}
    assert found == {'elbow': 'base', 'base': 'odom', 'target': 'world'}
    pos, _ = in_world([*tree.fixed(), *tree.moving(data)], 'elbow')
    np.testing.assert_allclose(pos, data.site('elbow').xpos, atol=1e-12)


def test_the_frame_of_a_levelled_scanner_does_not_turn() -> None:
    level = sensor('level', 'hand', 'lidar2d', ray_frame='world', num_rays=4)
    model, data = compiled([level])
    found = {each.child: each for each in tree_of(model, [level]).moving(data)}['level']
    assert found.parent == WORLD_FRAME
    assert found.quat_wxyz == (1.0, 0.0, 0.0, 0.0)
    np.testing.assert_allclose(found.pos_m, data.site('level').xpos, atol=1e-12)


def test_a_frame_has_one_parent_whoever_names_it() -> None:
    same = {'mount': {'body': 'base'}}
    sensors = [
        sensor('rgb', 'base', frame_id='eye'),
        sensor('depth', 'base', frame_id='eye'),
        sensor('a', 'base', **same, frame_id='base'),
        sensor('far', 'hand', frame_id='eye'),
        sensor('b', 'hand', frame_id='mast'),
        sensor('c', 'base', frame_id='world'),
        make_sensor('nothing', type='clock_pps'),
    ]
    model, data = compiled(sensors)
    tree = tree_of(model, sensors, publish_tf=False)
    children = [each.child for each in [*tree.fixed(), *tree.moving(data)]]
    assert sorted(children) == ['eye', 'hand', 'mast', 'target']
    assert [each.split("'")[1] for each in tree.conflicts] == ['far', 'b', 'c']


def test_odometry_counts_from_the_start_of_an_episode_and_the_map_is_the_world() -> None:
    sensors = [
        sensor('wheels', 'base', 'wheel_odometry'),
        sensor('tracker', 'base', 'pose'),
        sensor('gnss', 'base', 'gnss', enu_frame_id='enu', datum={'yaw_rad': 0.3}),
    ]
    model, data = compiled(sensors)
    tree = tree_of(model, sensors)
    tree.begin(data)
    start, mount = data.site('wheels').xpos.copy(), data.site('wheels').xmat.reshape(3, 3).copy()
    data.qpos[:3] += 5.0
    mujoco.mj_forward(model, data)
    fixed = tree.fixed()
    pos, turn = in_world(fixed, 'odom')
    np.testing.assert_allclose(pos, start, atol=1e-12)
    ahead = turn.apply([1.0, 0.0, 0.0])
    assert turn.apply([0.0, 0.0, 1.0]).tolist() == pytest.approx([0.0, 0.0, 1.0])
    assert np.arctan2(ahead[1], ahead[0]) == pytest.approx(np.arctan2(mount[1, 0], mount[0, 0]))
    assert in_world(fixed, 'map')[1].magnitude() == 0.0
    east = in_world(fixed, 'enu')[1].apply([1.0, 0.0, 0.0])
    assert east.tolist() == pytest.approx([np.cos(0.3), -np.sin(0.3), 0.0])
    hidden = tree_of(model, sensors, hide_truth=True)
    hidden.begin(data)
    assert not {'map', 'enu', 'odom'} & {each.child for each in hidden.fixed()}


def test_two_origins_of_one_name_at_two_places_are_told() -> None:
    sensors = [
        sensor('tracker', 'base', 'pose'),
        sensor('gnss', 'base', 'gnss', datum={'yaw_rad': 0.3}),
    ]
    model, _ = compiled(sensors)
    (conflict,) = tree_of(model, sensors).conflicts
    assert conflict.startswith("sensor 'gnss': its frame 'map' is already somewhere else")


def robot(**wheels: Any) -> list[Sensor[Any]]:
    return [make_sensor('wheels', type='wheel_odometry', mount={'body': 'base'}, **wheels)]


@pytest.mark.parametrize(
    ('wheels', 'world', 'told', 'odom'),
    [
        ({}, {}, {'base'}, True),
        ({'frame_id': 'base', 'publish_tf': True}, {}, set(), True),
        ({}, {'publish_tf': False}, set(), False),
        ({'frame_id': 'base', 'publish_tf': True}, {'publish_tf': False}, set(), False),
        ({}, {'true_base_frame': 'really'}, {'base', 'really'}, True),
        ({}, {'true_base_frame': 'really', 'publish_tf': False}, {'really'}, False),
    ],
)
def test_one_publisher_places_the_base(
    wheels: dict[str, Any], world: dict[str, Any], told: set[str], odom: bool
) -> None:
    sensors = robot(**wheels)
    model, data = compiled(sensors)
    tree = tree_of(model, sensors, **world)
    tree.begin(data)
    data.qpos[:3] += 5.0
    mujoco.mj_forward(model, data)
    moving = {each.child: each for each in tree.moving(data)}
    assert moving.keys() & {'base', 'really'} == told
    assert ('odom' in {each.child for each in tree.fixed()}) == odom
    for frame in told:
        pos, turn = in_world([*tree.fixed(), *moving.values()], frame)
        np.testing.assert_allclose(pos, data.body('base').xpos, atol=1e-12)
        expected = Rotation.from_matrix(data.body('base').xmat.reshape(3, 3))
        assert (expected.inv() * turn).magnitude() < 1e-9
    assert all(link.parent != 'world' for link in moving.values() if link.child == 'base')


def test_odometry_places_no_frame_but_the_base() -> None:
    sensors = robot(publish_tf=True)
    model, _ = compiled(sensors)
    with pytest.raises(RigError, match=r"publish_tf places .* the base's, 'trunk'"):
        tree_of(model, sensors, base_frame='trunk')


def test_a_prefix_is_in_front_of_every_frame() -> None:
    rig = load_rig('demo').with_world(frame_prefix='r1/', true_base_frame='really')
    simulation = rig.simulation.in_namespace('ignored')
    sensors = list(simulation.make_sensors().values())
    world = make_world(simulation.world, sensors, rig.path.parent)
    world.step()
    tree = frame_tree(world, sensors)
    tree.begin(world.data(0))
    placed = [*tree.fixed(), *tree.moving(world.data(0))]
    assert {'r1/world', 'r1/map', 'r1/odom', 'r1/really'} <= {each.child for each in placed} | {
        each.parent for each in placed
    }
    names = [name for each in placed for name in (each.parent, each.child)]
    assert all(name.startswith('r1/') and name.count('r1/') == 1 for name in names), names
    assert {each.frame_id for each in sensors} <= {*names, 'r1/base_link'}


@pytest.mark.parametrize(
    ('key', 'namespace', 'frame'),
    [
        ('', '/', 'base_link'),
        ('', '/robot1', 'robot1/base_link'),
        ('', '/fleet/robot1/', 'fleet/robot1/base_link'),
        ('r1_', '/robot1', 'r1_base_link'),
        ('/', '/robot1', 'base_link'),
    ],
)
def test_frames_begin_with_the_namespace_or_what_the_rig_says(
    key: str, namespace: str, frame: str
) -> None:
    simulation = load_rig('demo').with_world(frame_prefix=key).simulation.in_namespace(namespace)
    assert simulation.make_sensors()['wheels'].frame_id == frame


@pytest.mark.parametrize('name', ['demo', 'everything'])
def test_every_sensor_with_a_place_is_reached_in_the_shipped_rigs(name: str) -> None:
    rig = load_rig(name)
    sensors = list(rig.make_sensors().values())
    world = make_world(rig.simulated_world, sensors, rig.path.parent)
    world.step()
    tree = frame_tree(world, sensors)
    tree.begin(world.data(0))
    placed = [*tree.fixed(), *tree.moving(world.data(0))]
    assert 'base_link' not in {each.child for each in placed}
    placed.append(PlacedFrame('odom', 'base_link', [0.0] * 3, (1.0, 0.0, 0.0, 0.0)))
    assert len({each.child for each in placed}) == len(placed)
    assert not tree.conflicts
    for each in sensors:
        if frame_pose(world.model, each) is not None:
            in_world(placed, each.frame_id)
        origin = each.origin()
        if origin is not None:
            in_world(placed, origin.frame_id)
