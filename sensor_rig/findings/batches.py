"""Messages that arrive in batches, on one topic or on all topics of one reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from rig_common.arrays import Flags
from sensor_rig.findings.kinds import found
from sensor_rig.findings.model import WARNING, Finding, lasting
from sensor_rig.findings.timeline import TimeLine, robust_sigma

AT_ONCE = 0.2
"""Of a mean wait: what comes sooner comes with the one before."""
LEAST = 0.2
"""Share of messages that come with the one before, in a stream of batches."""
STEADY = 0.1
"""Spread of the times between batches, as a part of them."""
NEAR_NS, MOSTLY, BY_CHANCE = 2_000_000, 0.8, 0.3
FEW = 20


def with_the_one_before(line: TimeLine) -> Flags:
    """Return which messages come at once with the one before, the first left out."""
    return np.asarray(line.waits_s < AT_ONCE * line.arrival_period_s)


def is_batched(line: TimeLine) -> bool:
    """Return whether messages come in batches although they were measured one by one."""
    if line.count < FEW or line.arrival_period_s <= 0.0:
        return False
    together = with_the_one_before(line)
    one_stamp = line.steps_s == 0.0
    apart = line.steps_s > 0.5 * line.arrival_period_s
    told = together & (apart | (one_stamp & (line.waits_s < 1e-5)))
    return float(told.mean()) > LEAST


def is_stamped_in_batches(line: TimeLine) -> bool:
    """Return whether stamps come in batches as messages do, one batch as long after the other."""
    if line.count < FEW or line.arrival_period_s <= 0.0:
        return False
    together = with_the_one_before(line)
    alike = np.abs(line.steps_s - line.waits_s) < AT_ONCE * line.arrival_period_s
    intervals = line.waits_s[~together]
    if len(intervals) < FEW:
        return False
    steady = robust_sigma(intervals) < STEADY * float(np.median(intervals))
    return bool(alike.mean() > MOSTLY and together.mean() > 0.5 and steady)


def batch_interval_s(line: TimeLine) -> float:
    """Return the usual time from one batch to the next, s."""
    waits = line.waits_s[~with_the_one_before(line)]
    return float(np.percentile(waits, 90)) if len(waits) else 0.0


def grains(lines: Mapping[str, TimeLine]) -> dict[str, float]:
    """Return by how much arrivals of each topic beat with its stamps, s; 0 without batches.

    A slow topic comes one by one, but with the batches of a fast one that has the same reader.
    """
    batched = {name: batch_interval_s(line) for name, line in lines.items() if is_batched(line)}
    found_s = {name: batched.get(name, 0.0) for name in lines}
    for name, line in lines.items():
        for other, interval_s in batched.items():
            if name in batched or line.count < FEW or interval_s * 1e9 * BY_CHANCE < 2 * NEAR_NS:
                continue
            theirs = lines[other].arrivals_ns
            at = np.clip(np.searchsorted(theirs, line.arrivals_ns), 1, len(theirs) - 1)
            near = np.minimum(
                np.abs(theirs[at] - line.arrivals_ns), np.abs(theirs[at - 1] - line.arrivals_ns)
            )
            if float((near < NEAR_NS).mean()) > MOSTLY:
                found_s[name] = max(found_s[name], interval_s)
    return found_s


def batch_findings(name: str, line: TimeLine, *, of_imu: bool = False) -> Iterator[Finding]:
    """Yield batches: how many messages come at once, and what that does to arrivals.

    An IMU measures evenly: its stamps come in batches where the host writes them.
    """
    by_host = of_imu and is_stamped_in_batches(line)
    if not by_host and not is_batched(line):
        return
    together = with_the_one_before(line)
    sizes = np.diff(np.flatnonzero(np.concatenate([[True], ~together, [True]])))
    size = float(np.mean(sizes))
    usual = int(np.median(sizes))
    even = float((sizes == usual).mean()) > 0.8
    interval_s = batch_interval_s(line)
    late_s = (size - 1.0) * line.arrival_period_s
    one_stamp = float((line.steps_s[together] == 0.0).mean()) > 0.5
    stamps = ', and are stamped then' if by_host else ''
    stamps = ', and all of a batch carry one stamp' if one_stamp else stamps
    yield found(
        'arrivals_in_batches',
        WARNING,
        name,
        f'messages arrive in batches of {usual if even else f"{size:.1f} on average"}, one every '
        f'{lasting(interval_s)}{stamps}: their first waits {lasting(late_s)} for the last, so '
        f'that an offset that rests on arrivals is late by {lasting(late_s / 2.0)} on average',
        {
            'batch': size,
            'interval_ms': interval_s * 1e3,
            'late_ms': late_s * 1e3,
            'share': float(together.mean()),
        },
    )
