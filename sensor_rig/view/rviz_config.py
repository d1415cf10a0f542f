"""The RViz view of a rig, made from its file: a display for each topic that RViz can show.

Raw streams are red, synced ones blue, the truth green. A raw scan is drawn where its own clock
says it was taken, so it swings off the walls in turns; the synced one stays on them. Classes and
properties are those of rviz_default_plugins (checked against its sources of version 14).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import yaml

from rig_common.jsonable import JsonObject
from rig_common.msgs.catalogue import known
from rig_common.topics import truth_topic
from sensor_rig.drawing import colours
from sensor_rig.rigfile import RigConfig
from sim_sensors.interface.topics import env_prefix

if TYPE_CHECKING:
    from sim_sensors.simulation import Simulation

RAW, SYNCED, TRUTH = (
    '; '.join(map(str, rgb)) for rgb in (colours.RAW, colours.SYNCED, colours.TRUTH)
)
WORLD_FRAME, ROBOT_FRAME = 'world', 'odom'
"""Fixed frame of a rig with a simulated world, and without."""
PLUGINS = 'rviz_default_plugins'
Properties = JsonObject
Make = Callable[[str], Properties]


def _points(color: str) -> Properties:
    return {
        'Style': 'Spheres',
        'Size (m)': 0.05,
        'Alpha': 1,
        'Decay Time': 0,
        'Position Transformer': 'XYZ',
        'Color Transformer': 'FlatColor',
        'Color': color,
    }


def _measured(color: str) -> Properties:
    """A coloured ball at the sensor: its colour is the value, so not where it comes from."""
    return {'Style': 'Spheres', 'Size (m)': 0.2, 'Alpha': 1, 'Decay Time': 0}


def _image(color: str) -> Properties:
    return {'Normalize Range': True, 'Min Value': 0, 'Max Value': 1, 'Median window': 5}


def _range(color: str) -> Properties:
    return {'Color': color, 'Alpha': 0.5, 'Buffer Length': 1}


def _wrench(color: str) -> Properties:
    scales = {'Force Arrow Scale': 0.1, 'Torque Arrow Scale': 0.1}
    return {'Force Color': color, **scales, 'Arrow Width': 0.3}


def _twist(color: str) -> Properties:
    scales = {'Linear Arrow Scale': 1, 'Angular Arrow Scale': 1}
    return {'Linear Color': color, **scales, 'Arrow Width': 0.3}


def _arrow(color: str) -> Properties:
    return {
        'Shape': 'Arrow',
        'Color': color,
        'Alpha': 1,
        'Head Length': 0.1,
        'Head Radius': 0.06,
        'Shaft Length': 0.3,
        'Shaft Radius': 0.02,
        'Axes Length': 1,
        'Axes Radius': 0.1,
    }


def _odometry(color: str) -> Properties:
    arrow = _arrow(color)
    return {
        'Shape': {'Value': arrow.pop('Shape'), **arrow},
        'Keep': 100,
        'Angle Tolerance': 0.1,
        'Position Tolerance': 0.1,
        'Covariance': {'Value': False},
    }


def _point(color: str) -> Properties:
    return {'Color': color, 'Alpha': 1, 'Radius': 0.1, 'History Length': 1}


BEST_EFFORT = ('Image', 'LaserScan', 'PointCloud2')
"""Large: an old one is not worth a repetition."""
DISPLAYS: dict[str, Make] = {
    'LaserScan': _points,
    'PointCloud2': _points,
    'Image': _image,
    'Range': _range,
    'Temperature': _measured,
    'FluidPressure': _measured,
    'Wrench': _wrench,
    'TwistStamped': _twist,
    'Pose': _arrow,
    'PointStamped': _point,
    'Odometry': _odometry,
}
"""Properties of a display in a colour, by its class; which type it shows is in the catalogue."""


def view_text(rig: RigConfig, namespace: str = '') -> str:
    """Return the view of `rig`, whose topics lie in `namespace`, as an .rviz file."""
    text: str = yaml.safe_dump(view(rig, namespace), sort_keys=False, allow_unicode=True)
    return text


def view(rig: RigConfig, namespace: str = '') -> JsonObject:
    """Return the view of `rig` as RViz's configuration tree."""
    prefix = f'/{namespace.strip("/")}/'.replace('//', '/')
    frame, frame_prefix = ROBOT_FRAME, ''
    if rig.world is not None:
        simulation = rig.simulation.in_namespace(namespace)
        frame_prefix = simulation.world.frame_prefix.lstrip('/')
        frame = frame_prefix + WORLD_FRAME
        if rig.world.hide_truth:
            frame = _fixed_frame(simulation)
    displays = [
        _shown('Grid', 'Grid', {'Alpha': 0.3, 'Plane Cell Count': 24}),
        _shown('TF', 'TF', {'Marker Scale': 0.6, 'Show Arrows': False}),
        *_scene(rig, prefix, frame_prefix, frame == frame_prefix + WORLD_FRAME),
        *(
            display
            for topic, kind, color, is_shown in streams(rig)
            if (display := _display(prefix, topic, kind, color, is_shown)) is not None
        ),
    ]
    return {
        'Panels': [
            {'Class': 'rviz_common/Displays', 'Name': 'Displays'},
            {'Class': 'rviz_common/Views', 'Name': 'Views'},
            {'Class': 'rviz_common/Time', 'Name': 'Time'},
        ],
        'Visualization Manager': {
            'Class': '',
            'Name': 'root',
            'Enabled': True,
            'Value': True,
            'Displays': displays,
            'Global Options': {
                'Background Color': '238; 238; 236',
                'Frame Rate': 30,
                'Fixed Frame': frame,
            },
            'Tools': [
                {'Class': f'{PLUGINS}/{name}'}
                for name in ('MoveCamera', 'Select', 'FocusCamera', 'Measure')
            ],
            'Transformation': {'Current': {'Class': f'{PLUGINS}/TF'}},
            'Views': {
                'Current': {
                    'Class': f'{PLUGINS}/Orbit',
                    'Name': 'Current View',
                    'Value': 'Orbit (rviz)',
                    'Target Frame': '<Fixed Frame>',
                    'Distance': 18,
                    'Pitch': 0.9,
                    'Yaw': 4.7,
                    'Focal Point': {'X': 0, 'Y': 0, 'Z': 0},
                }
            },
        },
        'Window Geometry': {'Height': 900, 'Width': 1500},
    }


