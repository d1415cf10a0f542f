"""LiDARs against answers worked out apart: analytic walls, and mj_ray from known poses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from support.ray_scenes import needs_embree
from support.sensor_run import decode, feed, make_sensor
from support.start import START_NS

from rig_common.errors import RigError
from sensor_rig.rigfile import rig_from_parameters
from sim_sensors.outbox import Message
from sim_sensors.rig import Rig
from sim_sensors.sensors.lidar.cloud import POINT
from sim_sensors.world.config.world import WorldConfig

EMBREE = pytest.param('embree', marks=needs_embree)
SPEED, TURN = 2.0, 1.5

ROOM = f"""
<mujoco>
  <option gravity="0 0 0" integrator="implicitfast"/>
  <custom><tuple name="reflectivity">
    <element objtype="material" objname="chalk" prm="0.9"/>
    <element objtype="material" objname="tar" prm="0.05"/>
  </tuple></custom>
  <asset><material name="chalk"/><material name="tar"/></asset>
  <worldbody>
    <geom name="east" type="box" size=".5 20 5" pos="10.5 0 0" material="chalk"/>
    <geom name="west" type="box" size=".5 20 5" pos="-10.5 0 0" material="tar"/>
    <geom name="north" type="box" size="20 .5 5" pos="0 8.5 0" material="chalk"/>
    <geom name="south" type="box" size="20 .5 5" pos="0 -8.5 0"/>
    <geom name="pillar" type="cylinder" size=".4 3" pos="4 3 0"/>
    <body name="cart">
      <joint name="along" type="slide" axis="1 0 0"/>
      <joint name="turn" type="hinge" axis="0 0 1"/>
      <geom name="hull" type="sphere" size=".3" mass="1"/>
    </body>
    <body name="ball" pos="0 -4 0">
      <joint name="roll" type="slide" axis="1 0 0"/>
      <geom name="ball" type="sphere" size=".5" mass="1"/>
    </body>
  </worldbody>
  <keyframe>
    <key name="still" qvel="0 0 0"/>
    <key name="moving" qvel="{SPEED} {TURN} 0"/>
    <key name="rolling" qvel="0 0 3"/>
  </keyframe>
