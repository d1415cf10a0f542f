"""Record a run: of a rig without ROS, as fast as it goes, or of the live ROS graph."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sensor_rig.cli.support.arguments import add_storage_arguments, positive
from sensor_rig.cli.support.output import add_json_argument, print_json, print_table

if TYPE_CHECKING:
    from sensor_rig.bags.writer import BagWriter

NAME = 'record'
GROUP = 'run'
HELP = 'record a rig (without ROS) or the live graph into a rosbag2 recording'
EPILOG = """examples:
  rig record out/ --rig demo --seconds 60     simulate a minute and record it, no ROS needed
  rig record out/ --live                      record what is on the ROS graph until Ctrl-C"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what to record and how to write it."""
    parser.add_argument('output', metavar='OUT', type=Path, help='the recording to write')
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        '--rig', metavar='FILE', help='simulate this rig file, or a shipped one by its name'
    )
    source.add_argument('--live', action='store_true', help='record the live ROS graph')
    parser.add_argument(
        '--seconds',
        type=positive,
        metavar='N',
        help='how long: simulated with --rig (10), else until Ctrl-C',
    )
    parser.add_argument(
        '--topics',
        nargs='+',
        metavar='T',
        default=[],
        help='record only these topics; the way to hidden ones (/_truth/...)',
    )
    parser.add_argument(
        '--no-sync', action='store_true', help='with --rig: do not run its sync engine'
    )
    add_storage_arguments(parser)
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Record and say what was recorded."""
    record = _live(args) if args.live else _simulated(args)  # a mistake leaves no OUT behind
    from sensor_rig.bags.writer import BagWriter

    interrupted: KeyboardInterrupt | None = None
    with BagWriter(args.output, args.storage, compress=args.compress) as writer:
        try:
            record(writer)
        except KeyboardInterrupt as interrupt:
            interrupted = interrupt
    counts, seconds = dict(sorted(writer.counts.items())), writer.seconds
    if args.json:
        print_json({'output': str(args.output), 'messages': counts, 'seconds': seconds})
    else:
        print_table(('topic', 'messages'), counts.items())
        print(
            f'{"interrupted; " if interrupted else ""}written: {args.output} '
            f'({sum(counts.values())} messages in {seconds:.1f} s)'
        )
    if interrupted:
        raise interrupted  # what is written can be read; the exit code says that it is not all
    return 0


def _simulated(args: argparse.Namespace) -> Callable[[BagWriter], None]:
    from sensor_rig.cli.support.rendering import begin_trial_for

    begin_trial_for(args.rig)
    from sensor_rig.bags.recorder import record_rig, require_topics
    from sensor_rig.cli.support.progress import note, progress
    from sensor_rig.inprocess import InProcessRig
    from sensor_rig.rigfile import load_rig

    seconds = 10.0 if args.seconds is None else args.seconds
    config = load_rig(args.rig)
    rig = InProcessRig(config, arrays=False, sync=not args.no_sync)
    require_topics(rig, args.topics)
    if config.sync_left_out and not args.no_sync:
        note(f'WARNING: {config.sync_left_out}')

    def record(writer: BagWriter) -> None:
        with progress(f'recording {args.rig}', seconds) as advance:
            record_rig(rig, writer, seconds, advance, args.topics)

    return record


def _live(args: argparse.Namespace) -> Callable[[BagWriter], None]:
    from sensor_rig.bags.connections import offered
    from sensor_rig.cli.support.live import listen, require_ros
    from sensor_rig.cli.support.progress import note

    require_ros()

    def record(writer: BagWriter) -> None:
        listen(
            args.seconds,
            lambda topic: writer.add_topic(
                topic.name,
                topic.type_name,
                qos=[offered(latched=topic.latched, best_effort=topic.best_effort)],
            ),
            lambda topic, raw, arrival_ns: writer.write(topic, arrival_ns, raw),
            topics=args.topics,
            what='recording the live graph',
        )
        for topic in args.topics:
            if not writer.counts.get('/' + topic.lstrip('/')):
                note(f'not heard: {topic}: no message came')

    return record