def _fixed_frame(simulation: Simulation) -> str:
    """Return the frame to stand in: where the world is hidden, what TF begins at."""
    from sim_sensors.world.scene.frames import base_frame
    from sim_sensors.world.scene.pose_messages import base_of, frame_tree, world_frame
    from sim_sensors.world.world import make_world

    sensors = list(simulation.make_sensors().values())
    for origin in filter(None, (sensor.origin() for sensor in sensors)):
        if origin.places_base:
            return origin.frame_id
    world = make_world(
        simulation.world, sensors, simulation.folder, simulation.seed, simulation.links
    )
    above = {each.child: each.parent for each in frame_tree(world, sensors).fixed()}
    frame, root = base_frame(world.model, world.config, base_of(world)), world_frame(world)
    while frame in above:
        frame = above[frame]
    roots = [each for each in above.values() if each not in above]
    return next((each for each in (frame, root, *roots) if each in roots), root)


def streams(rig: RigConfig) -> Iterator[tuple[str, str, str, bool]]:
    """Yield (topic, type, colour, whether shown at first) of what a rig publishes.

    The truth of single sensors is there to be switched on: while shown, it has to be computed.
    """
    env = env_prefix(0, rig.num_envs)
    raw = {
        env + topic.of(name): topic.type_name
        for name, sensor in rig.make_sensors().items()
        for topic in sensor.topics()
    }
    synced = {}
    if rig.sync is not None and (rig.world is None or rig.runs_sync):
        raw |= {
            given.topic: given.type
            for given in rig.sync.inputs.values()
            if given.topic.lstrip('/') not in raw
        }
        synced = {
            f'synced/{given.topic.lstrip("/")}': given.type
            for given in rig.sync.inputs.values()
            if given.member
        }
    yield from ((topic, kind, RAW, True) for topic, kind in raw.items())
    yield from ((topic, kind, SYNCED, True) for topic, kind in synced.items())
    if rig.world is not None and not rig.world.hide_truth:
        yield env + truth_topic('odom'), 'nav_msgs/msg/Odometry', TRUTH, True
        for name, sensor in rig.make_sensors().items():
            yield env + truth_topic(name), sensor.truth_template()[0], TRUTH, False


def not_shown(rig: RigConfig) -> list[str]:
    """Return the topics of the sensors for which RViz has no display of its own."""
    return sorted(
        {topic for topic, kind, color, _ in streams(rig) if color == RAW and not known(kind).rviz}
    )


def _display(
    prefix: str, topic: str, kind: str, color: str, is_shown: bool
) -> dict[str, object] | None:
    name = known(kind).rviz
    if not name:
        return None
    reliable = name not in BEST_EFFORT
    place = _topic(topic if topic.startswith('/') else prefix + topic, reliable=reliable)
    return _shown(name, topic, {'Topic': place, **DISPLAYS[name](color)}, enabled=is_shown)


def _topic(
    name: str, *, reliable: bool = True, latched: bool = False, depth: int = 10
) -> dict[str, object]:
    return {
        'Value': name,
        'Depth': depth,
        'History Policy': 'Keep Last',
        'Reliability Policy': 'Reliable' if reliable else 'Best Effort',
        'Durability Policy': 'Transient Local' if latched else 'Volatile',
    }


def _shown(
    kind: str, name: str, properties: Properties, *, enabled: bool = True
) -> dict[str, object]:
    """Return a display of the class `kind`; what is not among its properties is RViz's default."""
    switch = {'Enabled': enabled, 'Value': enabled}
    return {'Class': f'{PLUGINS}/{kind}', 'Name': name, **switch, **properties}


def _scene(
    rig: RigConfig, prefix: str, frame_prefix: str, is_placed: bool
) -> Iterator[dict[str, object]]:
    """Yield the markers of the world, shown where they have a place, and of a URDF the robot."""
    if rig.world is None:
        return
    topic = _topic(f'{prefix}world/markers', latched=True, depth=100)
    yield _shown('MarkerArray', 'World', {'Topic': topic}, enabled=is_placed)
    if rig.world.model.lower().endswith('.urdf'):
        topic = _topic(f'{prefix}robot_description', latched=True, depth=1)
        frames = {'TF Prefix': frame_prefix.rstrip('/'), 'Description Source': 'Topic'}
        yield _shown('RobotModel', 'Robot', {**frames, 'Description Topic': topic})
