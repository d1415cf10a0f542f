"""Run the demo rig: a rover in a yard, its sensors, the sync node and the live page."""

from __future__ import annotations

import argparse
import ipaddress
import os
import sys

from sensor_rig.cli.support.arguments import port
from sensor_rig.cli.support.rig_runs import (
    add_run_arguments,
    exit_code,
    loaded,
    print_summary,
    run_rig,
)
from sensor_rig.page.access import DEFAULT_PORT, LOCAL, PagePlace

NAME = 'demo'
GROUP = 'run'
TAKES_SIGNALS = True
HELP = 'run the demo rig and show its live page'
EPILOG = """Everything stays on this machine: the page answers on localhost only, and no other
machine can reach the rig unless ROS_AUTOMATIC_DISCOVERY_RANGE, ROS_STATIC_PEERS,
ROS_DISCOVERY_SERVER or a Fast DDS profile of your own says so (docs/security.md)."""
TOKEN_VARIABLE = 'SENSOR_RIG_PAGE_TOKEN'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        '--rig',
        default='demo',
        metavar='FILE',
        help='another rig file, or the name of a shipped one (default: demo)',
    )
    add_run_arguments(parser)
    parser.add_argument('--headless', action='store_true', help='without the live page')
    parser.add_argument(
        '--page-port',
        type=port,
        metavar='P',
        help='port of the live page, 0 for any free one (default: '
        f'{DEFAULT_PORT}, or the next free one)',
    )
    parser.add_argument(
        '--page-host',
        default=LOCAL,
        metavar='H',
        help='address the live page answers on (default: this machine only); no '
        'password is asked for unless there is a token',
    )
    parser.add_argument(
        '--page-token',
        metavar='T',
        help='serve the live page only at addresses with ?token=T; better given '
        f'as {TOKEN_VARIABLE}, which the list of processes does not show',
    )


def run(args: argparse.Namespace) -> int:
    """Run the demo."""
    rig = loaded(args)
    page = None if args.headless else page_place(args)
    out = sys.stderr if args.json else sys.stdout
    ends = f'for {args.seconds:g} simulated seconds' if args.seconds else 'until Ctrl-C'
    print(
        f'Running {rig.path.name} {ends}: {len(rig.sensors)} sensors'
        f'{", synced" if rig.runs_sync else ""}.',
        file=out,
        flush=True,
    )
    if page is not None and not is_local(page.host):
        print(warning(page.host, page.port, page.token), file=sys.stderr, flush=True)
    summary = run_rig(rig, args, page)
    print_summary(summary, args.json)
    return exit_code(summary, args.seconds)


def page_place(args: argparse.Namespace) -> PagePlace:
    """Return the place of the page; only the default port may be replaced by another."""
    place = PagePlace(
        DEFAULT_PORT if args.page_port is None else args.page_port,
        args.page_host,
        args.page_token or os.environ.get(TOKEN_VARIABLE) or None,
        may_move=args.page_port is None,
    )
    place.require()
    return place


def warning(host: str, port: int, token: str | None) -> str:
    """Return what to say of a page that other machines can reach."""
    who, how = (
        ('anyone who', 'There is no password.')
        if not token
        else ('anyone who knows the token and', 'Nothing is encrypted, not even the token.')
    )
    return (
        f'WARNING: the live page answers on {host}: {who} reaches port {port} of this machine '
        f'can watch the rig, stop it and inject faults. {how}'
    )


def is_local(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return host == 'localhost' or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
