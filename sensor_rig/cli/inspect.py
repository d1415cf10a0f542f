"""Say what is wrong with the timestamps of a recording, or of the live ROS graph."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rig_common.text import printable
from sensor_rig.cli.support import output
from sensor_rig.cli.support.arguments import (
    add_trajectory_argument,
    output_file,
    positive,
    refuse_existing,
)
from sensor_rig.cli.support.output import (
    add_json_argument,
    fits,
    print_json,
    print_whole_table,
)

if TYPE_CHECKING:
    from sensor_rig.bags.inspect import TopicFacts
    from sensor_rig.findings.model import Finding
    from sensor_rig.findings.recording import Inspection
    from sensor_rig.findings.unchecked import Coverage

KIND = ('type', 'messages', 'Hz', 'stamps')
TIMING = ('arrival\njitter ms', 'stamp\njitter ms', 'delay\nms', 'spread\nms', 'drift\nppm')
UNCHECKED = 'unchecked'
"""What --fail-on takes besides the severities."""
NAME = 'inspect'
GROUP = 'find out'
HELP = 'say what is wrong with timestamps, and write a rig file or corrections from it'
EPILOG = """example:
  rig inspect drive/ --write robot.yaml
  rig sync drive/ drive_synced/ --rig robot.yaml
  rig inspect drive/ --html findings.html --sidecar corrections.yaml

