"""Live topics with right stamps: nothing before the clock is known, no step back after."""

from __future__ import annotations

import numpy as np
import pytest

from rig_common import msgs
from rig_common.cdr import read_stamp_ns
from sync_engine.config import load_config
from sync_engine.wire.live_correction import LiveCorrections
from sync_engine.wire.session import WireSync

MS, START_NS = 10**6, 1_700_000_000 * 10**9
IMAGE, INFO = msgs.image('cam', 2, 2, 'mono8'), msgs.camera_info('cam', 2, 2, np.eye(3))


def run(sigma_s: float, seconds: float = 20.0, **correct: object) -> np.ndarray:
    """Return (true capture, stamp of the image, of its info; ms) of a camera 300 ms ahead."""
    rng = np.random.default_rng(1)
    camera = {'topic': 'cam/image', 'type': IMAGE.type_name, 'latency_s': 0.03,
              'latency_sigma_s': sigma_s}  # fmt: skip
    config = load_config(
        {
            'inputs': {
                'camera': camera,
                'info': {'topic': 'cam/info', 'type': INFO.type_name, 'clock_of': 'camera'},
            },
            'reference_sensor_id': 'camera',
            'correct': {'inputs': ['camera', 'info'], **correct},
        }
    )
    sync = WireSync(config)
    live = LiveCorrections(config, sync.engine)
    rows = []
    for t_ms in np.arange(0.0, seconds * 1e3, 33.0).tolist():
        told_ns = START_NS + round((t_ms * (1 + 40e-6) + 300.0) * MS)
        arrival_ns = START_NS + round((t_ms + 30.0 + rng.exponential(2.0)) * MS)
        found = []
        for name, template in (('info', INFO), ('camera', IMAGE)):
            raw = template.fill(told_ns)
            sync.push(name, raw, arrival_ns)
            found.append(read_stamp_ns(live.correct(name, raw, arrival_ns)) - START_NS)
        rows.append((t_ms, found[1] / MS, found[0] / MS))
    return np.array(rows)


def test_a_stream_gets_its_true_stamps_without_a_bundle() -> None:
    true_ms, image_ms, info_ms = run(0.001).T
    assert (image_ms == info_ms).all()
    late = image_ms[100:] - true_ms[100:]
    assert np.abs(late).max() < 1.0
    assert (np.diff(image_ms[100:]) > 0).all()


def test_until_its_clock_is_known_it_passes_as_it_came() -> None:
    true_ms, image_ms, _ = run(0.03).T
    assert image_ms - true_ms == pytest.approx(300.0 + true_ms * 40e-6, abs=1e-3)
    true_ms, image_ms, _ = run(0.03, min_state='converging').T
    assert np.abs(image_ms[100:] - true_ms[100:]).max() < 3.0


def test_on_the_clock_of_the_reference_its_stamps_stay() -> None:
    true_ms, image_ms, _ = run(0.001, to='reference').T
    assert image_ms - true_ms == pytest.approx(300.0 + true_ms * 40e-6, abs=1e-3)


def test_an_input_that_is_none_is_refused() -> None:
    with pytest.raises(Exception, match=r'correct\.inputs names .camra.'):
        load_config({'inputs': {'camera': {}}, 'reference_sensor_id': 'camera',
                     'correct': {'inputs': ['camra']}})  # fmt: skip
