import numpy as np
import pytest

from rig_common.errors import RigError
from sim_sensors.raycast import patterns


def test_four_rays_look_along_the_axes():
    rays = patterns.single_plane(4).directions[0]
    np.testing.assert_allclose(rays, [[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]], atol=1e-12)


def test_direction_start_and_ends_of_a_partial_plane():
    pattern = patterns.single_plane(3, fov_deg=90.0, start_angle_deg=45.0, clockwise=True)
    angles = np.rad2deg(np.arctan2(pattern.directions[0, :, 1], pattern.directions[0, :, 0]))
    np.testing.assert_allclose(angles, [45.0, 0.0, -45.0], atol=1e-9)
    np.testing.assert_allclose(pattern.phase, [0.0, 0.125, 0.25])


@pytest.mark.parametrize('rows', [16, 32, 64, 128])
def test_stacks_of_lasers(rows):
    table = patterns.ELEVATION_TABLES_DEG[rows]
    assert len(table) == rows
    assert np.all(np.diff(table) > 0)
    pattern = patterns.multi_beam(table, 100)
    assert pattern.count == rows * 100
    assert pattern.rows == rows
    elevation = np.rad2deg(np.arcsin(pattern.directions[0, :, 2])).reshape(100, rows)
    np.testing.assert_allclose(elevation, np.tile(table, (100, 1)), atol=1e-9)
    assert (pattern.ring.reshape(100, rows) == np.arange(rows)).all()
    assert (np.diff(pattern.phase) >= 0).all()
    assert pattern.phase[-1] == pytest.approx(0.99)


def test_rings_count_from_below_whatever_the_order_of_the_table():
    pattern = patterns.multi_beam((1.0, -3.0, 5.0), 2)
    assert pattern.ring.tolist() == [1, 0, 2, 1, 0, 2]


def test_a_rosette_goes_on_and_fills_its_cone():
    pattern = patterns.rosette(2000, 38.0, 10.0)
    assert pattern.frames == patterns.ROSETTE_FRAMES
    off_axis = np.rad2deg(np.arccos(pattern.directions[..., 0].clip(-1, 1)))
    assert off_axis.max() == pytest.approx(19.0, abs=0.3)
    gap = np.linalg.norm(pattern.directions[1, 0] - pattern.directions[0, -1])
    step = np.linalg.norm(np.diff(pattern.directions[0], axis=0), axis=1).max()
    assert gap <= step * 1.01
    assert np.abs(pattern.directions[0] - pattern.directions[1]).max() > 0.1


def test_a_grid_reads_from_the_top_left():
    pattern = patterns.grid(3, 5, 60.0, 20.0)
    assert pattern.count == 15
    first, last = pattern.directions[0, 0], pattern.directions[0, -1]
    assert first[1] > 0 < first[2]
    assert last[1] < 0 > last[2]
    assert pattern.ring.tolist() == [2] * 5 + [1] * 5 + [0] * 5


@pytest.mark.parametrize('kind', ['csv', 'npz'])
def test_patterns_of_the_user(tmp_path, kind):
    path = tmp_path / f'rays.{kind}'
    if kind == 'csv':
        path.write_text('azimuth_deg,elevation_deg,ring\n0,0,0\n90,0,1\n0,45,2\n')
    else:
        np.savez(path, x=[2.0, 0.0, 1.0], y=[0.0, 1.0, 0.0], z=[0.0, 0.0, 1.0], ring=[0, 1, 2])
    pattern = patterns.from_file(str(path))
    half = np.sqrt(0.5)
    expected = [[1, 0, 0], [0, 1, 0], [half, 0, half]]
    np.testing.assert_allclose(pattern.directions[0], expected, atol=1e-12)
    assert pattern.ring.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('a,b\n1,2\n', 'needed: azimuth_deg and elevation_deg, or x, y and z'),
        ('x,y,z\n0,0,0\n', 'ray 0 has no direction'),
        ('azimuth_deg,elevation_deg\n1,oops\n', "row 2 should be 2 numbers, it is '1,oops'"),
        ('azimuth_deg,elevation_deg\n1,nan\n', 'not a number'),
        ('azimuth_deg,elevation_deg,time\n1,0,0.5\n2,0,0.1\n', 'time must rise'),
    ],
)
def test_a_bad_file_is_explained(tmp_path, text, words):
    path = tmp_path / 'rays.csv'
    path.write_text(text)
    with pytest.raises(RigError, match=words):
        patterns.from_file(str(path))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(RigError, match=r'cannot be read: .*nowhere'):
        patterns.from_file(str(tmp_path / 'nowhere.csv'))


def test_patterns_are_made_once_and_cannot_be_spoiled():
    pattern = patterns.single_plane(360)
    assert patterns.single_plane(360) is pattern
    with pytest.raises(ValueError, match='read-only'):
        pattern.directions[0, 0, 0] = 2.0
