"""Where results are kept: one JSON and one Markdown file a day, a table and three headlines."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from bench import machine
from bench.driver import BENCHMARKS, ROOT, Entry, figures_of
from bench.figures import Figure, number, shown, worsening

FOLDER = ROOT / 'bench' / 'results'
README = ROOT / 'README.md'
PAGE = ROOT / 'docs' / 'benchmarks.md'
BEGIN, END = '<!-- bench:begin -->', '<!-- bench:end -->'

PAGE_ROWS = 3
"""Figures of each benchmark that the page shows; one that misses its target is always shown."""
HEADLINES = (
    (
        'sync_accuracy',
        'clock offset of the camera, error, median',
        "error of a camera's estimated clock offset, median of 20 runs of 120 s with turning",
    ),
    (
        'realtime',
        'demo rig without camera, all messages and the sync engine',
        'demo rig without its camera, every message made and synced, in one Python process',
    ),
    (
        'raycast',
        'times faster than mujoco-lidar, primitives, worst cell',
        'time that mujoco-lidar on the CPU takes for a LiDAR scan, over ours; primitive shapes, '
        'worst of 8 cases',
    ),
)
"""What the README shows: benchmark, figure, and how it is said there."""

Results = dict[str, Any]
"""date, machine, quick, and `benchmarks`: an entry by name."""


def make(entries: dict[str, Entry], quick: bool) -> Results:
    """Return the results of one run."""
    return {
        'date': time.strftime('%Y-%m-%d'),
        'quick': quick,
        'machine': machine.describe(),
        'benchmarks': entries,
    }


def save(results: Results, folder: Path = FOLDER) -> None:
    """Write JSON and Markdown of the day; benchmarks that did not run this time keep theirs.

    Quick runs have files of their own, and never take the place of a full one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stem = results['date'] + '-quick' * results['quick']
    file = folder / f'{stem}.json'
    if file.is_file():
        earlier = json.loads(file.read_text())
        if earlier['machine'] == results['machine']:
            results = {**results, 'benchmarks': {**earlier['benchmarks'], **results['benchmarks']}}
    order = {each.name: index for index, each in enumerate(BENCHMARKS)}
    entries = dict(sorted(results['benchmarks'].items(), key=lambda item: order[item[0]]))
    results = {**results, 'benchmarks': entries}
    file.write_text(json.dumps(results, indent=1) + '\n')
    title = f'# Benchmarks of {results["date"]}'
    file.with_suffix('.md').write_text(f'{title}\n\n{markdown(results)}')


def newest(quick: bool, folder: Path = FOLDER) -> tuple[Path, Results] | None:
    """Return the newest results, those of the same thoroughness first; None if there are none."""
    files = sorted(folder.glob('*.json'))
    same = [file for file in files if file.stem.endswith('-quick') == quick]
    for file in reversed(same or files):
        return file, json.loads(file.read_text())
    return None


def compare(before: Results, entries: dict[str, Entry]) -> list[str]:
    """Return one sentence for everything that got worse since `before`."""
    found = []
    for name, entry in entries.items():
        known = before['benchmarks'].get(name)
        if known is None or not known.get('figures'):
            continue
        if not entry.get('figures'):
            found.append(f'{name}: {entry.get("failed") or entry.get("absent")}')
            continue
        earlier = {figure.name: figure for figure in figures_of(known)}
        for figure in figures_of(entry):
            if figure.name in earlier:
                worse = worsening(earlier[figure.name], figure)
                if worse:
                    found.append(f'{name}: {figure.name} {worse}')
    return found


# ---- Markdown ---------------------------------------------------------------------------------


def markdown(results: Results, rows: int | None = None) -> str:
    """Return the table of headline figures with where and how they were measured.

    With `rows` only so many of each benchmark, and those that miss their target.
    """
    host = results['machine']
    entries = results['benchmarks']
    command = './rig bench' + ' --quick' * results['quick']
    loads = [entry['load'] for entry in entries.values() if entry.get('load') is not None]
    load = f', load {min(loads):g} to {max(loads):g}' if loads else ''
    peers = ', '.join(f'{name} {version}' for name, version in host['versions'].items())
    lines = [
        f'Measured on {results["date"]} with `{command}` on {host["cpu"]}, {host["cores"]} '
        f'cores{load}, Python {host["python"]} ({peers}).',
        '',
        'Ratios compare two things within one run. Figures marked ¹ are of this machine. '
        'The range is that of the middle half of the repetitions or of all cases.',
        '',
        '| benchmark | figure | value | range | target | |',
        '|---|---|---|---|---|---|',
    ]
    for name, entry in entries.items():
        if 'figures' not in entry:
            why = entry.get('absent') or entry.get('failed')
            state = 'absent' if 'absent' in entry else '**failed**'
            lines.append(f'| {name} | {why} | | | | {state} |')
            continue
        lines += [
            _row(name, figure)
            for index, figure in enumerate(figures_of(entry))
            if rows is None or index < rows or figure.met is False
        ]
    return '\n'.join(lines) + '\n'


def _row(benchmark: str, figure: Figure) -> str:
    mark = '¹' if figure.kind == 'absolute' else ''
    span = ''
    if figure.spread is not None:
        span = ' to '.join(number(value) for value in figure.spread)
    sign = '≥' if figure.better == 'higher' else '≤'
    target = '' if figure.target is None else f'{sign} {number(figure.target)}'
    verdict = {None: '', True: 'met', False: '**missed**'}[figure.met]
    name, value = figure.name, shown(figure) + mark
    if figure.value is None:
        value, verdict = figure.note, 'absent'
    elif figure.note:
        name = f'{name} ({figure.note})'
    return f'| {benchmark} | {name} | {value} | {span} | {target} | {verdict} |'


def write_pages(results: Results, page: Path = PAGE, readme: Path = README) -> None:
    """Put the table between the two marks of its page, and the headlines into the README."""
    stem = results['date'] + '-quick' * results['quick']
    _write_between(
        page, f'{markdown(results, PAGE_ROWS)}\nAll figures: [{stem}](../bench/results/{stem}.md).'
    )
    _write_between(readme, headlines(results))


def headlines(results: Results) -> str:
    """Return the few figures that the README shows, as a table."""
    lines = ['| simulated | |', '|---|---|']
    for benchmark, name, text in HEADLINES:
        entry = results['benchmarks'].get(benchmark, {})
        lines += [
            f'| {text} | {shown(figure)} |'
            for figure in (figures_of(entry) if 'figures' in entry else [])
            if figure.name == name
        ]
    return '\n'.join(lines)


def _write_between(page: Path, text: str) -> None:
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f'{page} has no {BEGIN} and {END} to write between')
    page.write_text(f'{before}{BEGIN}\n{text}\n{END}{after}')
