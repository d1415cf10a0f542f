"""What a jump of the stamps is called: a restart, a wrap-around, daylight saving, a clock step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sensor_rig.findings.domains import DATE_S, GPS_S, POWER_UP_S, TAI_S
from sensor_rig.findings.kinds import found
from sensor_rig.findings.levels import LevelChange
from sensor_rig.findings.model import WARNING, WRONG, Finding, date, lasting, times
from sensor_rig.findings.timeline import TimeLine

WRAPS_S = {
    f'{bits}-bit counter of {unit}': 2.0**bits * scale
    for bits in (32, 31)
    for unit, scale in (('ns', 1e-9), ('us', 1e-6), ('ms', 1e-3))
    if (bits, unit) != (31, 'ns')
}
"""How far back a counter goes; 31 bits of ns are 2.1 s, which no device counts in."""
HALF_HOUR_S = 1800.0
BOOTED_S = 3.0
"""What a clock that began anew says at most after the pause, beside its length."""
MOST_HALVES = 52
"""Between the two time zones that are furthest apart."""
SAME = 0.05
"""How far two steps may differ that are a step and its return, of their size."""
SLACK_S = 0.004


def named_jumps(name: str, line: TimeLine, changes: Sequence[LevelChange]) -> list[Finding]:
    """Return the findings of a topic's jumps; those that belong together as one."""
    rest: list[LevelChange] = []
    findings: list[Finding] = []
    for change in changes:
        own = _restart(name, line, change) or _wrap(name, line, change)
        if own is None:
            rest.append(change)
        elif not any(each.code == own.code for each in findings):
            findings.append(own)
    if rest:
        findings.append(step_finding(name, line, rest))
    return findings


def daylight_of(line: TimeLine, changes: Sequence[LevelChange]) -> str:
    """Return what to say of jumps by half hours in local time; empty where there are none."""
    for change in changes:
        halves = round(change.size_s / HALF_HOUR_S)
        if halves and abs(halves) <= 4 and abs(change.size_s - halves * HALF_HOUR_S) < 1.0:
            at_s = _since(line, change.at_ns)
            return (
                f', and it jumps by {halves / 2:+g} h at {at_s:.1f} s: daylight saving time '
                f'begins or ends'
            )
    return ''


def _since(line: TimeLine, at_ns: int) -> float:
    return float(at_ns - line.arrivals_ns[0]) / 1e9


def _restart(name: str, line: TimeLine, change: LevelChange) -> Finding | None:
    before_ns = int(line.stamps_ns[change.place - 1])
    after_ns = int(line.stamps_ns[change.place])
    silent_s = float(line.arrivals_ns[change.place] - line.arrivals_ns[change.place - 1]) / 1e9
    anew = after_ns < before_ns and after_ns / 1e9 < silent_s + BOOTED_S
    if not (
        change.at_ns / 1e9 > DATE_S
        and 0 <= after_ns / 1e9 < POWER_UP_S
        and (anew or before_ns / 1e9 > DATE_S)
    ):
        return None
    if _wrap(name, line, change) is not None:
        return None
    return found(
        'restart',
        WRONG,
        name,
        f'was restarted at {_since(line, change.at_ns):.1f} s, after {lasting(silent_s)} without '
        f'a message: its stamps were at {date(before_ns)} and go on from {date(after_ns)}, '
        f'counted from its power-up',
        {
            'at_s': _since(line, change.at_ns),
            'silent_s': silent_s,
            'before_s': before_ns / 1e9,
            'after_s': after_ns / 1e9,
        },
        spans=[(change.at_ns - round(silent_s * 1e9), change.at_ns)],
    )


def _wrap(name: str, line: TimeLine, change: LevelChange) -> Finding | None:
    slack_s = max(1.5 * line.period_s, 0.002)
    for counter, size_s in WRAPS_S.items():
        if abs(-change.size_s - size_s) < max(slack_s, 1e-6 * size_s):
            return found(
                'wrap_around',
                WRONG,
                name,
                f'a {counter} wrapped around at {_since(line, change.at_ns):.1f} s: stamps went '
                f'back by {lasting(change.size_s)}',
                {'jump_s': change.size_s},
            )
    return None


def _signed(seconds: float) -> str:
    return ('+' if seconds > 0.0 else '-') + lasting(seconds)


def step_finding(name: str, line: TimeLine, changes: Sequence[LevelChange]) -> Finding:
    """Return the finding of a clock that was set, and may have come back."""
    evidence = {
        'step_ms': max((c.size_s for c in changes), key=abs) * 1e3,
        'at_s': _since(line, changes[0].at_ns),
        'steps': len(changes),
    }
    spans = [(changes[0].at_ns, changes[-1].at_ns)]
    first = changes[0]
    scale = _scale_of(first.size_s)
    if len(changes) == 2 and _cancel(*changes):
        away_s = (changes[1].at_ns - first.at_ns) / 1e9
        what = (
            f'its clock was {_signed(first.size_s)} off from {_since(line, first.at_ns):.1f} s to '
            f'{_since(line, changes[1].at_ns):.1f} s, and came back after {lasting(away_s)}{scale}'
        )
        evidence['returned_at_s'] = _since(line, changes[1].at_ns)
    elif len(changes) == 1:
        what = (
            f'its clock stepped by {_signed(first.size_s)} at '
            f'{_since(line, first.at_ns):.1f} s{scale}'
        )
    else:
        sizes = np.array([change.size_s for change in changes])
        each = (
            f'by {_signed(float(np.median(sizes)))} each'
            if np.ptp(sizes) < 2.0 * SLACK_S + SAME * abs(float(np.median(sizes)))
            else f'by up to {_signed(float(sizes[np.argmax(np.abs(sizes))]))}'
        )
        what = (
            f'its clock stepped {times(len(changes))}, {each}, first at '
            f'{_since(line, first.at_ns):.1f} s'
        )
    sure = all(change.sure for change in changes)
    if not sure:
        what += ', or its latency changed by that: its stamps are too uneven to tell'
    return found('clock_step', WRONG if sure else WARNING, name, what, evidence, spans=spans)


def _cancel(one: LevelChange, other: LevelChange) -> bool:
    return abs(one.size_s + other.size_s) < max(SLACK_S, SAME * abs(one.size_s))


def _scale_of(size_s: float) -> str:
    for amount_s, scales in ((TAI_S, 'TAI and UTC'), (GPS_S, 'GPS time and UTC')):
        if abs(abs(size_s) - amount_s) < 0.1:
            return f': it changed between {scales}'
    if abs(abs(size_s) - 1.0) < 0.01:
        return ': a whole second, as a lost PPS or a leap second makes it'
    halves = round(size_s / HALF_HOUR_S)
    if 0 < abs(halves) <= MOST_HALVES and abs(size_s - halves * HALF_HOUR_S) < 1.0:
        return ': whole half hours, as a change of the time zone makes them'
    return ''
