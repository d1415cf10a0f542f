"""What the launch files share: their arguments, and a rig's plan as launch actions.

Imported by launch files only; needs launch and launch_ros, which come with a ROS installation.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile

from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    ExecuteProcess,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
)
from launch.conditions import IfCondition
from launch.event_handlers import OnProcessExit, OnShutdown
from launch.events import Shutdown
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration
from launch.utilities import AsyncSafeSignalManager
from launch_ros.actions import Node

from rig_common.errors import RigError
from rig_common.paramfile.events import Parameters
from rig_common.validation import hint
from sensor_rig.rigfile import RigConfig, load_rig
from sensor_rig.running.node_plan import GROUPINGS, PlannedNode, planned_nodes
from sensor_rig.view.rviz_config import view_text

SWITCH = ('true', 'false')
ARGUMENTS = {
    'rig': ('demo', 'rig file, or the name of a shipped one', None),
    'namespace': ('', 'namespace of every node and relative topic', None),
    'emulators': ('per_sensor', 'one emulator process per sensor, or one for all', GROUPINGS),
    'only': ('', 'parts of the rig that run on this host, "world,imu,sync"; empty: all', None),
    'sync': ('true', 'start the sync node; false where you bring one of your own', SWITCH),
    'real_time_factor': ('', "instead of the rig file's; 0 runs as fast as it can", None),
    'lockstep': (
        '',
        "instead of the rig file's; true makes runs bit-identical",
        ('', 'true', 'false'),
    ),
    'respawn': ('false', 'start a node again when it ends by itself', SWITCH),
    'log_level': (
        'info',
        'severity from which nodes log',
        ('debug', 'info', 'warn', 'error', 'fatal'),
    ),
    'use_sim_time': (
        'false',
        'follow /clock (a bag played with --clock, another simulator)',
        SWITCH,
    ),
    'remap': ('', 'topics under other names: "/points:=/ouster/points ..."', None),
    'rviz': ('false', 'start RViz with a view made from the rig file', SWITCH),
    'record': ('', 'record every topic into this new folder (needs ros2 bag)', None),
}
"""Every argument a launch file of this package may offer: default, description, choices."""
RIG_ARGUMENTS = tuple(name for name in ARGUMENTS if name != 'use_sim_time')
"""Those of a whole rig."""
OWN_FILES = tuple(f'{name}.launch.py' for name in ('demo', 'rig', 'sync', 'degrade'))


def whole_rig(**defaults: str) -> LaunchDescription:
    """Return world, emulators, sync and tools, with other defaults of arguments where given."""
    arguments = declared(*RIG_ARGUMENTS, **defaults)
    return LaunchDescription([*arguments, rig_nodes(world=True), *tools()])


def declared(*names: str, **defaults: str) -> list[LaunchDescriptionEntity]:
    """Return the declarations of the named arguments, with other defaults where given."""
    declarations: list[LaunchDescriptionEntity] = [
        OpaqueFunction(function=lambda _: require_known(sys.argv, names))
    ]
    for name in names:
        default, description, choices = ARGUMENTS[name]
        options = {'choices': list(choices)} if choices else {}
        declarations.append(
            DeclareLaunchArgument(
                name, default_value=defaults.get(name, default), description=description, **options
            )
        )
    return declarations


def require_known(argv: Sequence[str], names: Sequence[str]) -> None:
    """Refuse arguments of `ros2 launch` that do not exist: launch itself takes them silently.

    Where another launch file includes one of ours, its arguments are its own affair.
    """
    if not any(word.endswith(OWN_FILES) for word in argv):
        return
    for word in argv:
        name, given, _ = word.partition(':=')
        if given and name not in names:
            raise RigError(f'there is no launch argument {name!r}; {hint(name, sorted(names))}')


def rig_nodes(*, world: bool) -> OpaqueFunction:
    """Return the action that reads the rig file and starts its nodes."""

    def start(context: LaunchContext) -> list[LaunchDescriptionEntity]:
        def value(name: str, default: str = '') -> str:
            return str(context.launch_configurations.get(name, default))

        rig = load_rig(value('rig'))
        sync = value('sync', 'true') == 'true'
        overrides = _world_parameters(value)
        if world:
            rig.with_world(**overrides)  # refuses a rig without a world, and wrong values
        _require_recorder(value('record'))
        planned = planned_nodes(
            rig,
            world=world,
            sync=sync,
            emulators=value('emulators', 'per_sensor'),
            world_parameters=overrides,
            only=[name for name in value('only').split(',') if name],
        )
        if not planned:
            raise RigError(f'{rig.path} has nothing to start here: it has no sync: section')
        leave_signals_to_launch(context)
        left_out = rig.sync_left_out if world and sync else ''
        return [
            *([LogInfo(msg=f'WARNING: {left_out}')] if left_out else []),
            *(
                entity
                for node in planned
                for entity in _actions(node, value, simulated=world, alone=len(planned) == 1)
            ),
        ]

    return OpaqueFunction(function=start)


def degrade_node() -> OpaqueFunction:
    """Return the action that starts the degrade node of a rig file."""

    def start(context: LaunchContext) -> list[LaunchDescriptionEntity]:
        def value(name: str, default: str = '') -> str:
            return str(context.launch_configurations.get(name, default))

        if not value('rig'):
            raise RigError('degrade.launch.py needs rig:=FILE, a rig file with a streams: section')
        rig = load_rig(value('rig'))
        if not rig.streams:
            raise RigError(f'{rig.path} has no streams: section, so there is nothing to degrade')
        planned = PlannedNode('degrade', 'degrade', str(rig.path))
        actions = _actions(planned, value, simulated=False, alone=True)
        leave_signals_to_launch(context)
        return actions

    return OpaqueFunction(function=start)


def _rules(remap: str) -> list[tuple[str, str]]:
    """Return the (old, new) names of the argument `remap`."""
    rules = [(old, new) for old, _, new in (rule.partition(':=') for rule in remap.split())]
    if not all(old and new for old, new in rules):
        raise RigError(
            f'remap is {remap!r}; it should be "/old:=/new", several with spaces between them'
        )
    return rules


def leave_signals_to_launch(context: LaunchContext) -> None:
    """Keep SIGINT from raising in this process from now on, and have SIGTERM end the nodes.

    launch is woken by the signal itself (`signal.set_wakeup_fd`). An exception in the task that
    is starting a process ends that task: launch then waits for ever for a process that it does
    not know, and that nobody ends. At SIGTERM launch would end alone and leave its processes.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: None)
    manager = getattr(AsyncSafeSignalManager, '_AsyncSafeSignalManager__current', None)
    if manager is not None and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        manager.handle(
            signal.SIGTERM, lambda _: context.emit_event_sync(Shutdown(reason='SIGTERM'))
        )
        signal.signal(signal.SIGTERM, lambda *_: None)  # else it ends this process at once


