"""Hosts of a small network inside this machine: network namespaces on one bridge."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from itertools import count
from pathlib import Path

MEMORY = Path('/dev/shm')
_numbers = count()
_WHOLE_CHECKSUMS = """
import array, fcntl, socket, struct
off = array.array('B', struct.pack('II', 0x17, 0))  # ETHTOOL_STXCSUM
asked = struct.pack('16sP', b'net', off.buffer_info()[0])
fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8946, asked)  # SIOCETHTOOL
"""


class Hosts:
    """Hosts that reach each other over a bridge of their own, and nothing else; `close` them.

    Each has an address and its own shared memory, as machines do.
    """

    def __init__(self, number: int) -> None:
        """Make `number` hosts, 10.77.0.1 and following."""
        stem = f'rig{os.getpid()}n{next(_numbers)}'
        self._switch = f'{stem}sw'
        self.names = [f'{stem}h{index}' for index in range(number)]
        self.addresses = [f'10.77.0.{index + 1}' for index in range(number)]
        self._made: list[str] = []
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def _make(self) -> None:
        self._add(self._switch)
        ip('-n', self._switch, 'link', 'add', 'bridge', 'type', 'bridge')
        ip('-n', self._switch, 'link', 'set', 'bridge', 'up')
        for index, (name, address) in enumerate(zip(self.names, self.addresses, strict=True)):
            self._add(name)
            ip(
                'link',
                'add',
                'net',
                'netns',
                name,
                'type',
                'veth',
                'peer',
                'name',
                f'p{index}',
                'netns',
                self._switch,
            )
            ip('-n', self._switch, 'link', 'set', f'p{index}', 'master', 'bridge', 'up')
            ip('-n', name, 'addr', 'add', f'{address}/24', 'dev', 'net')
            ip('-n', name, 'link', 'set', 'net', 'up')
            ip('-n', name, 'link', 'set', 'lo', 'up')
            ip('-n', name, 'route', 'add', 'default', 'dev', 'net')

    def _add(self, name: str) -> None:
        ip('netns', 'add', name)
        self._made.append(name)
        (MEMORY / name).mkdir()

    def on(self, index: int) -> list[str]:
        """Return what to put in front of a command that is to run on a host."""
        return [
            'ip',
            'netns',
            'exec',
            self.names[index],
            'unshare',
            '--mount',
            'sh',
            '-c',
            f'mount --bind {MEMORY / self.names[index]} {MEMORY} && exec "$@"',
            'sh',
        ]

    def cut(self, index: int) -> None:
        """Pull a host's cable."""
        ip('-n', self._switch, 'link', 'set', f'p{index}', 'down')

    def join(self, index: int) -> None:
        """Put it in again."""
        ip('-n', self._switch, 'link', 'set', f'p{index}', 'up')

    def on_the_switch(self) -> list[str]:
        """Return what to put in front of a command that is to run between the hosts."""
        return ['ip', 'netns', 'exec', self._switch]

    def without_bridge(self) -> tuple[str, str]:
        """Leave the first two hosts to a router; return the switch's ports to them.

        Checksums are then written by the hosts: what is read from a port must be whole.
        """
        for index in (0, 1):
            ip('-n', self._switch, 'link', 'set', f'p{index}', 'nomaster')
            subprocess.run(
                ['ip', 'netns', 'exec', self.names[index], sys.executable, '-c', _WHOLE_CHECKSUMS],
                check=True,
            )
        return 'p0', 'p1'

    def close(self) -> None:
        """Take the network down; the processes on it must have ended."""
        for name in reversed(self._made):
            subprocess.run(['ip', 'netns', 'del', name], check=False)
            shutil.rmtree(MEMORY / name, ignore_errors=True)
        self._made.clear()


def ip(*arguments: str) -> None:
    """Run iproute2's `ip`."""
    subprocess.run(['ip', *arguments], check=True, capture_output=True, text=True)


def why_not() -> str:
    """Return why this machine cannot make hosts; empty where it can."""
    for program in ('ip', 'unshare', 'mount'):
        if shutil.which(program) is None:
            return f'{program} is not installed'
    try:
        hosts = Hosts(1)
    except subprocess.CalledProcessError as error:
        return f'network namespaces cannot be made here: {(error.stderr or "").strip()}'
    try:
        tried = subprocess.run([*hosts.on(0), 'true'], check=False, capture_output=True, text=True)
    finally:
        hosts.close()
    return '' if tried.returncode == 0 else f'no mount namespaces here: {tried.stderr.strip()}'
