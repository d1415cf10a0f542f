"""The `rig` script, run for real on a tiny project of its own that needs no network.

The project has the script, a package `sensor_rig` whose command line prints what it was given, and
a build backend of its own, so that pip makes a true editable installation without downloads.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import zipfile
from pathlib import Path

import pytest
from support.processes import Process, Processes
from support.waiting import wait_until

pytestmark = pytest.mark.timeout(300)
"""Each makes an environment or two, which is slow on a busy machine."""

BACKEND = """
import os, time, zipfile
from pathlib import Path

INFO = 'sensor_rig-1.dist-info'
WHEEL = ['Wheel-Version: 1.0', 'Generator: x', 'Root-Is-Purelib: true', 'Tag: py3-none-any']
METADATA = ['Metadata-Version: 2.1', 'Name: sensor_rig', 'Version: 1', 'Provides-Extra: test']

def build_editable(directory, config_settings=None, metadata_directory=None):
    with open('builds', 'a') as log:
        print('build', file=log)
    while os.path.exists('hold'):
        time.sleep(0.01)
    needs = Path('needs').read_text().splitlines() if Path('needs').exists() else []
    files = {
        'sensor_rig.pth': [str(Path(__file__).parent)],
        f'{INFO}/WHEEL': WHEEL,
        f'{INFO}/METADATA': METADATA + needs,
        f'{INFO}/entry_points.txt': ['[console_scripts]', 'sensor-rig = sensor_rig:main'],
        f'{INFO}/RECORD': [],
    }
    name = 'sensor_rig-1-py3-none-any.whl'
    with zipfile.ZipFile(Path(directory) / name, 'w') as wheel:
        for path, lines in files.items():
            wheel.writestr(path, chr(10).join(lines))
    return name
"""
ANEW = 'pip>=9999'
"""A requirement that no environment meets, and that the backend does not pass on to pip."""
PACKAGE = """
import os, sys

def main():
    print('arguments', sys.argv[1:])
    print('cwd', os.getcwd())
    for name in ('LD_LIBRARY_PATH', '_ROS_WHEELS_BOOTSTRAP_COMPLETE', 'PYTHONPATH', 'RIG_PROGRAM'):
        print(name, os.environ.get(name))
