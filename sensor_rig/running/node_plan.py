"""Which nodes a rig consists of: one list for `rig run --processes` and for the launch files."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from rig_common.errors import RigError
from sensor_rig.rigfile import RigConfig

GROUPINGS = ('per_sensor', 'one')


@dataclass(frozen=True)
class PlannedNode:
    """One node: what to start, and with which arguments."""

    name: str
    """Node name."""
    executable: str
    """As in `ros2 run sensor_rig <executable>`."""
    rig: str
    """Rig file."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Parameters on top of the rig file's."""

    @property
    def arguments(self) -> list[str]:
        """Command line in front of the ROS arguments."""
        return ['--rig', self.rig]

    def command(self) -> list[str]:
        """Return the command that starts it with this Python, without an installed package."""
        ros = ['-r', f'__node:={self.name}']
        for key, value in self.parameters.items():
            ros += ['-p', f'{key}:={parameter_text(value)}']
        return [
            sys.executable,
            '-m',
            f'sensor_rig.nodes.{self.executable}',
            *self.arguments,
            '--ros-args',
            *ros,
        ]


def planned_nodes(
    rig: RigConfig,
    *,
    world: bool = True,
    emulators: str = 'per_sensor',
    sync: bool = True,
    groups: Iterable[Sequence[str]] | None = None,
    world_parameters: Mapping[str, Any] | None = None,
    stop_at_s: float = 0.0,
    only: Sequence[str] = (),
) -> list[PlannedNode]:
    """Return the nodes of `rig`, listeners first.

    `emulators` is `per_sensor` (a process each) or `one`; `groups` lists the sensors of each
    emulator instead. `world_parameters` override keys of the `world:` section; the world
    stops at `stop_at_s`, if that is not 0, and waits for no sync node without `sync`. A sync
    node without the world may follow one of several environments, in its namespace; with it, it
    is left out where there are several.
    `only` names what belongs on this host: `world`, `sync` and sensors; without it, all of them.
    """
    _require_parts(rig, only)
    if emulators not in GROUPINGS:
        raise RigError(f'emulators is {emulators!r}; it should be one of {", ".join(GROUPINGS)}')
    file = str(rig.path)
    nodes = []
    if sync and (rig.runs_sync if world else rig.sync is not None):
        nodes.append(PlannedNode('sync', 'sync', file))
    if not world:
        return nodes
    if groups is not None:
        chosen = [list(group) for group in groups]
    else:
        chosen = [[name] for name in rig.sensors] if emulators == 'per_sensor' else []
    nodes += [
        PlannedNode(f'emulator_{"_".join(group)}', 'emulator', file, {'only': group})
        for group in chosen
    ]
    if groups is None and emulators == 'one' and rig.sensors:
        nodes.append(PlannedNode('emulator', 'emulator', file))
    if only:
        nodes = [node for node in map(partial(_part_of, only), nodes) if node is not None]
        if 'world' not in only:
            return nodes
    overrides = {f'world.{key}': value for key, value in (world_parameters or {}).items()}
    if rig.runs_sync and not sync:
        overrides['waits_for_sync'] = False
    if stop_at_s:
        overrides['stop_at_s'] = stop_at_s
    return [*nodes, PlannedNode('world', 'world', file, overrides)]


def _require_parts(rig: RigConfig, only: Sequence[str]) -> None:
    """Raise RigError where `only` names what the rig does not have."""
    parts = [
        *(['world'] if rig.world is not None else []),
        *(['sync'] if rig.runs_sync else []),
        *rig.sensors,
    ]
    for name in only:
        if name not in parts:
            raise RigError(f'--only names {name!r}; {rig.path.name} has {", ".join(parts)}')


def _part_of(only: Sequence[str], node: PlannedNode) -> PlannedNode | None:
    """Return the node with the sensors that `only` names; None if it names none of them."""
    if node.executable != 'emulator':
        return node if node.name in only else None
    served = node.parameters.get('only')
    sensors = [
        name
        for name in (only if served is None else served)
        if name in only and name not in ('world', 'sync')
    ]
    # Named after its sensors: another host may have an emulator, too.
    return (
        replace(node, name=f'emulator_{"_".join(sensors)}', parameters={'only': sensors})
        if sensors
        else None
    )


def parameter_text(value: object) -> str:
    """Return a parameter as `-p key:=text` wants it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f'[{", ".join(parameter_text(each) for each in value)}]'
    return str(value)
