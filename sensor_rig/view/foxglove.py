"""A Foxglove layout for the topics of a recording: world, camera, motion, clocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rig_common.jsonable import JsonObject, json_text
from rig_common.msgs.catalogue import known
from sensor_rig.bags.reader import BagTopic
from sensor_rig.drawing.colours import RAW, SYNCED, TRUTH
from sim_sensors.world.scene.frames import WORLD_FRAME
from sync_engine.wire.batch import BATCH

IMAGE, CAMERA_INFO = 'sensor_msgs/msg/Image', 'sensor_msgs/msg/CameraInfo'
BUNDLES = 'diagnostic_msgs/msg/DiagnosticArray'

Panels = dict[str, JsonObject]


def layout(topics: Mapping[str, BagTopic]) -> str:
    """Return the layout as JSON; raw streams are red, synced ones blue, the truth green."""
    panels: Panels = {'3D!world': _space(topics.values())}
    images = _of(topics, IMAGE)
    shown = next((name for name in images if '/synced/' in f'/{name}'), None) or next(
        iter(images), None
    )
    if shown is not None:
        panels['Image!camera'] = _image(shown, topics)
    panels['Plot!motion'] = _plot(
        [
            name + field
            for name, topic in sorted(topics.items())
            for field in known(topic.type_name).plotted
        ],
    )
    for name in _of(topics, BUNDLES):
        panels['DiagnosticSummary!sync'] = {
            'topicToRender': name,
            'minLevel': 0,
            'pinnedIds': [],
            'hardwareIdFilter': '',
        }
    return (
        json_text(
            {
                'configById': panels,
                'globalVariables': {},
                'userNodes': {},
                'playbackConfig': {'speed': 1},
                'layout': _arranged(list(panels)),
            },
            1,
        )
        + '\n'
    )


def _of(topics: Mapping[str, BagTopic], type_name: str) -> list[str]:
    return sorted(name for name, topic in topics.items() if topic.type_name == type_name)


def _space(topics: Iterable[BagTopic]) -> dict[str, object]:
    """Return the 3D panel: it stands in the world and follows nothing but its fixed frame."""
    return {
        'followMode': 'follow-none',
        'followTf': WORLD_FRAME,
        'topics': {
            topic.name: {'visible': True, **_drawn(topic)}
            for topic in topics
            if known(topic.type_name).in_space and not topic.name.endswith(BATCH)
        },
        'cameraState': {'distance': 16.0, 'phi': 50.0, 'thetaOffset': 45.0},
        'layers': {'grid': {'layerId': 'foxglove.Grid', 'instanceId': 'grid', 'size': 20}},
    }


def _drawn(topic: BagTopic) -> dict[str, object]:
    """Return how points and poses are drawn; other types have the settings of Foxglove."""
    colour = _colour(topic.name)
    match known(topic.type_name).view:
        case 'scan' | 'cloud':
            return {'colorMode': 'flat', 'pointSize': 3, 'flatColor': colour}
        case 'motion' | 'pose':
            return {'type': 'arrow', 'color': colour}
    return {}


def _colour(topic: str) -> str:
    parts = topic.split('/')
    return '#%02x%02x%02x' % (SYNCED if 'synced' in parts else TRUTH if 'truth' in parts else RAW)


def _image(topic: str, topics: Mapping[str, BagTopic]) -> JsonObject:
    """Return the image panel, with the camera's calibration where it was recorded."""
    folder = topic.rpartition('/')[0]
    info = f'{folder}/camera_info'
    mode: dict[str, object] = {'imageTopic': topic}
    if info in topics and topics[info].type_name == CAMERA_INFO:
        mode['calibrationTopic'] = info
    return {'imageMode': mode}


def _plot(paths: list[str]) -> dict[str, object]:
    return {
        'xAxisVal': 'timestamp',
        'showLegend': True,
        'legendDisplay': 'floating',
        'paths': [
            {'value': path, 'enabled': True, 'timestampMethod': 'headerStamp'} for path in paths
        ],
    }


def _arranged(names: list[str]) -> object:
    """Return the panels: the first one large, the others below each other beside it."""
    first, *others = names
    if not others:
        return first
    return {'direction': 'row', 'first': first, 'second': _column(others), 'splitPercentage': 62}


def _column(names: list[str]) -> object:
    first, *others = names
    if not others:
        return first
    return {
        'direction': 'column',
        'first': first,
        'second': _column(others),
        'splitPercentage': 100 / len(names),
    }