"""


def make_project(folder: Path, script: Path) -> Path:
    """Fill `folder` with the tiny project and return its rig script."""
    (folder / 'sensor_rig').mkdir(parents=True)
    (folder / 'sensor_rig' / '__init__.py').write_text(PACKAGE)
    (folder / 'backend.py').write_text(BACKEND)
    (folder / 'setup.cfg').write_text('[options]\n')
    (folder / 'pyproject.toml').write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    return Path(shutil.copy(script, folder / 'rig'))


def environment(**changes: str) -> dict[str, str]:
    """Return a plain environment, as of a fresh login, with `changes`."""
    kept = {name: os.environ[name] for name in ('HOME', 'TMPDIR') if name in os.environ}
    return {'PATH': os.environ['PATH'], 'RIG_ROS': 'none', 'PIP_NO_INDEX': '1', **kept, **changes}


def run(
    rig: Path, *arguments: str, cwd: Path | None = None, **changes: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(rig), *arguments],
        cwd=cwd,
        env=environment(**changes),
        capture_output=True,
        text=True,
        check=False,
    )


def builds(rig: Path) -> int:
    """Return how often pip has installed the project."""
    log = rig.parent / 'builds'
    return len(log.read_text().splitlines()) if log.exists() else 0


@pytest.fixture(scope='module')
def ready(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """Return the script of a project that was started once, in a folder with a space."""
    rig = make_project(tmp_path_factory.mktemp('a project') / 'here', root / 'rig')
    first = run(rig, 'demo', '--seconds', '3', 'two words')
    assert first.returncode == 0, first.stderr
    assert "arguments ['demo', '--seconds', '3', 'two words']" in first.stdout
    assert builds(rig) == 1
    return rig


def test_later_starts_install_nothing(ready: Path) -> None:
    before = builds(ready)
    again = run(ready, 'demo')
    assert (again.returncode, again.stderr) == (0, '')
    assert builds(ready) == before


def test_from_another_folder_and_through_links(ready: Path, tmp_path: Path) -> None:
    (tmp_path / 'links').mkdir()
    (tmp_path / 'one').symlink_to(ready)
    (tmp_path / 'links' / 'two').symlink_to('../one')
    shown = run(tmp_path / 'links' / 'two', cwd=tmp_path)
    assert (shown.returncode, shown.stderr) == (0, '')
    assert f'cwd {tmp_path}\n' in shown.stdout
    assert f'RIG_PROGRAM {tmp_path / "links" / "two"}\n' in shown.stdout


def test_another_environments_libraries_are_left_behind(ready: Path, tmp_path: Path) -> None:
    shown = run(ready, _ROS_WHEELS_BOOTSTRAP_COMPLETE='1', LD_LIBRARY_PATH='/other/lib')
    assert '_ROS_WHEELS_BOOTSTRAP_COMPLETE None' in shown.stdout
    assert 'LD_LIBRARY_PATH None' in shown.stdout
    foreign = tmp_path / 'opt' / 'ros' / 'lib'
    (foreign / 'python3.10' / 'site-packages' / 'rclpy').mkdir(parents=True)
    (foreign / 'librcl.so').touch()
    python_path = f'{foreign}/python3.10/site-packages'
    shown = run(
        ready,
        LD_LIBRARY_PATH=f'{foreign}:/opt/driver',
        PYTHONPATH=f'{python_path}:/mine',
        AMENT_PREFIX_PATH=str(foreign.parent),
    )
    assert 'LD_LIBRARY_PATH /opt/driver\n' in shown.stdout
    assert 'PYTHONPATH /mine\n' in shown.stdout


def test_changed_dependencies_and_new_extras_update(ready: Path) -> None:
    before = builds(ready)
    with (ready.parent / 'setup.cfg').open('a') as file:
        file.write('# changed\n')
    assert 'updating' in run(ready).stderr
    assert builds(ready) == before + 1
    folder = (ready.parent / '.venv-no-ros').resolve()
    assert 'ready' in run(ready, 'test').stderr, 'nothing is missing for it: nothing is built'
    assert builds(ready) == before + 1
    assert run(ready, 'test').stderr == run(ready, 'demo').stderr == ''
    with (ready.parent / 'setup.cfg').open('a') as file:
        file.write('# changed again\n')
    run(ready, 'demo')
    assert run(ready, 'test').stderr == '', 'an update keeps the extras that were there'
    assert (ready.parent / '.venv-no-ros').resolve() == folder, 'in the same environment'


def wheel(folder: Path, name: str, version: int = 1) -> Path:
    """Write a wheel without content that pip can install; return its folder."""
    folder.mkdir(exist_ok=True)
    info = f'{name}-{version}.dist-info'
    with zipfile.ZipFile(folder / f'{name}-{version}-py3-none-any.whl', 'w') as file:
        file.writestr(f'{name}.py', 'HERE = True\n')
        about = f'Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n'
        file.writestr(f'{info}/METADATA', about)
        file.writestr(
            f'{info}/WHEEL', 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n'
        )
        file.writestr(f'{info}/RECORD', '')
    return folder


def test_an_extra_is_added_in_place_and_what_the_user_installed_survives(
    tmp_path: Path, root: Path
) -> None:
    rig = make_project(tmp_path / 'p', root / 'rig')
    found = {'PIP_FIND_LINKS': str(wheel(tmp_path / 'wheels', 'tables'))}
    wheel(tmp_path / 'wheels', 'mine')
    extras = '[options.extras_require]\nsweep =\n    tables>=1\ndocs =\n    pages\n'
    (rig.parent / 'setup.cfg').write_text(f'[options]\n{extras}')
    assert run(rig, **found).returncode == 0
    folder = (rig.parent / '.venv-no-ros').resolve()
    assert run(rig, 'python', '-m', 'pip', 'install', '-q', 'mine', **found).returncode == 0
    added = run(rig, 'sweep', 'plan.yaml', '--out', 'x', **found)
    assert added.returncode == 0, added.stderr
    assert 'lacks tables; fetching that and what it needs' in added.stderr
    assert (rig.parent / '.venv-no-ros').resolve() == folder
    assert builds(rig) == 1
    both = ('python', '-c', 'import tables, mine')
    assert run(rig, *both).returncode == 0
    # The setuptools that came with venv is replaced where it is.
    wheel(tmp_path / 'wheels', 'setuptools', 999)
    (rig.parent / 'setup.cfg').write_text(f'[options]\n{extras}test =\n    setuptools>=999\n')
    renewed = run(rig, 'test', **found)
    assert 'lacks setuptools' in renewed.stderr and 'anew' not in renewed.stderr
    # Packages whose versions will not do need a new environment; the user's come along.
    (rig.parent / 'setup.cfg').write_text(f'[options]\ninstall_requires =\n    {ANEW}\n{extras}')
    anew = run(rig, 'demo', **found)
    assert 'installing again what you had added: mine==1' in anew.stderr
    assert run(rig, *both).returncode == 1, 'the backend of the test fetches no extras'
    assert run(rig, 'python', '-c', 'import mine').returncode == 0
    assert not folder.exists(), 'nothing runs from the old one'


def test_setup_takes_extras_that_exist(ready: Path, root: Path) -> None:
    wrong = run(root / 'rig', 'setup', 'swep')
    assert wrong.returncode == 2
    assert "FOR is 'swep'; it should be one of test, bench, docs" in wrong.stderr
    assert 'Install now what commands need' in run(root / 'rig', 'setup', '--help').stdout
    assert run(ready, 'setup', '--all').returncode == 0
    assert 'everything that was asked for is in' in run(ready, 'setup', '--all').stderr


def moved(ready: Path, target: Path) -> Path:
    """Return the script of a copy of the project elsewhere, which has to be installed again."""
    shutil.copytree(ready.parent, target, symlinks=True)
    (target / 'builds').unlink()
    return target / 'rig'


def test_a_moved_project_is_installed_again(tmp_path: Path, ready: Path) -> None:
    rig = moved(ready, tmp_path / 'p')
    assert run(rig).returncode == 0
    assert builds(rig) == 1


def start_held(rig: Path, processes: Processes, *arguments: str) -> Process:
    """Start an installation that does not end before the file `hold` is removed."""
    (rig.parent / 'hold').touch()
    process = processes.start(str(rig), *arguments, environment=environment())
    wait_until(lambda: builds(rig) == 1, 120.0, 'the installation')
    return process


def test_two_at_once_install_once(tmp_path: Path, ready: Path, processes: Processes) -> None:
    rig = moved(ready, tmp_path / 'p')
    one = start_held(rig, processes, 'one')
    two = processes.start(str(rig), 'two', environment=environment())
    two.wait_for_output('another rig is installing')
    (rig.parent / 'hold').unlink()
    assert one.wait() == 0
    assert two.wait() == 0
    assert "arguments ['one']" in one.output
    assert "arguments ['two']" in two.output
    assert builds(rig) == 1


def test_an_interrupt_is_one_line(tmp_path: Path, ready: Path, processes: Processes) -> None:
    process = start_held(moved(ready, tmp_path / 'p'), processes)
    process.interrupt()
    assert process.wait() == 130
    assert process.output.splitlines()[-1] == 'rig: interrupted; the next start begins again'
    wait_until(lambda: not process.group_alive(), what='the end of pip')


def test_an_interrupted_update_leaves_the_old_environment_working(
    tmp_path: Path, root: Path, processes: Processes
) -> None:
    rig = make_project(tmp_path / 'p', root / 'rig')
    assert run(rig).returncode == 0
    old = (rig.parent / '.venv-no-ros').resolve()
    (rig.parent / 'builds').unlink()
    (rig.parent / 'setup.cfg').write_text(f'[options]\ninstall_requires =\n    {ANEW}\n')
    start_held(rig, processes).kill()
    (rig.parent / 'hold').unlink()
    assert (rig.parent / '.venv-no-ros').resolve() == old
    shown = subprocess.run(
        [rig.parent / '.venv-no-ros' / 'bin' / 'sensor-rig', 'still'],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "arguments ['still']" in shown.stdout
    assert run(rig).returncode == 0
    assert (rig.parent / '.venv-no-ros').resolve() != old
    assert not old.is_dir(), 'nothing runs from it'


def dying_at(folder: Path, moment: str) -> dict[str, str]:
    """Return a PATH on which `ln` or `mv` kills who calls it, before or after its work."""
    name, when = moment.split()
    kill, work = 'kill -KILL $PPID', f'/bin/{name} "$@"'
    shutil.rmtree(folder, ignore_errors=True)
    program(folder, name, f'{kill}\nexit 1' if when == 'before' else f'{work}\n{kill}')
    return {'PATH': f'{folder}:{os.environ["PATH"]}'}


def test_a_kill_while_the_link_is_moved_leaves_an_environment(tmp_path: Path, root: Path) -> None:
    """From a real folder, as rig made it once, to a link; then from link to link."""
    rig = make_project(tmp_path / 'p', root / 'rig')
    venv = rig.parent / '.venv-no-ros'
    assert run(rig).returncode == 0
    real = venv.resolve()
    venv.unlink()
    shutil.copytree(real, venv, symlinks=True)
    shutil.rmtree(rig.parent / '.venvs')
    for change, moments in (
        (f'install_requires =\n    {ANEW}', ('ln before', 'ln after', 'mv before')),
        (f'install_requires =\n    {ANEW}9', ('mv before', 'ln before', 'ln after', 'mv after')),
    ):
        (rig.parent / 'setup.cfg').write_text(f'[options]\n{change}\n')
        for moment in moments:
            killed = run(rig, **dying_at(tmp_path / 'bin', moment))
            assert killed.returncode == -signal.SIGKILL, moment
            works = subprocess.run(
                [venv / 'bin' / 'python', '-c', 'import sensor_rig'],
                env=environment(),
                check=False,
            )
            assert works.returncode == 0, moment
    assert run(rig, 'again').returncode == 0
    assert venv.is_symlink()
    assert not (rig.parent / '.venv-no-ros.new').exists()
    assert (rig.parent / '.venvs' / '.venv-no-ros-before' / 'bin').is_dir()


@pytest.mark.long
def test_an_environment_that_something_runs_from_is_kept(
    tmp_path: Path, root: Path, processes: Processes
) -> None:
    rig = make_project(tmp_path / 'p', root / 'rig')
    code = 'import sys; print(sys.prefix, flush=True); sys.stdin.readline()'
    running = subprocess.Popen(
        [rig, 'python', '-c', code],
        env=environment(),
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert running.stdin is not None and running.stdout is not None
    folder = Path(running.stdout.readline().strip())
    assert folder.parent == rig.parent / '.venvs', 'it runs from the folder, not from the link'
    for change in (f'install_requires =\n    {ANEW}', f'install_requires =\n    {ANEW}9'):
        (rig.parent / 'setup.cfg').write_text(f'[options]\n{change}\n')
        assert run(rig).returncode == 0
    assert folder.is_dir()
    running.communicate('\n', timeout=60)
    (rig.parent / 'setup.cfg').write_text(f'[options]\ninstall_requires =\n    {ANEW}8\n')
    assert run(rig).returncode == 0
    assert not folder.exists()


def test_python_and_a_shell_of_the_environment(ready: Path) -> None:
    folder = (ready.parent / '.venv-no-ros').resolve()
    shown = run(ready, 'python', '-c', 'import sensor_rig, sys; print(sys.prefix)')
    assert shown.stdout.strip() == str(folder)
    shown = run(ready, 'shell', '-c', 'command -v python', SHELL='/bin/sh')
    assert shown.stdout.strip() == str(folder / 'bin' / 'python')


@pytest.mark.parametrize(
    ('line', 'code', 'words'),
    [
        (('dmeo',), 2, "there is no command 'dmeo'; did you mean 'demo'?"),
        (
            ('run', 'demo', '--secnds', '3'),
            2,
            "run has no option '--secnds'; did you mean '--seconds'?",
        ),
        (('run', 'demo', '--seconds', 'x'), 2, "--seconds is 'x'; it should be a number"),
        (('check',), 2, 'the following arguments are required: file'),
        (('inspect', 'nowhere.mcap'), 2, 'there is no BAG nowhere.mcap'),
        (('sync', 'nowhere', 'out', '--rig', 'demo'), 2, 'there is no IN nowhere'),
        (('run', 'robots/none.yaml'), 2, 'there is no rig file robots/none.yaml'),
        (
            ('trust', '.', '--html', 'no/where.html'),
            2,
            "--html is 'no/where.html'; it should be in",
        ),
        (('--help',), 0, 'usage: {rig} COMMAND'),
        (('test', '-k', 'imu', '--help'), 0, 'usage: {rig} test'),
        (('--version',), 0, 'sensor_rig '),
    ],
)
def test_what_needs_no_environment_installs_none(
    tmp_path: Path, root: Path, line: tuple[str, ...], code: int, words: str
) -> None:
    rig = Path(shutil.copy(root / 'rig', tmp_path / 'rig'))
    for package in ('sensor_rig', 'rig_common'):
        (tmp_path / package).symlink_to(root / package)
    (tmp_path / 'setup.cfg').touch()
    shown = run(rig, *line)
    assert shown.returncode == code
    assert words.format(rig=rig) in shown.stdout + shown.stderr
    assert len(shown.stderr.splitlines()) == (code != 0)
    assert {path.name for path in tmp_path.iterdir()} == {
        'rig',
        'sensor_rig',
        'rig_common',
        'setup.cfg',
    }


def test_a_killed_installation_is_begun_again(
    tmp_path: Path, ready: Path, processes: Processes
) -> None:
    rig = moved(ready, tmp_path / 'p')
    start_held(rig, processes).kill()
    (rig.parent / 'hold').unlink()
    again = run(rig, 'again')
    assert again.returncode == 0, again.stderr
    assert "arguments ['again']" in again.stdout
    assert builds(rig) == 2, 'what a killed pip left is not trusted'


def one_line(result: subprocess.CompletedProcess[str]) -> str:
    """Return the last line of a failed start; nothing but progress may stand above it."""
    assert result.returncode == 1
    *above, last = result.stderr.splitlines()
    assert all(line.startswith('rig: ') for line in above), result.stderr
    return last


@pytest.mark.parametrize(
    ('settings', 'sentence'),
    [
        (
            {'PIP_NO_INDEX': '0', 'PIP_INDEX_URL': 'http://127.0.0.1:9/simple'},
            'no network: pip could not reach the package index',
        ),
        ({'PIP_NO_INDEX': '1'}, 'No matching distribution found for absent-package'),
    ],
)
def test_a_failed_update_is_one_line_and_leaves_the_old_environment(
    ready: Path, settings: dict[str, str], sentence: str
) -> None:
    project = ready.parent
    config = (project / 'setup.cfg').read_text()
    try:
        (project / 'setup.cfg').write_text('[options]\ninstall_requires =\n    absent-package\n')
        assert sentence in one_line(run(ready, **settings))
    finally:
        (project / 'setup.cfg').write_text(config)
    before = builds(ready)
    assert run(ready).returncode == 0
    assert builds(ready) == before


def program(folder: Path, name: str, text: str) -> None:
    """Write an executable shell script."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f'#!/bin/sh\n{text}\n')
    (folder / name).chmod(0o755)


