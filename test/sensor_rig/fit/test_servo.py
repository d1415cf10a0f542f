"""Logs of daemons that discipline a clock: read as they are published, fitted, simulated."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.transits import stamps, transit

from rig_common.errors import RigError
from sensor_rig.cli.main import main
from sensor_rig.fit.servo import fit_servo, read_log
from sensor_rig.fit.statistics import autocorrelation


def sawtooth(count: int, seed: int = 1) -> list[int]:
    """Return offsets, ns, of a clock that runs off and is set back every fifth second."""
    random = np.random.default_rng(seed)
    ramp = (np.arange(count) * 105_000 % 505_000) - 250_000
    return (ramp + random.normal(0.0, 8_000, count)).astype(int).tolist()


def ptp4l(offsets: list[int], prefix: str = 'ptp4l[{at:.3f}]: ') -> str:
    lines = [
        'ptp4l[99.0]: port 1: LISTENING to UNCALIBRATED on RS_SLAVE',
        'ptp4l[99.5]: master offset     -37203 s1 freq      +0 path delay     10583',
    ]
    lines += [
        prefix.format(at=100.0 + k) + f'master offset {each:10d} s2 freq  -30575 path delay  10583'
        for k, each in enumerate(offsets)
    ]
    return '\n'.join(lines) + '\n'


def phc2sys(offsets: list[int]) -> str:
    return ''.join(
        f'phc2sys[{100.0 + k:.3f}]: CLOCK_REALTIME phc offset {each:9d} s2 '
        'freq   +9874 delay   1239\n'
        for k, each in enumerate(offsets)
    )


def pmc_json(offsets: list[int]) -> str:
    def answer(steps: int, offset: float) -> dict[str, object]:
        data = {'stepsRemoved': str(steps), 'offsetFromMaster': str(offset)}
        return {'ptp_header': {'action': 'RESPONSE'}, 'current_data_set': data}

    return ''.join(
        json.dumps(
            [
                {
                    'GET CURRENT_DATA_SET': {
                        'send_stamp_ns': str(1_586_610_947_000_000_000 + k * 10**9),
                        'ptp_msgs': [answer(0, 0.0), answer(1, float(each))],
                    }
                }
            ]
        )
        + '\n'
        for k, each in enumerate(offsets)
    )


def chrony_tracking(offsets: list[int]) -> str:
    banner = (
        '='
        * 80
        + '\n   Date (UTC) Time     IP Address   St   Freq ppm   Skew ppm     Offset L Co  '
        'Offset sd Rem. corr. Root delay Root disp. Max. error\n' + '=' * 80 + '\n'
    )
    return banner + ''.join(
        f'2026-08-22 13:{k // 60:02d}:{k % 60:02d} 203.0.113.15     2     -3.541      0.075 '
        f'{each * 1e-9: .3e} N  2  2.940e-03 -2.084e-04  1.534e-02  3.472e-04  8.304e-03\n'
        for k, each in enumerate(offsets)
    )


def chrony_statistics(offsets: list[int]) -> str:
    banner = (
        "   Date (UTC) Time     IP Address    Std dev'n Est offset  Offset sd  Diff freq   "
        'Est skew  Stress  Ns  Bs  Nr  Asym\n'
    )
    rows = [
        f'2026-08-22 13:{k // 60:02d}:{k % 60:02d} 203.0.113.15    6.261e-03 {each * 1e-9: .3e}  '
        '2.220e-03  1.874e-06  1.080e-06 7.8e-02  16   0   8  0.00\n'
        for k, each in enumerate(offsets)
    ]
    rows.insert(3, rows[3].replace('203.0.113.15 ', '198.51.100.7 ').replace('6.261', '9.999'))
    return banner + ''.join(rows)


WRITERS = (ptp4l, phc2sys, pmc_json, chrony_tracking, chrony_statistics)


@pytest.mark.parametrize('write', WRITERS)
def test_every_published_format_says_the_same(tmp_path: Path, write: object) -> None:
    assert callable(write)
    offsets = sawtooth(200)
    file = tmp_path / 'daemon.log'
    file.write_text(write(offsets), encoding='utf-8')
    log = read_log(file)
    assert log is not None
    np.testing.assert_allclose(log.offset_s * 1e9, offsets, rtol=1e-3, atol=1.0)
    np.testing.assert_allclose(np.diff(log.time_s), 1.0, atol=1e-6)
    assert fit_servo(log).sigma_s.value == pytest.approx(np.std(offsets) / 1e9, rel=0.01)


def test_a_fitted_sawtooth_is_simulated_with_its_period(tmp_path: Path) -> None:
    file = tmp_path / 'ptp4l.log'
    file.write_text(ptp4l(sawtooth(300)), encoding='utf-8')
    log = read_log(file)
    assert log is not None
    keys = fit_servo(log).keys()
    made = transit({'clock': {'servo': keys}}, 20, rate_hz=1.0, seed=2)
    errors = stamps(made, range(400)) - made.schedule.times_of(np.arange(400))[:, None]
    theirs = np.mean([autocorrelation(run.astype(float), 10) for run in errors.T], axis=0)
    ours = autocorrelation(log.offset_s, 10)
    assert ours[5] > 0.7
    np.testing.assert_allclose(theirs, ours, atol=0.15)
    assert errors.std() == pytest.approx(log.offset_s.std() * 1e9, rel=0.1)


def test_independent_offsets_get_no_correlations(tmp_path: Path) -> None:
    offsets = np.random.default_rng(3).normal(0.0, 200.0, 300).astype(int).tolist()
    file = tmp_path / 'phc2sys.log'
    file.write_text(phc2sys(offsets), encoding='utf-8')
    log = read_log(file)
    assert log is not None
    assert 'correlations' not in dict(fit_servo(log).keys())


def test_only_a_locked_clock_counts_and_a_log_without_times_says_so(tmp_path: Path) -> None:
    file = tmp_path / 'old.log'
    file.write_text(ptp4l(sawtooth(40), prefix=''), encoding='utf-8')
    log = read_log(file)
    assert log is not None
    assert len(log.offset_s) == 40
    assert any('no times' in note for note in fit_servo(log).notes)


def test_summaries_and_short_logs_are_refused_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / 'summary.log'
    file.write_text('ptp4l[365.3]: rms   10 max   21 freq  -25400 +/-  15 delay  1180 +/-   1\n')
    with pytest.raises(RigError, match='summary_interval 0'):
        read_log(file)
    file.write_text(ptp4l(sawtooth(10)))
    assert main(['fit', str(file)]) == 2
    assert '10 corrections' in capsys.readouterr().err


def test_the_command_writes_a_datasheet_a_page_and_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, sheet, html = (tmp_path / name for name in ('ptp4l.log', 'clock.yaml', 'clock.html'))
    file.write_text(ptp4l(sawtooth(200)))
    assert main(['fit', str(file), '--write', str(sheet), '--html', str(html)]) == 0
    assert 'kind: ptp' in sheet.read_text()
    assert '<svg' in html.read_text()
    capsys.readouterr()
    assert main(['fit', str(file), '--json']) == 0
    found = json.loads(capsys.readouterr().out)['servo']
    assert found['corrections'] == 200
    assert found['keys']['clock']['servo']['correlations'] == found['correlations']
