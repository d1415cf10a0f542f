from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sync_feeder import MS, T0, Feeder, exact

from rig_common.arrays import Floats
from sync_engine.engine import SyncEngine
from sync_engine.matching.bundle import MissingReason
from sync_engine.matching.interpolate import (
    CannotInterpolate,
    Kind,
    interpolate,
    interpolate_field,
    slerp,
)


def about_z(angle: float) -> Floats:
    return np.array([0.0, 0.0, np.sin(angle / 2), np.cos(angle / 2)])


@given(st.floats(-3.0, 3.0), st.floats(-3.0, 3.0), st.floats(0.0, 1.0), st.booleans())
def test_slerp_turns_evenly_the_short_way(
    start: float, end: float, fraction: float, flip: bool
) -> None:
    turn = (end - start + np.pi) % (2 * np.pi) - np.pi
    if abs(abs(turn) - np.pi) < 1e-3:
        return  # both ways are equally short
    result = slerp(about_z(start), about_z(end) * (-1 if flip else 1), fraction)
    expected = about_z(start + fraction * turn)
    assert np.linalg.norm(result) == pytest.approx(1.0)
    assert abs(float(result @ expected)) == pytest.approx(1.0, abs=1e-9)


def test_orientations_that_hardly_differ_have_one_between_them() -> None:
    turn = 1e-7
    for fraction in (0.25, 0.75):
        result = slerp(about_z(0.0), about_z(turn), fraction)
        assert result == pytest.approx([0.0, 0.0, fraction * turn / 2, 1.0], rel=1e-6)
    rng = np.random.default_rng(3)
    for quaternion in rng.normal(size=(50, 4)):  # of any length; their product may pass 1
        result = slerp(quaternion, 2.0 * quaternion, 0.3)
        assert result == pytest.approx(quaternion / np.linalg.norm(quaternion), abs=1e-12)


def test_the_length_of_a_quaternion_is_no_weight() -> None:
    many = slerp(
        np.array([about_z(0.0), 3.0 * about_z(1.0)]),
        np.array([5.0 * about_z(1.0), about_z(2.0)]),
        0.25,
    )
    assert many == pytest.approx(np.array([about_z(0.25), about_z(1.25)]))


def test_kinds() -> None:
    a, b = np.array([1.0, 3.0]), np.array([2.0, 5.0])
    assert interpolate_field(Kind.LINEAR, a, b, 0.25) == pytest.approx([1.25, 3.5])
    assert interpolate_field(Kind.NEAREST, a, b, 0.4) is a
    assert interpolate_field(Kind.NEAREST, a, b, 0.5) is b
    angle = interpolate_field(Kind.ANGLE_RAD, np.array([3.0]), np.array([-3.0]), 0.5)
    assert angle == pytest.approx([np.pi])


@given(st.integers(-40, 40), st.integers(-40, 40), st.sampled_from([0.0, 0.25, 0.5, 1.0]))
def test_angles_turn_the_short_way_and_stay_within_half_a_turn(
    start: int, end: int, fraction: float
) -> None:
    step = np.pi / 16
    turn = (end - start + 16) % 32 - 16
    (result,) = interpolate_field(
        Kind.ANGLE_RAD, np.array([start * step]), np.array([end * step]), fraction
    )
    assert -np.pi < result <= np.pi + 1e-12
    if turn != -16:  # else both ways are equally short
        expected = start * step + fraction * turn * step
        assert np.cos(result - expected) == pytest.approx(1.0, abs=1e-9)


def test_what_is_not_interpolated_is_that_of_the_nearer_packet() -> None:
    class Reading:
        kinds: Mapping[str, Kind] = {'value': Kind.LINEAR}

        def decode(self, payload: Any) -> Mapping[str, Floats]:
            return {'value': np.array([payload[1]])}

        def encode(self, payload: Any, values: Mapping[str, Floats]) -> Any:
            return payload[0], float(values['value'][0])

    found = [
        interpolate(Reading(), ('first', 10.0), ('second', 20.0), part)
        for part in (0.25, 0.5, 0.75)
    ]
    assert found == [('first', 12.5), ('second', 15.0), ('second', 17.5)]


