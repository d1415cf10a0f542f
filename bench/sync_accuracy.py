"""How well clock offsets are found and frames are paired, against the truth.

    ./rig python -m bench.sync_accuracy [--quick] [--json FILE]

Synthetic streams (test/support/sync_streams.py), many seeds; the same messages go to the
engine and to every baseline. Errors are in milliseconds. `ratio` is a baseline's median over the
engine's.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from support.sync_runs import SENSORS, Run, make_config, run_engine
from support.sync_streams import Message, Scenario

from bench import sync_baselines as baselines
from bench.command import Result, run_as_program
from bench.figures import Figure, absent, greatest
from bench.sync_scans import scan_cue_rows
from bench.trust_peers import searched
from rig_common.arrays import Floats
from sync_engine.cues.gyro import GyroTrack
from sync_engine.cues.motion import Rotation

Row = dict[str, Any]
SETTLED_S = 30.0
"""Statistics start here; what comes before is convergence, which has rows of its own."""


def _row(case: str, values: Any, unit: str = 'ms', goal: str = '', met: bool | None = None) -> Row:
    data = np.asarray(values, dtype=np.float64)
    low, high = np.percentile(data, [25, 75])
    return {
        'case': case,
        'unit': unit,
        'median': float(np.median(data)),
        'p95': float(np.percentile(data, 95)),
        'spread': float(high - low),
        'ratio': None,
        'goal': goal,
        'met': met,
    }


def _offset_rows(fused: list[Run], others: dict[str, dict[str, Floats]]) -> list[Row]:
    rows = []
    for sensor in SENSORS:
        errors = np.concatenate([run.late(sensor, SETTLED_S) for run in fused])
        ours = _row(f'offset {sensor}: fused', errors, goal='median 0.5, p95 1.5')
        ours['met'] = ours['median'] <= 0.5 and ours['p95'] <= 1.5
        ours['ratio'] = 1.0
        rows.append(ours)
        for name, by_sensor in others.items():
            if len(by_sensor.get(sensor, ())):
                other = _row(f'offset {sensor}: {name}', by_sensor[sensor])
                other['ratio'] = other['median'] / ours['median']
                rows.append(other)
        host = np.concatenate([run.late(f'{sensor}/host', SETTLED_S) for run in fused])
        rows.append(_row(f'offset {sensor}: fused, against the host', host))
    between = np.concatenate([run.late('camera-lidar', SETTLED_S) for run in fused])
    rows.append(_row('offset camera to LiDAR: fused', between))
    return rows


def _convergence_rows(fused: list[Run]) -> list[Row]:
    rows = []
    for sensor in SENSORS:
        for limit_ms, goal_s in ((6.0, 5.0), (2.0, 10.0)):
            times = [run.inside_from_s(sensor, limit_ms / 1e3) for run in fused]
            case = f'{sensor} inside {limit_ms:.0f} ms, for 2 s and more, from'
            row = _row(case, times, 's', f'p95 <= {goal_s:.0f}')
            row['met'] = row['p95'] <= goal_s
            rows.append(row)
            last = [run.settled_s(sensor, limit_ms / 1e3) for run in fused]
            rows.append(_row(f'{sensor} last outside {limit_ms:.0f} ms', last, 's'))
        scaled = np.concatenate(
            [(run.errors[sensor] / run.sigmas[sensor])[run.times > 2.0] for run in fused]
        )
        share = 100.0 * float(np.mean(np.abs(scaled) < 2.0))
        row = _row(f'{sensor} error inside 2 sigma', [share], '%', '>= 90', share >= 90.0)
        rows.append(row)
    return rows


def _changed(without: Run, scenario: Scenario, sensor: str) -> tuple[Floats, Floats]:
    """Return times (s), and by how much the error differs from the run `without` the change (s).

    What noise makes of the estimate is in both, and is no effect of the step.
    """
    run = run_engine(scenario, make_config(scenario))
    count = min(len(run.times), len(without.times))
    change = np.abs(run.errors[sensor][:count] - without.errors[sensor][:count])
    return run.times[:count], change


def _step_rows(seeds: range) -> list[Row]:
    """Clock steps of 50 ms and latency steps of 15 ms, each against the same run without."""
    rows = []
    at_s, end_s = 25.0, 40.0
    for sensor in SENSORS:
        back, moved = [], []
        for seed in track(seeds, description=f'steps of the {sensor}', transient=True):
            plain = Scenario(seed, duration_s=end_s)
            without = run_engine(plain, make_config(plain))
            stepped = plain.with_sensor(sensor, clock_step=(at_s, 0.05))
            times, change = _changed(without, stepped, sensor)
            outside = times[(change > 0.002) & (times > at_s)]
            back.append(float(outside[-1] - at_s) if len(outside) else 0.0)
            slower = plain.with_sensor(sensor, latency_step=(at_s, 0.015))
            times, change = _changed(without, slower, sensor)
            moved.append(1e3 * float(change[times > at_s].max()))
        row = _row(f'{sensor} clock step +50 ms: back inside 2 ms', back, 's', 'all <= 3')
        row['met'] = max(back) <= 3.0
        rows.append(row)
        row = _row(f'{sensor} latency step +15 ms: offset moved', moved, goal='all < 1')
        row['met'] = max(moved) < 1.0
        rows.append(row)
    return rows


def _still_rows(seeds: range) -> list[Row]:
    """A body that hardly moves: the state must say so and the sigma must cover the error."""
    ratios, locked = [], 0
    for seed in track(seeds, description='too little motion', transient=True):
        scenario = Scenario(seed, duration_s=30.0, motion_scale=0.02)
        run = run_engine(scenario, make_config(scenario))
        for sensor in SENSORS:
            after = run.times > 2.0
            ratios.append(float(np.max(np.abs(run.errors[sensor] / run.sigmas[sensor])[after])))
            locked += run.states[sensor].value == 'locked'
    row = _row('hardly any motion: largest error over sigma', ratios, '', 'p95 <= 3, none locked')
    row['met'] = row['p95'] <= 3.0 and locked == 0
    return [row]


def _norm_only(scenario: Scenario, messages: list[Message], sensor: str) -> Floats:
    """Return |error| (ms) of separate 8 s fits of rotation sizes against the gyro."""
    gyro, truth = GyroTrack(1e4), scenario.sensors
    start = truth[sensor].offset_s - truth['imu'].offset_s
    for message in messages:
        if message.sensor_id == 'imu':
            gyro.add(message.stamp_ns, *message.gyro)
    own = [message for message in messages if message.sensor_id == sensor]
    variance = truth[sensor].turn_sigma_rad ** 2
    turns = [
        Rotation(one.stamp_ns, two.stamp_ns, (float(np.linalg.norm(two.turn)),), None, (variance,))
        for one, two in pairwise(own)
        if two.turn
    ]
    drift, errors = truth[sensor].drift_ppm - truth['imu'].drift_ppm, []
    count = round(8.0 * truth[sensor].rate_hz)
    for first in range(count, len(turns) - 2 * count, count):
        found = searched(turns[first : first + count], round(start * 1e9), gyro)
        if found is not None:
            errors.append(1e3 * abs(found - drift * 1e-6 * own[first + count // 2].capture_s))
    return np.array(errors)


def _first_design(scenario: Scenario, messages: list[Message]) -> tuple[Floats, Any]:
    """Return (|error| in ms of its camera offset after 30 s, its camera pairs)."""
    design = baselines.FirstDesign('lidar', ['camera'])
    errors = []
    sensors = scenario.sensors
    for message in messages:
        design.push(message)
        if message.sensor_id == 'lidar' and message.capture_s > SETTLED_S:
            at = message.capture_s
            true = float(sensors['camera'].true_offset(at) - sensors['lidar'].true_offset(at))
            errors.append(1e3 * abs(design.offsets['camera'] - true))
    return np.array(errors), design.pairs['camera']


def _pairing_rows(gaps: dict[str, list[Floats]]) -> list[Row]:
    floor = float(np.mean(np.concatenate(gaps['floor'])))
    rows = []
    for name, parts in gaps.items():
        found = np.concatenate(parts) if parts else np.zeros(0)
        if not len(found):
            rows.append({'case': f'pairing: {name}', 'unit': 'ms', 'note': 'no pair, or absent'})
            continue
        row = _row(f'pairing: {name}', found)
        row['mean'] = float(found.mean())
        row['ratio'] = row['mean'] / floor
        row['pairs'] = len(found) / len(np.concatenate(gaps['floor']))
        if name == 'fused':
            row['goal'], row['met'] = 'mean within 5 % of floor', row['ratio'] <= 1.05
        rows.append(row)
    return rows


def _gaps(pairs: Any) -> Floats:
    """Return |true capture difference| (ms) of the pairs after convergence."""
    table = np.array([pair for pair in pairs if pair[0] > SETTLED_S]).reshape(-1, 2)
    gaps: Floats = 1e3 * np.abs(table[:, 1] - table[:, 0])
    return gaps


class _Offsets:
    """Everything that is measured on the same messages, seed by seed."""

    def __init__(self) -> None:
        self.fused: list[Run] = []
        self.errors: dict[str, dict[str, list[Floats]]] = {}
        self.gaps: dict[str, list[Floats]] = {}

    def _keep(self, name: str, sensor: str, errors: Floats) -> None:
        self.errors.setdefault(name, {}).setdefault(sensor, []).append(errors)

    def _pairs(self, name: str, pairs: Any) -> None:
        kept = self.gaps.setdefault(name, [])
        if pairs is not None:
            kept.append(_gaps(pairs))

    def measure(self, scenario: Scenario) -> None:
        """Play one scenario to the engine and to the baselines."""
        messages = scenario.messages()
        self._pairs('floor', baselines.floor_pairs(messages, 'lidar', 'camera'))
        ours = run_engine(scenario, make_config(scenario), messages=messages)
        self.fused.append(ours)
        self._pairs('fused', ours.pairs)
        for latency in ('known', 'unknown'):
            name = f'arrival only, latency {latency}'
            section = make_config(scenario, latency)
            alone = run_engine(scenario, section, motion=False, messages=messages)
            for sensor in SENSORS:
                self._keep(name, sensor, alone.late(sensor, SETTLED_S))
            self._pairs(name, alone.pairs)
        for sensor in SENSORS:
            found = _norm_only(scenario, messages, sensor)
            self._keep('rotation sizes, 8 s fits', sensor, found)
        errors, pairs = _first_design(scenario, messages)
        self._keep('first design (to the LiDAR)', 'camera', errors)
        self._pairs('first design', pairs)
        section = make_config(scenario, estimator='none')
        zero = run_engine(scenario, section, motion=False, messages=messages)
        self._pairs('zero offset', zero.pairs)
        self._pairs('latest value', baselines.latest_value(messages, 'lidar', 'camera'))
        approximate = baselines.approximate_time(messages, ['lidar', 'camera'], 10, 0.1)
        self._pairs('ApproximateTimeSynchronizer', approximate)

    def joined(self) -> dict[str, dict[str, Floats]]:
        """Return the baselines' errors over all seeds."""
        return {
            name: {sensor: np.concatenate(parts) for sensor, parts in by_sensor.items()}
            for name, by_sensor in self.errors.items()
        }


