"""What of the findings can be put right without rewriting the recording."""

from __future__ import annotations

from collections.abc import Sequence

from sensor_rig.bags.starter import StampPoint
from sensor_rig.findings.model import Finding


def corrections_of(findings: Sequence[Finding]) -> dict[str, dict[str, object]]:
    """Return the corrections of a sidecar, by topic.

    A clock that motion has compared with the IMU is put on the IMU's clock.
    """
    found: dict[str, dict[str, object]] = {}
    for finding, topic in ((each, topic) for each in findings for topic in each.topics):
        own = found.setdefault(topic, {})
        clock = own.setdefault('clock', {})
        assert isinstance(clock, dict)
        if finding.code == 'stamp_point':
            own['stamp_point'] = point_of(finding)
        elif finding.code == 'clock_drift':
            clock['drift_ppm'] = round(finding.evidence['drift_ppm'], 2)
        elif finding.code == 'clock_offset' and (finding.severity or finding.change):
            clock['offset_s'] = round(finding.evidence['offset_ms'] / 1e3, 6)
        elif 'nominal_s' in finding.evidence:
            clock['offset_s'] = round(finding.evidence['nominal_s'], 6)
    for own in found.values():
        if not own['clock']:
            del own['clock']
    return {topic: own for topic, own in found.items() if own}


def point_of(finding: Finding) -> str:
    """Return which point of a sweep a `stamp_point` finding says is stamped."""
    return 'middle' if 'middle' in finding.what else 'end'


def stamp_points_of(findings: Sequence[Finding]) -> dict[str, StampPoint]:
    """Return where the stamps of sweeps lie that are not at their start, by topic."""
    return {
        finding.topics[0]: StampPoint(point_of(finding), finding.evidence['sweep_ms'] / 1e3)
        for finding in findings
        if finding.code == 'stamp_point'
    }
