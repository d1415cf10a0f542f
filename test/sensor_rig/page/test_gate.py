"""The page's token: nothing is served without it, neither files nor websocket."""

from __future__ import annotations

import http.client
import re
import socket
from collections.abc import Iterator

import pytest
from support.browser import browser_page
from support.places import SMALL_RIG as RIG
from support.processes import Processes

pytest.importorskip('viser', reason='the live page needs viser')

import viser
import websockets.asyncio.server
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from rig_common.errors import RigError
from sensor_rig.cli.demo import TOKEN_VARIABLE, warning
from sensor_rig.page.app import Page
from sensor_rig.page.controls import Setting
from sensor_rig.page.gate import Gate

TOKEN = 'open sesame & more'
QUOTED = 'open%20sesame%20%26%20more'
SUBPROTOCOL = f'viser-v{viser.__version__}'


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope='module')
def page() -> Iterator[Page]:
    page = Page({'imu': Setting()}, port=free_port(), token=TOKEN)
    yield page
    page.close()


def get(page: Page, path: str, **headers: str) -> tuple[int, str, str]:
    """Return status, cookie and text of what the page answers."""
    connection = http.client.HTTPConnection('127.0.0.1', page.server.get_port(), timeout=30)
    try:
        connection.request('GET', path, headers=headers)
        answer = connection.getresponse()
        cookie = (answer.getheader('Set-Cookie') or '').partition(';')[0]
        return answer.status, cookie, answer.read().decode()
    finally:
        connection.close()


def socket_status(page: Page, path: str = '/', origin: str | None = None, **headers: str) -> int:
    """Return what a websocket is answered: 101 is an open one."""
    try:
        with connect(
            f'ws://127.0.0.1:{page.server.get_port()}{path}',
            additional_headers=headers,
            origin=origin,
            subprotocols=[SUBPROTOCOL],
            proxy=None,
        ):
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


@pytest.mark.parametrize(
    'path',
    [
        '/',
        '/index.html',
        '/nothing',
        '/?token=',
        '/?token=wrong',
        '/?token=open%20sesame',
        '/?Token=' + QUOTED,
        f'/{QUOTED}',
    ],
)
def test_without_the_token_there_is_nothing(page: Page, path: str) -> None:
    status, cookie, text = get(page, path)
    assert (status, cookie) == (401, '')
    assert text == 'This page needs its token: add ?token=... to the address.'
    assert socket_status(page, path) == 401


@pytest.mark.parametrize('cookie', ['', 'x', 'sensor_rig_=1', f'token={QUOTED}', '=;;=', 'a=b; c'])
def test_a_wrong_cookie_opens_nothing(page: Page, cookie: str) -> None:
    assert get(page, '/', Cookie=cookie)[0] == 401
    assert socket_status(page, Cookie=cookie) == 401


def test_the_token_gives_a_cookie_and_the_cookie_the_page(page: Page) -> None:
    status, cookie, _ = get(page, f'/?token={QUOTED}')
    assert status == 303
    assert TOKEN not in cookie
    status, _, text = get(page, '/', Cookie=f'other=1; {cookie}')
    assert status == 200
    assert '<html' in text
    assert socket_status(page, Cookie=cookie) == 101
    assert get(page, '/', Cookie=cookie[:-1])[0] == 401


def test_a_websocket_of_another_page_is_refused(page: Page) -> None:
    """A browser sends its cookie along, whichever page of the machine opens the websocket."""
    _, cookie, _ = get(page, f'/?token={QUOTED}')
    own = f'http://127.0.0.1:{page.server.get_port()}'
    assert socket_status(page, origin=own, Cookie=cookie) == 101
    for other in ('http://127.0.0.1:1', 'https://example.org', 'null'):
        assert socket_status(page, origin=other, Cookie=cookie) == 403


@pytest.fixture(scope='module')
def plain() -> Iterator[Page]:
    """A page without a token."""
    page = Page({'imu': Setting()}, port=free_port())
    yield page
    page.close()


def test_without_a_token_another_page_is_refused_too(plain: Page) -> None:
    port = plain.server.get_port()
    for own in (f'http://127.0.0.1:{port}', None):
        assert socket_status(plain, origin=own) == 101
    for other in ('http://127.0.0.1:1', 'https://example.org', 'null', 'http://[', ''):
        assert socket_status(plain, origin=other) == 403
    assert get(plain, '/', Host='localhost')[0] == 200
    assert get(plain, '/', Host=f'[::1]:{port}')[0] == 200
    for name in (f'rebound.example.org:{port}', 'localhost.example.org', '', '['):
        assert get(plain, '/', Host=name)[0] == 403