def run(quick: bool) -> dict[str, Any]:
    """Return the rows of all cases."""
    seeds = range(2 if quick else 20)
    duration_s = 60.0 if quick else 120.0
    measured = _Offsets()
    for seed in track(seeds, description='offsets and pairing', transient=True):
        measured.measure(Scenario(seed, duration_s=duration_s))
    rows = _offset_rows(measured.fused, measured.joined()) + _convergence_rows(measured.fused)
    rows += _step_rows(seeds) + _still_rows(seeds)
    rows += scan_cue_rows(quick, _row) + _pairing_rows(measured.gaps)
    peer = baselines.approximate_time_class() is not None
    return {
        'benchmark': 'sync_accuracy',
        'seeds': len(seeds),
        'duration_s': duration_s,
        'message_filters': 'used' if peer else 'not installed',
        'rows': rows,
    }


def print_rows(result: dict[str, Any], write: Callable[[Any], None]) -> None:
    """Print the table."""
    table = Table(title=f'{result["benchmark"]}: {result["seeds"]} seeds')
    for column in ('case', 'unit', 'median', 'p95', 'spread', 'ratio', 'goal', 'met'):
        table.add_column(column, justify='left' if column in ('case', 'goal') else 'right')
    for row in result['rows']:
        numbers = [row.get(key) for key in ('median', 'p95', 'spread', 'ratio')]
        cells = ['' if value is None else f'{value:.3g}' for value in numbers]
        met = {None: '', True: 'yes', False: 'NO'}[row.get('met')]
        goal = row.get('goal') or row.get('note', '')
        table.add_row(row['case'], row['unit'], *cells, goal, met)
    write(table)