def test_an_old_python_is_one_line(tmp_path: Path, root: Path) -> None:
    rig = make_project(tmp_path / 'p', root / 'rig')
    program(tmp_path / 'bin', 'old', 'echo 3.8 /usr/bin/python3.8')
    line = one_line(run(rig, RIG_PYTHON=str(tmp_path / 'bin' / 'old')))
    assert line.startswith('rig: Python 3.10 or newer is needed;')
    assert 'is 3.8;' in line


def test_no_python_at_all_is_one_line(tmp_path: Path, root: Path) -> None:
    rig = make_project(tmp_path / 'p', root / 'rig')
    line = one_line(run(rig, RIG_PYTHON='/nowhere/python3'))
    assert 'no python3 was found' in line


def test_a_missing_venv_module_is_one_line(tmp_path: Path, root: Path) -> None:
    rig = make_project(tmp_path / 'p', root / 'rig')
    bare = tmp_path / 'bin' / 'bare'
    program(
        tmp_path / 'bin',
        'bare',
        f'case $* in *sys.version*) echo 3.11 {bare} ;; *) exit 1 ;; esac',
    )
    line = one_line(run(rig, RIG_PYTHON=str(bare)))
    assert line == (
        'rig: Python 3.11 has no venv module; install it, on Debian and Ubuntu with: '
        'sudo apt install python3.11-venv'
    )


