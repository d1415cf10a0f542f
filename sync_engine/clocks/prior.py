"""What the declaration of an input says about its clock before any message has come.

Example: a device with `latency_s: 0.02` and `latency_sigma_s: 0.008`. Its first message sets the
offset to its stamp minus its arrival plus 20 ms. That is wrong by what the latency is wrong by, 8
ms, and by the jitter of that one arrival, 5 ms; the first part is shared with the latency, so more
arrivals take away the second part only.
"""

from __future__ import annotations

from sync_engine.clocks.clock_filter import ClockPrior
from sync_engine.config import AdaKFConfig, InputConfig, SyncConfig

_FIRST_ARRIVAL_SIGMA_S = 0.005
"""Jitter allowed for in the single arrival that starts a device clock."""
_TIED_SKEW_SIGMA = 1e-6
"""Skew of stamps that the host writes, or that PTP disciplines."""
_NO_IMU_SIGMA_S = 100.0


def declared_prior(
    given: InputConfig, config: AdaKFConfig, anchor_sigma_s: float, is_anchor: bool
) -> ClockPrior:
    """Return the prior of one input; `anchor_sigma_s` is how wrong the IMU's offset may be."""
    ptp = given.stamp_source == 'ptp'
    device = given.stamp_source in ('device', 'trigger')
    return ClockPrior(
        offset_s=config.initial_offset if ptp else given.latency_s,
        offset_sigma_s=config.ptp_sigma_s if ptp else _FIRST_ARRIVAL_SIGMA_S,
        latency_s=given.latency_s,
        latency_sigma_s=given.latency_sigma_s,
        skew_sigma=config.skew_sigma if device else _TIED_SKEW_SIGMA,
        anchor_sigma_s=anchor_sigma_s,
        is_anchor=is_anchor,
        tied=not ptp,
        wander_chance=given.cue_wander,
    )


def anchor_sigma_s(config: SyncConfig, anchor: str) -> float:
    """Return how wrong the offset to the host of the IMU, or of what motion is compared with
    instead, may be (s); huge where there is neither."""
    imu = config.inputs.get(anchor)
    if imu is None:
        return _NO_IMU_SIGMA_S
    return config.adakf.ptp_sigma_s if imu.stamp_source == 'ptp' else imu.latency_sigma_s
