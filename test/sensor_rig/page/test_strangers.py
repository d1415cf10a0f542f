"""The page hears topics that anybody may publish on; what it cannot read it leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')
pytest.importorskip('viser', reason='viser is not installed')

from rcl_interfaces.msg import Parameter, ParameterEvent, ParameterType, ParameterValue
from sensor_msgs.msg import JointState
from support.ros_rigs import write_rig

from rig_common.ros.executor import close_node, ros_context
from sensor_rig.page.history import MOST_EVENTS
from sensor_rig.page.ros.limbs import JOINTS, MOST_TRACES
from sensor_rig.page.ros.page_node import PageNode

pytestmark = pytest.mark.ros

RUBBISH = (b'', b'\0\1\0\0', b'\0\1\0\0' + b'\xff' * 40, bytes(100_000))
SENSORS = {
    'imu': {'type': 'imu', 'mount': {'body': 'plate'}, 'rate_hz': 50.0},
    'scanner': {'type': 'lidar2d', 'mount': {'body': 'plate'}, 'rate_hz': 10.0, 'num_rays': 10},
    'joints': {'type': 'joint_state', 'joints': ['hinge'], 'rate_hz': 50.0},
}


@pytest.fixture
def page(tmp_path: Path) -> Iterator[PageNode]:
    """A page that believes that somebody looks at it."""
    rig = write_rig(
        tmp_path,
        SENSORS,
        timestep_s=0.01,
        sync={'reference_sensor_id': 'imu', 'required_sensors': ['imu']},
    )
    with ros_context([]):
        node = PageNode(rig, port=0)
        node._is_watched = True
        node._listen()
        yield node
        close_node(node)


def test_rubbish_on_every_topic(page: PageNode) -> None:
    heard = [subscription.callback for subscription in page.subscriptions if subscription.raw]
    assert len(heard) >= 8
    for raw in RUBBISH:
        for take in heard:
            take(raw)
        page._show_world()


def test_parameters_that_no_emulator_takes(page: PageNode) -> None:
    text = ParameterValue(type=ParameterType.PARAMETER_STRING, string_value='x' * 10_000)
    for key in ('imu.delay_range_s', 'imu.jitter_s', 'imu.clock.offset_s', 'nobody.jitter_s', ''):
        page._on_parameters(
            ParameterEvent(
                node='/emulator',
                changed_parameters=[
                    Parameter(name=f'sensors.{key}', value=text),
                    Parameter(name=f'sensors.{key}'),
                ],
            )
        )
    event = ParameterEvent(
        node='/emulator', changed_parameters=[Parameter(name='sensors.imu.noise', value=text)]
    )
    for _ in range(MOST_EVENTS + 10):
        page._on_parameters(event)
    assert len(page._history._events) == MOST_EVENTS
    assert all(len(each.name) <= 200 for each in page._history._events)


def test_invented_joints_are_not_kept_without_end(page: PageNode) -> None:
    from rclpy.serialization import serialize_message

    take = page._limbs._take('joints', JOINTS)
    for part in range(3):
        take(
            serialize_message(
                JointState(name=[f'{part} {i}' for i in range(600)], position=[0.0] * 600)
            )
        )
    assert len(page._limbs.body.joints) == MOST_TRACES
