"""What a table says: on tables whose answer is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rig_common.errors import RigError
from sensor_rig.sweep.analysis.study import Study, mean_interval
from sensor_rig.sweep.analysis.tolerance_page import tolerance_page
from sensor_rig.sweep.bisecting import further_points
from sensor_rig.sweep.plan.sampling import points
from sensor_rig.sweep.plan.sweep_plan import Plan, plan_of
from sensor_rig.sweep.running.experiment import Task
from sensor_rig.sweep.running.outcome import RunResult, RunStatus


def study(plan: Plan, function: Any) -> Study:
    """Return the study of a plan whose measure `e` is `function(values, seed)`."""
    rows = [
        (index, values, seed) for index, values in enumerate(points(plan)) for seed in plan.seeds
    ]
    columns: dict[str, list[Any]] = {
        'run_id': [str(number) for number in range(len(rows))],
        'status': ['ok'] * len(rows),
        'exit_code': [0] * len(rows),
        'seed': [seed for _, _, seed in rows],
        'recording': [None] * len(rows),
        'point': [index for index, _, _ in rows],
    }
    for at, name in enumerate(plan.vary):
        columns[name] = [values[at] for _, values, _ in rows]
    columns['e'] = [function(values, seed) for _, values, seed in rows]
    return Study(plan, 'known', columns)


def grid(**keys: Any) -> Plan:
    return plan_of(
        {
            'rig': 'demo',
            'limits': ['e < 1'],
            'seeds': 6,
            **{'vary': {'a': {'from': 0.0, 'to': 1.0, 'count': 11}}, **keys},
        }
    )


def test_curve_boundary_and_page() -> None:
    found = study(grid(), lambda values, seed: 2.0 * values[0] + 0.01 * seed)
    (line,) = found.lines
    assert (line.boundaries[0].low, line.boundaries[0].high) == (0.4, 0.5)
    curve = found.curve('a', 'e')
    assert curve[3].mean == pytest.approx(0.6 + 0.025) and curve[3].runs == 6
    mean, low, high = mean_interval([1.0, 2.0, 4.0], 0.95)
    assert (mean, low, high) == pytest.approx((7 / 3, -1.4612, 6.1279), abs=1e-3)
    page = tolerance_page(found)
    assert page.count('<svg') == 2 and 'http' not in page and '0.4 to 0.5' in page


@pytest.mark.parametrize(
    ('up_to', 'success', 'met'),
    [(0.4, 0.5, True), (0.5, 0.5, False), (0.4, 0.9, False), (0.05, 0.5, True)],
)
def test_requirements(up_to: float, success: float, met: bool) -> None:
    plan = grid(require=[{'factor': 'a', 'up_to': up_to, 'success': success}])
    found = study(plan, lambda values, seed: 2.0 * values[0])
    assert found.met is met
    says = found.verdicts[0].says
    assert ('it takes 29 runs' in says) == (success == 0.9)
    assert f'up to {up_to:g}' in says


def test_two_factors_have_lines_and_a_heat_map() -> None:
    plan = grid(vary={'a': {'from': 0.0, 'to': 1.0, 'count': 5}, 'b': [0.0, 0.5]})
    found = study(plan, lambda values, seed: values[0] + values[1])
    ends = {
        line.others['b']: line.boundaries
        for line in found.lines
        if line.factor == 'a' and line.others
    }
    assert (ends[0.0][0].low, ends[0.0][0].high) == (0.75, 1.0)
    assert (ends[0.5][0].low, ends[0.5][0].high) == (0.25, 0.5)
    (heat,) = found.interactions
    assert heat.good == ((1.0, 1.0, 1.0, 1.0, 0.0), (1.0, 1.0, 0.0, 0.0, 0.0))
    assert tolerance_page(found).count('aria-label="fraction of good runs"') == 1


def test_indices_of_a_known_function() -> None:
    """Ishigami's function: the first of three factors explains 31 %, the second 44 % alone."""
    pytest.importorskip('SALib')
    three = {name: {'from': -np.pi, 'to': np.pi} for name in 'abc'}

    def ishigami(values: Any, seed: int) -> float:
        a, b, c = values
        return float(np.sin(a) + 7.0 * np.sin(b) ** 2 + 0.1 * c**4 * np.sin(a))

    found, good = study(
        grid(vary=three, seeds=1, limits=['e < 5'], sample={'method': 'saltelli', 'count': 1024}),
        ishigami,
    ).indices
    first = [each.first for each in found.factors]
    total = [each.total for each in found.factors]
    assert first == pytest.approx([0.314, 0.442, 0.0], abs=0.05)
    assert total == pytest.approx([0.558, 0.442, 0.244], abs=0.05)
    assert good.measure == 'good'
    effects, _ = study(
        grid(vary=three, seeds=1, limits=['e < 5'], sample={'method': 'morris', 'count': 60}),
        ishigami,
    ).indices
    assert all(each.total > 1.0 for each in effects.factors)


def test_a_limit_that_no_run_has() -> None:
    with pytest.raises(RigError, match=r"did you mean 'e'|there are e"):
        study(grid(limits=['ate < 1']), lambda values, seed: 1.0)


@pytest.mark.parametrize(('true', 'whole'), [(0.317, False), (37.0, True)])
def test_bisecting_ends_around_the_boundary(true: float, whole: bool) -> None:
    plan = grid(
        vary={'a': [0, 50, 100] if whole else {'from': 0.0, 'to': 1.0, 'count': 3}},
        refine=True if whole else {'to': 0.01},
    )
    tasks: list[Task] = []
    results: dict[str, RunResult] = {}
    new = list(points(plan))
    rounds = 0
    while new and rounds < 30:
        rounds += 1
        for values in new:
            key = str(values)
            tasks.append(Task(key, values, 0, -1))
            results[key] = RunResult(RunStatus.OK, {'e': 2.0 if values[0] > true else 0.0})
        new = list(further_points(plan, tasks, results))
    below = max(task.values[0] for task in tasks if results[task.id].measures['e'] == 0.0)
    above = min(task.values[0] for task in tasks if results[task.id].measures['e'] == 2.0)
    assert below <= true < above
    assert above - below <= (2 if whole else 0.01) and rounds <= 8
    assert all(isinstance(task.values[0], int) for task in tasks) == whole
