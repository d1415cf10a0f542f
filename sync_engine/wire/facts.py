"""What the engine knows, as messages: the facts of a bundle, the offsets of the clocks."""

from __future__ import annotations

from collections.abc import Mapping

from rig_common import msgs
from rig_common.cdr import Template
from rig_common.msgs import Level, Status
from sync_engine.matching.bundle import Bundle, Member

BUNDLE_TOPIC = 'sync/bundle'
BUNDLE_TYPE = 'diagnostic_msgs/msg/DiagnosticArray'
OFFSET_TOPICS = 'sync/offset/'
OFFSET_TYPE = 'sensor_msgs/msg/TimeReference'


def offset_topic(sensor_id: str) -> str:
    """Return the topic of a sensor's clock offset."""
    return OFFSET_TOPICS + sensor_id


def offset_template(sensor_id: str, reference_id: str) -> Template:
    """Return the TimeReference of a sensor: header on the reference's clock, time_ref on its."""
    return msgs.time_reference(reference_id, sensor_id)


def bundle_message(
    bundle: Bundle, topics: Mapping[str, str], point_shifts_ns: Mapping[str, int]
) -> bytes:
    """Return `sync/bundle`: one status for the bundle, then one for each member."""
    missing = [name for name, member in bundle.members.items() if member.missing]
    head = Status(
        Level.WARN if missing else Level.OK,
        'bundle',
        f'without {", ".join(missing)}' if missing else 'complete',
        {
            'sequence': str(bundle.sequence),
            'epoch': str(bundle.epoch),
            'reference': bundle.reference_id,
            'stamp_ns': str(bundle.stamp_ns),
            'emitted_ns': str(bundle.emitted_ns),
            'window_ms': f'{bundle.window_ns / 1e6:.3f}',
        },
    )
    members = [
        _member_status(member, topics[name], point_shifts_ns.get(name, 0))
        for name, member in bundle.members.items()
    ]
    return msgs.diagnostic_array(bundle.stamp_ns, [head, *members], bundle.reference_id)


def _member_status(member: Member, topic: str, point_shift_ns: int) -> Status:
    values = {
        'stamp_ns': str(member.stamp_ns),
        'arrival_ns': str(member.arrival_ns),
        'corrected_timestamp_ns': str(member.corrected_timestamp_ns),
        'time_delta_ms': f'{member.time_delta_ns / 1e6:.4f}',
        'offset_ms': f'{member.offset_ns / 1e6:.4f}',
        'offset_sigma_ms': f'{member.offset_sigma_s * 1e3:.4f}',
        'offset_state': member.offset_state.value,
        'interpolated': 'true' if member.interpolated else 'false',
        'missing': 'true' if member.missing else 'false',
        'reason': member.reason.value,
    }
    if member.collected:
        values['collected'] = str(len(member.collected))
    if point_shift_ns:
        values['point_time_shift_ms'] = f'{point_shift_ns / 1e6:.4f}'
    message = (
        f'missing: {member.reason.value}'
        if member.missing
        else ('interpolated' if member.interpolated else 'ok')
    )
    return Status(
        Level.WARN if member.missing else Level.OK, member.sensor_id, message, values, topic
    )
