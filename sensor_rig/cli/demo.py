"""Run the demo rig: a rover in a yard, its sensors, the sync node and the live page."""

from __future__ import annotations

import argparse
import ipaddress
import sys

from sensor_rig.cli.running import add_run_arguments, print_summary, run_rig

NAME = 'demo'
TAKES_SIGNALS = True
HELP = 'run the demo rig and show its live page'
EPILOG = """Everything stays on this machine: the page answers on localhost only, and ROS nodes on
other machines are not looked for unless ROS_AUTOMATIC_DISCOVERY_RANGE is set."""
PAGE_PORT = 8080
LOCAL = '127.0.0.1'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument('--rig', default='demo', metavar='FILE',
                        help='another rig file, or the name of a shipped one (default: demo)')
    add_run_arguments(parser)
    parser.add_argument('--headless', action='store_true', help='without the live page')
    parser.add_argument('--page-port', type=int, default=PAGE_PORT, metavar='P',
                        help=f'port of the live page (default: {PAGE_PORT})')
    parser.add_argument('--page-host', default=LOCAL, metavar='H',
                        help='address the live page answers on (default: this machine only); it '
                             'asks nobody for a password')


def run(args: argparse.Namespace) -> int:
    """Run the demo."""
    from sensor_rig.rigfile import load_rig
    rig = load_rig(args.rig)
    out = sys.stderr if args.json else sys.stdout
    ends = f'for {args.seconds:g} simulated seconds' if args.seconds else 'until Ctrl-C'
    print(f'Running {rig.path.name} {ends}: {len(rig.sensors)} sensors'
          f'{", synced" if rig.sync is not None else ""}.', file=out, flush=True)
    if not args.headless and not is_local(args.page_host):
        print(f'WARNING: the live page answers on {args.page_host}: whoever reaches port '
              f'{args.page_port} of this machine can watch the rig, stop it and inject faults. '
              f'There is no password.', file=sys.stderr, flush=True)
    print_summary(run_rig(rig, args, page_port=None if args.headless else args.page_port,
                          page_host=args.page_host), args.json)
    return 0


def is_local(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return host == 'localhost' or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
