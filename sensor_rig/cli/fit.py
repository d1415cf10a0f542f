"""Fit rate, latency, clock and loss of a recording, and write them as a rig file or datasheet."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from sensor_rig.cli.support.arguments import (
    add_sidecar_argument,
    not_negative,
    output_file,
    refuse_existing,
)
from sensor_rig.cli.support.output import add_json_argument, print_json, print_table

if TYPE_CHECKING:
    from sensor_rig.fit.fitting import TopicFit
    from sensor_rig.fit.servo import ServoFit
    from sensor_rig.fit.statistics import Estimate

NAME = 'fit'
GROUP = 'find out'
HELP = 'fit latency, clock and loss of a recording or a trace; write a rig file or datasheet'
EPILOG = """examples:
  rig fit drive/ --write drive.yaml --html drive.html
  rig fit trace.txt --skip 5 --write datasheets/timing_lidar.yaml
  rig fit ptp4l.log --write clock.yaml"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the recording, what of it to look at, and where to write."""
    parser.add_argument(
        'recording',
        metavar='RECORDING',
        type=Path,
        help='a rosbag2 folder, .mcap or .db3, a text file with receive and message stamps in '
        'ns (two columns), or a log of ptp4l, phc2sys or chrony',
    )
    parser.add_argument('--topic', metavar='NAME', help='fit this topic alone')
    parser.add_argument(
        '--skip',
        type=not_negative,
        default=0.0,
        metavar='S',
        help='leave out the first seconds, while everything starts (0)',
    )
    parser.add_argument(
        '--model',
        default='',
        metavar='NAME',
        help='latency model to fit; without it the likeliest on held-out data',
    )
    parser.add_argument(
        '--write',
        '-w',
        metavar='FILE',
        type=output_file,
        help='write the timing: a datasheet of one topic, a rig file of several',
    )
    add_sidecar_argument(parser)
    parser.add_argument(
        '--html', metavar='FILE', type=output_file, help='write a page: measured against modelled'
    )
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Fit every topic, say what was found, and write what was asked for."""
    from sensor_rig.bags.files import looks_like_recording
    from sensor_rig.cli.support.progress import tell_problems
    from sensor_rig.fit.choosing import candidates
    from sensor_rig.fit.fit_page import fit_page
    from sensor_rig.fit.output import as_json, datasheet, rig_file
    from sensor_rig.fit.servo import fit_servo, read_log

    for file in (args.write, args.html):
        refuse_existing(file)
    candidates(args.model)
    problems: list[str] = []
    source = args.recording.name
    if not looks_like_recording(args.recording) and (log := read_log(args.recording)) is not None:
        return _tell_servo(args, fit_servo(log, args.skip), source)
    fits = _fits(args, problems)
    texts = {}
    if args.write is not None:
        one = len(fits) == 1
        texts[args.write] = datasheet(fits[0], source) if one else rig_file(fits, source)
    if args.html is not None:
        texts[args.html] = fit_page(fits, source)
    _write(texts)
    if args.json:
        print_json({**as_json(fits, source), 'problems': problems})
    else:
        _print(fits)
        _tell_written(texts)
    return tell_problems(problems)


def _tell_servo(args: argparse.Namespace, fit: ServoFit, source: str) -> int:
    from sensor_rig.fit.fit_page import servo_page
    from sensor_rig.fit.output import servo_datasheet, servo_json

    texts = {}
    if args.write is not None:
        texts[args.write] = servo_datasheet(fit, source)
    if args.html is not None:
        texts[args.html] = servo_page(fit, source)
    _write(texts)
    if args.json:
        print_json(servo_json(fit, source))
        return 0
    print_table(
        ('log', 'corrections', 'every s', 'sigma us', 'correlated over'),
        [
            (
                fit.corrections.name,
                str(len(fit.corrections.offset_s)),
                f'{fit.period_s:.3g}',
                _shown(fit.sigma_s, 1e6),
                f'{len(fit.correlations)} corrections' if fit.correlations else 'none',
            )
        ],
    )
    for note in fit.notes:
        print(f'  {note}')
    _tell_written(texts)
    return 0


def _write(texts: dict[Path, str]) -> None:
    from rig_common.saving import save_text

    for file, content in texts.items():
        save_text(file, content)


def _tell_written(texts: dict[Path, str]) -> None:
    for file in texts:
        print(f'written: {file}')


def _fits(args: argparse.Namespace, problems: list[str]) -> list[TopicFit]:
    from sensor_rig.bags.files import looks_like_recording
    from sensor_rig.fit.fitting import fit_stream
    from sensor_rig.fit.times import of_trace

    path: Path = args.recording
    if not looks_like_recording(path):
        return [fit_stream(of_trace(path).between(args.skip), model=args.model)]
    return _bag_fits(args, problems)


def _bag_fits(args: argparse.Namespace, problems: list[str]) -> list[TopicFit]:
    from rig_common.errors import RigError
    from rig_common.validation import hint
    from sensor_rig.bags.inspect import facts_of
    from sensor_rig.bags.reader import BagReader
    from sensor_rig.bags.starter import usable
    from sensor_rig.cli.support.progress import progress
    from sensor_rig.fit.fitting import fit_stream
    from sensor_rig.fit.syncing import offsets_by_motion
    from sensor_rig.fit.times import FEWEST, of_topic

    with BagReader(args.recording, args.sidecar) as bag:
        with progress(f'reading {args.recording.name}', bag.message_count) as advance:
            times = bag.times(advance)
        problems += bag.problems
    facts = facts_of(times.values())
    chosen = usable(facts)
    known = offsets_by_motion(
        args.recording,
        facts,
        {
            topic.name: float((stream.receive_ns - stream.stamp_ns).min()) / 1e9
            for topic in chosen
            if len(stream := of_topic(times[topic.name], topic))
        },
        args.sidecar,
    )
    names = [topic.name for topic in chosen]
    if args.topic is not None:
        chosen = [topic for topic in chosen if topic.name.lstrip('/') == args.topic.lstrip('/')]
        if not chosen:
            raise RigError(
                f'{args.recording} has no stamped topic {args.topic!r}; {hint(args.topic, names)}'
            )
    found = []
    for topic in chosen:
        stream = of_topic(times[topic.name], topic).between(args.skip)
        if stream.without_strays().is_enough or args.topic is not None:
            try:
                found.append(fit_stream(stream, model=args.model, known=known.get(topic.name)))
            except RigError as error:
                if args.topic is not None or len(chosen) == 1:
                    raise
                problems.append(f'not fitted: {error}')
    if not found:
        after = f' after the first {args.skip:g} s' if args.skip else ''
        raise RigError(
            f'{args.recording} has no stamped topic of {FEWEST} messages or more{after}'
        )
    return found


def _print(fits: list[TopicFit]) -> None:
    print_table(
        ('topic', 'Hz', 'model', 'median ms', '99 % ms', 'lag 1', 'drift ppm', 'lost %'),
        [_row(fit) for fit in fits],
    )
    for fit in fits:
        print(fit.times.name)
        for note in fit.notes:
            print(f'  {note}')


def _row(fit: TopicFit) -> tuple[str, ...]:
    lost = _shown(fit.gaps.probability, 100.0) if fit.gaps.regular else '-'
    head = (fit.times.name, f'{fit.gaps.rate_hz.value:.4g}')
    if fit.choice is None:
        return (*head, '-', '-', '-', '-', '-', lost)
    return (
        *head,
        fit.choice.fitted.name.replace('_', ' '),
        _shown(fit.figures['p50_s'], 1e3),
        _shown(fit.figures['p99_s'], 1e3),
        _shown(fit.correlation) if fit.varies else '-',
        _shown(fit.clock.drift_ppm),
        lost,
    )


def _shown(given: Estimate, factor: float = 1.0) -> str:
    value, low, high = (round(each * factor, 9) + 0.0 for each in given)  # no -0
    return f'{value:.3g} ({low:.3g} to {high:.3g})'
