"""What `demo` and `run` share: options, starting a rig, the summary at the end."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from sensor_rig.cli.support.arguments import not_negative, positive
from sensor_rig.cli.support.live import require_ros
from sensor_rig.cli.support.output import add_json_argument, print_json, print_table
from sensor_rig.cli.support.progress import note, progress

if TYPE_CHECKING:
    from rig_common.paramfile.events import Parameters
    from sensor_rig.page.access import PagePlace
    from sensor_rig.rigfile import RigConfig
    from sensor_rig.running.run_summary import Summary

PROGRESS_NS = 100_000_000
"""Simulated time between two movements of the progress bar."""


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what says how a rig is run."""
    parser.add_argument(
        '--seconds',
        type=positive,
        metavar='N',
        help='end after N simulated seconds; without it, Ctrl-C ends the run',
    )
    parser.add_argument(
        '--rtf',
        type=not_negative,
        metavar='X',
        help="real-time factor instead of the rig file's; 0: as fast as possible",
    )
    parser.add_argument(
        '--lockstep',
        action='store_true',
        help='let the world wait for every node: runs are then bit-identical',
    )
    parser.add_argument(
        '--wait-for',
        action='extend',
        type=_names,
        metavar='NODE',
        default=[],
        help='with lockstep: a node of yours that the world waits for, too; '
        'several by comma, or by another --wait-for',
    )
    parser.add_argument(
        '--processes', action='store_true', help='one process per node instead of one for all'
    )
    parser.add_argument(
        '--only',
        metavar='A,B',
        type=_names,
        default=[],
        help='start only these parts of the rig here: world, sync, names of '
        'sensors; the others run on other hosts',
    )
    add_json_argument(parser)


def _names(text: str) -> list[str]:
    return [name for name in text.split(',') if name]


def loaded(args: argparse.Namespace) -> RigConfig:
    """Return the rig that the arguments name, to be run as they say."""
    if not (args.processes or args.only):  # else its cameras render in another process
        from sensor_rig.cli.support.rendering import begin_trial_for

        begin_trial_for(args.rig)
    from sensor_rig.rigfile import load_rig

    return load_rig(args.rig)


def run_rig(rig: RigConfig, args: argparse.Namespace, page: PagePlace | None = None) -> Summary:
    """Run a rig as the arguments say, with a live page if it has a place; return the summary."""
    overrides: Parameters = {}
    if args.rtf is not None:
        overrides['real_time_factor'] = args.rtf
    if args.lockstep:
        overrides['lockstep'] = True
    if args.wait_for:
        overrides['wait_for'] = [*rig.simulated_world.wait_for, *args.wait_for]
    rig = rig.with_world(**overrides)
    rig.simulated_world.require_lockstep_to_wait()
    from sensor_rig.running.middleware import prepare_middleware

    prepare_middleware(note)
    require_ros(', or run the rig without ROS in Python (sensor_rig.inprocess.open_rig)')
    if rig.sync_left_out:
        note(f'WARNING: {rig.sync_left_out}')
    from sensor_rig.page.ros.factory import page_factory

    extras = [] if page is None else page_factory(rig, page)
    with _progress(rig.path.name, args.seconds) as on_time:
        if args.processes:
            from sensor_rig.running.ros.many_processes import run_in_many_processes

            summary = run_in_many_processes(
                rig, args.seconds, overrides, extras, on_time, args.only
            )
        else:
            from sensor_rig.running.ros.one_process import run_in_one_process

            summary = run_in_one_process(rig, args.seconds, extras, on_time, args.only)
    lasts_ms = {name: each.duration_ns / 1e6 for name, each in rig.make_sensors().items()}
    return replace(
        summary,
        sensors={
            name: replace(each, capture_ms=lasts_ms.get(name, 0.0))
            for name, each in summary.sensors.items()
        },
    )


@contextmanager
def _progress(name: str, seconds: float | None) -> Iterator[Callable[[int], None] | None]:
    """Give what shows simulated time (ns) as progress; None for a run without an end."""
    if seconds is None:
        yield None
        return
    with progress(f'running {name}', seconds) as advance:
        shown_ns = 0

        def on_time(now_ns: int) -> None:
            nonlocal shown_ns
            if now_ns - shown_ns >= PROGRESS_NS:
                advance((now_ns - shown_ns) / 1e9)
                shown_ns = now_ns

        yield on_time


def exit_code(summary: Summary, seconds: float | None) -> int:
    """Return 130 where a run ended before the time that was asked for; a signal ended it then."""
    is_early = seconds is not None and not summary.resets and summary.simulated_s < seconds - 1e-6
    return 128 + signal.SIGINT if is_early else 0


def print_summary(summary: Summary, as_json: bool) -> None:
    """Print what a run came to."""
    if as_json:
        print_json(summary.as_json())
        return
    factor = summary.real_time_factor
    again = ' since the last reset' if summary.resets else ''
    print(
        f'{summary.simulated_s:.2f} s simulated{again}'
        + (f', last at {factor:.2f} times real time' if factor else '')
        + (f', clock slowed by {summary.slowed_s:.2f} s' if summary.slowed_s else '')
    )
    _print_sensors(summary, again)
    if summary.bundles is not None:
        _print_sync(summary, ' in the whole run' if again else '')


def _print_sensors(summary: Summary, again: str) -> None:
    from sensor_rig.running.run_summary import SensorSummary, cells, headings

    print_table(
        ['sensor', *headings(SensorSummary)],
        [[name, *cells(each)] for name, each in summary.sensors.items()],
        title=f'sensors{again}' if again else None,
    )
    lasting = [
        f'{name} {s.capture_ms:.3g} ms' for name, s in summary.sensors.items() if s.capture_ms
    ]
    if lasting:
        print(
            f'latency counts from the start of a capture, which itself lasts: '
            f'{", ".join(lasting)}\n'
        )


def _print_sync(summary: Summary, whole: str) -> None:
    from sensor_rig.running.run_summary import InputSummary, cells, headings
    from sync_engine.streams.ledger import MEANING

    print_table(
        ['sync input', *headings(InputSummary)],
        [[name, *cells(each)] for name, each in summary.inputs.items()],
        title=f'{summary.bundles} bundles{whole}; offsets to the reference',
    )
    print('sigma of the reference: how sure its own clock is\n')
    keys = summary.ledger_keys()
    print_table(
        ['ledger', *keys],
        [[name, *(i.ledger[key] for key in keys)] for name, i in summary.inputs.items()],
        title=f'messages{whole}' if whole else None,
    )
    for fate, meaning in MEANING.items():
        if fate.value in keys:
            print(f'{fate.value}: {meaning}')
