"""Why a camera got no offset, and what its lens is, in sentences."""

from __future__ import annotations

import numpy as np
import pytest

from sync_engine.cues.image import ImageCounts, ImageCue
from sync_engine.cues.image_status import camera_status, picture_doubt

MISMATCH = 'the turns do not follow the gyro, which explains 3 % of them'


def counts(turns: int = 100, rate: float = 0.0, **others: int) -> ImageCounts:
    found = ImageCounts(pictures=turns + 1, turns=turns, squares=turns * rate**2)
    for key, value in others.items():
        setattr(found, key, value)
    return found


@pytest.mark.parametrize(
    ('seen', 'gyro_rad_s', 'otherwise', 'says'),
    [
        (counts(0, pictures=100, blank=95), 0.3, MISMATCH, '95 % of the pictures are blank'),
        (counts(20, lost=80), 0.3, MISMATCH, 'in 80 % of the pictures too little'),
        (counts(rate=0.05), 0.4, MISMATCH, 'does not follow the gyro'),
        (counts(rate=0.2), 0.005, MISMATCH, 'moves while the gyro is still'),
        (counts(rate=0.004), 0.005, 'too little turning', 'nothing turns'),
        (counts(rate=0.4), 0.4, MISMATCH, MISMATCH),
        (counts(0, pictures=50, repeated=50), 0.4, '', 'the picture never changes'),
        (counts(rate=0.4), 0.4, '', ''),
        (counts(0, pictures=0), 0.0, '', ''),
    ],
)
def test_the_reason_is_named(
    seen: ImageCounts, gyro_rad_s: float, otherwise: str, says: str
) -> None:
    found = picture_doubt(seen, gyro_rad_s, otherwise)
    assert says in found
    assert bool(found) == bool(says)


def cue_of(focal_px: float) -> ImageCue:
    """Return a cue that has seen one picture of 640 x 480."""
    cue, rng = ImageCue(), np.random.default_rng(1)
    gray = rng.integers(0, 255, (480, 640), dtype=np.uint8)
    gray = np.kron(gray[::16, ::16], np.ones((16, 16), np.uint8))
    cue.feed(1, {'gray': gray, 'fx': focal_px, 'fy': focal_px})
    return cue


def test_a_declared_focal_length_is_contradicted_where_turns_are_sure() -> None:
    cue = cue_of(400.0)
    wrong = camera_status('front', cue, 0.27, 0.02)
    assert wrong is not None
    assert wrong.contradiction == (
        'the focal length of front is declared as 400 px, but its turns against the gyro show '
        '508 px (sigma 8 px), which is used instead'
    )
    for scale, sigma in ((0.08, 0.01), (0.27, 0.08)):  # near things; not sure
        known = camera_status('front', cue, scale, sigma)
        assert known is not None and known.contradiction == ''


def test_an_unknown_focal_length_is_estimated() -> None:
    status = camera_status('front', cue_of(0.0), 0.25, 0.02)
    assert status is not None
    assert status.focal_px == pytest.approx(0.6 * 640 * 1.25)
    assert (status.declared_focal_px, status.contradiction) == (None, '')
    assert camera_status('front', ImageCue(), 0.0, 0.5) is None
