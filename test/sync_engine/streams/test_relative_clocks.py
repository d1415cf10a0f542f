"""Offsets against the reference: which clock is meant, how sure it is, and what a bundle shows."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
from support.sync_feeder import MS, Feeder, config

from sync_engine.clocks.offset_state import OffsetState
from sync_engine.clocks.pairing import PairingOffset
from sync_engine.config import load_config
from sync_engine.engine import SyncEngine
from sync_engine.matching.bundle import Bundle
from sync_engine.streams.relative_clocks import relative_offset

INF = float('inf')


def run(
    partner: dict[str, Any],
    reference: dict[str, Any] | None = None,
    seconds: int = 4,
    offset_ms: int = 30,
    **more: Any,
) -> tuple[SyncEngine, Bundle]:
    """Play 10 Hz of `ref` and of `cam`, whose clock is `offset_ms` ahead; all arrive 5 ms late."""
    inputs = {
        'ref': {'latency_s': 0.005, 'latency_sigma_s': 1e-4, **(reference or {})},
        'cam': {'latency_s': 0.005, 'latency_sigma_s': 1e-4, **partner},
    }
    feeder = Feeder(SyncEngine(config(inputs, 'ref', required_sensors=['ref', 'cam'], **more)))
    for frame in range(10 * seconds):
        feeder.push('ref', 100 * frame, 100 * frame + 5)
        feeder.push('cam', 100 * frame + offset_ms, 100 * frame + 5.1)
    return feeder.engine, feeder.bundles[-1]


def test_a_bundle_shows_the_offset_that_paired_it_with_its_sigma_and_state() -> None:
    engine, bundle = run({})
    cam = bundle.members['cam']
    assert cam.offset_state is OffsetState.LOCKED
    assert cam.offset_ns == pytest.approx(30 * MS, abs=0.5 * MS)
    shown = engine.offset('cam')
    assert cam.offset_sigma_s == pytest.approx(shown.sigma_s, rel=0.1)
    own = engine.offset_to_host('cam').sigma_s, engine.offset_to_host('ref').sigma_s
    assert cam.offset_sigma_s == pytest.approx(math.hypot(*own), rel=0.15)
    assert (bundle.members['ref'].offset_ns, bundle.members['ref'].offset_state) == (
        0,
        OffsetState.LOCKED,
    )
    assert bundle.members['ref'].offset_sigma_s == pytest.approx(own[1], rel=0.1)


def test_a_wide_latency_keeps_an_offset_from_locking() -> None:
    engine, bundle = run({'latency_sigma_s': 0.02})
    cam = bundle.members['cam']
    assert cam.offset_state is OffsetState.CONVERGING
    assert 0.002 < cam.offset_sigma_s < 0.1
    assert engine.status().sensors['cam'].state is OffsetState.CONVERGING


@pytest.mark.parametrize('blind', ['cam', 'ref'])
def test_what_cannot_be_observed_corrects_nothing(blind: str) -> None:
    wide = {'latency_s': 0.5, 'latency_sigma_s': 0.5}
    _, bundle = run(
        wide if blind == 'cam' else {}, wide if blind == 'ref' else {}, window={'max_ms': 60.0}
    )
    cam = bundle.members['cam']
    assert cam.offset_state is OffsetState.UNOBSERVABLE
    assert cam.offset_sigma_s == INF
    assert cam.offset_ns == pytest.approx(0 if blind == 'cam' else 30 * MS, abs=0.5 * MS)


def test_a_stream_on_the_references_clock_has_no_offset_and_no_doubt() -> None:
    _, bundle = run({'clock_of': 'ref'}, offset_ms=0)
    cam = bundle.members['cam']
    assert (cam.offset_ns, cam.offset_sigma_s, cam.offset_state) == (0, 0.0, OffsetState.LOCKED)


def test_without_an_estimator_nothing_is_claimed() -> None:
    _, bundle = run({}, estimator='none')
    cam = bundle.members['cam']
    assert (cam.offset_ns, cam.offset_sigma_s) == (0, INF)
    assert cam.offset_state is OffsetState.UNOBSERVABLE


def test_the_pairing_estimator_never_claims_to_be_locked() -> None:
    _, bundle = run({}, estimator='pairing')
    cam = bundle.members['cam']
    assert cam.offset_state is OffsetState.CONVERGING
    assert 0.0 < cam.offset_sigma_s < 0.1


def test_a_triggered_stream_is_as_sure_as_its_pairs_are_alike() -> None:
    engine, bundle = run({'stamp_source': 'trigger', 'latency_sigma_s': 0.01})
    cam = bundle.members['cam']
    assert cam.offset_state is OffsetState.LOCKED
    assert cam.offset_ns == pytest.approx(30 * MS, abs=0.2 * MS)
    assert engine.status().sensors['cam'].rests_on == 'trigger'


def test_the_bundles_stamp_is_the_references_capture_on_the_hosts_clock() -> None:
    inputs = {name: {'latency_s': 0.005, 'latency_sigma_s': 1e-4} for name in ('ref', 'cam')}
    feeder = Feeder(SyncEngine(config(inputs, 'ref', required_sensors=['ref', 'cam'])))
    for frame in range(40):
        feeder.push('ref', 100 * frame - 80, 100 * frame + 5)  # its clock is 80 ms behind
        feeder.push('cam', 100 * frame, 100 * frame + 5.1)
    bundle = feeder.bundles[-1]
    ref = bundle.members['ref']
    assert bundle.stamp_ns == pytest.approx(ref.stamp_ns + 80 * MS, abs=0.5 * MS)
    assert ref.corrected_timestamp_ns == bundle.stamp_ns


def test_the_reference_has_no_offset_to_itself() -> None:
    engine, _ = run({})
    own = engine.offset('ref')
    assert (own.offset_ns, own.state) == (0, OffsetState.LOCKED)
    assert 0.0 < own.sigma_s < 0.01


def test_the_sigma_of_pairs_is_the_square_root_of_their_filters_variance() -> None:
    _, bundle = run({}, estimator='pairing', seconds=1, adakf={'process_noise': 1e-4})
    alone = PairingOffset(
        load_config(
            {'inputs': {'a': {}}, 'reference_sensor_id': 'a', 'adakf': {'process_noise': 1e-4}}
        ).adakf
    )
    for _ in range(bundle.sequence - 1):
        alone.update(0.03)
    cam = bundle.members['cam']
    assert cam.offset_sigma_s == pytest.approx(math.sqrt(alone.variance))
    assert cam.offset_ns == pytest.approx(alone.offset_s * 1e9, abs=1.0)


def clock(
    offset_ns: int, to_host: float, to_imu: float, bias: float, anchor_ns: int, anchor: str = 'imu'
) -> Any:
    """Return a clock of known variances (s^2), to the host and to the IMU, or another `anchor`."""
    return SimpleNamespace(
        anchor=anchor,
        variances=(to_host, to_imu),
        bias_var=bias,
        anchor_ns=anchor_ns,
        offset_ns=lambda time_ns: offset_ns,
    )


def test_two_clocks_are_compared_over_the_surer_of_host_and_imu() -> None:
    cam, lidar = clock(9000, 4e-6, 1e-8, 3e-8, 500), clock(2000, 5e-6, 2e-8, 6e-8, 100)
    difference, sigma_s = relative_offset(cam, lidar, 0)
    assert difference == 9000 - 2000 - 500 + 100  # over the IMU its own offset cancels
    assert sigma_s == pytest.approx(math.sqrt(1e-8 + 2e-8 + 3e-8 + 6e-8))
    gnss = clock(2000, 5e-6, 2e-8, 6e-8, 100, 'wheels')  # nothing that both were compared with
    difference, sigma_s = relative_offset(cam, gnss, 0)
    assert difference == 7000
    assert sigma_s == pytest.approx(math.sqrt(4e-6 + 5e-6 + 3e-8 + 6e-8))
    cam, lidar = clock(9000, 1e-8, 4e-6, 3e-8, 500), clock(2000, 2e-8, 5e-6, 6e-8, 100)
    difference, sigma_s = relative_offset(cam, lidar, 0)
    assert difference == 7000
    assert sigma_s == pytest.approx(math.sqrt(1e-8 + 2e-8 + 3e-8 + 6e-8))


def test_stamps_that_cannot_be_observed_are_host_time_to_a_reference_whose_clock_is_off() -> None:
    inputs = {
        'ref': {'latency_s': 0.005, 'latency_sigma_s': 1e-4},
        'cam': {'latency_s': 0.5, 'latency_sigma_s': 0.5},
    }
    feeder = Feeder(SyncEngine(config(inputs, 'ref', required_sensors=['ref', 'cam'])))
    for frame in range(40):
        feeder.push('ref', 100 * frame - 80, 100 * frame + 5)  # its clock is 80 ms behind
        feeder.push('cam', 100 * frame, 100 * frame + 5.1)
    cam = feeder.bundles[-1].members['cam']
    assert cam.offset_state is OffsetState.UNOBSERVABLE
    assert cam.offset_ns == pytest.approx(80 * MS, abs=0.5 * MS)
