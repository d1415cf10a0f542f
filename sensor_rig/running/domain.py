"""A ROS domain that no other test or benchmark on this machine uses."""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path
from typing import IO

# Above 101 the ports of DDS (7400 + 250 * domain) are among those Linux gives to connections.
DOMAINS = range(1, 102)
_held: list[IO[str]] = []


def claim_domain() -> int:
    """Return a free domain id; it is held by a file lock until this process ends."""
    folder = Path(tempfile.gettempdir()) / f'sensor_rig_domains_{os.getuid()}'
    folder.mkdir(exist_ok=True)
    start = os.getpid() % len(DOMAINS)
    for shift in range(len(DOMAINS)):
        domain = DOMAINS[(start + shift) % len(DOMAINS)]
        handle = (folder / str(domain)).open('w')
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            handle.close()
            continue
        _held.append(handle)
        return domain
    raise RuntimeError(f'all ROS domains of {folder} are in use')
