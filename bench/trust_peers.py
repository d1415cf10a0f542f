"""Other ways to find an offset, scored beside the engine; each takes streams, returns a track."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rig_common.arrays import Floats
from rig_common.quaternions import matrix_from_wxyz
from sensor_rig.trust.replay import Estimator, Track
from sensor_rig.trust.streams import Streams
from sync_engine.clocks.clock_filter import MotionPrior
from sync_engine.cues.gyro import GyroTrack
from sync_engine.cues.motion import Rotation
from sync_engine.cues.mounting import Mounting
from sync_engine.cues.turn_rows import GRID_STEP_S, STRAY_STEPS, TurnRows

NS = 1e9
EVERY_S = 1.0
_GRID_S = 0.3


def _track(streams: Streams, times_ns: Floats, offsets_ns: Floats, fixes: int = 1) -> Track:
    """Return a track without claims: peers say what, not how sure."""
    count = len(times_ns)
    return Track(
        times_ns.astype(np.int64),
        np.rint(offsets_ns).astype(np.int64),
        np.full(count, np.nan),
        np.zeros(count, dtype=np.bool_),
        0,
        fixes,
        0,
    )


def _own(streams: Streams) -> tuple[Floats, Floats]:
    own = ~streams.is_imu
    return streams.arrival_ns[own].astype(np.float64), streams.stamp_ns[own].astype(np.float64)


def _declared_ns(streams: Streams) -> float:
    inputs = streams.config.inputs
    return NS * (inputs[streams.sensor].latency_s - inputs[streams.imu].latency_s)


def _least_delay_imu(streams: Streams) -> float:
    imu = streams.is_imu
    return float(np.min(streams.arrival_ns[imu] - streams.stamp_ns[imu]))


def arrival_hull(streams: Streams) -> Track:
    """Smallest arrival minus stamp so far, less the declared latency."""
    arrivals, stamps = _own(streams)
    least = np.minimum.accumulate(arrivals - stamps)
    return _track(streams, arrivals, _least_delay_imu(streams) - least + _declared_ns(streams))


def kalman_on_arrivals(streams: Streams) -> Track:
    """Random walk of the offset, every arrival a measurement with the declared latency."""
    arrivals, stamps = _own(streams)
    z = stamps - arrivals + _least_delay_imu(streams) + _declared_ns(streams)
    noise, walk = (2e-3 * NS) ** 2, (1e-5 * NS) ** 2
    offset, variance, found = z[0], noise, []
    for k in range(len(z)):
        variance += walk * (arrivals[k] - arrivals[max(k - 1, 0)]) / NS
        gain = variance / (variance + noise)
        offset += gain * (z[k] - offset)
        variance *= 1.0 - gain
        found.append(offset)
    return _track(streams, arrivals, np.array(found))


def _by_turns(
    window_s: float, find: Callable[[Streams, list[int], GyroTrack], float | None]
) -> Estimator:
    """Return an estimator that looks at the turns of the last `window_s` once a second."""

    def estimate(streams: Streams) -> Track:
        gyro = _whole_gyro(streams)
        arrivals, stamps = _own(streams)
        rough = float(np.median(stamps - arrivals)) + _declared_ns(streams)
        known, due, found = rough, arrivals[0] + 8.0 * NS, []
        ends = streams.arrival_ns[[index for index, _ in streams.turns]]
        for arrival in arrivals:
            if arrival >= due:
                due += EVERY_S * NS
                chosen = np.flatnonzero(
                    (ends <= arrival - 1.0 * NS) & (ends > arrival - window_s * NS)
                )
                value = find(streams, chosen.tolist(), gyro) if len(chosen) > 30 else None
                known = known if value is None else value
            found.append(known)
        return _track(streams, arrivals, np.array(found))

    return estimate


def _fit(sizes: bool) -> Callable[[Streams, list[int], GyroTrack], float | None]:
    """Least squares of the turns over the gyro, by size or by three axes that are known."""

    def find(streams: Streams, chosen: list[int], gyro: GyroTrack) -> float | None:
        from sync_engine.cues.runner import used_part

        turns = [streams.turns[k][1] for k in chosen]
        used = [
            used
            for turn in turns
            if (used := used_part(turn, 'size' if sizes else 'vector')) is not None
        ]
        arrivals, stamps = _own(streams)
        assumed = round(float(np.median(stamps - arrivals)) + _declared_ns(streams))
        found = searched(used, assumed, gyro)
        return None if found is None else assumed + NS * found

    return find


def pieces(streams: Streams) -> Track:
    """Three-axis fits of one-second pieces, all of history by its information, hull's drift."""
    gyro = _whole_gyro(streams)
    arrivals, stamps = _own(streams)
    assumed = float(np.median((stamps - arrivals)[: 5 * len(stamps) // 60 + 5]))
    assumed += _declared_ns(streams)
    ends = streams.arrival_ns[[index for index, _ in streams.turns]]
    starts = np.arange(arrivals[0], arrivals[-1], EVERY_S * NS)
    least = [np.min((arrivals - stamps)[(arrivals >= t) & (arrivals < t + NS)], initial=np.inf)
             for t in starts]  # fmt: skip
    normal, pull, delta, bias = np.zeros((4, 4)), np.zeros(4), 0.0, np.zeros(3)
    normal[1:, 1:] = np.eye(3) / 0.02**2
    known, found, k = [assumed], [0], 0
    total: list[Rotation] = []
    for k, start in enumerate(starts):
        chosen = np.flatnonzero((ends >= start - NS) & (ends < start))
        piece = [streams.turns[each][1] for each in chosen]
        drift = _hull_drift(starts[: k + 1] / NS, np.array(least[: k + 1]))
        total += piece
        if len(total) >= 100 and piece:
            again = total if not pull.any() else piece  # the first fit searches, and counts once
            rows = TurnRows(again, round(assumed + drift))
            rows.look_at(gyro, _GRID_S + STRAY_STEPS * GRID_STEP_S)
            if not pull.any():
                delta = searched(again, round(assumed + drift), gyro) or 0.0
            for _ in range(3):
                residual, jacobian = rows.linear(delta, bias, _true_mounting().matrix, 1.0)
                j = jacobian[:, :4] / rows.sigmas[:, None]
                value = residual / rows.sigmas + j @ np.concatenate([[delta], bias])
                step_normal, step_pull = normal + j.T @ j, pull + j.T @ value
                delta, *rest = np.linalg.solve(step_normal, step_pull)
                bias = np.array(rest)
            normal, pull = step_normal, step_pull
        known.append(assumed + drift + NS * delta)
        found.append(start)
    index = np.searchsorted(np.array(found), arrivals, 'right') - 1
    return _track(streams, arrivals, np.array(known)[index])


def _hull_drift(times_s: Floats, least_ns: Floats) -> float:
    """Return by how much the least delays drifted since the first (ns): a line, 30 ppm prior."""
    good = np.isfinite(least_ns)
    x = times_s[good] - times_s[0]
    y = least_ns[good] - np.median(least_ns[good][:5])
    a = np.stack([np.ones_like(x), x], axis=1)
    noise = 0.5e6
    normal = a.T @ a / noise**2 + np.diag([0.0, 1.0 / 3e4**2])
    return -float(np.linalg.solve(normal, a.T @ y / noise**2)[1] * (times_s[-1] - times_s[0]))


def _whole_gyro(streams: Streams) -> GyroTrack:
    gyro = GyroTrack(1e6)
    imu = streams.is_imu
    for stamp, rate in zip(
        streams.stamp_ns[imu].tolist(), streams.gyro[imu].tolist(), strict=True
    ):
        gyro.add(stamp, *rate)
    return gyro


def searched(turns: list[Rotation], assumed_ns: int, gyro: GyroTrack) -> float | None:
    """Return where the valley's bottom is, against what is assumed (s)."""
    rows = TurnRows(turns, assumed_ns)
    rows.look_at(gyro, _GRID_S + STRAY_STEPS * GRID_STEP_S)
    prior = MotionPrior(np.zeros(8), np.diag([1e3, *[0.02**2] * 3, *[1e-8] * 4]))
    settled = rows.settle(rows.search(_GRID_S, 1e3, prior, _true_mounting()).point, prior)
    return None if settled is None else settled[0].delta_s


def _true_mounting() -> Mounting:
    from support.trust_streams import OPTICAL_WXYZ

    return Mounting(matrix_from_wxyz(OPTICAL_WXYZ))


def _correlation(streams: Streams, chosen: list[int], gyro: GyroTrack) -> float | None:
    """Cross-correlation of the sizes of both rates at 200 Hz, parabola at its peak."""
    turns = [streams.turns[k][1] for k in chosen]
    middles = np.array([0.5 * (t.stamp_from_ns + t.stamp_to_ns) for t in turns])
    sizes = np.array(
        [np.linalg.norm(t.values_rad) * NS / (t.stamp_to_ns - t.stamp_from_ns) for t in turns]
    )
    arrivals, stamps = _own(streams)
    assumed = float(np.median(stamps - arrivals)) + _declared_ns(streams)
    grid = np.arange(middles[0] + _GRID_S * NS, middles[-1] - _GRID_S * NS, 5e6)
    imu = streams.is_imu
    theirs = np.linalg.norm(streams.gyro[imu], axis=1)
    theirs_at = streams.stamp_ns[imu].astype(np.float64)
    ours = np.interp(grid, middles, sizes)
    ours -= ours.mean()
    lags = np.arange(-_GRID_S, _GRID_S + 1e-9, 5e-3) * NS
    scores = []
    for lag in lags:
        other = np.interp(grid - assumed - lag, theirs_at, theirs)
        scores.append(float(ours @ (other - other.mean())) / float(np.std(other) + 1e-9))
    best = int(np.argmax(scores))
    if not 0 < best < len(lags) - 1:
        return None
    left, middle, right = scores[best - 1 : best + 2]
    shift = 0.5 * (left - right) / (left - 2.0 * middle + right)
    return assumed + float(lags[best]) + shift * 5e6


PEERS: dict[str, Estimator] = {
    'arrival hull': arrival_hull,
    'Kalman on arrivals': kalman_on_arrivals,
    'norm correlation, 8 s': _by_turns(8.0, _correlation),
    'norm least squares, 8 s': _by_turns(8.0, _fit(sizes=True)),
    'three axes, 8 s': _by_turns(8.0, _fit(sizes=False)),
    'three axes, all history': _by_turns(1e6, _fit(sizes=False)),
    'three axes, pieces of a second': pieces,
}
"""With three axes the mounting is known to the peers, but not to the engine."""
