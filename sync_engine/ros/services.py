"""The sync node's services: start over, save and load what was learned."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from rclpy.node import Node

from rig_common.errors import RigError
from rig_common.ros.services import offer
from sync_engine.engine import SyncEngine


class SyncServices:
    """`~/reset`, `~/save_offsets`, `~/load_offsets` (std_srvs/Trigger)."""

    def __init__(
        self, node: Node, engine: Callable[[], SyncEngine], offsets_file: Callable[[], str]
    ) -> None:
        self._engine = engine
        self._offsets_file = offsets_file
        offer(node, reset=self.reset, save_offsets=self.save, load_offsets=self.load)

    def reset(self) -> str:
        """Flush all buffers, forget all clocks, begin a new epoch."""
        engine = self._engine()
        engine.reset('asked for by the reset service')
        return f'epoch {engine.epochs.number} begins'

    def save(self) -> str:
        """Write the learned clocks to the file that the parameter `offsets_file` names."""
        path = self._path()
        clocks = self._engine().clocks.snapshot()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_name(path.name + '.part')
            partial.write_text(json.dumps(clocks, indent=2) + '\n', encoding='utf-8')
            partial.replace(path)
        except OSError as error:
            raise RigError(f'cannot write {path}: {error.strerror}') from None
        return f'saved {len(clocks["clocks"])} clocks to {path}'

    def load(self) -> str:
        """Take up the clocks of that file; each with its sensor's next message."""
        path = self._path()
        try:
            values = json.loads(path.read_text(encoding='utf-8'))
        except OSError as error:
            raise RigError(f'cannot read {path}: {error.strerror}') from None
        except ValueError:
            raise RigError(f'{path} is not a file of saved offsets') from None
        taken = self._engine().clocks.restore(values)
        return f'loaded the clocks of {", ".join(taken) or "no sensor of this rig"}'

    def _path(self) -> Path:
        name = self._offsets_file()
        if not name:
            raise RigError('the parameter offsets_file is empty; it names the file to use')
        return Path(name).expanduser()