def tools() -> list[LaunchDescriptionEntity]:
    """Return RViz and the recorder, for those who ask for them."""
    return [
        OpaqueFunction(function=_rviz, condition=IfCondition(LaunchConfiguration('rviz'))),
        OpaqueFunction(function=_recorder),
    ]


def _rviz(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return RViz, or a log line where it is missing: a failed start would end the launch."""
    try:
        get_package_prefix('rviz2')
    except PackageNotFoundError:
        return [LogInfo(msg='the package rviz2 is not installed: the rig runs without RViz')]
    namespace = context.launch_configurations.get('namespace', '')
    rig = load_rig(context.launch_configurations['rig'])
    if context.launch_configurations['sync'] == 'false':
        rig = replace(rig, sync=None)
    view = write_view(rig, namespace)
    return [
        Node(
            package='rviz2',
            executable='rviz2',
            name='rviz2',
            arguments=['-d', str(view)],
            namespace=LaunchConfiguration('namespace'),
            parameters=[{'use_sim_time': True}],
        ),
        RegisterEventHandler(OnShutdown(on_shutdown=lambda *_: view.unlink(missing_ok=True))),
    ]


def write_view(rig: RigConfig, namespace: str) -> Path:
    """Write the RViz view of `rig` into a temporary file and return it."""
    with NamedTemporaryFile(
        'w', prefix=f'{rig.path.stem}_', suffix='.rviz', delete=False, encoding='utf-8'
    ) as file:
        file.write(view_text(rig, namespace))
    return Path(file.name)


def _recorder(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return the recorder of a simulation: receive times are simulated ones, as stamps are."""
    folder = context.launch_configurations.get('record', '')
    if not folder:
        return []
    return [
        ExecuteProcess(
            cmd=['ros2', 'bag', 'record', '--all', '--use-sim-time', '--output', folder],
            output='screen',
        )
    ]


def _require_recorder(folder: str) -> None:
    """Refuse to record into `folder` where that cannot be: a rig would run on unrecorded."""
    if not folder:
        return
    try:
        get_package_prefix('ros2bag')
    except PackageNotFoundError:
        raise RigError(
            f'record is {folder!r}, but the package ros2bag is not installed; install '
            f'rosbag2, or leave record out'
        ) from None
    if Path(folder).exists():
        raise RigError(f'record is {folder!r}, which exists; it should be a new folder')


def _world_parameters(value: Callable[[str], str]) -> dict[str, object]:
    parameters: Parameters = {}
    if value('real_time_factor'):
        try:
            parameters['real_time_factor'] = float(value('real_time_factor'))
        except ValueError:
            raise RigError(
                f'real_time_factor is {value("real_time_factor")!r}; it should be a '
                f'number, 0 or more'
            ) from None
    if value('lockstep'):
        parameters['lockstep'] = value('lockstep') == 'true'
    return parameters


def _actions(
    planned: PlannedNode, value: Callable[..., str], *, simulated: bool, alone: bool
) -> list[LaunchDescriptionEntity]:
    """Return the node, and the end of everything when the world or the only node ends."""
    parameters = dict(planned.parameters)
    if not simulated:
        parameters['use_sim_time'] = value('use_sim_time') == 'true'
    is_world = planned.executable == 'world'
    respawn = value('respawn') == 'true' and not is_world
    node = Node(
        package='sensor_rig',
        executable=planned.executable,
        name=planned.name,
        exec_name=planned.name,  # in front of every line it prints: which sensor it is of
        namespace=value('namespace'),
        arguments=planned.arguments,
        parameters=[parameters] if parameters else [],
        remappings=_rules(value('remap')),
        output='screen',
        emulate_tty=True,
        respawn=respawn,
        respawn_delay=0.5,
        ros_arguments=['--log-level', value('log_level', 'info')],
    )
    is_required = is_world or (alone and not respawn)
    return [node, _required(node, planned.name)] if is_required else [node]


def _required(node: Node, name: str) -> RegisterEventHandler:
    """End the launch when `node` ends; launch's exit code is 1 where the node failed."""

    def ended(event: ProcessExited, context: LaunchContext) -> EmitEvent:
        if event.returncode and not context.is_shutdown:
            raise RigError(f'{name} has failed with exit code {event.returncode}')
        return EmitEvent(event=Shutdown(reason=f'{name} has ended'))

    return RegisterEventHandler(OnProcessExit(target_action=node, on_exit=ended))