</mujoco>
"""
CLEAN = {'noise': 0.0, 'optics': {'weak_signal_noise': 0.0}}
ON_CART = {'body': 'cart', 'pos_m': [0.2, 0.0, 0.1]}


@pytest.fixture
def room(tmp_path: Path) -> Any:
    file = tmp_path / 'room.xml'
    file.write_text(ROOM)

    def build(keyframe: str = 'still', num_envs: int = 1, **sensors: Any) -> Rig:
        made = [
            make_sensor(name, **{'mount': ON_CART, **CLEAN, **keys})
            for name, keys in sensors.items()
        ]
        world = WorldConfig(model=str(file), keyframe=keyframe, num_envs=num_envs)
        return Rig(world, made, seed=3, messages=True)

    return build


def first(rig: Rig, name: str = 's', seconds: float = 0.25) -> Message:
    return next(message for message in rig.run(seconds) if message.sample.sensor == name)


def ranges_of(rig: Rig, message: Message) -> Any:
    sensor = rig.sensors[message.sample.sensor]
    return sensor.return_layout.view(message.sample.values, 'ranges')


def cast_from(positions: Any, yaws: Any, directions: Any) -> Any:
    """Return [n] ranges by `mj_ray` from cart poses [n, 2] and [n], without the cart itself."""
    model = mujoco.MjModel.from_xml_string(ROOM)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    cart, geom = model.body('cart').id, np.zeros(1, np.int32)
    found = []
    for position, yaw, direction in zip(positions, yaws, directions, strict=True):
        cos, sin = np.cos(yaw), np.sin(yaw)
        turn = np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])
        origin = np.array([*position, 0.0]) + turn @ ON_CART['pos_m']
        found.append(
            mujoco.mj_ray(model, data, origin, turn @ direction, None, 1, cart, geom, None)
        )
    return np.where(np.array(found) < 0.0, np.inf, found)


# ---- what a scan says ---------------------------------------------------------------------------


@pytest.mark.parametrize('backend', ['mujoco', EMBREE, 'auto'])
def test_a_still_scanner_measures_the_room(room: Any, backend: str) -> None:
    rig = room(s={'type': 'lidar2d', 'backend': backend, 'num_rays': 720})
    message = first(rig)
    angles = np.arange(720) * np.deg2rad(0.5)
    rays = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    expected = cast_from(np.zeros((720, 2)), np.zeros(720), rays)
    np.testing.assert_allclose(ranges_of(rig, message), expected, atol=1e-4)
    assert expected[0] == pytest.approx(9.8)


def test_laser_scan_fields_are_true(room: Any) -> None:
    rig = room(
        'moving',
        s={
            'type': 'lidar2d',
            'num_rays': 5,
            'fov_deg': 180.0,
            'rate_hz': 20.0,
            'start_angle_deg': 90.0,
            'clockwise': True,
            'sweep_s': 0.04,
        },
    )
    messages = [each for each in rig.run(0.2) if each.sample.sensor == 's']
    scan = decode('sensor_msgs/msg/LaserScan', messages[1].data)
    assert messages[1].topic == 's/scan'
    assert scan.header.frame_id == 's'
    assert scan.angle_min == pytest.approx(np.pi / 2)
    assert scan.angle_max == pytest.approx(-np.pi / 2)
    assert scan.angle_increment == pytest.approx(-np.pi / 4)
    assert scan.time_increment == pytest.approx(0.04 / 8)  # an eighth of a turn
    assert scan.scan_time == pytest.approx(0.05)
    assert (scan.range_min, scan.range_max) == (pytest.approx(0.1), 30.0)
    assert len(scan.ranges) == len(scan.intensities) == 5
    # stamped at the first ray, there after the last
    assert messages[1].stamp_ns == messages[1].sample.capture_ns == START_NS + 50_000_000
    assert messages[1].arrival_ns == START_NS + 50_000_000 + 20_000_000


def test_rep_117(room: Any) -> None:
    rig = room(s={'type': 'lidar2d', 'num_rays': 4, 'min_range_m': 8.3, 'max_range_m': 9.9})
    # 9.8 ahead, 8 to the left: too close, 10.2 behind: no return, 3.6 to the right: too close
    assert ranges_of(rig, first(rig)).tolist() == [pytest.approx(9.8), -np.inf, np.inf, -np.inf]


def test_own_body_and_chosen_bodies_are_invisible(room: Any) -> None:
    right = {
        'type': 'lidar2d',
        'num_rays': 1,
        'start_angle_deg': -90.0,
        'mount': {'body': 'cart'},
        'min_range_m': 0.0,
    }
    rig = room(
        seen=right,
        own=right | {'exclude_own_body': False},
        chosen=right | {'exclude_bodies': ['ball']},
    )
    for name, expected in (('seen', 3.5), ('own', 0.3), ('chosen', 8.0)):
        assert ranges_of(rig, first(rig, name))[0] == pytest.approx(expected), name
        rig.reset()


def test_height_and_rays_that_keep_their_direction_in_the_world(room: Any) -> None:
    turned = {'body': 'cart', 'pos_m': [0.0, 0.0, 0.0], 'rpy_rad': [0.0, 0.3, 0.7]}
    rig = room(
        level={'type': 'lidar2d', 'num_rays': 4, 'ray_frame': 'world', 'mount': turned},
        tilted={'type': 'lidar2d', 'num_rays': 4, 'mount': turned},
        high={'type': 'lidar2d', 'num_rays': 4, 'z_height_m': 4.0},
    )
    level = ranges_of(rig, first(rig, 'level'))
    np.testing.assert_allclose(level, [10.0, 8.0, 10.0, 3.5], atol=1e-5)
    rig.reset()
    assert np.abs(ranges_of(rig, first(rig, 'tilted')) - level).max() > 0.1
    rig.reset()
    high = ranges_of(rig, first(rig, 'high'))  # over the ball, so the wall is seen
    np.testing.assert_allclose(high, [9.8, 8.0, 10.2, 8.0], atol=1e-5)


# ---- motion -------------------------------------------------------------------------------------


@pytest.mark.parametrize('backend', ['mujoco', EMBREE])
def test_each_ray_is_cast_from_where_the_sensor_was_when_it_fired(room: Any, backend: str) -> None:
    rig = room('moving', s={'type': 'lidar2d', 'num_rays': 500, 'backend': backend})
    second = [each for each in rig.run(0.35) if each.sample.sensor == 's'][1]
    sensor = rig.sensors['s']
    times = (second.sample.capture_ns - START_NS) / 1e9 + sensor.time_offsets_s
    assert times[0] == 0.1
    assert times[-1] == pytest.approx(0.1998)
    position = np.stack([SPEED * times, 0 * times], axis=1)
    expected = cast_from(position, TURN * times, sensor.pattern.directions[0])
    error = np.abs(ranges_of(rig, second) - expected)
    # mj_multiRay casts runs of neighbouring rays from one origin, within a millimetre
    assert np.quantile(error, 0.98) < (1e-5 if backend == 'embree' else 3e-3)
    frozen = cast_from(
        np.tile(position[0], (500, 1)), np.full(500, TURN * times[0]), sensor.pattern.directions[0]
    )
    assert np.abs(ranges_of(rig, second) - frozen).max() > 0.15


def test_the_switch_gives_an_undistorted_scan(room: Any) -> None:
    rig = room('moving', s={'type': 'lidar2d', 'num_rays': 360, 'motion_distortion': False})
    second = [each for each in rig.run(0.35) if each.sample.sensor == 's'][1]
    frozen = cast_from(
        np.tile([SPEED * 0.1, 0.0], (360, 1)),
        np.full(360, TURN * 0.1),
        rig.sensors['s'].pattern.directions[0],
    )
    np.testing.assert_allclose(ranges_of(rig, second), frozen, atol=2e-4)
    assert second.arrival_ns == second.stamp_ns
    assert decode('sensor_msgs/msg/LaserScan', second.data).time_increment == 0.0


@needs_embree
def test_points_put_back_by_their_times_lie_on_the_walls(room: Any) -> None:
    rig = room('moving', s={'type': 'lidar3d', 'columns': 400, 'backend': 'embree'})
    second = [each for each in rig.run(0.35) if each.sample.sensor == 's'][1]
    cloud = decode('sensor_msgs/msg/PointCloud2', second.data)
    points = np.frombuffer(
        bytes(cloud.data),
        np.dtype(
            {
                'names': [each.name for each in cloud.fields],
                'formats': [{7: '<f4', 4: '<u2'}[each.datatype] for each in cloud.fields],
                'offsets': [each.offset for each in cloud.fields],
                'itemsize': cloud.point_step,
            }
        ),
    )
    assert [each.name for each in cloud.fields] == ['x', 'y', 'z', 'intensity', 'time', 'ring']
    times = (second.stamp_ns - START_NS) / 1e9 + points['time'].astype(float)
    cos, sin = np.cos(TURN * times), np.sin(TURN * times)
    x, y = points['x'] + 0.2, points['y']
    world = np.stack([SPEED * times + cos * x - sin * y, sin * x + cos * y], axis=1)
    to_walls = np.min(
        [
            np.abs(world[:, 0] - 10),
            np.abs(world[:, 0] + 10),
            np.abs(world[:, 1] - 8),
            np.abs(world[:, 1] + 8),
        ],
        axis=0,
    )
    to_round = np.minimum(
        np.abs(np.hypot(world[:, 0] - 4, world[:, 1] - 3) - 0.4),
        np.abs(
            np.sqrt(world[:, 0] ** 2 + (world[:, 1] + 4) ** 2 + (points['z'] + 0.1) ** 2) - 0.5
        ),
    )
    miss = np.minimum(to_walls, to_round)
    assert np.quantile(miss, 0.99) < 1e-4
    skewed = np.abs(points['x'] + 0.2 + SPEED * 0.1 - 10)[np.abs(points['y']) < 1]
    assert skewed.min() > 0.01  # without their times they would not


def test_other_bodies_move_during_a_sweep(room: Any) -> None:
    keys = {
        'type': 'lidar2d',
        'num_rays': 3600,
        'mount': {'body': 'world'},
        'segments': 50,
        'exclude_bodies': ['cart'],
    }
    rig = room('rolling', s=keys, frozen=keys | {'motion_distortion': False})
    for name, when in (('s', 0.075), ('frozen', 0.0)):
        rig.reset()
        ranges = ranges_of(rig, first(rig, name))
        ball = np.flatnonzero(
            np.isfinite(ranges) & (ranges < 5.0) & (ranges > 3.0) & (np.arange(3600) > 1900)
        )
        middle = np.deg2rad(ball.mean() * 0.1)  # seen at 270 degrees, three quarters of a turn
        assert 4.0 / np.tan(-middle) == pytest.approx(3.0 * when, abs=0.03)


# ---- clouds -------------------------------------------------------------------------------------


def test_an_organised_cloud_has_a_row_per_laser(room: Any) -> None:
    rig = room(s={'type': 'lidar3d', 'columns': 90, 'max_range_m': 9.0})
    message = first(rig)
    cloud = decode('sensor_msgs/msg/PointCloud2', message.data)
    assert message.topic == 's/points'
    assert (cloud.height, cloud.width, cloud.point_step) == (16, 90, 24)
    assert not cloud.is_dense
    points = np.frombuffer(bytes(cloud.data), rig.sensors['s']._points.dtype).reshape(16, 90)
    assert (points['ring'] == np.arange(16)[:, None]).all()
    assert (np.diff(points['time'], axis=1) > 0).all()
    assert np.isnan(points['x']).any()
    elevation = np.arctan2(points['z'], np.hypot(points['x'], points['y']))
    assert np.rad2deg(np.nanmean(elevation, axis=1)) == pytest.approx(np.linspace(-15, 15, 16))


def test_missing_points_can_be_left_out_and_their_number_limited(room: Any) -> None:
    keys = {'type': 'lidar3d', 'columns': 90, 'max_range_m': 9.0, 'no_return': 'drop'}
    rig = room(s=keys, few=keys | {'max_points': 100})
    all_points = decode('sensor_msgs/msg/PointCloud2', first(rig).data)
    found = int(np.isfinite(ranges_of(rig, first(rig))).sum())
    assert (all_points.width, all_points.height) == (found, 1)
    assert all_points.is_dense
    rig.reset()
    assert decode('sensor_msgs/msg/PointCloud2', first(rig, 'few').data).width == 100


@pytest.mark.parametrize('no_return', ['nan', 'drop'])
def test_what_lies_between_the_fields_of_a_point_is_no_chance(room: Any, no_return: str) -> None:
    rig = room(s={'type': 'lidar3d', 'columns': 90, 'max_range_m': 9.0, 'no_return': no_return})
    for message in (first(rig), first(rig)):
        data = np.frombuffer(bytes(decode(message.type_name, message.data).data), np.uint8)
        assert data.size
        assert not data.reshape(-1, POINT.itemsize)[:, 22:].any()


def test_a_rosette_draws_another_flower_every_time(room: Any) -> None:
    rig = room(s={'type': 'lidar3d', 'pattern': 'rosette', 'num_rays': 500, 'fov_deg': 70.0})
    scans = [each for each in rig.run(0.35) if each.sample.sensor == 's']
    sensor = rig.sensors['s']
    for index, scan in enumerate(scans):
        rays = sensor.pattern.directions[index]
        expected = cast_from(np.zeros((500, 2)), np.zeros(500), rays)
        same = np.isclose(ranges_of(rig, scan), expected, rtol=0.0, atol=1e-4)
        assert same.mean() > 0.99
        assert index == 0 or not np.allclose(ranges_of(rig, scan), ranges_of(rig, scans[0]))
    assert len(scans) == 3


def test_patterns_from_a_file(room: Any, tmp_path: Path) -> None:
    file = tmp_path / 'two.csv'
    file.write_text('x,y,z\n1,0,0\n0,1,0\n')
    rig = room(s={'type': 'lidar3d', 'pattern': 'file', 'pattern_file': str(file)})
    np.testing.assert_allclose(ranges_of(rig, first(rig)), [9.8, 8.0], atol=1e-4)


# ---- light --------------------------------------------------------------------------------------


def test_intensity_follows_reflectivity_incidence_and_range(room: Any) -> None:
    optics = {
        'weak_signal_noise': 0.0,
        'intensity_range_m': 5.0,
        'default_reflectivity': 0.4,
        'reflectivity': {'pillar': 0.7},
    }
    rig = room(s={'type': 'lidar2d', 'num_rays': 360, 'optics': optics})
    message = first(rig)
    sensor = rig.sensors['s']
    got = sensor.return_layout.view(message.sample.values, 'intensities')
    assert got[0] == pytest.approx(100 * 0.9 * (5 / 9.8) ** 2, rel=1e-4)  # chalk, by material
    assert got[180] == pytest.approx(100 * 0.05 * (5 / 10.2) ** 2, rel=1e-4)  # tar
    assert got[30] == pytest.approx(
        100 * 0.9 * np.cos(np.deg2rad(30)) * (5 * np.cos(np.deg2rad(30)) / 9.8) ** 2, rel=1e-3
    )
    assert got[270] == pytest.approx(100 * 0.4 * np.cos(np.arcsin(0.2 / 0.5)), rel=0.1)  # ball
    toward = int(np.rad2deg(np.arctan2(3.0, 3.8)))
    assert got[toward] > 100 * 0.6  # the pillar is named


def rows_for(sensor: Any, count: int, **fields: float) -> Any:
    return np.tile(sensor.truth_layout.pack(**fields), (count, 1))


def test_noise_grows_with_range_and_weak_signals() -> None:
    keys = {'noise': 0.01, 'noise_per_m': 0.002, 'num_rays': 2000, 'max_range_m': 60.0}
    sensor = make_sensor('s', type='lidar2d', motion_distortion=False, **keys)
    for distance, signal, expected in (
        (5.0, 0.8, 0.02),
        (40.0, 0.8, 0.09),
        (5.0, 1.0, 0.02),
        (5.0, 0.05, 0.02 * 4),
        (40.0, 0.2, 0.18),
    ):
        rows = rows_for(sensor, 20, ranges=distance, signal=signal)
        ranges = feed(sensor, rows, period_s=0.1)[:, 0, :2000]
        assert ranges.std() == pytest.approx(expected, rel=0.03), (distance, signal)
        assert ranges.mean() == pytest.approx(distance, abs=5 * expected / 200)


def test_weak_returns_are_lost() -> None:
    sensor = make_sensor(
        's',
        type='lidar2d',
        num_rays=4000,
        max_range_m=200.0,
        motion_distortion=False,
        optics={'dark_range_m': 30.0},
    )

    def seen(distance: float, signal: float) -> float:
        rows = rows_for(sensor, 5, ranges=distance, signal=signal)
        return float(np.isfinite(feed(sensor, rows, period_s=0.1)[:, 0, :4000]).mean())

    assert seen(30.0, 0.1) == pytest.approx(0.5, abs=0.02)  # what dark_range_m says
    assert seen(10.0, 0.1) > 0.999  # dark but near
    assert seen(10.0, 0.1 * np.cos(np.deg2rad(88.5))) < 0.02  # grazing
    assert seen(90.0, 0.9) == pytest.approx(0.5, abs=0.02)  # nine times as bright, thrice as far


def test_a_fraction_is_lost_anyway() -> None:
    sensor = make_sensor(
        's',
        type='lidar2d',
        num_rays=4000,
        motion_distortion=False,
        optics={'dropout_probability': 0.2},
    )
    rows = rows_for(sensor, 5, ranges=5.0, signal=0.8)
    lost = np.isinf(feed(sensor, rows, period_s=0.1)[:, 0, :4000]).mean()
    assert lost == pytest.approx(0.2, abs=0.02)


def test_wide_beams_mix_both_sides_of_an_edge(room: Any) -> None:
    def scan(returns: str, pulse: float) -> Any:
        beam = {'rays': 19, 'divergence_rad': 0.05, 'returns': returns, 'pulse_length_m': pulse}
        rig = room(s={'type': 'lidar2d', 'num_rays': 720, 'beam': beam})
        message = first(rig)
        truth = rig.sensors['s'].return_layout.view(message.sample.truth, 'ranges')
        return ranges_of(rig, message), truth

    mixed, truth = scan('first', 100.0)
    near, _ = scan('first', 0.3)
    far, _ = scan('last', 0.3)
    strong, _ = scan('strongest', 0.3)
    plain = cast_from(
        np.zeros((720, 2)),
        np.zeros(720),
        make_sensor('s', type='lidar2d', num_rays=720).pattern.directions[0],
    )
    np.testing.assert_allclose(truth, plain, atol=1e-4)
    edges = far - near > 1.0
    assert 4 <= edges.sum() <= 40
    assert ((mixed > near + 0.05) & (mixed < far - 0.05))[edges].all()
    assert ((np.abs(strong - near) < 0.3) | (np.abs(strong - far) < 0.3))[edges].all()
    smooth = np.abs(far - near) < 0.05
    assert smooth.sum() > 500
    assert np.quantile(np.abs(mixed - truth)[smooth], 0.98) < 0.05


# ---- what every sensor owes ---------------------------------------------------------------------


@pytest.mark.parametrize(
    'keys',
    [
        {'type': 'lidar2d'},
        {'type': 'lidar2d', 'beam': {'rays': 4}},
        {'type': 'lidar3d', 'columns': 50},
        {'type': 'lidar3d', 'pattern': 'rosette', 'num_rays': 40},
    ],
)
def test_truth_survives_its_message(keys: dict[str, Any]) -> None:
    sensor = make_sensor('s', **keys)
    rng = np.random.default_rng(1)
    row = rng.uniform(0.5, 20.0, sensor.truth_layout.width).astype(np.float32)
    row[3] = np.inf
    type_name, template = sensor.truth_template()
    assert type_name == 'sensor_msgs/msg/PointCloud2'
    _, blocks = template.read(template.fill(5, **sensor.truth_to_blocks(row)))
    back = np.zeros_like(row)
    sensor.blocks_to_truth(blocks, back)
    np.testing.assert_array_equal(back, row)


def test_environments_do_not_change_each_other(room: Any) -> None:
    keys = {'type': 'lidar2d', 'noise': 0.05, 'optics': {'dark_range_m': 8.0}}
    alone, three = room('moving', s=keys), room('moving', num_envs=3, s=keys)
    one = [each.data for each in alone.run(0.25)]
    many = [each.data for each in three.run(0.25) if each.sample.env == 0]
    other = [each.data for each in three.run(0.25) if each.sample.env == 1]
    assert one == many
    assert one != other


@pytest.mark.parametrize(
    ('keys', 'words'),
    [
        ({'min_range_m': 5.0, 'max_range_m': 2.0}, 'min_range_m is 5.0'),
        ({'sweep_s': 0.2}, 'sweep_s is 0.2; at 10.0 Hz'),
        ({'type': 'lidar3d', 'rows': 20}, 'rows is 20; there are tables for 16, 32, 64, 128'),
        ({'type': 'lidar3d', 'pattern': 'file'}, 'pattern_file must name one'),
        ({'type': 'lidar3d', 'max_points': 5}, 'needs no_return: drop'),
        ({'backend': 'gpu'}, 'backend'),
        ({'num_ray': 5}, 'num_ray'),
    ],
)
def test_mistakes_are_explained(keys: dict[str, Any], words: str) -> None:
    values = {'world': {'model': 'rover_yard.xml'}, 'sensors': {'s': {'type': 'lidar2d', **keys}}}
    with pytest.raises(RigError, match=words):
        rig_from_parameters(values)


@pytest.mark.parametrize(
    ('keys', 'words'),
    [
        ({'exclude_bodies': ['bal']}, r"exclude_bodies is 'bal'.*did you mean 'ball'"),
        ({'optics': {'reflectivity': {'chalky': 0.5}}}, r"'chalky'.*did you mean 'chalk'"),
    ],
)
def test_names_that_the_model_lacks_are_explained(
    room: Any, keys: dict[str, Any], words: str
) -> None:
    with pytest.raises(RigError, match=words):
        room(s={'type': 'lidar2d', **keys})


FALLING = """
<mujoco>
  <option timestep="0.001"/>
  <worldbody>
    <geom type="plane" size="0 0 1"/>
    <flexcomp name="cloth" type="grid" count="7 7 1" spacing=".2 .2 .2" pos="2 0 1" dim="2"
              radius=".01" mass="1"><edge equality="true"/><pin id="0"/></flexcomp>
  </worldbody>
