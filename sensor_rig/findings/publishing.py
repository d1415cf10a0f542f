"""The third time: when a message was published, between its stamp and its receive time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sensor_rig.findings.kinds import found
from sensor_rig.findings.model import WARNING, Finding, lasting
from sensor_rig.findings.record import TopicRecord

BEHIND_S, FAR_S = 0.001, 1.0
"""A publish time may be this much after the receive time, or this much before it."""
SLOW_S = 0.02


def publish_findings(record: TopicRecord) -> Iterator[Finding]:
    """Yield publish times of another clock, and a middleware that takes long."""
    way = record.on_the_way_s
    if way is None or len(way) < 5:
        return
    middle_s, low_s = float(np.median(way)), float(np.percentile(way, 5))
    if low_s < -BEHIND_S or middle_s > FAR_S:
        ahead = 'ahead of' if middle_s < 0.0 else 'behind'
        yield found(
            'publish_clock',
            WARNING,
            record.name,
            f'its publish times are of a clock {lasting(middle_s)} {ahead} that of the receive '
            f'times',
            {'offset_ms': -middle_s * 1e3},
        )
    elif middle_s > SLOW_S:
        high_s = float(np.percentile(way, 95))
        yield found(
            'transport_delay',
            WARNING,
            record.name,
            f'is on the way from publisher to recorder for {lasting(middle_s)}, 5 % of the '
            f'messages for more than {lasting(high_s)}',
            {'median_ms': middle_s * 1e3, 'p95_ms': high_s * 1e3},
        )
