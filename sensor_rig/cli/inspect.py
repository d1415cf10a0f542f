"""List the topics of a recording, or of the live ROS graph, with what their timing tells."""

from __future__ import annotations

import argparse
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from rig_common.text import printable
from sensor_rig.cli.arguments import positive
from sensor_rig.cli.output import (
    add_json_argument,
    console,
    fits,
    print_json,
    print_whole_table,
)

if TYPE_CHECKING:
    from sensor_rig.bags.inspect import TopicFacts, TopicTimes

KIND = ('type', 'messages', 'Hz', 'stamps')
TIMING = ('arrival\njitter ms', 'stamp\njitter ms', 'delay\nms', 'spread\nms', 'drift\nppm')
NAME = 'inspect'
HELP = 'list topics with rates, jitter and likely stamp source; write a rig file from them'
EPILOG = """example:
  rig inspect drive/ --write robot.yaml
  rig sync drive/ drive_synced/ --rig robot.yaml"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add where to look and where to write."""
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument('bag', nargs='?', metavar='BAG', type=Path,
                       help='a rosbag2 folder, .mcap or .db3')
    where.add_argument('--live', action='store_true', help='listen to the ROS graph instead')
    parser.add_argument('--seconds', type=positive, default=5.0, metavar='N',
                        help='how long to listen to the live graph (5)')
    parser.add_argument('--write', metavar='FILE', type=Path,
                        help='write a rig file that syncs what was found')
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Look at the topics, print them, and write a rig file if asked to."""
    from rig_common.errors import RigError, why
    from sensor_rig.bags.inspect import as_dict, facts_of
    from sensor_rig.bags.starter import starter_rig
    from sensor_rig.cli.progress import tell_problems

    if args.write is not None and args.write.exists():
        raise RigError(f'{args.write} exists already; choose another name or remove it first')
    source = 'the live graph' if args.live else str(args.bag)
    problems: list[str] = []
    times = _listen(args.seconds) if args.live else _read(args.bag, problems)
    facts = facts_of(times)
    if args.json:
        print_json({'source': source, 'topics': [as_dict(topic) for topic in facts],
                    'problems': problems})
    else:
        _print(facts, source)
    if args.write is not None:
        try:
            args.write.write_text(starter_rig(facts, source), encoding='utf-8')
        except OSError as error:
            raise RigError(f'cannot write {args.write}: {why(error)}') from None
        if not args.json:
            print(f'written: {args.write} (see what is in it with "check {args.write}")')
    return tell_problems(problems)


def _read(path: Path, problems: list[str]) -> list[TopicTimes]:
    """Return the times of a recording's topics; add to `problems` what is missing of it."""
    from sensor_rig.bags.inspect import TopicTimes
    from sensor_rig.bags.reader import BagReader
    from sensor_rig.bags.sync import ADVANCE_EVERY
    from sensor_rig.cli.progress import progress

    with BagReader(path) as bag:
        topics = {name: TopicTimes(name, topic.type_name, topic.stamped)
                  for name, topic in bag.topics.items()}
        with progress(f'reading {path.name}', bag.message_count) as advance:
            for index, message in enumerate(bag.messages(), 1):
                topics[message.topic].add(message.raw, message.receive_ns)
                if index % ADVANCE_EVERY == 0:
                    advance(ADVANCE_EVERY)
        problems += bag.problems
    return list(topics.values())


def _listen(seconds: float) -> list[TopicTimes]:
    from sensor_rig.bags.inspect import TopicTimes
    from sensor_rig.cli.live import listen

    topics: dict[str, TopicTimes] = {}
    listen(seconds,
           lambda topic, kind, stamped: topics.update({topic: TopicTimes(topic, kind, stamped)}),
           lambda topic, raw, arrival_ns: topics[topic].add(raw, arrival_ns),
           what='listening')
    return list(topics.values())


def _print(facts: list[TopicFacts], source: str) -> None:
    if not facts:
        print(f'no message was found in {source}')
        return
    names = [(topic.name,) for topic in facts]
    kinds = [(topic.type_name.rpartition('/')[2], topic.count, f'{topic.rate_hz:.1f}',
              topic.source) for topic in facts]
    timings = [_timing(topic) for topic in facts]
    both = [(*name, *kind, *timing)
            for name, kind, timing in zip(names, kinds, timings, strict=True)]
    if fits(('topic', *KIND, *TIMING), both):
        print_whole_table(('topic', *KIND, *TIMING), both, title=source)
    else:
        for columns, cells, title in ((KIND, kinds, source), (TIMING, timings, None)):
            print_whole_table(('topic', *columns), [
                (*name, *rest) for name, rest in zip(names, cells, strict=True)], title=title)
    _print_reasons(facts)


def _timing(topic: TopicFacts) -> tuple[str, ...]:
    if not topic.stamped:
        return (_ms(topic.arrival_jitter_s), *['-'] * 4)
    drift = '-' if topic.drift_ppm != topic.drift_ppm else f'{topic.drift_ppm:+.1f}'
    return (*map(_ms, (topic.arrival_jitter_s, topic.stamp_jitter_s, topic.delay_s,
                       topic.delay_spread_s)), drift)


def _print_reasons(facts: list[TopicFacts]) -> None:
    """Say below the table why the stamps are thought to be whose they are."""
    from sensor_rig.bags.starter import sweep_sentence

    reasons: dict[str, list[str]] = {}
    for topic in facts:
        reasons.setdefault(f'{topic.source}: {topic.why}', []).append(topic.name)
        if topic.sweep_s:
            reasons.setdefault(sweep_sentence(topic), []).append(topic.name)
        if topic.shares_stamps_with:
            shared = f'has the stamps of {topic.shares_stamps_with}'
            reasons.setdefault(shared, []).append(topic.name)
    for reason, names in reasons.items():
        print(textwrap.fill(printable(reason), console().width))
        print(textwrap.fill(printable(', '.join(names)), console().width, initial_indent='  ',
                            subsequent_indent='  ', break_long_words=False,
                            break_on_hyphens=False))
    print()


def _ms(seconds: float) -> str:
    return '-' if seconds != seconds else f'{seconds * 1e3:.2f}'
