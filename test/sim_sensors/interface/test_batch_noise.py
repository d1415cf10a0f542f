"""noise, bias, random_walk and resolution mean the same for every sensor and type."""

import numpy as np
from support.toy_sensors import MS, Plain, make

from sim_sensors.timing.arrays.layout import Layout


class Pixels(Plain):
    """Three bytes."""

    truth_layout = Layout({'rgb': (3,)}, np.uint8)


def run(steps: int, **keys: object) -> np.ndarray:
    """Return what environment 0 reads at each of `steps` captures of a constant truth 1.0."""
    pipeline = make(1, **keys)
    out = []
    for k in range(steps):
        pipeline.tick(None, k * MS, np.ones((1, 2)))
        out.append(pipeline.read(k * MS).values[0])
    return np.array(out)


def test_white_noise_and_bias() -> None:
    values = run(4000, noise=0.3, bias=5.0)
    assert np.allclose(values.mean(axis=0), 6.0, atol=0.03)
    assert np.allclose(values.std(axis=0), 0.3, atol=0.02)
    assert abs(np.corrcoef(values.T)[0, 1]) < 0.06


def test_random_walk_grows_with_the_root_of_the_captures() -> None:
    steps = np.diff(run(4000, random_walk=0.1), axis=0)
    assert np.allclose(steps.std(axis=0), 0.1, atol=0.01)
    assert abs(steps.mean()) < 0.01


def test_resolution_rounds_to_its_multiples() -> None:
    values = run(50, noise=0.3, resolution=0.25)
    assert np.array_equal(values, np.round(values / 0.25) * 0.25)
    assert len(np.unique(values)) > 3


def test_no_imperfection_no_change() -> None:
    assert (run(5) == 1.0).all()


def test_pixels_are_rounded_and_clipped() -> None:
    pipeline = make(1, Pixels, noise=40.0)
    seen = []
    for k in range(300):
        pipeline.tick(None, k * MS, np.array([[0, 128, 255]], np.uint8))
        seen.append(pipeline.read(k * MS).values[0])
    values = np.array(seen)
    assert values.dtype == np.uint8
    assert abs(values[:, 1].astype(float).std() - 40.0) < 6.0
    clipped = [(values[:, 0] == 0).mean(), (values[:, 2] == 255).mean()]
    assert np.allclose(clipped, 0.5, atol=0.12)  # half of the noise goes over the edge


def test_float32_sensors_stay_float32() -> None:
    class Ranges(Plain):
        truth_layout = Layout({'range': (4,)}, np.float32)

    pipeline = make(1, Ranges, noise=0.01, resolution=0.001)
    pipeline.tick(None, 0, np.array([[1.0, 2.0, np.inf, np.nan]], np.float32))
    values = pipeline.read(0).values
    assert values.dtype == np.float32
    assert values[0, 2] == np.inf and np.isnan(values[0, 3]) and 0.9 < values[0, 0] < 1.1