</mujoco>"""


@pytest.mark.parametrize('backend', ['mujoco', EMBREE])
def test_a_message_shows_a_cloth_where_it_was_at_the_stamp(tmp_path: Path, backend: str) -> None:
    (tmp_path / 'cloth.xml').write_text(FALLING)
    keys = {'rows': 16, 'columns': 60, 'fov_deg': 60.0, 'start_angle_deg': 30.0, **CLEAN}
    lidar = make_sensor(
        's',
        type='lidar3d',
        backend=backend,
        rate_hz=20.0,
        motion_distortion=False,
        mount={'pos_m': [0.0, 0.0, 0.7]},
        **keys,
    )
    rig = Rig(WorldConfig(model='cloth.xml'), [lidar], base_dir=tmp_path, messages=True)
    hits = 0
    for _ in range(301):
        for message in rig.step():
            data, model = rig.world.data(0), rig.world.model
            assert message.stamp_ns == rig.time_ns
            place, rays = data.site('s').xpos, lidar.pattern.directions[0]
            for ray, found in zip(rays, ranges_of(rig, message), strict=True):
                ground = mujoco.mj_ray(
                    model, data, place, ray, None, 1, -1, np.zeros(1, np.int32), None
                )
                cloth = mujoco.mj_rayFlex(
                    model, data, 0, False, False, True, False, 0, place, ray, None, None
                )
                near = min((each for each in (ground, cloth) if each >= 0.0), default=np.inf)
                hits += near == cloth
                assert found == (pytest.approx(near, abs=1e-4) if near < 100.0 else np.inf)
    assert hits > 200
