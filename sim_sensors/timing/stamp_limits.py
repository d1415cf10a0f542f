"""Whether the stamps of a sensor fit into ROS time, which begins above 0 and ends in 2038."""

from __future__ import annotations

from rig_common.errors import RigError
from rig_common.times import NS_PER_S, TimeBase, seconds_to_ns
from sim_sensors.timing.config import TimingConfig
from sim_sensors.timing.faults import Faults
from sim_sensors.timing.schedule import Schedule

JITTERS = 10.0
"""Standard deviations of stamp jitter that are taken for possible."""
LATEST_NS = 2_140_000_000 * NS_PER_S
"""Less than the 2**31 s of a stamp by what a long run may last, 85 days."""


def require_stamps(
    where: str,
    config: TimingConfig,
    schedule: Schedule,
    base: TimeBase,
    faults: Faults | None = None,
) -> None:
    """Raise RigError where a stamp would be 0, negative or too large for ROS.

    `faults` are those of `config` unless others are known. A drift cannot turn a clock back, so
    that the first capture, and the first after each step of the clock, decide.
    """
    clock = config.clock
    if clock.stamp_at == 'arrival' or clock.counter_bits:
        return  # a counter shows 0 to its end, whatever it is off
    known = Faults(config.faults.values()) if faults is None else faults
    stamps_ns = []
    for time_ns in (0, *known.step_times_ns):
        capture_ns = schedule.next_time(time_ns - 1)
        stamps_ns.append(
            base.stamp_ns(capture_ns)
            + seconds_to_ns(clock.offset_s)
            + clock.tai_utc_s * NS_PER_S
            + round(capture_ns * clock.drift_ppm * 1e-6)
            + known.at(capture_ns).clock_step_ns
        )
    margin_ns = round(JITTERS * clock.stamp_jitter_s * NS_PER_S)
    lowest_ns = min(stamps_ns) - margin_ns
    start_s = base.start_ns / NS_PER_S
    if lowest_ns <= 0:
        needed_s = (base.start_ns - lowest_ns) / NS_PER_S
        raise RigError(
            f'{where}: its stamps would begin at {lowest_ns / NS_PER_S:.9g} s, but ROS time has '
            f'none at or below 0; give world.start_time_s (now {start_s:.12g}) more than '
            f'{needed_s:.12g}, or {_blamed(config, known)} a larger value'
        )
    if max(stamps_ns) + margin_ns > LATEST_NS:
        raise RigError(
            f'{where}: its stamps would begin at {max(stamps_ns) / NS_PER_S:.12g} s, but ROS time '
            f'ends at 2147483647 s; give world.start_time_s (now {start_s:.12g}) or '
            f'{_blamed(config, known)} a smaller value'
        )


def _blamed(config: TimingConfig, faults: Faults) -> str:
    """Return the keys that shift the clock."""
    step = ' and the offset of its clock_step faults' if faults.step_times_ns else ''
    return f'its clock.offset_s (now {config.clock.offset_s:.12g}){step}'
