"""What a command loads before it does its work."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

HEAVY = ('pydantic', 'yaml', 'rich', 'numpy', 'scipy', 'filterpy', 'mujoco', 'rclpy')


def loaded_by(code: str) -> set[str]:
    """Return which heavy libraries a program has loaded at its end."""
    told = subprocess.run(
        [sys.executable, '-c', f'{code}\nimport sys\nprint("LOADED", *sys.modules)'],
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    ).stdout
    return set(HEAVY) & set(told.rpartition('LOADED')[2].split())


def command(*arguments: str) -> str:
    return f'from sensor_rig.cli.main import main\nassert main({list(arguments)!r}) == 0'


@pytest.mark.parametrize('arguments', [('--help',), ('check', '--help'), ('run', '--help')])
def test_help_loads_no_models(arguments: tuple[str, ...]) -> None:
    assert loaded_by(command(*arguments)) == set()


def test_the_engine_loads_filterpy_where_a_filter_is_made() -> None:
    engine = 'import sync_engine.engine, sync_engine.filters, sync_engine.wire.session'
    assert not loaded_by(engine) & {'scipy', 'filterpy'}
    made = (
        'from sync_engine.clocks.clock_filter import ClockFilter, ClockPrior\n'
        'from sync_engine.config import AdaKFConfig\n'
        'prior = ClockPrior(0.0, 1.0, 0.01, 0.01, 1e-4, 0.0, False, False)\n'
        'ClockFilter(prior, AdaKFConfig())'
    )
    assert {'scipy', 'filterpy'} <= loaded_by(f'{engine}\n{made}')


def test_a_synchronizer_loads_filterpy_when_it_is_made_with_a_configuration() -> None:
    """Its first message would otherwise wait for it, and those behind it come late."""
    made = (
        'from sync_engine.filters import AdaptiveTimeSynchronizer\n'
        'class Source:\n'
        '    def registerCallback(self, *_): pass\n'
        'AdaptiveTimeSynchronizer([Source(), Source()], {given})'
    )
    assert not loaded_by(made.format(given='10, 0.1')) & {'scipy', 'filterpy'}
    config = {'inputs': {'a': {}, 'b': {}}, 'reference_sensor_id': 'a'}
    assert {'scipy', 'filterpy'} <= loaded_by(made.format(given=config))


def test_check_needs_no_filter_and_no_renderer_without_cameras() -> None:
    """A rig without cameras is checked where no process can be started for a renderer."""
    refuse = (
        'import sim_sensors.world.rendering.gl_libraries as renderers\n'
        'def refuse(*_, **__): raise SystemExit("a renderer is tried")\n'
        'renderers.Trial = refuse\n'
    )
    assert not loaded_by(refuse + command('check', 'soak')) & {'scipy', 'filterpy', 'rclpy'}
    with pytest.raises(subprocess.CalledProcessError):
        loaded_by(refuse + command('check', 'demo'))  # it has a camera


def test_a_renderer_is_tried_before_the_models_of_a_rig_are_loaded() -> None:
    end = (
        'import os, sys, sim_sensors.world.rendering.gl_libraries as renderers\n'
        'def end(*_, **__): print("LOADED", *sys.modules, flush=True); os._exit(0)\n'
        'renderers.Trial = end\n'
    )
    for words in (('check', 'demo'), ('run', 'demo'), ('record', 'out', '--rig', 'demo')):
        assert not loaded_by(end + command(*words)) & {'pydantic', 'numpy', 'mujoco', 'rclpy'}


@pytest.mark.parametrize('end', ['sys.exit()', 'os.kill(os.getpid(), 9)'])
def test_a_trial_that_nobody_asks_for_ends_with_the_program(end: str) -> None:
    code = (
        'import os, sys\n'
        'from rig_common.probing import Trial\n'
        'trial = Trial("print(flush=True); import time; time.sleep(600)")\n'
        'trial._process.stdout.readline()\n'
        f'print(trial._process.pid, flush=True); {end}'
    )
    done = subprocess.run(
        [sys.executable, '-c', code], check=False, capture_output=True, text=True, timeout=60
    )
    state = Path(f'/proc/{int(done.stdout)}/stat')
    deadline_s = time.monotonic() + 30.0
    while state.exists() and ') Z' not in state.read_text():  # a zombie has ended
        assert time.monotonic() < deadline_s, 'it still runs'
        time.sleep(0.01)
