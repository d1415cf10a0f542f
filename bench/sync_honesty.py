"""Whether the offsets may be believed: sigma against error, false clock steps, looking twice.

    ./rig python -m bench.sync_honesty [--quick] [--only PART ...] [--json FILE]

Every run has a drive, clocks, latencies and noise of its own; four ways to drive. NEES is the
squared error over the claimed variance, 1 in the mean where sigma is honest. `wander` runs have
clocks, or cues, that swing by milliseconds; `long` ones last half an hour, without a camera.
Habits are those of real streams (bad_habits.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from support.bad_habits import HABITS, frames_of, pairs, spread_ms
from support.sync_runs import (
    PAYLOAD_WANDER,
    POSE_WANDER,
    SENSORS,
    Run,
    make_config,
    run_engine,
    run_twice,
)
from support.sync_streams import Motion, Scenario

from bench.command import Result, run_as_program
from bench.figures import Figure
from bench.sync_accuracy import print_rows
from rig_common.arrays import Floats
from sync_engine.clocks.steps import JUMPS, StepDetector

Row = dict[str, Any]
AT_S = (15.0, 30.0, 60.0)
LOCK_S = 0.002
MS = 1_000_000


@dataclass(frozen=True)
class Drive(Scenario):
    """A scenario with another way to drive."""

    kind: str = 'mixed'
    """mixed, yaw (a rover), gentle (a third of the motion), or lively (faster turns)."""

    def motion(self) -> Motion:
        """Return the body's motion."""
        mixed = super().motion()
        if self.kind == 'yaw':
            return replace(mixed, amplitudes=mixed.amplitudes * [[0.2], [0.2], [1.4]])
        if self.kind == 'gentle':
            return replace(mixed, amplitudes=0.35 * mixed.amplitudes)
        if self.kind == 'lively':
            return replace(mixed, omegas=1.7 * mixed.omegas, amplitudes=1.3 * mixed.amplitudes)
        return mixed


KINDS = ('mixed', 'yaw', 'gentle', 'lively')


@dataclass
class Scores:
    """What many runs showed of one comparison."""

    nees: dict[float, list[float]] = field(default_factory=lambda: {at: [] for at in AT_S})
    inside: list[float] = field(default_factory=list)
    beyond_3: list[float] = field(default_factory=list)
    largest: list[float] = field(default_factory=list)

    def add(self, run: Run, key: str, since_s: float = 10.0) -> None:
        """Take one run."""
        scaled: Floats = run.errors[key] / run.sigmas[key]
        for at, values in self.nees.items():
            values.append(float(scaled[min(np.searchsorted(run.times, at), len(scaled) - 1)]) ** 2)
        late = run.times > since_s
        locked = late & (run.sigmas[key] < LOCK_S)
        self.inside.append(float(np.mean(np.abs(scaled[late]) < 2.0)))
        self.beyond_3.append(float(np.mean((np.abs(scaled) > 3.0) & locked)))
        self.largest.append(float(np.max(np.abs(scaled), where=locked, initial=0.0)))


def _row(case: str, value: float, unit: str, goal: str = '', met: bool | None = None) -> Row:
    return {
        'case': case,
        'unit': unit,
        'median': value,
        'p95': None,
        'spread': None,
        'ratio': None,
        'goal': goal,
        'met': met,
    }


def _score_rows(name: str, scores: Scores) -> list[Row]:
    rows = []
    for at, values in scores.nees.items():
        mean = float(np.mean(values))
        rows.append(
            _row(f'{name}: NEES at {at:.0f} s', mean, '', '0.8 to 1.3', 0.8 <= mean <= 1.3)
        )
    inside = 100.0 * float(np.mean(scores.inside))
    beyond = 100.0 * float(np.mean(scores.beyond_3))
    worst = max(scores.largest)
    rows.append(_row(f'{name}: inside 2 sigma', inside, '%', '92 to 98', 92.0 <= inside <= 98.0))
    rows.append(_row(f'{name}: locked beyond 3 sigma', beyond, '%', '<= 0.5', beyond <= 0.5))
    rows.append(_row(f'{name}: largest error while locked', worst, 'sigma', '<= 5', worst <= 5.0))
    return rows


def _runs(
    count: int,
    what: str,
    change: Callable[[Drive], Scenario] = lambda drive: drive,
    duration_s: float = 60.2,
    cue_wander: float = PAYLOAD_WANDER,
) -> dict[str, Scores]:
    scores = {key: Scores() for key in (*SENSORS, 'camera-lidar')}
    for seed in track(range(count), description=what, transient=True):
        scenario = change(Drive(seed, duration_s=duration_s, kind=KINDS[seed % len(KINDS)]))
        run = run_engine(scenario, make_config(scenario, cue_wander=cue_wander))
        for key, score in scores.items():
            score.add(run, key)
    return scores


def _wander_rows(count: int) -> list[Row]:
    rows = []
    swings = {'clock': {'wander': (0.0055, 280.0)}, 'cue': {'cue_wander': (0.0055, 280.0)}}
    for name, change in swings.items():
        scores = _runs(
            count,
            f'{name}s that wander',
            lambda drive, change=change: drive.with_sensor('camera', **change),
            duration_s=140.0,
            cue_wander=POSE_WANDER,
        )['camera']
        beyond = 100.0 * float(np.mean(scores.beyond_3))
        rows.append(
            _row(
                f'{name} that swings by 11 ms: locked beyond 3 sigma',
                beyond,
                '%',
                '<= 0.5',
                beyond <= 0.5,
            )
        )
    return rows


