"""How many labelled defects `rig inspect` finds, and how often it finds what is not there.

    python -m bench.findings                 # 40 recordings a defect, 50 clean ones
    python -m bench.findings --recordings 5

Recall counts a defect as found when every finding that it must cause is there, on the right topic.
Precision counts findings of the severities warning and wrong that no defect explains.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from bench.figures import Figure

sys.path.append(str(Path(__file__).resolve().parents[1] / 'test'))
from sensor_rig.findings.model import Severity
from sensor_rig.findings.search import search

RECALL, CLEAN = 0.95, 50


def score(name: str, recordings: int) -> tuple[float, int, int]:
    """Return (recall, findings that are right, findings that are not) of one defect."""
    from support.blind import CONSEQUENCES, DEFECTS, Recording
    hits = right = wrong = 0
    for seed in range(recordings):
        recording = Recording(1000 + seed)
        wanted = DEFECTS[name](recording)
        findings = search(recording.records())[1]
        pairs = {(each.code, topic) for each in findings for topic in each.topics}
        hits += wanted <= pairs
        allowed = {code for code, _ in wanted} | CONSEQUENCES.get(name, set())
        for each in findings:
            if each.severity >= Severity.WARNING or each.code in allowed:
                right += each.code in allowed
                wrong += each.code not in allowed
    return hits / recordings, right, wrong


def run(quick: bool = False, recordings: int = 0) -> dict[str, Any]:
    """Return the scores of all defects, and what is called wrong on clean recordings."""
    from support.blind import DEFECTS, Recording
    count = recordings or (3 if quick else 40)
    clean = 5 if quick else CLEAN
    return {
        'recordings': count, 'clean': clean,
        'defects': {name: score(name, count) for name in DEFECTS},
        'wrong on clean': sum(each.severity is Severity.WRONG for seed in range(clean)
                              for each in search(Recording(50_000 + seed).records())[1]),
    }


def headline(result: dict[str, Any]) -> list[Figure]:
    """Return recall and precision over all defects."""
    scores = result['defects']
    recalls = [each[0] for each in scores.values()]
    worst = min(scores, key=lambda name: scores[name][0])
    right, wrong = (sum(each[i] for each in scores.values()) for i in (1, 2))
    return [
        Figure('labelled defects found, worst kind', 100.0 * scores[worst][0], '%', 100 * RECALL,
               kind='accuracy', spread=(100.0 * min(recalls), 100.0 * max(recalls)),
               note=f'{len(scores)} kinds, {result["recordings"]} recordings each; {worst}'),
        Figure('findings that a defect explains', 100.0 * right / max(right + wrong, 1), '%',
               kind='accuracy'),
        Figure(f'"wrong" on {result["clean"]} clean recordings',
               float(result['wrong on clean']), '', 0.0, 'lower', 'accuracy'),
    ]


def main() -> None:
    """Print the scores."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--recordings', type=int, default=0, help='for each defect (40)')
    result = run(recordings=parser.parse_args().recordings)
    for name, (recall, right, wrong) in result['defects'].items():
        print(f'{name:24s} recall {recall:.3f}   findings right {right:4d}  not {wrong:3d}')
    for figure in headline(result):
        print(f'{figure.name}: {figure.value:.4g} {figure.unit}')


if __name__ == '__main__':
    main()
