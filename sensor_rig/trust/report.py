"""The verdict of a recording: one sentence a sensor, and the document that programs read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from rig_common.jsonable import JsonObject
from sensor_rig.trust.replay import engine_track
from sensor_rig.trust.scoring import Response, Score, score
from sensor_rig.trust.streams import read_streams
from sync_engine.config import SyncConfig

VERSION = 1
BLIND = 'a constant error of the cue cannot be seen this way'
KEPT = 400
"""Points of a series that go into the document."""


@dataclass(frozen=True)
class TrustReport:
    """What `rig trust` found."""

    source: str
    scores: tuple[Score, ...]

    @property
    def holds(self) -> bool:
        """Whether the claims of every sensor hold."""
        return all(each.holds for each in self.scores)

    @property
    def verdict(self) -> str:
        """Return one sentence for each sensor."""
        return ' '.join(verdict(each) for each in self.scores)

    def document(self) -> JsonObject:
        """Return the report as JSON values (docs/offsets.md)."""
        return {
            'version': VERSION,
            'source': self.source,
            'holds': self.holds,
            'verdict': self.verdict,
            'sensors': {each.sensor: _sensor(each) for each in self.scores},
        }


def trust_recording(
    path: str | Path,
    config: SyncConfig,
    advance: Callable[[float], None] = lambda done: None,
    sidecar: Path | None = None,
) -> TrustReport:
    """Score the offsets of every sensor of a recording that has a cue; `config` is a `sync:`.

    `advance` gets the number of messages read now and then; a `sidecar` corrects stamps.
    """
    streams = read_streams(path, config, advance, sidecar)
    return TrustReport(str(path), tuple(score(each, engine_track) for each in streams))


def verdict(found: Score) -> str:
    """Return in one sentence how far the offset of one sensor can be trusted."""
    what = f'{found.sensor} against {found.imu}'
    sigma = f'{found.sigma_s * 1e3:.2f} ms'
    if not found.observed:
        return (
            f'{what}: nothing to believe, motion told nothing, so the offset rests on arrival '
            f'times and on the declared latency (sigma {sigma}).'
        )
    same = found.consistency
    failed = [response.name for response in found.responses if not response.passed]
    followed = (
        f'all {len(found.responses)} injected changes were followed or refused as they should be'
        if not failed
        else f'{len(failed)} of {len(found.responses)} injected changes were neither followed nor '
        f'refused as they should be ({", ".join(failed)})'
    )
    if not same.enough:
        agree = f'there are too few stretches of {same.length_s:.0f} s with motion to compare'
    elif same.passed:
        agree = (
            f'{_observed(found)} stretches of {same.length_s:.0f} s agree within their '
            f'claims (NEES {same.nees:.2f}, spread {same.spread_s * 1e3:.2f} ms)'
        )
    else:
        agree = (
            f'{_observed(found)} stretches of {same.length_s:.0f} s disagree by '
            f'{same.spread_s * 1e3:.2f} ms where {same.claimed_s * 1e3:.2f} ms is claimed '
            f'(NEES {same.nees:.1f}, at most {same.nees_limit:.1f})'
        )
    if found.holds:
        return (
            f'{what}: believe its offset to {sigma} (one sigma): {followed}, and {agree}; {BLIND}.'
        )
    if not found.refuted:
        return f'{what}: the claimed {sigma} is not shown: {followed}, but {agree}; {BLIND}.'
    return f'{what}: do not believe the claimed {sigma}: {followed}, and {agree}; {BLIND}.'


def _observed(found: Score) -> int:
    return sum(stretch.observed for stretch in found.consistency.stretches)


def _sensor(found: Score) -> JsonObject:
    same = found.consistency
    return {
        'imu': found.imu,
        'holds': found.holds,
        'refuted': found.refuted,
        'verdict': verdict(found),
        'duration_s': found.duration_s,
        'sigma_ms': _number(found.sigma_s * 1e3),
        'locked': found.locked,
        'motion_fixes': found.base.fixes,
        'motion_refused': found.base.refused,
        'clock_steps': found.base.clock_steps,
        'responses': [_response(each) for each in found.responses],
        'consistency': {
            'passed': same.passed,
            'enough': same.enough,
            'length_s': same.length_s,
            'nees': _number(same.nees),
            'nees_limit': _number(same.nees_limit),
            'coverage': _number(same.coverage),
            'spread_ms': _number(same.spread_s * 1e3),
            'claimed_ms': _number(same.claimed_s * 1e3),
            'drift_ppm': _number(same.drift_ppm),
            'stretches': [
                {
                    'start_s': each.start_s,
                    'end_s': each.end_s,
                    'offset_ms': each.offset_ms,
                    'sigma_ms': _number(each.sigma_ms),
                    'observed': each.observed,
                }
                for each in same.stretches
            ],
        },
    }


def _response(each: Response) -> dict[str, object]:
    step = max(1, len(each.times_s) // KEPT)
    return {
        'change': each.name,
        'wanted': each.wanted.value,
        'passed': each.passed,
        'says': each.says,
        'error_ms': _number(each.error_s * 1e3),
        'sigma_ms': _number(each.sigma_s * 1e3),
        'motion_fixes': each.fixes,
        'extra_clock_steps': each.extra_steps,
        'series': [
            [round(time, 3), _number(error * 1e3), _number(sigma * 1e3)]
            for time, error, sigma in zip(
                each.times_s[::step].tolist(),
                each.errors_s[::step].tolist(),
                each.sigmas_s[::step].tolist(),
                strict=True,
            )
        ],
    }


def _number(value: float) -> float | None:
    return round(value, 6) if isfinite(value) else None
