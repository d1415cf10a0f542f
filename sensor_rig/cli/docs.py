"""Build the documentation as a site of plain files: search, light and dark, nothing fetched.

Open index.html of the folder in a browser, or look at it with --serve, which the search needs.
Warnings (a dead link, a page that the navigation forgot) are printed, and end it with 1.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sensor_rig.cli.support.arguments import port

NAME = 'docs'
GROUP = 'maintain'
HELP = 'build the documentation site'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add where the site goes."""
    parser.add_argument(
        '--output',
        '-o',
        metavar='DIR',
        type=Path,
        default=Path('site'),
        help='the folder to write (site)',
    )
    parser.add_argument(
        '--serve',
        metavar='PORT',
        type=port,
        nargs='?',
        const=8000,
        help='then serve it on this machine until Ctrl-C (port 8000)',
    )


def run(args: argparse.Namespace) -> int:
    """Build the site, and serve it if asked to."""
    from rig_common.errors import RigError
    from rig_common.installing import pip_install
    from sensor_rig.cli.bench import source_root

    try:
        import mkdocs  # noqa: F401
    except ImportError:
        raise RigError(
            f'the site is built by MkDocs, which is not installed: '
            f'{pip_install("mkdocs-material")}'
        ) from None
    from sensor_rig.cli.support.site import build_site

    problems = build_site(source_root(), args.output.absolute())
    for problem in problems:
        print(f'warning: {problem}')
    print(f'written: {args.output / "index.html"}', flush=True)
    if args.serve is not None:
        serve(args.output, args.serve)
    return 1 if problems else 0


def serve(folder: Path, at_port: int) -> None:
    """Serve a folder on this machine until Ctrl-C."""
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    from rig_common.errors import RigError, why

    try:
        server = ThreadingHTTPServer(
            ('127.0.0.1', at_port), partial(SimpleHTTPRequestHandler, directory=str(folder))
        )
    except OSError as error:
        raise RigError(f'port {at_port} cannot be used: {why(error)}') from None
    print(f'open http://127.0.0.1:{server.server_port}/ (Ctrl-C ends it)', flush=True)
    with server:
        server.serve_forever()
