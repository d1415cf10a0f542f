"""A rig file in one plain Python loop: simulated sensors and, where the rig has one, its sync.

    rig = open_rig('demo')
    for _ in range(10_000):
        for message in rig.step(): ...       # messages of the sensors, by arrival
        for bundle in rig.bundles: ...       # bundles the sync engine completed at this tick

This is where the two halves meet without ROS; neither knows of the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rig_common.errors import RigError
from sensor_rig.rigfile import RigConfig, load_attached, load_rig, rig_from_parameters
from sim_sensors.attached import AttachedRig
from sim_sensors.outbox import Message
from sim_sensors.rig import Past, Rig
from sync_engine.matching.bundle import Bundle
from sync_engine.wire.session import Output, WireSync

if TYPE_CHECKING:
    import mujoco


def config_of(rig: str | Path | Mapping[str, object] | RigConfig) -> RigConfig:
    """Return the rig of a file, of a shipped one by name, or of parameters like a file's."""
    if isinstance(rig, RigConfig):
        return rig
    return rig_from_parameters(rig) if isinstance(rig, Mapping) else load_rig(rig)


def open_rig(
    rig: str | Path | Mapping[str, object] | RigConfig,
    *,
    messages: bool = True,
    arrays: bool = True,
    sync: bool = True,
    together: bool = True,
    device: str = '',
    **world: object,
) -> InProcessRig:
    """Return the rig of a file, of a shipped one by name, or of a dict like a file.

    `world` overrides keys of `world:`: `open_rig('demo', num_envs=64, driver='commands',
    messages=False)`; see `Rig`.
    """
    config = config_of(rig)
    if world:
        config = config.with_world(**world)
    return InProcessRig(
        config, messages=messages, arrays=arrays, sync=sync, together=together, device=device
    )


def attach(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    rig: str | Path | Mapping[str, object],
    *,
    messages: bool = False,
    arrays: bool = True,
) -> AttachedRig:
    """Return the sensors of a rig file, or of parameters like one, on somebody else's simulation.

    Step `data` as you like; `observe()` takes over what happened, and `read()` is as ever. The
    pair is looked at only: the sensors are mounted in a twin of `model`, whatever it calls its
    own sites and sensors.
    """
    config = load_attached(rig, float(model.opt.timestep))
    return AttachedRig(
        model,
        data,
        config.simulated_world,
        config.make_sensors().values(),
        seed=config.seed,
        base_dir=config.path.parent,
        messages=messages,
        arrays=arrays,
        links=config.links,
    )


class InProcessRig(Rig):
    """A `Rig` made of a rig file, with the sync engine behind it when the file has `sync:`.

    The engine sees what a sync node in lockstep sees: the messages of a tick, together, at the
    tick's time.
    """

    def __init__(
        self,
        config: RigConfig,
        *,
        messages: bool = True,
        arrays: bool = True,
        sync: bool = True,
        together: bool = True,
        device: str = '',
    ) -> None:
        """Build world, sensors and engine; without `messages` there is nothing to sync."""
        self.config = config
        world = config.simulated_world
        super().__init__(
            world,
            config.make_sensors().values(),
            seed=config.seed,
            base_dir=config.path.parent,
            messages=messages,
            arrays=arrays,
            links=config.links,
            together=together,
            device=device,
        )
        self._wants_sync = sync and messages and config.runs_sync
        self.sync: WireSync | None = None
        """The engine, None where nothing is synced."""
        self.bundles: list[Bundle] = []
        """Bundles completed at the last tick."""
        self._inputs: dict[str, str] = {}
        self._start_sync()

    @property
    def hides_truth(self) -> bool:
        """Whether its file keeps the truth away from the system under test."""
        return self.world.config.hide_truth

    def _start_sync(self) -> None:
        self.bundles = []
        if not self._wants_sync or self.config.sync is None:
            return
        self.sync = WireSync(self.config.sync)
        self._inputs = {
            given.topic.lstrip('/'): name for name, given in self.config.sync.inputs.items()
        }

    def step(self, *, force_recompute: bool = False) -> list[Message]:
        """Move on by one physics step; `bundles` then holds what the sync engine made of it."""
        messages = super().step(force_recompute=force_recompute)
        if self.sync is not None:
            self.bundles = self._synced(self.sync, messages)
        return messages

    def _synced(self, sync: WireSync, messages: list[Message]) -> list[Bundle]:
        now_ns = self.time_ns
        arrived = (
            [
                (self._inputs[message.topic], message.data)
                for message in messages
                if message.topic in self._inputs
            ]
            if messages
            else []
        )
        if not arrived and now_ns < sync.next_deadline_ns:
            return []
        return list(sync.advance(arrived, now_ns))

    def outputs(self, bundle: Bundle) -> list[Output]:
        """Return the messages of a bundle: `synced/...`, `sync/bundle`, `sync/offset/...`."""
        if self.sync is None:
            raise RigError(
                'this rig syncs nothing: its file has no sync: section, or it was '
                'opened without messages or with several environments'
            )
        return list(self.sync.outputs(bundle))

    def reset(
        self,
        envs: Sequence[int] | NDArray[np.intp] | None = None,
        *,
        seed: int | None = None,
        commands: tuple[ArrayLike, Past] | None = None,
    ) -> None:
        """Go back to the start (see `Rig.reset`); the sync engine starts again with the rig."""
        super().reset(envs, seed=seed, commands=commands)
        if envs is None:
            self._start_sync()