def _long_rows(count: int, duration_s: float = 1800.0) -> list[Row]:
    """Half an hour of LiDAR and IMU: at the end, and all along."""
    scores = Scores({duration_s: []})
    for seed in track(range(count), description='long runs', transient=True):
        drive = Drive(seed, duration_s=duration_s + 0.2, kind=KINDS[seed % len(KINDS)])
        sensors = {name: each for name, each in drive.sensors.items() if name != 'camera'}
        scenario = replace(drive, sensors=sensors)
        scores.add(run_engine(scenario, make_config(scenario)), 'lidar')
    low, high = _mean_square_range(count)
    nees, *rest = _score_rows(f'{count} runs of {duration_s:.0f} s', scores)
    met = low <= nees['median'] <= high
    return [nees | {'goal': f'{low:.2f} to {high:.2f}', 'met': met}, *rest]


def _mean_square_range(count: int) -> tuple[float, float]:
    """Return where the mean of `count` squared standard normals lies, 95 % of the time.

    Wilson and Hilferty's approximation of the chi-square distribution.
    """
    spread = 2.0 / (9.0 * count)
    low, high = ((1.0 - spread + z * spread**0.5) ** 3 for z in (-1.96, 1.96))
    return low, high


def _step_rows(seeds: int) -> list[Row]:
    false, left, found, quiet, tried = 0, 0, 0, 0, 0
    for habits in HABITS.values():
        frames = frames_of(habits)
        for seed in range(seeds):
            plain = pairs(habits, frames, seed)
            false += _watched(plain, 0)[0]
            size_ms = 1.2 * max(5.0, 4.0 * spread_ms(plain))
            for step_ms in (size_ms, -size_ms) if size_ms < 500.0 else ():
                at = len(plain) // 2
                jumps, doubts = _watched(pairs(habits, frames, seed, {at: step_ms}), at)
                left += any(doubts[:3])
                found += jumps > 0
                quiet += all(doubts[3:])
                tried += 1
    shares = {
        'found': found,
        'leave `locked` within three messages': left,
        'not locked again before they are found': quiet,
    }
    return [
        _row(f'false clock steps in {seeds * len(HABITS)} streams', false, '', '0', false == 0),
        *(
            _row(
                f'{tried} steps of 1.2 times the limit: {name}',
                100.0 * count / tried,
                '%',
                '100',
                count == tried,
            )
            for name, count in shares.items()
        ),
    ]


def _watched(received: list[tuple[int, int]], at: int) -> tuple[int, list[bool]]:
    """Return the jumps from message `at` on, and whether each leaves a doubt, or was after one."""
    detector, jumps, doubts = StepDetector(1000 * MS), 0, []
    for k, pair in enumerate(received):
        verdict = detector.observe(*pair)
        if k >= at:
            jumps += verdict in JUMPS
            doubts.append(jumps > 0 or detector.in_doubt)
    return jumps, doubts


def _twice_rows(count: int) -> list[Row]:
    wrong = {'as a live node': 0, 'looked at twice': 0}
    total = 0
    for seed in track(range(count), description='recordings', transient=True):
        scenario = Drive(seed, duration_s=30.0, prior_sigma_s=0.02, kind=KINDS[seed % 4])
        camera = np.array([m.capture_s for m in scenario.messages() if m.sensor_id == 'camera'])
        runs = {
            'as a live node': run_engine(scenario, make_config(scenario)),
            'looked at twice': run_twice(scenario, make_config(scenario)),
        }
        total += len(runs['looked at twice'].pairs)
        for name, run in runs.items():
            ends = runs['looked at twice'].pair_sigmas[-1]
            wrong[name] += sum(
                abs(other - lidar) - float(np.abs(camera - lidar).min()) > 2 * ends
                for lidar, other in run.pairs
            )
    share = {name: 100.0 * each / total for name, each in wrong.items()}
    return [
        _row(
            f'wrong partners, {name}',
            value,
            '%',
            '0' if 'twice' in name else '',
            value == 0.0 if 'twice' in name else None,
        )
        for name, value in share.items()
    ]


def _drive_rows(count: int) -> list[Row]:
    return [
        row
        for key, scores in _runs(count, 'sigma against error').items()
        for row in _score_rows(key, scores)
    ]


PARTS: dict[str, tuple[Callable[[int], list[Row]], int, int]] = {
    'drives': (_drive_rows, 200, 8),
    'wander': (_wander_rows, 8, 1),
    'steps': (_step_rows, 12, 2),
    'twice': (_twice_rows, 12, 2),
    'long': (_long_rows, 30, 0),
}
"""Name -> what it measures, and how many runs of each kind it takes, whole and quick."""


def run(quick: bool, only: list[str] | None = None) -> dict[str, Any]:
    """Return the rows of all cases, or of some parts."""
    rows: list[Row] = []
    for name, (measure, whole, some) in PARTS.items():
        count = some if quick else whole
        if count and (only is None or name in only):
            rows += measure(count)
    return {'benchmark': 'sync_honesty', 'seeds': PARTS['drives'][2 if quick else 1], 'rows': rows}


def headline(result: dict[str, Any]) -> list[Figure]:
    """Return the figures that count."""
    rows = {row['case']: row for row in result['rows']}
    figures = []
    for sensor in SENSORS:
        row = rows[f'{sensor}: NEES at 60 s']
        figures.append(Figure(f'NEES of the {sensor} at 60 s', row['median'], '', kind='accuracy'))
    missed = [row['case'] for row in result['rows'] if row['met'] is False]
    figures.append(
        Figure(
            'goals of honesty missed',
            len(missed),
            '',
            0.0,
            'lower',
            'accuracy',
            note='; '.join(missed),
        )
    )
    return figures


def show(result: Result) -> None:
    """Print the result."""
    print_rows(result, Console().print)


if __name__ == '__main__':
    run_as_program(run, show, quick='a few runs of each kind', parts=list(PARTS))
