"""Which points a plan runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rig_common.errors import RigError
from sensor_rig.sweep.plan.dotted_keys import with_values
from sensor_rig.sweep.plan.sampling import levels, points, units
from sensor_rig.sweep.plan.sweep_plan import Plan, plan_of


def plan(**keys: Any) -> Plan:
    return plan_of({'rig': 'demo', **keys})


def test_levels() -> None:
    vary = plan(
        vary={
            'a': [0.1, 'x', [1.0, 2.0], True],
            'b': {'from': 0.0, 'to': 0.3, 'count': 4},
            'c': {'from': 0.0, 'to': 0.3, 'step': 0.1},
            'd': {'from': 0.001, 'to': 1.0, 'count': 4, 'scale': 'log'},
        }
    ).vary
    assert levels(vary['a']) == [0.1, 'x', [1.0, 2.0], True]
    assert levels(vary['b']) == [0.0, 0.1, 0.2, 0.3] == levels(vary['c'])
    assert levels(vary['d']) == [0.001, 0.01, 0.1, 1.0]


def test_a_grid_has_all_combinations() -> None:
    found = list(points(plan(vary={'a': [1, 2], 'b': {'from': 0.0, 'to': 1.0, 'count': 3}})))
    assert found == [(a, b) for a in (1, 2) for b in (0.0, 0.5, 1.0)]
    assert list(points(plan())) == [()]


@pytest.mark.parametrize('method', ['random', 'lhs', 'sobol', 'saltelli', 'morris'])
def test_sampled_points_fill_the_range_and_repeat(method: str) -> None:
    if method in ('saltelli', 'morris'):
        pytest.importorskip('SALib')
    given = plan(
        vary={'a': {'from': -1.0, 'to': 3.0}, 'b': ['x', 'y', 'z']},
        sample={'method': method, 'count': 16, 'seed': 4},
    )
    found = list(points(given))
    assert found == list(points(given))
    numbers = [float(a) for a, _ in found]  # type: ignore[arg-type]
    assert -1.0 <= min(numbers) < 0.5 and 1.5 < max(numbers) <= 3.0
    assert {b for _, b in found} == {'x', 'y', 'z'}
    assert len(found) == {'saltelli': 16 * 4, 'morris': 16 * 3}.get(method, 16)


def test_a_latin_hypercube_has_one_point_in_every_row() -> None:
    cube = units(
        plan(vary={'a': {'from': 0, 'to': 1}}, sample={'method': 'lhs', 'count': 50}).sample, 3
    )
    for column in cube.T:
        assert sorted(np.floor(column * 50).astype(int)) == list(range(50))


def test_values_are_set_by_dotted_keys() -> None:
    before = {'sensors': {'a': {'rate_hz': 5.0, 'delay_range_s': [0.1, 0.2]}}}
    after = with_values(
        before,
        [
            ('sensors.a.rate_hz', 10),
            ('sensors.a.delay_range_s', 0.3),
            ('sensors.a.clock.offset_s', 0.5),
            ('seed', 3),
        ],
    )
    assert after == {
        'seed': 3,
        'sensors': {
            'a': {'rate_hz': 10.0, 'delay_range_s': [0.3, 0.3], 'clock': {'offset_s': 0.5}}
        },
    }
    assert before == {'sensors': {'a': {'rate_hz': 5.0, 'delay_range_s': [0.1, 0.2]}}}
    with pytest.raises(RigError, match='leads through'):
        with_values(before, [('sensors.a.rate_hz.x', 1)])


@pytest.mark.parametrize(
    ('keys', 'says'),
    [
        ({'vary': {'a': {'from': 0.0, 'to': 1.0}}}, 'without count or step'),
        ({'vary': {'a': {'from': 2.0, 'to': 1.0, 'count': 3}}}, 'to should be more'),
        ({'vary': {'a': {'from': 0.0, 'to': 1.0, 'count': 3, 'scale': 'log'}}}, 'more than zero'),
        ({'vary': {'a': [1, 1]}}, 'stands twice'),
        ({'vary': {'seed': [1, 2]}}, 'write seeds'),
        ({'vary': {'a': [1], 'x': {'keys': ['a'], 'values': [2]}}}, 'varies twice'),
        ({'seeds': 0}, 'number of seeds'),
        ({'seeds': [1, 1]}, 'different whole numbers'),
        ({'sample': {'method': 'sobol', 'count': 10}}, 'powers of two'),
        ({'system': {'python': 'a:b', 'command': ['x']}}, 'one system'),
        ({'limits': ['nonsense']}, 'is not a claim'),
        ({'require': [{'factor': 'a', 'up_to': 1.0}]}, 'does not vary'),
        ({'vary': {'a': [1]}, 'require': [{'factor': 'a', 'up_to': 1.0}]}, 'need limits'),
        ({'time_limit_s': 0.0}, 'greater than 0'),
    ],
)
def test_mistakes_are_told(keys: dict[str, Any], says: str) -> None:
    with pytest.raises(RigError, match=says):
        plan(**keys)
