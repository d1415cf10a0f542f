"""A sweep on a real Ray cluster of this machine, whose nodes see none of its files."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.places import ROOT
from support.processes import Process, Processes
from support.sweeps import MODEL, lines_of, rig_command, write_plan

ray = pytest.importorskip('ray', reason='ray is not installed (extra ray)')
psutil = pytest.importorskip('psutil')
pytest.importorskip('pyarrow', reason='pyarrow is not installed (extra sweep)')

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
MESH = 'v 0 0 0\nv .1 0 0\nv 0 .1 0\nv 0 0 .1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n'
RAY = str(Path(sys.executable).with_name('ray'))
ADVANCED = {
    'RAY_enable_metrics_collection': '0',
    'PYTHONPATH': str(ROOT),
    'RAY_AUTH_MODE': 'token',
    'RAY_AUTH_TOKEN': secrets.token_hex(32),
}
"""The clusters of these tests have a token of their own; newer Ray asks for one."""


def meshed_plan(folder: Path, **keys: object) -> Path:
    """Write a plan whose model has a mesh in a folder of its own."""
    plan = write_plan(folder, **keys)
    (folder / 'cart.xml').unlink()
    (folder / 'model' / 'meshes').mkdir(parents=True)
    (folder / 'model' / 'meshes' / 'block.obj').write_text(MESH)
    (folder / 'model' / 'cart.xml').write_text(
        MODEL.replace(
            '<worldbody>',
            '<compiler meshdir="meshes"/><asset><mesh name="block" '
            'file="block.obj"/></asset><worldbody>',
        ).replace('<geom size="0.1" mass="1"/>', '<geom type="mesh" mesh="block" mass="1"/>')
    )
    rig = folder / 'rig.yaml'
    rig.write_text(rig.read_text().replace('model: cart.xml', 'model: model/cart.xml'))
    return plan


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        return int(taken.getsockname()[1])


def can_hide() -> bool:
    return (
        shutil.which('unshare') is not None
        and subprocess.run(['unshare', '-m', 'true'], capture_output=True, check=False).returncode
        == 0
    )


class Cluster:
    """A head without cores, and nodes of one core each that do not see `hidden`."""

    def __init__(self, processes: Processes, folder: Path, hidden: Path) -> None:
        self._processes, self._hidden = processes, hidden
        self.address = f'127.0.0.1:{free_port()}'
        self._start(
            '--head',
            f'--port={self.address.split(":")[1]}',
            '--num-cpus=0',
            f'--temp-dir={folder}',
            '--include-dashboard=false',
        )

    def _start(self, *arguments: str, before: tuple[str, ...] = ()) -> Process:
        process = self._processes.start(
            *before, RAY, 'start', '--block', '--disable-usage-stats', *arguments, **ADVANCED
        )
        process.wait_for_output('Ray runtime started', timeout=120.0)
        return process

    def node(self) -> Process:
        """Start a node, where this machine lets us with a file system of its own."""
        hide = f'mount -t tmpfs none "{self._hidden}" && exec "$@"'
        before = ('unshare', '-m', 'sh', '-c', hide, 'sh') if can_hide() else ()
        return self._start(f'--address={self.address}', '--num-cpus=1', before=before)


def raylet_of(node: Process) -> psutil.Process:
    return next(
        each
        for each in psutil.Process(node.pid).children(recursive=True)
        if each.name() == 'raylet'
    )


def test_a_node_is_killed_and_the_table_is_the_same(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    processes: Processes,
    wait_until: Callable[..., object],
) -> None:
    plan = meshed_plan(
        tmp_path / 'plan',
        seconds=40.0,
        seeds=4,
        vary={'sensors.imu.clock.offset_s': [0.0, 0.01, 0.02]},
    )
    pool, results = tmp_path / 'pool', tmp_path / 'results'
    assert rig_command('sweep', plan, '--out', pool).returncode == 0
    short = Path('/tmp') / f'rays{free_port()}'  # sockets have short paths
    try:
        cluster = Cluster(processes, short, plan.parent)
        first, _second = cluster.node(), cluster.node()
        sweep = processes.start(
            sys.executable,
            '-m',
            'sensor_rig',
            'sweep',
            str(plan),
            '--out',
            str(results),
            '--ray-address',
            cluster.address,
            **ADVANCED,
        )
        wait_until(
            lambda: (results / 'runs.jsonl').exists() and len(lines_of(results)) >= 2,
            timeout=240.0,
            what='two runs',
        )
        raylet_of(first).kill()
        assert sweep.wait(timeout=500.0) == 0, sweep.output
    finally:
        processes.stop_all()
        shutil.rmtree(short, ignore_errors=True)
    lines = lines_of(results)
    assert [line for line in lines if line['status'] == 'retried'], 'nothing was lost'
    assert 'attempts repeated' in sweep.output
    assert len([line for line in lines if line['status'] == 'ok']) == 12
    assert (results / 'results.parquet').read_bytes() == (pool / 'results.parquet').read_bytes()
    if can_hide():
        assert not any('refused' in line['status'] for line in lines)


def test_ray_of_this_machine_alone(tmp_path: Path) -> None:
    plan = meshed_plan(tmp_path / 'plan', vary={'sensors.imu.clock.offset_s': [0.0, 0.01]})
    for way in ('--ray', '--workers=1'):
        assert rig_command('sweep', plan, '--out', tmp_path / way, way, **ADVANCED).returncode == 0
    assert (tmp_path / '--ray' / 'results.parquet').read_bytes() == (
        tmp_path / '--workers=1' / 'results.parquet'
    ).read_bytes()


def test_a_cluster_that_is_not_there(tmp_path: Path) -> None:
    plan = write_plan(tmp_path)
    done = rig_command(
        'sweep', plan, '--out', tmp_path / 'results', '--ray-address', f'127.0.0.1:{free_port()}'
    )
    assert done.returncode == 2
    assert done.stderr.startswith('error: Ray at ') and done.stderr.count('\n') == 1


def test_a_ray_started_here_listens_on_this_machine_only(tmp_path: Path) -> None:
    """Whoever reaches a port of Ray can run code."""
    code = (
        'import os, psutil\n'
        'from sensor_rig.sweep.running.ray_cluster import LOCAL_ONLY, RayCluster\n'
        'os.environ.update(LOCAL_ONLY)\n'
        'import ray\n'
        'cluster = RayCluster.__new__(RayCluster)\n'
        'cluster._ray = ray\n'
        'cluster._connect(None)\n'
        'for each in psutil.Process().children(recursive=True):\n'
        '    for connection in each.net_connections("inet"):\n'
        '        if connection.status == psutil.CONN_LISTEN:\n'
        '            print("listens", connection.laddr.ip)\n'
        'ray.shutdown()\n'
    )
    environment = {**os.environ, **ADVANCED}
    told = subprocess.run(
        [sys.executable, '-c', code], env=environment, capture_output=True, text=True, check=False
    )
    listening = {
        line.split()[1] for line in told.stdout.splitlines() if line.startswith('listens')
    }
    assert listening, told.stderr
    assert listening <= {'127.0.0.1', '::1', '::ffff:127.0.0.1'}
