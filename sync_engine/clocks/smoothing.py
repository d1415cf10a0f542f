"""Looks at a recorded clock twice: forward with the filter, then backward over what it noted.

A filter knows at 3 s what the first 3 s told. A recording is there as a whole, so its first second
may use what its last one tells: the Rauch-Tung-Striebel smoother (filterpy's). Where the clock
stepped, restarted or the filter was opened, what came before tells nothing about what comes after:
there the run is split, and every piece is smoothed alone.

    engine.clocks.record()              # before the first message of a first pass
    tracks = engine.clocks.smoothed()   # after its last
    another.clocks.play(tracks)         # a second pass, which need not run any cue
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from rig_common.arrays import Floats
from rig_common.times import NS_PER_S


class SmoothedClock(NamedTuple):
    """One clock at one moment, as the whole recording tells it."""

    time_ns: int
    """Host time."""
    offset_ns: int
    skew: float
    anchor_ns: int
    """What it believes the IMU's offset to be wrong by."""
    offset_var: float
    anchored_var: float
    bias_var: float


def known_clock(
    x: Floats,
    p: Floats,
    is_anchor: bool,
    time_s: float,
    epoch_ns: int,
    base_ns: int,
    bias_var: float,
) -> SmoothedClock:
    """Return what a state [n] with covariance [n, n] says, `time_s` after `epoch_ns`."""
    other = 2 if is_anchor else 3
    return SmoothedClock(
        epoch_ns + round(time_s * NS_PER_S),
        base_ns + round(float(x[0]) * NS_PER_S),
        float(x[1] + x[4]),
        round(float(x[3]) * NS_PER_S),
        float(p[0, 0]),
        float(p[0, 0] + p[other, other] - 2.0 * p[0, other]),
        bias_var,
    )


class Note(NamedTuple):
    """One step of the filter: the state [n] and covariance [n, n] it left, and the step itself."""

    time_s: float
    state: Floats
    covariance: Floats
    transition: Floats
    noise: Floats


@dataclass
class Piece:
    """A stretch in which the filter ran on unbroken."""

    from_ns: int
    """Host time from which on it holds."""
    base_ns: int
    epoch_ns: int
    notes: list[Note] = field(default_factory=list)
    bias_var: float = 0.0


class ClockTrack:
    """A clock's offset over a recording."""

    def __init__(self, pieces: list[tuple[int, list[SmoothedClock]]], anchor: str = '') -> None:
        """Take (host time from which on it holds, what is known) in order of time.

        `anchor`: the input that its motion was compared with.
        """
        self.pieces, self.anchor = pieces, anchor
        self._from_ns = [from_ns for from_ns, _ in pieces]
        self._pieces = [known for _, known in pieces]
        self._times_ns = [[each.time_ns for each in known] for known in self._pieces]

    def at(self, time_ns: int) -> SmoothedClock | None:
        """Return what is known nearest before host time `time_ns`, None where nothing is."""
        if not self._pieces:
            return None
        piece = max(bisect_right(self._from_ns, time_ns) - 1, 0)
        known = self._pieces[piece]
        return known[max(bisect_right(self._times_ns[piece], time_ns) - 1, 0)]


class Tape:
    """What one clock's filter noted on its way forward."""

    def __init__(self, is_anchor: bool, anchor: str = '') -> None:
        self._is_anchor, self._anchor = is_anchor, anchor
        self._pieces: list[Piece] = []

    def begin(self, from_ns: int, base_ns: int, epoch_ns: int) -> None:
        """A new piece holds from host time `from_ns` on."""
        self._pieces.append(Piece(from_ns, base_ns, epoch_ns))

    def rebase(self, base_ns: int) -> None:
        """The filter began again inside the piece, from a better message."""
        last = self._pieces[-1]
        last.base_ns = base_ns
        last.notes.clear()

    def split(self, from_ns: int | None = None) -> None:
        """What follows, from host time `from_ns` on, is not smoothed with what came before."""
        last = self._pieces[-1]
        if last.notes:
            at_ns = last.epoch_ns + round(last.notes[-1].time_s * NS_PER_S)
            self.begin(at_ns if from_ns is None else from_ns, last.base_ns, last.epoch_ns)
        elif from_ns is not None:
            last.from_ns = from_ns

    def note(self, note: Note) -> None:
        """Take a state and the step that follows it."""
        self._pieces[-1].notes.append(note)

    def bias(self, bias_var: float) -> None:
        """Take what motion cannot tell, s^2."""
        self._pieces[-1].bias_var = bias_var

    def smoothed(self) -> ClockTrack:
        """Return the clock over the whole recording."""
        pieces = []
        for piece in self._pieces:
            if piece.notes:
                pieces.append((piece.from_ns, self._smooth(piece)))
        return ClockTrack(pieces, self._anchor)

    def _smooth(self, piece: Piece) -> list[SmoothedClock]:
        notes = piece.notes
        states = np.array([note.state for note in notes])[:, :, None]
        covariances = np.array([note.covariance for note in notes])
        # filterpy's smoother takes the step that leads to a state, here it is kept with the last
        steps = [notes[0], *notes[:-1]]
        from filterpy.kalman import KalmanFilter  # loaded where one is made: it brings scipy

        smoother: Any = KalmanFilter(dim_x=states.shape[1], dim_z=1)
        states, covariances, _, _ = smoother.rts_smoother(
            states,
            covariances,
            Fs=[note.transition for note in steps],
            Qs=[note.noise for note in steps],
        )
        return [
            known_clock(
                x[:, 0],
                p,
                self._is_anchor,
                note.time_s,
                piece.epoch_ns,
                piece.base_ns,
                piece.bias_var,
            )
            for note, x, p in zip(notes, states, covariances, strict=True)
        ]
