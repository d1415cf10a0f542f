"""What is known of a camera beside its offset, and in one sentence why it got none."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from sync_engine.cues.base import GyroLookup
from sync_engine.cues.image import ImageCounts, ImageCue

_MOST = 0.5
"""Share of the pictures from which on what is wrong with them is the reason."""
_STILL_RAD_S = 0.02
"""A spread of the rate below which nothing turns."""
_FOLLOWS = 0.35
"""A picture that turns by a smaller share of what the gyro says is held still by something."""
_LEAST_OFF = 0.12
"""Share by which a focal length has to be off before a declared one is contradicted: near things
make turns look larger by nearly as much."""
_SURE = 5.0


@dataclass(frozen=True, slots=True)
class CameraStatus:
    """Lens and shutter of a camera, as its pictures and the gyro show them."""

    focal_px: float
    """Focal length of the full picture (px)."""
    focal_sigma_px: float
    declared_focal_px: float | None
    """As declared by CameraInfo or `focal_px`; None where it was not."""
    readout_s: float | None
    """Estimated time from the first row to the last; None before it is known."""
    readout_sigma_s: float | None
    contradiction: str
    """One sentence where the declared focal length is wrong, else empty."""


def camera_status(
    name: str, cue: ImageCue, scale: float, sigma: float, gyro: GyroLookup | None = None
) -> CameraStatus | None:
    """Return what is known; `scale` is the share by which turns are too large, with its sigma."""
    if cue.focal_px is None:
        return None
    taken, found = cue.focal_px, cue.readout.found(gyro)
    focal = taken * (1.0 + scale)
    contradiction = ''
    if cue.is_focal_declared and abs(log(1.0 + scale)) > max(_LEAST_OFF, _SURE * sigma):
        contradiction = (
            f'the focal length of {name} is declared as {taken:.0f} px, but its turns against '
            f'the gyro show {focal:.0f} px (sigma {sigma * taken:.0f} px), which is used instead'
        )
    return CameraStatus(
        focal,
        sigma * taken,
        taken if cue.is_focal_declared else None,
        None if found is None else found.readout_s,
        None if found is None else found.sigma_s,
        contradiction,
    )


def picture_doubt(
    counts: ImageCounts, gyro_rad_s: float, otherwise: str, of: str = 'the gyro'
) -> str:
    """Say why pictures gave no offset; `otherwise` is what the fit of their turns said.

    `gyro_rad_s` is how much the gyro's rate varies, or that `of` another reference.
    """
    seen = counts.pictures - counts.repeated
    if not seen:
        if counts.pictures > 1:
            return 'the picture never changes: a frozen stream, or a still one without noise?'
        return ''
    if counts.blank > _MOST * counts.pictures:
        share = round(100.0 * counts.blank / counts.pictures)
        return f'{share} % of the pictures are blank: is the lens covered, or is it dark?'
    if counts.lost > _MOST * (counts.lost + counts.turns):
        share = round(100.0 * counts.lost / (counts.lost + counts.turns))
        return (
            f'in {share} % of the pictures too little of the one before is found: moving things '
            'all over, or far too large turns?'
        )
    if not otherwise:
        return ''
    turning = counts.rate_rad_s
    figures = f'the picture turns by {turning:.2f} rad/s rms, {of} by {gyro_rad_s:.2f}'
    if max(turning, gyro_rad_s) < _STILL_RAD_S:
        return f'nothing turns: {figures}'
    if gyro_rad_s < _STILL_RAD_S:
        return f'the picture moves while {of} is still ({figures}): a crowd, or a screen?'
    if turning < _FOLLOWS * gyro_rad_s:
        return (
            f'the picture does not follow {of} ({figures}): stabilised in the camera, a '
            'screen recording, or another IMU?'
        )
    return f'{otherwise} ({figures})'
