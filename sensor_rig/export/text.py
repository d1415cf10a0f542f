"""Lines of the files that are written: values with what is known of them, and marked gaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sensor_rig.export.knowledge import ImuNoise, Knowledge, KnownSensor

GAP = 'GAP'
"""Marks what nobody knows: the line is a comment, so the tool says itself that it misses it."""
CORRECT = '"rig correct" makes a recording that needs no offset'


def number(value: float) -> str:
    """Return a number as YAML and OpenCV's parser take it: with a point."""
    text = f'{value:.9g}'
    return text if '.' in text or 'n' in text else text.replace('e', '.0e') if 'e' in text else (
        f'{text}.0'
    )  # fmt: skip


def gap(key: str, what: str, indent: str = '') -> str:
    """Return the line of a value that is not known."""
    return f'{indent}# {key}: {GAP}: {what}'


def difference(
    known: Knowledge,
    key: str,
    one: KnownSensor,
    other: KnownSensor,
    *,
    scale: float = 1.0,
    indent: str = '',
) -> list[str]:
    """Return the lines of `key`: how far `one` is ahead of `other`, times `scale`, in s.

    What a constant cannot carry is said in comments above it.
    """
    if not (one.known and other.known):
        unknown = ' and '.join(each.name for each in (one, other) if not each.known)
        return [gap(key, f'the clock of {unknown} is not observable in {known.source}', indent)]
    value_s = one.ahead_s - other.ahead_s
    lines = [
        f'{indent}# {one.name} against {other.name}: ± {known.sigma_s(one, other) * 1e3:.3g} ms '
        f'(1 sigma), {_worse(one, other)}'
    ]
    lines += [f'{indent}# {text}' for text in warnings(known, one, other)]
    return [*lines, f'{indent}{key}: {number(value_s * scale)}']


def apart(known: Knowledge, what: str, one: KnownSensor, other: KnownSensor) -> list[str]:
    """Return as text by how much the stamps of `one` are ahead, for a tool without a shift."""
    if not (one.known and other.known):
        return [f'the clock of {other.name} against {one.name} is not known']
    away_ms, sigma_ms = (one.ahead_s - other.ahead_s) * 1e3, known.sigma_s(one, other) * 1e3
    return [
        what.format(f'{away_ms:+.3f} ms') + f', ± {sigma_ms:.3g} ms (1 sigma)',
        *warnings(known, one, other),
    ]


def warnings(known: Knowledge, one: KnownSensor, other: KnownSensor) -> list[str]:
    """Return what a constant offset between two sensors does not say."""
    found = []
    drift = known.drift_ppm(one, other)
    if drift:
        change_ms = drift * 1e-3 * known.duration_s
        found.append(
            f'it drifts by {drift:+.1f} ppm, {change_ms:+.2f} ms over these '
            f'{known.duration_s:.0f} s: the value is for the middle. {CORRECT}'
        )
    for each in (one, other):
        if each.steps:
            times = 'once' if each.steps == 1 else f'{each.steps} times'
            found.append(f'the clock of {each.name} stepped or started over {times}. {CORRECT}')
    return found


def _worse(one: KnownSensor, other: KnownSensor) -> str:
    return next((each.state for each in (one, other) if each.state != 'locked'), 'locked')


def noise_lines(
    noise: ImuNoise, keys: Sequence[str], indent: str = '', scale: float = 1.0
) -> list[str]:
    """Return the noise of an IMU: densities of acceleration and rotation, then their walks."""
    values = noise.accel_density, noise.gyro_density, noise.accel_walk, noise.gyro_walk
    return [
        f'{indent}{key}: {number(value * scale)}   # {noise.source}'
        if value * scale > 0.0
        else gap(key, 'not known; take it from the data sheet or an Allan deviation', indent)
        for key, value in zip(keys, values, strict=True)
    ]


def rows_text(rows: Iterable[Iterable[float]]) -> list[str]:
    """Return each row as `[a, b, c]`."""
    return [f'[{", ".join(number(value) for value in row)}]' for row in rows]


def rotation_note(sensor: KnownSensor) -> str:
    """Say where the rotation of a sensor comes from."""
    if sensor.quat_declared:
        return 'rotation as the rig file declares it'
    return f'rotation estimated from motion, ± {sensor.quat_sigma_deg:.2f} deg (1 sigma)'
