"""How many labelled defects `rig inspect` finds, and how often it finds what is not there.

    ./rig python -m bench.findings                 # 40 recordings a defect, 50 clean ones
    ./rig python -m bench.findings --recordings 5
    ./rig python -m bench.findings --only looped --only clock_wander
    ./rig python -m bench.findings --matrix                     # each fault alone, four strengths
    ./rig python -m bench.findings --matrix --real drive/       # on the times of a recording
    ./rig python -m bench.findings --pairs 150                  # two faults at once
    ./rig python -m bench.findings --rigs 50 --seconds 10   # simulated: shipped rigs, made clean

Each recording has one to three defects: the one that is counted, and up to two of others that do
not hide it (`others_beside`), on a robot whose rates and jitter are drawn by the seed.
Recall counts a defect as found when every finding that it must cause is there, on the right topic.
Precision counts findings of the severities warning and wrong that no defect explains.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bench.figures import Figure
from sensor_rig.findings.model import Severity
from sensor_rig.findings.search import search

if TYPE_CHECKING:
    from support.field import Robot

    from sensor_rig.findings.model import Finding
    from sensor_rig.rigfile import RigConfig

RECALL, CLEAN = 0.95, 50
RIGS = ('demo', 'quadruped', 'hand', 'drone', 'arm')
LITTLE_S = 0.001
"""Jitter of a clean rig, at most."""


def score(name: str, recordings: int) -> tuple[float, int, int]:
    """Return (recall, findings that are right, findings that are not) of one defect."""
    from support.blind import Recording
    from support.defects import CONSEQUENCES, DEFECTS, others_beside

    hits = right = wrong = 0
    for seed in range(recordings):
        recording = Recording(1000 + seed)
        wanted = DEFECTS[name](recording)
        others = others_beside(wanted, recording)
        findings = search(recording.records())[1]
        pairs = {(each.code, topic) for each in findings for topic in each.topics}
        hits += wanted <= pairs
        allowed = {code for code, _ in wanted | others} | CONSEQUENCES.get(name, set())
        for each in findings:
            if each.severity >= Severity.WARNING or each.code in allowed:
                right += each.code in allowed
                wrong += each.code not in allowed
    return hits / recordings, right, wrong


def run(quick: bool = False, recordings: int = 0, only: Sequence[str] = ()) -> dict[str, Any]:
    """Return (and print) the scores of all defects, and what is wrong with clean recordings."""
    from support.blind import Recording
    from support.defects import DEFECTS

    count = recordings or (3 if quick else 40)
    clean = 5 if quick else CLEAN
    defects = {}
    for name in only or DEFECTS:
        recall, right, wrong = defects[name] = score(name, count)
        print(
            f'{name:24s} recall {recall:.3f}   findings right {right:4d}  not {wrong:3d}',
            flush=True,
        )
    return {
        'recordings': count,
        'clean': clean,
        'defects': defects,
        'wrong on clean': sum(
            each.severity is Severity.WRONG
            for seed in range(clean)
            for each in search(Recording(50_000 + seed).records())[1]
        ),
    }


STRENGTHS = ('slight', 'clear', 'strong', 'gross')
PAIRS, PAIR_SEED = 150, 2026


class Cell(NamedTuple):
    """What one fault came to over some recordings."""

    recordings: int
    first: int
    """Recordings in which its finding came first of all that are a warning or worse."""
    found: int
    false: int
    """Findings of a warning or worse beside it that nothing explains."""
    false_wrong: int


def base_of(seed: int, folder: Path | None) -> Robot:
    """Return the recording that faults are put on: made, or with times of a real one."""
    from support.field import Robot, with_times_of

    return Robot(seed) if folder is None else with_times_of(folder, seed)


def judge(findings: Sequence[Finding], wanted: set[str], known: set[str]) -> Cell:
    """Return what the findings of one recording are worth, those `known` on its base apart."""
    said = [each for each in findings if each.severity >= Severity.WARNING]
    bad = [each for each in said if each.code not in wanted | known]
    told = [each for each in findings if each.code in wanted]
    ranks = [each.code for each in findings if each.code not in known - wanted]
    return Cell(
        1,
        bool(ranks) and ranks[0] in wanted,
        bool(told),
        len(bad),
        sum(each.severity is Severity.WRONG for each in bad),
    )


def total(cells: Sequence[Cell]) -> Cell:
    """Return the sums."""
    return Cell(*(sum(each[i] for each in cells) for i in range(len(Cell._fields))))


def matrix(folder: Path | None, seeds: int, only: Sequence[str] = ()) -> dict[str, list[Cell]]:
    """Return (and print) every fault alone, in each strength, on one kind of base."""
    from support.faults_by_strength import ALLOWED, FAULTS

    known = {each.code for each in base_of(0, folder).findings()} if folder else set()
    rows: dict[str, list[Cell]] = {}
    for name in only or FAULTS:
        cells = []
        for strength in range(len(STRENGTHS)):
            judged = []
            for seed in range(seeds):
                robot = base_of(seed, folder)
                wanted = FAULTS[name](robot, strength)
                allowed = known | ALLOWED.get(name, set())
                judged.append(judge(robot.findings(), wanted, allowed))
            cells.append(total(judged))
        rows[name] = cells
        print(
            f'| `{name}` | '
            + ' | '.join(f'{c.first}, {c.found} of {c.recordings}' for c in cells)
            + f' | {sum(c.false for c in cells)} ({sum(c.false_wrong for c in cells)}) |',
            flush=True,
        )
    whole = total([cell for cells in rows.values() for cell in cells])
    print(
        f'all: first {whole.first}, found {whole.found} of {whole.recordings}; beside them '
        f'{whole.false} false, {whole.false_wrong} of them wrong',
        flush=True,
    )
    return rows


def pairs(count: int = PAIRS, seed: int = PAIR_SEED) -> Cell:
    """Return (and print) what two faults at once come to; both and their strengths are drawn."""
    from support.faults_by_strength import ALLOWED, FAULTS, ONE_OF
    from support.field import Robot

    random = np.random.default_rng(seed)
    names, cells = list(FAULTS), []
    while len(cells) < 2 * count:
        both = [names[i] for i in sorted(random.choice(len(names), 2, replace=False))]
        if any(set(both) <= group for group in ONE_OF):
            continue
        robot = Robot(1000 * seed + len(cells))
        strengths = [int(each) for each in random.integers(0, len(STRENGTHS), 2)]
        wants = [FAULTS[name](robot, each) for name, each in zip(both, strengths, strict=True)]
        findings = robot.findings()
        allowed = set().union(*wants, *(ALLOWED.get(name, set()) for name in both))
        got = [judge(findings, want, allowed) for want in wants]
        cells += got
        label = ' + '.join(f'{n} ({STRENGTHS[s]})' for n, s in zip(both, strengths, strict=True))
        for name, cell in zip(both, got, strict=True):
            if not cell.found:
                print(f'missed: {name} in {label}', flush=True)
        if got[0].false:
            false = [e for e in findings if e.severity and e.code not in allowed]
            said = ', '.join(f'{each.code} ({each.severity.word})' for each in false)
            print(f'false beside {label}: {said}', flush=True)
    whole = total(cells)
    print(
        f'{count} pairs: {whole.found} of {whole.recordings} faults found; '
        f'{whole.false // 2} false beside them, {whole.false_wrong // 2} of them wrong',
        flush=True,
    )
    return whole


def clean_rig(name: str, seed: int) -> RigConfig:
    """Return a shipped rig with ideal clocks, no loss and little jitter."""
    from sensor_rig.rigfile import load_rig
    from sim_sensors.timing.clock_config import ClockConfig
    from sim_sensors.timing.config import LossConfig
    from sim_sensors.timing.latency_config import LatencyConfig

    config = load_rig(name)
    ideal = {
        'clock': ClockConfig(),
        'loss': LossConfig(),
        'faults': {},
        'link': '',
        'latency': LatencyConfig(),
    }
    return replace(
        config,
        seed=seed,
        sync=None,
        sensors={
            each: sensor.model_copy(update={**ideal, 'jitter_s': min(sensor.jitter_s, LITTLE_S)})
            for each, sensor in config.sensors.items()
        },
    )


def inspect_rig(config: RigConfig, seconds: float) -> list[Finding]:
    """Simulate a rig, record it, and return what is found in the recording."""
    from sensor_rig.bags.reader import BagReader
    from sensor_rig.bags.recorder import record_rig
    from sensor_rig.bags.writer import BagWriter
    from sensor_rig.findings.recording import inspect_recording
    from sensor_rig.inprocess import InProcessRig

    with tempfile.TemporaryDirectory() as folder:
        with BagWriter(Path(folder) / 'bag') as writer:
            record_rig(
                InProcessRig(config, arrays=False, sync=False), writer, seconds, lambda _: None
            )
        with BagReader(Path(folder) / 'bag') as bag:
            return inspect_recording(bag).findings


def clean_rigs(count: int, seconds: float) -> None:
    """Print what is found in `count` recordings of the shipped rigs, made clean."""
    worst = [0, 0, 0]
    for number in range(count):
        name = RIGS[number % len(RIGS)]
        findings = inspect_rig(clean_rig(name, number), seconds)
        for each in findings:
            worst[each.severity] += 1
            if each.severity > Severity.INFO:
                print(f'{name}, seed {number}: {each.severity.word}: {each.sentence}', flush=True)
    print(
        f'{count} clean recordings of {", ".join(RIGS)}, {seconds:g} s each: {worst[2]} wrong, '
        f'{worst[1]} warning, {worst[0]} info'
    )


def headline(result: dict[str, Any]) -> list[Figure]:
    """Return recall and precision over all defects."""
    scores = result['defects']
    recalls = [each[0] for each in scores.values()]
    worst = min(scores, key=lambda name: scores[name][0])
    right, wrong = (sum(each[i] for each in scores.values()) for i in (1, 2))
    return [
        Figure(
            'labelled defects found, worst kind',
            100.0 * scores[worst][0],
            '%',
            100 * RECALL,
            kind='accuracy',
            spread=(100.0 * min(recalls), 100.0 * max(recalls)),
            note=f'{len(scores)} kinds, {result["recordings"]} recordings each; {worst}',
        ),
        Figure(
            'findings that a defect explains',
            100.0 * right / max(right + wrong, 1),
            '%',
            kind='accuracy',
        ),
        Figure(
            f'"wrong" on {result["clean"]} clean recordings',
            float(result['wrong on clean']),
            '',
            0.0,
            'lower',
            'accuracy',
        ),
    ]


def main() -> None:
    """Print the scores."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--recordings', type=int, default=0, help='for each defect (40)')
    parser.add_argument(
        '--rigs',
        type=int,
        default=0,
        metavar='N',
        help='instead: N clean recordings of shipped rigs',
    )
    parser.add_argument('--seconds', type=float, default=10.0, help='of each of them (10)')
    parser.add_argument(
        '--only',
        action='append',
        default=[],
        metavar='DEFECT',
        help='score this defect alone; may be given again',
    )
    parser.add_argument('--matrix', action='store_true', help='instead: each fault alone')
    parser.add_argument('--real', type=Path, metavar='BAG', help='base of the matrix: its times')
    parser.add_argument('--pairs', type=int, default=0, metavar='N', help='instead: N pairs')
    parser.add_argument('--seed', type=int, default=PAIR_SEED, metavar='N', help='of the pairs')
    args = parser.parse_args()
    if args.matrix:
        matrix(args.real, args.recordings or 3, args.only)
        return
    if args.pairs:
        pairs(args.pairs, args.seed)
        return
    if args.rigs:
        clean_rigs(args.rigs, args.seconds)
        return
    result = run(recordings=args.recordings, only=args.only)
    for figure in headline(result):
        print(f'{figure.name}: {figure.value:.4g} {figure.unit}')


if __name__ == '__main__':
    main()