def headline(result: dict[str, Any]) -> list[Figure]:
    """Return the figures that count, against the truth."""
    rows = {row['case']: row for row in result['rows']}

    def error(name: str, case: str, key: str, target: float) -> Figure:
        row = rows[case]
        return Figure(name, row[key], row['unit'], target, 'lower', 'accuracy')

    figures = []
    for sensor in SENSORS:
        case = f'offset {sensor}: fused'
        figures += [
            error(f'clock offset of the {sensor}, error, median', case, 'median', 0.5),
            error(f'clock offset of the {sensor}, error, p95', case, 'p95', 1.5),
        ]
    pairs = rows['pairing: fused']
    figures.insert(
        1, Figure('pairing error over the least possible', pairs['ratio'], 'x', 1.05, 'lower')
    )
    title = 'pairing error of ApproximateTimeSynchronizer over the least possible'
    peer = rows['pairing: ApproximateTimeSynchronizer']
    figures.append(
        Figure(title, peer['ratio'], 'x', kind='accuracy')
        if 'ratio' in peer
        else absent(title, 'message_filters is not installed', unit='x')
    )
    for name in ('zero offset', 'latest value', 'first design'):
        ratio = rows[f'pairing: {name}'].get('ratio')
        if ratio is not None:
            figures.append(
                Figure(
                    f'pairing error of {name} over the least possible', ratio, 'x', kind='accuracy'
                )
            )
    goals = [row for row in result['rows'] if row.get('met') is not None]
    missed = [row['case'] for row in goals if not row['met']]
    return [
        *figures,
        greatest(
            f'of {len(goals)} goals in all, missed',
            [len(missed)],
            kind='accuracy',
            target=0.0,
            note='; '.join(missed),
        ),
    ]


def show(result: Result) -> None:
    """Print the result."""
    print_rows(result, Console().print)


if __name__ == '__main__':
    run_as_program(run, show, quick='2 seeds of 60 s')
