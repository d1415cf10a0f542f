"""Sweeps whose answer is known: a delay margin in closed form, an odometry that sync mends."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml
from support.places import ROOT
from support.sweeps import rig_command

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]
EXAMPLES = ROOT / 'examples'


def test_the_delay_margin_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip('pyarrow', reason='pyarrow is not installed (extra sweep)')
    monkeypatch.setattr(sys, 'path', [str(EXAMPLES), *sys.path])
    from delay_margin import delay_margin_s, sampled_margin_s

    results = tmp_path / 'results'
    done = rig_command(
        'sweep', EXAMPLES / 'delay_margin_sweep.yaml', '--out', results, timeout=1500.0
    )
    assert done.returncode == 0 and 'by bisecting' in done.stdout, done.stderr
    study = json.loads(rig_command('tolerance', results, '--json').stdout)
    (found,) = study['boundaries'][0]['boundaries']
    low, high = found['interval']
    assert found['good_below'] and found['confidence'] > 0.95 and high - low <= 0.004
    assert low <= sampled_margin_s(0.001) < high
    assert delay_margin_s() == pytest.approx(0.1422, abs=1e-4)
    assert abs(delay_margin_s() - found['middle']) < 0.004, 'sampling takes some of it'


def test_synced_odometry_does_not_feel_the_offset(tmp_path: Path) -> None:
    """A smaller sweep than the one in docs/: 3 offsets, 2 seeds."""
    pytest.importorskip('pyarrow', reason='pyarrow is not installed (extra sweep)')
    pytest.importorskip('rko_lio', reason='rko-lio is not installed (extra odometry)')
    pytest.importorskip('evo', reason='evo is not installed (extra odometry)')
    plan = yaml.safe_load((EXAMPLES / 'lidar_odometry_sweep.yaml').read_text())
    key = 'streams.lidar.clock.offset_s'
    plan['vary'][key] = {'from': -0.1, 'to': 0.1, 'count': 3}
    plan |= {
        'seeds': 2,
        'rig': str(EXAMPLES / plan['rig']),
        'code': [str(EXAMPLES / name) for name in plan['code']],
    }
    file = tmp_path / 'plan.yaml'
    file.write_text(yaml.safe_dump(plan))
    assert rig_command('sweep', file, '--out', tmp_path / 'out', timeout=1500.0).returncode == 0
    study = json.loads(rig_command('tolerance', tmp_path / 'out', '--json').stdout)
    means = {
        curve['measure']: [point['mean'] for point in curve['points']] for curve in study['curves']
    }
    left, middle, right = means['raw.ate_m']
    assert min(left, right) > 3.0 * middle
    assert max(means['synced.ate_m']) < 1.5 * middle
