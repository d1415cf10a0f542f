"""Where the live page answers: ports that cannot be, ports that are taken, starts that fail."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from rig_common.errors import RigError
from sensor_rig.cli.main import main
from sensor_rig.page.access import LOCAL, PagePlace, require_address


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server((LOCAL, 0)) as other:
        yield int(other.getsockname()[1])


def refusal(capsys: pytest.CaptureFixture[str], *line: str) -> str:
    """Return the one sentence that a command line is refused with, before anything is done."""
    assert main(list(line)) == 2
    shown = capsys.readouterr()
    assert shown.out == ''
    assert shown.err.count('\n') == 1
    return shown.err


@pytest.mark.parametrize('port', ['99999', '65536', '80a', '-1', '8.5', '', '9' * 400])
def test_a_port_that_cannot_be_is_refused(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(capsys, 'demo', '--page-port', port, '--seconds', '1')
    assert f"--page-port is '{port}'; it should be a whole number from 1 to 65535" in said


def test_a_port_without_end_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(capsys, 'demo', '--page-port', '9' * 5000, '--seconds', '1')
    assert said.startswith("error: --page-port is '999")
    assert said.endswith('more characters)\n')


def test_a_taken_port_that_was_asked_for_is_refused(
    taken_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refusal(capsys, 'demo', '--page-port', str(taken_port), '--seconds', '1')
    assert f'cannot answer on port {taken_port} of 127.0.0.1: another program does' in said


@pytest.mark.parametrize(
    ('host', 'words'),
    [
        ('192.0.2.1', 'not an address of this machine'),
        ('no such host', "cannot answer on 'no such"),
        ('a' * 300, 'cannot answer on'),
    ],
)
def test_a_host_that_is_not_here_is_refused(
    host: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in refusal(capsys, 'demo', '--page-host', host, '--seconds', '1')


def test_a_short_token_is_refused_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert 'at least 8' in refusal(capsys, 'demo', '--page-token', 'abc', '--seconds', '1')


def test_a_port_nobody_asked_for_may_be_taken(taken_port: int) -> None:
    require_address(LOCAL, taken_port, may_move=True)
    PagePlace(0, may_move=False).require()


def test_a_page_moves_only_where_it_may(taken_port: int) -> None:
    pytest.importorskip('viser', reason='the live page needs viser')
    from sensor_rig.page.app import Page
    from sensor_rig.page.controls import Setting

    with pytest.raises(RigError, match='another program does'):
        Page({'imu': Setting()}, port=taken_port)
    page = Page({'imu': Setting()}, port=taken_port, may_move=True)
    try:
        assert page.server.get_port() != taken_port
    finally:
        page.close()


def test_a_server_that_fails_in_its_thread_is_an_error() -> None:
    """viser waits for ever for a thread that died."""
    pytest.importorskip('viser', reason='the live page needs viser')
    from sensor_rig.page import serving

    before = threading.excepthook
    with pytest.raises(RigError, match=r'did not start on port 99999 of 127\.0\.0\.1: bind'):
        serving._Start(LOCAL, 99_999, 'page').wait(300.0)
    assert threading.excepthook is before


def test_a_server_that_never_answers_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    viser = pytest.importorskip('viser', reason='the live page needs viser')
    from sensor_rig.page import serving

    release = threading.Event()
    monkeypatch.setattr(viser, 'ViserServer', lambda **_: release.wait())
    with pytest.raises(RigError, match=r'no answer for 0\.01 s'):
        serving.start_server(LOCAL, 0, 'page', may_move=False, patience_s=0.01)
    release.set()