exit code: 0 when nothing of the severity of --fail-on was found, 1 when something was, when the
recording is broken or when nothing could be checked, 2 when it cannot be read"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add where to look and where to write."""
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        'bag', nargs='?', metavar='BAG', type=Path, help='a rosbag2 folder, .mcap or .db3'
    )
    where.add_argument('--live', action='store_true', help='listen to the ROS graph instead')
    parser.add_argument(
        '--seconds',
        type=positive,
        default=5.0,
        metavar='N',
        help='how long to listen to the live graph (5)',
    )
    parser.add_argument(
        '--write',
        metavar='FILE',
        type=output_file,
        help='write a rig file that syncs what was found',
    )
    parser.add_argument(
        '--sidecar',
        metavar='FILE',
        type=output_file,
        help='write corrections that sync, fit and trust take with --sidecar',
    )
    parser.add_argument(
        '--html',
        metavar='FILE',
        type=output_file,
        help='write a page with a plot for each finding',
    )
    parser.add_argument(
        '--fail-on',
        default='wrong',
        choices=('info', 'warning', 'wrong', UNCHECKED),
        metavar='SEVERITY',
        help='exit code 1 from this severity on: info, warning, wrong (default); or "unchecked": '
        'also where something could not be checked',
    )
    parser.add_argument(
        '--quick',
        action='store_true',
        help='do not compare the motion of sensors, which reads scans and images',
    )
    add_trajectory_argument(parser)
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Look at the topics, say what is wrong with their stamps, and write what was asked for."""
    from sensor_rig.bags.inspect import as_dict
    from sensor_rig.bags.sidecar import sidecar_text
    from sensor_rig.bags.starter import starter_rig
    from sensor_rig.cli.support.progress import tell_problems
    from sensor_rig.findings.corrections import corrections_of, stamp_points_of
    from sensor_rig.findings.model import VERSION, Severity
    from sensor_rig.findings.page import findings_page

    complete = args.fail_on == UNCHECKED
    limit = Severity.WRONG if complete else Severity[args.fail_on.upper()]
    for path in (args.write, args.sidecar, args.html):
        refuse_existing(path)
    source = 'the live graph' if args.live else str(args.bag)
    problems: list[str] = []
    found = (
        _listen(args.seconds)
        if args.live
        else _read(args.bag, problems, motion=not args.quick, trajectories=args.trajectory)
    )
    facts, findings = found.facts, found.findings
    written = []
    if args.write is not None:
        written.append(
            _save(
                args.write,
                starter_rig(
                    facts, source, stamp_points_of(findings), as_they_are=found.tells_no_offset
                ),
            )
        )
    if args.sidecar is not None:
        written.append(_save(args.sidecar, sidecar_text(corrections_of(findings), source)))
    if args.html is not None:
        written.append(_save(args.html, findings_page(source, found)))
    if args.json:
        print_json(
            {
                'version': VERSION,
                'source': source,
                'findings': [each.as_json() for each in findings],
                'not_checked': [each.as_json() for each in found.coverage.unchecked],
                'topics': [as_dict(topic) for topic in facts],
                'problems': problems,
            }
        )
    else:
        _print_findings(findings, found.coverage)
        _print(facts, source)
    if written and not args.json:
        print(f'written: {", ".join(written)}')
    is_bad = any(each.severity >= limit for each in findings)
    is_unchecked = not found.coverage.checked or (complete and bool(found.coverage.unchecked))
    return tell_problems(problems) or (1 if is_bad or is_unchecked else 0)


def _save(path: Path, text: str) -> str:
    from rig_common.saving import save_text

    save_text(path, text)
    return str(path)


def _read(
    path: Path, problems: list[str], *, motion: bool, trajectories: Sequence[Path] = ()
) -> Inspection:
    """Return the facts of a recording; add to `problems` what is missing of it."""
    from sensor_rig.bags.reader import BagReader
    from sensor_rig.cli.support.progress import progress
    from sensor_rig.findings.recording import inspect_recording

    with BagReader(path, trajectories=trajectories) as bag:
        with progress(f'reading {path.name}', bag.message_count) as advance:
            found = inspect_recording(bag, advance, motion=motion)
        problems += bag.problems
    return found


def _listen(seconds: float) -> Inspection:
    from sensor_rig.cli.support.live import listen
    from sensor_rig.findings.record import TopicRecord
    from sensor_rig.findings.recording import without_motion
    from sensor_rig.findings.search import evidence_of

    topics: dict[str, TopicRecord] = {}

    def take(topic: str, raw: bytes, arrival_ns: int) -> None:
        topics[topic].add(raw, arrival_ns)

    listen(
        seconds,
        lambda topic: topics.update(
            {
                topic.name: TopicRecord(
                    topic.name, topic.type_name, topic.stamped, best_effort=topic.best_effort
                )
            }
        ),
        take,
        what='listening',
    )
    records = list(topics.values())
    return without_motion(records, *evidence_of(records))


def _print_findings(findings: list[Finding], covered: Coverage) -> None:
    """Print the findings, worst first, and what was not checked, in short."""
    for finding in findings:
        _print_line(f'{finding.severity.word}: {finding.sentence} (rests on {finding.rests_on})')
    if not covered.checked:
        _print_line('nothing could be checked: no stamped topic is long enough')
    elif not findings:
        _print_line(f'nothing found of {covered.checked} kinds that were looked for')
    for each in covered.brief:
        _print_line(f'not checked: {each.short}')
    print()


def _print_line(text: str, indent: str = '') -> None:
    print(
        textwrap.fill(
            printable(text),
            output.console().width,
            initial_indent=indent,
            subsequent_indent='  ',
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def _print(facts: list[TopicFacts], source: str) -> None:
    if not facts:
        print(f'no message was found in {source}')
        return
    names = [(topic.name,) for topic in facts]
    kinds = [
        (topic.type_name.rpartition('/')[2], topic.count, f'{topic.rate_hz:.1f}', topic.source)
        for topic in facts
    ]
    timings = [_timing(topic) for topic in facts]
    both = [
        (*name, *kind, *timing) for name, kind, timing in zip(names, kinds, timings, strict=True)
    ]
    if fits(('topic', *KIND, *TIMING), both):
        print_whole_table(('topic', *KIND, *TIMING), both, title=source)
    else:
        for columns, cells, title in ((KIND, kinds, source), (TIMING, timings, None)):
            print_whole_table(
                ('topic', *columns),
                [(*name, *rest) for name, rest in zip(names, cells, strict=True)],
                title=title,
            )
    _print_reasons(facts)


def _timing(topic: TopicFacts) -> tuple[str, ...]:
    if not topic.stamped:
        return (_ms(topic.arrival_jitter_s), *['-'] * 4)
    drift = (
        '-'
        if topic.drift_ppm != topic.drift_ppm
        else (f'{topic.drift_ppm:+.1f} ± {topic.drift_sigma_ppm:.1f}')
    )
    return (
        *map(
            _ms,
            (topic.arrival_jitter_s, topic.stamp_jitter_s, topic.delay_s, topic.delay_spread_s),
        ),
        drift,
    )


def _print_reasons(facts: list[TopicFacts]) -> None:
    """Say below the table why the stamps are thought to be whose they are."""
    from sensor_rig.bags.starter import sweep_sentence

    reasons: dict[str, list[str]] = {}
    for topic in facts:
        reasons.setdefault(f'{topic.source}: {topic.why}', []).append(topic.name)
        if topic.transport_s == topic.transport_s:
            parts = (
                f'of its delay, {_ms(topic.driver_s)} ms pass until it is published and '
                f'{_ms(topic.transport_s)} ms until it is received'
            )
            reasons.setdefault(parts, []).append(topic.name)
        if topic.sweep_s:
            reasons.setdefault(sweep_sentence(topic), []).append(topic.name)
        if topic.shares_stamps_with:
            shared = f'has the stamps of {topic.shares_stamps_with}'
            reasons.setdefault(shared, []).append(topic.name)
    for reason, names in reasons.items():
        _print_line(reason)
        _print_line(', '.join(names), '  ')
    print()


def _ms(seconds: float) -> str:
    return '-' if seconds != seconds else f'{seconds * 1e3:.2f}'