@pytest.mark.parametrize(
    'path',
    [
        b'/%00',
        b'/%ff%fe',
        b'/a%0ab',
        b'/%',
        b'/\xff\xfe',
        b'/' + b'a' * 300,
        b'/..%2f..%2fetc',
        b'//',
    ],
)
def test_odd_bytes_in_a_path_are_not_found(
    plain: Page, path: bytes, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    address = ('127.0.0.1', plain.server.get_port())
    with socket.create_connection(address, timeout=30) as raw:
        raw.sendall(b'GET ' + path + b' HTTP/1.1\r\nHost: localhost\r\n\r\n')
        answer = raw.makefile('rb').readline()
    assert answer.split()[1] in ((b'200',) if path == b'//' else (b'404',)), answer
    assert 'Traceback' not in caplog.text + capfd.readouterr().err


def test_two_pages_do_not_share_a_cookie(page: Page) -> None:
    _, cookie, _ = get(page, f'/?token={QUOTED}')
    other = Page({'imu': Setting()}, port=free_port(), token='another token')
    try:
        assert get(other, '/', Cookie=cookie)[0] == 401
        assert get(other, '/?token=another%20token')[1].split('=')[0] != cookie.split('=')[0]
    finally:
        other.close()


def test_the_address_does_not_tell_the_token(page: Page) -> None:
    assert page.address == f'http://localhost:{page.server.get_port()}/?token=...'


def test_without_a_token_the_page_is_open_and_serve_is_as_it_was(page: Page) -> None:
    plain = Page({'imu': Setting()}, port=free_port())
    try:
        assert get(plain, '/')[0] == 200
        assert plain.address == f'http://localhost:{plain.server.get_port()}'
        assert websockets.asyncio.server.serve.__module__ == 'websockets.asyncio.server'
    finally:
        plain.close()


@pytest.mark.parametrize('token', ['short', 'with a\nnew line'])
def test_a_poor_token_is_refused(token: str) -> None:
    with pytest.raises(RigError, match='at least 8, all printable'):
        Gate(token)


def test_a_server_that_starts_past_the_gate_is_refused() -> None:
    with pytest.raises(RigError, match='no place for the checks'), Gate(TOKEN).installed():
        pass


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_browser_sees_the_rig_with_the_token_only(processes: Processes) -> None:
    pytest.importorskip('rclpy', reason='the live page listens to ROS')
    port = free_port()
    with browser_page(1240, 420) as window:
        rig = processes.rig(
            'demo', '--rig', str(RIG), '--page-port', str(port), **{TOKEN_VARIABLE: TOKEN}
        )
        rig.wait_for_output(f'http://localhost:{port}/?token=...')
        sockets: list[str] = []
        window.on('websocket', lambda opened: sockets.append(opened.url))
        refused = window.goto(f'http://localhost:{port}')
        assert refused.status == 401
        assert window.inner_text('body').startswith('This page needs its token')
        assert not sockets
        window.goto(f'http://localhost:{port}/?token={QUOTED}', wait_until='domcontentloaded')
        assert window.url == f'http://localhost:{port}/'
        window.get_by_text(re.compile(r'[\d.]+ s simulated')).wait_for()
        window.wait_for_selector('svg >> text=front_lidar')
        window.wait_for_selector('canvas')
        assert sockets
    rig.interrupt()
    assert rig.wait() == 0, rig.output
    assert TOKEN not in rig.output
    assert 'WARNING' not in rig.output


@pytest.mark.slow
def test_a_page_for_other_machines_is_announced_loudly(processes: Processes) -> None:
    pytest.importorskip('rclpy', reason='the live page listens to ROS')
    # Another way to write 127.0.0.1, which does not count as local: nothing is opened for others.
    host, port = '127.1', free_port()
    rig = processes.rig('demo', '--rig', str(RIG), '--page-host', host, '--page-port', str(port))
    rig.wait_for_output(warning(host, port, None))


def test_the_warning_says_what_is_at_stake() -> None:
    assert warning('0.0.0.0', 80, None) == (
        'WARNING: the live page answers on 0.0.0.0: anyone who reaches port 80 of this machine '
        'can watch the rig, stop it and inject faults. There is no password.'
    )
    assert 'anyone who knows the token and reaches port 80' in warning('0.0.0.0', 80, TOKEN)
