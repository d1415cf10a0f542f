"""Recorded motions: CSV, NPZ and a recording's JointState, of joints, a base and a mocap body."""

from __future__ import annotations

import numpy as np
import pytest
from rosbags.rosbag2 import Writer
from rosbags.typesys import Stores, get_typestore
from support.robots import arm, positions, run, world_of

from rig_common.errors import RigError
from sim_sensors.world.config.world import WorldConfig
from sim_sensors.world.world import make_world

TIMES = np.linspace(0.0, 2.0, 41)
SHOULDER, ELBOW = 0.4 * np.sin(np.pi * TIMES), 0.3 * (1 - np.cos(np.pi * TIMES))


def play(folder, file: str, **keys):
    return world_of(folder, arm(), driver={'type': 'trajectory', 'file': file, **keys})


def write_csv(folder) -> str:
    rows = [
        'time_s,shoulder,elbow',
        *(f'{t},{a},{b}' for t, a, b in zip(TIMES, SHOULDER, ELBOW, strict=True)),
    ]
    (folder / 'way.csv').write_text('\n'.join(rows))
    return 'way.csv'


def write_npz(folder) -> str:
    np.savez(folder / 'way.npz', time_s=TIMES, shoulder=SHOULDER, elbow=ELBOW)
    return 'way.npz'


def write_bag(folder) -> str:
    types = get_typestore(Stores.ROS2_KILTED)
    state, header, time = (
        types.types[name]
        for name in (
            'sensor_msgs/msg/JointState',
            'std_msgs/msg/Header',
            'builtin_interfaces/msg/Time',
        )
    )
    none = np.empty(0)
    with Writer(folder / 'way', version=9) as writer:
        topic = writer.add_connection('/joint_states', state.__msgtype__, typestore=types)
        for t, a, b in zip(TIMES, SHOULDER, ELBOW, strict=True):
            stamp = time(sec=5 + int(t), nanosec=round((t % 1) * 1e9))
            message = state(header(stamp, ''), ['shoulder', 'elbow'], np.array([a, b]), none, none)
            writer.write(topic, round(t * 1e9), types.serialize_cdr(message, state.__msgtype__))
    return 'way'


@pytest.mark.parametrize('write', [write_csv, write_npz, write_bag], ids=['csv', 'npz', 'bag'])
def test_joints_follow_the_file_and_begin_again(tmp_path, write):
    world = play(tmp_path, write(tmp_path))
    run(world, 1.0)  # the ramp
    for elapsed_s in (0.5, 1.0, 2.5, 3.5):
        run(world, 1.0 + elapsed_s - world.time_ns * 1e-9)
        inside = elapsed_s % 2.0
        assert positions(world) == pytest.approx(
            {
                'shoulder': np.interp(inside, TIMES, SHOULDER),
                'elbow': np.interp(inside, TIMES, ELBOW),
            },
            abs=0.03,
        )


def test_a_file_that_does_not_loop_ends_where_it_ends(tmp_path):
    (tmp_path / 'a.csv').write_text('t,elbow\n0,0\n1,0.6\n')
    world = play(tmp_path, 'a.csv', loop=False, speed=2.0)
    run(world, 3.0)
    assert positions(world) == pytest.approx({'shoulder': 0.0, 'elbow': 0.6}, abs=0.01)


def test_a_driven_base_follows_a_track(tmp_path):
    t = np.linspace(0, 12, 121)
    yaw = 2 * np.pi * t / 12 - np.pi / 2
    track = np.stack([t, 1.5 * np.cos(yaw), 1.5 + 1.5 * np.sin(yaw), yaw + np.pi / 2], 1)
    lines = ['time_s,x,y,yaw', *(','.join(map(str, row)) for row in track)]
    (tmp_path / 'circle.csv').write_text('\n'.join(lines))
    world = make_world(
        WorldConfig(
            model='rover_yard.xml',
            timestep_s=0.002,
            driver={'type': 'trajectory', 'file': 'circle.csv'},
        ),
        base_dir=tmp_path,
    )
    for at_s in (4.0, 8.0):
        run(world, at_s - world.time_ns * 1e-9)
        x, y, heading = world.base_poses()[0]
        want = [np.interp(at_s, t, track[:, i]) for i in (1, 2)]
        assert np.hypot(x - want[0], y - want[1]) < 0.1
        assert np.cos(heading - np.interp(at_s, t, track[:, 3])) > 0.98


@pytest.mark.parametrize(
    ('name', 'text', 'sentence'),
    [
        ('a.csv', 'elbow\n1\n', 'it has no column time_s'),
        ('a.csv', 't,elbow\n0,1\n1\n', "row 3 should be 2 numbers, it is '1'"),
        ('a.csv', 't,elbow\n0,1\n0,2\n', 'times that increase strictly'),
        ('a.csv', 't,wrist\n0,1\n1,2\n', r"the column is 'wrist', which the model does not have"),
        ('a.txt', '', 'it should be a .csv, an .npz or a rosbag2 recording'),
        ('a.npz', 'nonsense', 'it cannot be read as NPZ'),
        ('a.mcap', 'nonsense', 'it cannot be read'),
    ],
)
def test_bad_files_are_one_sentence(tmp_path, name, text, sentence):
    (tmp_path / name).write_text(text)
    with pytest.raises(RigError, match=sentence):
        play(tmp_path, name)


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(RigError, match=r'world.driver.file gone.csv: there is no such file'):
        play(tmp_path, 'gone.csv')
