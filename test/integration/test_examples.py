"""The examples run, and say what they are meant to show."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from support.places import ROOT, SMALL_RIG
from support.processes import Processes

EXAMPLES = ROOT / 'examples'


def run(name: str, *arguments: str) -> str:
    """Return what an example prints."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        text=True,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_later_gyro_overshoots_further():
    lines = re.findall(r'latency +(\d+) ms: overshoot +(-?[\d.]+) deg', run('plain_loop.py'))
    assert [int(latency) for latency, _ in lines] == [0, 50, 100, 150]
    overshoot = [float(value) for _, value in lines]
    assert abs(overshoot[0]) < 1.0
    assert overshoot[0] <= overshoot[1] < overshoot[2] < overshoot[3] < 30.0


def test_rovers_reach_goals_with_late_senses():
    pytest.importorskip('gymnasium', reason='gymnasium is not installed')
    told = run('vector_env.py', '--envs', '16', '--steps', '100')
    goals, gained = re.search(r'(\d+) goals reached, ([\d.]+) m gained each', told).groups()
    assert int(goals) >= 8
    assert float(gained) > 1.0


def test_a_model_of_somebody_else_gets_sensors():
    pytest.importorskip('gymnasium', reason='gymnasium is not installed')
    told = run('third_party_model.py')
    assert 'imu/data_raw: 200 messages' in told
    assert 'foot/contact: 200 messages' in told
    assert re.search(r'lidar/scan: (19|20) messages', told)


def test_a_sensor_in_one_file_has_noise_latency_and_a_clock():
    lines = re.findall(
        r'log/velocity: ([+-][\d.]+) m/s forward, truly ([+-][\d.]+); (\d+) ms '
        r'late, stamped \+400 ms',
        run('own_sensor.py'),
    )
    assert len(lines) in (14, 15)
    errors = [abs(float(measured) - float(truth)) for measured, truth, _ in lines]
    assert 0.0 < max(errors) < 0.1
    assert all(100 <= int(late) < 170 for _, _, late in lines)
    assert max(abs(float(truth)) for _, truth, _ in lines) > 0.3


def test_a_controller_of_ones_own_holds_the_arm_until_its_encoders_are_late():
    lines = re.findall(
        r'encoders (\d+) ms late: ([\d.]+) deg off, ([\d.]+) rad/s', run('own_controller.py')
    )
    (prompt, off, speed), (late, _, shaking), _ = lines
    assert (prompt, late) == ('1', '20')
    assert float(off) < 10.0 and float(speed) < 0.1 < float(shaking)


def test_a_fusion_node_gets_both_members_of_a_bundle(processes: Processes):
    pytest.importorskip('rclpy', reason='rclpy is not installed')
    rig = SMALL_RIG
    fusion = processes.python(str(EXAMPLES / 'fusion_node.py'))
    world = processes.rig('run', str(rig))
    said = fusion.wait_for_output('nearest obstacle', timeout=90.0)
    reach = float(re.search(r'nearest obstacle, ([\d.]+) m away', said).group(1))
    assert 0.05 < reach < 30.0
    # The fusion node last: rclpy stumbles over a message that it takes while Ctrl-C ends it.
    for process in (world, fusion):
        process.interrupt()
        assert process.wait() == 0, process.output


def test_a_loop_that_is_closed_in_lockstep_is_the_same_every_time(processes: Processes):
    pytest.importorskip('rclpy', reason='rclpy is not installed')
    controller = processes.python(str(EXAMPLES / 'lockstep_controller.py'))
    for how in ([], ['--processes']):
        world = processes.rig(
            'run', str(EXAMPLES / 'lockstep_controller.yaml'), '--seconds', '6', *how
        )
        assert world.wait() == 0, world.output
    controller.interrupt()
    assert controller.wait() == 0, controller.output
    first, second = re.findall(r'heading ([\d.]+) rad .* digest (\w+)', controller.output)
    assert first == second  # one answer, however it was run, from one controller
    heading, _ = first
    assert float(heading) == pytest.approx(1.2, abs=0.05)
