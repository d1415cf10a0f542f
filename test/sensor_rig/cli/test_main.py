"""The frame of the command line: finding commands, one sentence per mistake, exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import sensor_rig
from rig_common.errors import RigError
from sensor_rig.cli import main as entry
from sensor_rig.cli.completion import script
from sensor_rig.cli.support import registry


def command_that(action: object) -> ModuleType:
    """Return a command module whose run raises or returns `action`."""
    module = ModuleType('sensor_rig.cli.sample')
    module.NAME, module.HELP = 'sample', 'a sample'
    module.add_arguments = lambda parser: parser.add_argument('--number', type=int)

    def run(args: object) -> int:
        if isinstance(action, BaseException):
            raise action
        return int(action)  # type: ignore[call-overload]

    module.run = run
    return module


@pytest.fixture
def sample(monkeypatch: pytest.MonkeyPatch):
    def install(action: object) -> None:
        command = command_that(action)
        monkeypatch.setattr(registry, 'find', lambda name: command if name == 'sample' else None)

    return install


def test_overview_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main([]) == 0
    shown = capsys.readouterr().out
    for command in registry.commands():
        assert f'  {command.NAME} ' in shown
        assert command.HELP in shown


def test_every_command_has_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    names = [command.NAME for command in registry.commands()]
    assert {'check', 'completion', 'doctor', 'schema', 'test'} <= set(names)
    assert len(names) == len(set(names))
    for name in names:
        assert entry.main([name, '--help']) == 0
        assert capsys.readouterr().out.startswith(f'usage: {registry.program_name()} {name}')


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main(['--version']) == 0
    assert capsys.readouterr().out == f'sensor_rig {sensor_rig.__version__}\n'


@pytest.mark.parametrize(
    ('line', 'sentence'),
    [
        (['chek'], "there is no command 'chek'; did you mean 'check'?"),
        (['zzzzzzzz'], "there is no command 'zzzzzzzz'; there are "),
        (['--nonsense'], "unknown option '--nonsense'"),
        (['check'], 'the following arguments are required: file'),
        (['doctor', '--jsn'], "doctor has no option '--jsn'; did you mean '--json'?"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_2(
    line: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry.main(line) == 2
    shown = capsys.readouterr()
    assert shown.out == ''
    assert shown.err.count('\n') == 1
    assert sentence in shown.err


def test_rig_error_is_printed_alone(sample, capsys: pytest.CaptureFixture[str]) -> None:
    sample(RigError('the wheel is square'))
    assert entry.main(['sample']) == 2
    assert capsys.readouterr().err == 'error: the wheel is square\n'


def test_too_little_memory_is_one_sentence(sample, capsys: pytest.CaptureFixture[str]) -> None:
    sample(MemoryError('Unable to allocate 3 GiB'))
    assert entry.main(['sample']) == 2
    assert capsys.readouterr().err == 'error: too little memory: Unable to allocate 3 GiB\n'


def test_traceback_on_request(sample, capsys: pytest.CaptureFixture[str]) -> None:
    sample(RigError('the wheel is square'))
    assert entry.main(['--traceback', 'sample']) == 2
    assert 'Traceback' in capsys.readouterr().err


def test_interrupt_is_quiet(sample, capsys: pytest.CaptureFixture[str]) -> None:
    sample(KeyboardInterrupt())
    assert entry.main(['sample']) == 130
    assert capsys.readouterr() == ('', '')


def test_exit_code_is_the_commands(sample) -> None:
    sample(7)
    assert entry.main(['sample', '--number', '3']) == 7


def test_one_command_imports_no_other() -> None:
    code = (
        'import sys; from sensor_rig.cli.support import registry; registry.find("schema");'
        'print([m for m in sys.modules if m.startswith("sensor_rig.cli.")])'
    )
    shown = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, check=True
    )
    assert 'sensor_rig.cli.schema' in shown.stdout
    assert 'sensor_rig.cli.doctor' not in shown.stdout


def test_overview_needs_nothing_heavy() -> None:
    """`--help` stays fast: no command imports a simulator, a plotter or ROS at its top."""
    code = (
        'import sys; from sensor_rig.cli.main import main; main(["--help"]);'
        'print([m for m in ("mujoco", "rclpy", "matplotlib", "viser", "scipy", "rosbags")'
        ' if m in sys.modules])'
    )
    shown = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, check=True
    )
    assert shown.stdout.splitlines()[-1] == '[]'


def test_a_closed_pipe_is_no_error() -> None:
    endless = (
        'import sys; from sensor_rig.cli import main, schema;'
        'schema.run = lambda args: [print("line") for _ in range(10**9)];'
        'sys.exit(main.main(["schema"]))'
    )
    line = f"set -o pipefail; {sys.executable} -c '{endless}' | head -n 1; exit $?"
    shown = subprocess.run(['bash', '-c', line], capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stdout, shown.stderr) == (141, 'line\n', '')


@pytest.mark.parametrize(
    ('line', 'completed'),
    [
        ('./rig doct', ['doctor']),
        ('./rig check --j', ['--json']),
        ('./rig check de', ['demo']),
        ('./rig record out --rig de', ['demo']),
        ('./rig record out --storage ', ['mcap', 'sqlite3']),
    ],
)
def test_completion_completes(tmp_path: Path, line: str, completed: list[str]) -> None:
    (tmp_path / 'completion').write_text(script())
    words = ' '.join(f"'{word}'" for word in line.split(' '))
    code = (
        f'source completion; COMP_WORDS=({words}); COMP_CWORD={line.count(" ")};'
        '_sensor_rig_complete; echo "${COMPREPLY[@]}"'
    )
    shown = subprocess.run(
        ['bash', '-c', code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert shown.stdout.split() == completed