def test_another_cpu_is_one_line(tmp_path: Path, root: Path) -> None:
    rig = make_project(tmp_path / 'p', root / 'rig')
    program(tmp_path / 'bin', 'uname', 'case $1 in -s) echo Linux ;; *) echo aarch64 ;; esac')
    line = one_line(run(rig, RIG_ROS='wheels', PATH=f'{tmp_path / "bin"}:{os.environ["PATH"]}'))
    assert 'the ROS 2 wheels exist for Linux on x86_64 only, and this is Linux on aarch64' in line


def test_a_wrong_choice_is_one_line(ready: Path) -> None:
    assert one_line(run(ready, RIG_ROS='maybe')) == (
        "rig: RIG_ROS is 'maybe'; it should be auto, sourced, wheels or none"
    )
    assert 'no ROS 2 is sourced here' in one_line(run(ready, RIG_ROS='sourced'))


def test_sourced_ros_gets_its_own_environment_with_its_packages(
    tmp_path: Path, root: Path
) -> None:
    """A prefix that looks like a sourced ROS: an importable rclpy on PYTHONPATH."""
    rig = make_project(tmp_path / 'p', root / 'rig')
    packages = tmp_path / 'ros' / 'lib' / 'python3' / 'site-packages'
    (packages / 'rclpy').mkdir(parents=True)
    (packages / 'rclpy' / '__init__.py').touch()
    (packages / 'numpy').mkdir()
    (packages / 'numpy' / '__init__.py').write_text('__version__ = "1.26.4"')
    sourced = {
        'AMENT_PREFIX_PATH': str(tmp_path / 'ros'),
        'PYTHONPATH': str(packages),
        'LD_LIBRARY_PATH': '/opt/ros/lib',
        'ROS_DISTRO': 'jazzy',
        'RIG_ROS': 'auto',
    }
    shown = run(rig, **sourced)
    assert shown.returncode == 0, shown.stderr
    venv = rig.parent / '.venv-jazzy'
    assert 'include-system-site-packages = true' in (venv / 'pyvenv.cfg').read_text()
    assert (venv / 'constraints.txt').read_text() == 'numpy==1.26.4\n'
    assert (venv / '.rig-stamp').read_text().splitlines()[1] == ''
    assert f'PYTHONPATH {packages}\n' in shown.stdout
    assert 'LD_LIBRARY_PATH /opt/ros/lib\n' in shown.stdout