@pytest.mark.parametrize(
    ('kind', 'a', 'b'),
    [
        (Kind.LINEAR, [1.0], [1.0, 2.0]),
        (Kind.LINEAR, [1.0], [np.nan]),
        (Kind.LINEAR, [np.inf], [1.0]),
        (Kind.SLERP_XYZW, [0.0] * 4, [0.0, 0.0, 0.0, 1.0]),
    ],
)
def test_what_does_not_fit_is_refused(kind: Kind, a: list[float], b: list[float]) -> None:
    with pytest.raises(CannotInterpolate):
        interpolate_field(kind, np.array(a), np.array(b), 0.5)


class Number:
    """A payload 'name@stamp' whose value is its stamp in ms after T0."""

    kinds: Mapping[str, Kind] = {'value': Kind.LINEAR}

    def decode(self, payload: Any) -> Mapping[str, Floats]:
        stamp = payload.split('@')[1]
        return {'value': np.array([(int(stamp) - T0) / MS])}

    def encode(self, payload: Any, values: Mapping[str, Floats]) -> Any:
        return float(values['value'][0])


def feeder(max_gap_s: float = 0.5, codec: bool = True) -> Feeder:
    section = exact(
        'a b',
        missing_strategy='interpolate',
        window={'min_ms': 20.0, 'max_ms': 20.0},
        inputs={'b': {'max_gap_s': max_gap_s, 'deadline_s': 0.4}},
    )
    return Feeder(SyncEngine(section, codecs={'b': Number()} if codec else None))


def with_a_hole(max_gap_s: float) -> Feeder:
    """Feed two reference frames, and a partner whose frames are 200 ms apart."""
    feed = feeder(max_gap_s)
    feed.push('b', 50)
    feed.push('a', 50)
    feed.push('a', 130)
    feed.push('b', 250)
    return feed


def test_a_hole_is_filled_and_flagged() -> None:
    feed = with_a_hole(0.5)
    member = feed.bundles[-1].members['b']
    assert member.interpolated
    assert not member.missing
    assert member.payload == pytest.approx(130.0)  # between one already bundled and the next
    assert member.time_delta_ns == 0
    assert feed.engine.ledger['b'].bundled == 1


def test_never_across_a_long_gap() -> None:
    feed = with_a_hole(0.1)
    assert len(feed.bundles) == 1
    assert feed.engine.status().bundles_dropped == {'b: gap_too_long': 1}


def test_a_gap_of_just_the_longest_is_bridged() -> None:
    feed = with_a_hole(0.2)
    assert feed.bundles[-1].members['b'].payload == pytest.approx(130.0)


def test_a_frame_that_expired_before_its_reference_came_still_gives_its_value() -> None:
    feed = feeder()
    feed.push('b', 100)
    feed.push('b', 150, 1090)
    feed.poll(1120)
    assert feed.engine.ledger['b'].expired == 1
    (bundle,) = feed.push('a', 100, 1150)
    assert bundle.members['b'].interpolated
    assert bundle.members['b'].payload == 100.0


@pytest.mark.parametrize('only', [50, 250])
def test_one_neighbour_is_not_enough(only: int) -> None:
    feed = feeder()
    for name, stamp in sorted([('a', 130), ('b', only)], key=lambda each: each[1]):
        feed.push(name, stamp)
    feed.poll(1000)
    assert not feed.bundles
    assert feed.engine.status().bundles_dropped == {'b: gap_too_long': 1}


def test_neighbours_that_do_not_fit_together_are_refused_with_a_reason() -> None:
    class Growing(Number):
        def decode(self, payload: Any) -> Mapping[str, Floats]:
            return {'value': np.zeros(1 + int(super().decode(payload)['value'][0]) // 100)}

    feed = feeder()
    feed.engine = SyncEngine(feed.engine.config, codecs={'b': Growing()})
    feed.push('b', 50)
    feed.push('a', 130)
    feed.push('b', 250)
    assert not feed.bundles
    assert feed.engine.status().bundles_dropped == {'b: not_interpolable': 1}


def test_what_nobody_can_decode_is_refused_with_a_reason() -> None:
    feed = feeder(codec=False)
    feed.push('b', 50)
    feed.push('a', 130)
    feed.push('b', 250)
    assert feed.engine.status().bundles_dropped == {
        f'b: {MissingReason.NOT_INTERPOLABLE.value}': 1
    }
