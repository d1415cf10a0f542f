"""One sensor's clock: from (stamp, arrival) pairs and motion to an offset with a sigma.

Offsets are sensor clock minus host clock: capture on the host's clock is `stamp - offset`. The
filter works in seconds around `base_ns`, the first offset seen, because a clock that counts from
its power-up is 1.7e9 s away and a float would lose the microseconds.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from rig_common.arrays import Floats
from rig_common.jsonable import JsonObject
from rig_common.times import NEVER_NS, NS_PER_S
from sync_engine.clocks.arrivals import ArrivalBlocks
from sync_engine.clocks.channel import GateResult
from sync_engine.clocks.clock_filter import ClockFilter, ClockPrior, MotionFix, MotionPrior
from sync_engine.clocks.offset_state import OffsetState
from sync_engine.clocks.prior import declared_prior
from sync_engine.clocks.smoothing import ClockTrack, SmoothedClock, Tape
from sync_engine.clocks.steps import StepDetector, Verdict
from sync_engine.config import AdaKFConfig, EpochConfig, InputConfig

_FIRST_BLOCK_SHARE = 0.2
"""The first block is short, so that something is known soon."""
_BLOCK_MESSAGES = 15
"""A block with fewer is kept open for up to twice its time."""
_STEP_SIGMA_FLOOR_S = 3e-4
_RESUME_LIMIT_NS = NS_PER_S // 4
"""A saved clock that is off by more than drift and queueing explain was restarted meanwhile."""


class Offset(NamedTuple):
    """A clock difference as selection and status use it."""

    offset_ns: int
    sigma_s: float
    state: OffsetState


class ClockEstimate:
    """Learns one sensor's clock offset to the host."""

    def __init__(
        self,
        given: InputConfig,
        config: AdaKFConfig,
        epochs: EpochConfig,
        anchor_sigma_s: float,
        is_anchor: bool = False,
        anchor: str = '',
    ) -> None:
        self._given = given
        self._config = config
        self._anchor_sigma_s = anchor_sigma_s
        self._is_anchor = is_anchor
        self.anchor = anchor
        """The input that its motion is compared with."""
        self._gap_reset_ns = int(epochs.gap_reset_s * NS_PER_S)
        self._block_ns = int(config.block_s * NS_PER_S)
        self.steps = StepDetector(int(epochs.restart_jump_s * NS_PER_S))
        self.clock_steps = 0
        self.latency_steps = 0
        self.resets = 0
        self.moved_s = self._anchor_moved_s = 0.0
        """By how much its offset was moved with nothing to show that the clock itself was, and
        how much of the IMU's this one has heard of."""
        self._restored: JsonObject | None = None
        self._tape: Tape | None = None
        self._track: ClockTrack | None = None
        self.reset()

    def reset(self) -> None:
        """Forget the offset; the next message starts it again."""
        self._blocks = ArrivalBlocks()
        self.bias_var = self._given.cue_bias_s**2 if self._is_anchor else 0.0
        """What motion cannot tell however long it is watched, s^2; 0 before the first fix, but
        for what others' turns are compared with."""
        self.filter: ClockFilter | None = None
        self.base_ns = 0
        self._epoch_ns = 0
        self._settling = self._resumed = self._unproven = False
        self.steps.reset()
        self._start_block(0, 1.0)
        self._block_end_ns = NEVER_NS
        self._refresh()

    def observe(self, stamp_ns: int, arrival_ns: int) -> Verdict:
        """Take one message. Costs about a microsecond, but for the end of a block."""
        last_ns = self.steps.arrival_ns
        if last_ns is not None and arrival_ns - last_ns > self._gap_reset_ns:
            self.reset()
            self.resets += 1
        if self._track is not None:
            return self._play(self._track, stamp_ns, arrival_ns)
        verdict = self.steps.observe(stamp_ns, arrival_ns)
        if verdict is Verdict.FINE:
            self._blocks.add(arrival_ns - stamp_ns)
            if arrival_ns >= self._block_end_ns:
                self._close_block(arrival_ns)
            elif self.filter is None:
                self._start(stamp_ns, arrival_ns)
        elif verdict in (Verdict.STEP, Verdict.UNSURE):
            self._step(arrival_ns, verdict)
        elif verdict is Verdict.RESTART:
            self.resets += 1
            self._restored = None
            self._blocks = ArrivalBlocks()
            self._start(stamp_ns, arrival_ns)
        return verdict

    # -- motion ---------------------------------------------------------------------------------

    @property
    def now_ns(self) -> int:
        """Host time of the state."""
        return self._state_ns

    def host_ns(self, stamp_ns: int) -> int:
        """Return the host time of one of its stamps, as far as that is known."""
        return stamp_ns - self.offset_ns(stamp_ns - self._offset_ns)

    def motion_prior(self, time_ns: int) -> MotionPrior:
        """Return what is known of (offset less the IMU's, bias, mounting, scale) at host time
        `time_ns`, the offset in seconds around `base_ns`."""
        assert self.filter is not None
        return self.filter.motion_prior((time_ns - self._epoch_ns) / NS_PER_S)

    def forget_motion(
        self, mounting_covariance: Floats, scale_sigma: float, walks: tuple[float, float]
    ) -> None:
        """Bias, mounting and scale begin again."""
        if self.filter is not None:
            self.filter.forget_motion(mounting_covariance, scale_sigma, walks)

    def turn_reference(self, turn: Floats) -> None:
        """The mounting is counted from another rotation, further by `turn` [3] (rad)."""
        if self.filter is not None:
            self.filter.turn_reference(turn)

    def observe_motion(self, fix: MotionFix, extra_var: float) -> GateResult:
        """Take what one piece of its rotations says, relative to `base_ns`.

        `extra_var` is what the IMU's own estimate wanders by (s^2).
        """
        if self.filter is None:
            return GateResult.REJECTED
        time_s = (fix.time_ns - self._epoch_ns) / NS_PER_S
        self.filter.predict(time_s)
        self.bias_var = self._given.cue_bias_s**2
        if self._tape is not None:
            self._tape.bias(self.bias_var)
        outcome = self.filter.observe_motion(fix, time_s, extra_var + self.bias_var)
        self._refresh()
        return outcome

    def follow_anchor(self, imu: ClockEstimate) -> None:
        """The IMU's own offset may have been moved since this was last asked: widen as much."""
        if self.filter is not None and imu.moved_s > self._anchor_moved_s:
            self.filter.widen_anchor(imu.moved_s - self._anchor_moved_s)
            self._refresh()
        self._anchor_moved_s = imu.moved_s

    def offset_ns(self, time_ns: int) -> int:
        """Return the offset to the host at host time `time_ns`, 0 where nothing is known."""
        return self._offset_ns + int(self._skew * (time_ns - self._state_ns))

    def _refresh(self) -> None:
        """Keep what selection asks for on every bundle as plain numbers."""
        learned = self.filter
        if learned is None:
            self._offset_ns = self._state_ns = self.anchor_ns = 0
            self._skew = 0.0
            self.sigma_s = self.host_sigma_s = float('inf')
            self.variances: tuple[float, float] | None = None
            """Of the offset against the host and against the IMU (s^2)."""
        else:
            self._show(learned.known(self._epoch_ns, self.base_ns, self.bias_var))

    # -- a recording is looked at twice -------------------------------------------------------

    def record(self) -> None:
        """Note every step of the filter from now on, for `smoothed`."""
        self._tape = Tape(self._is_anchor, self.anchor)

    def smoothed(self) -> ClockTrack:
        """Return the clock as all that was recorded tells it."""
        assert self._tape is not None
        if self.filter is not None:
            self.filter.finish_tape()
        return self._tape.smoothed()

    def play(self, track: ClockTrack) -> None:
        """Take the offset from `track` instead of learning it; it is known before any message."""
        self._track = track
        self._show(track.at(0))

    def _play(self, track: ClockTrack, stamp_ns: int, arrival_ns: int) -> Verdict:
        """Take one message of a clock that is known: only its steps are looked for."""
        self._show(track.at(arrival_ns))
        verdict = self.steps.observe(stamp_ns, arrival_ns)
        self.clock_steps += verdict is Verdict.STEP
        self.resets += verdict is Verdict.RESTART
        return verdict

    def _show(self, known: SmoothedClock | None) -> None:
        """Be as `known` says."""
        if known is None:
            return
        self._offset_ns, self._state_ns, self._skew = known.offset_ns, known.time_ns, known.skew
        self.bias_var = known.bias_var
        self.anchor_ns = known.anchor_ns
        """What this sensor's filter believes the IMU's offset to be wrong by."""
        self.variances = known.offset_var, known.anchored_var
        self.sigma_s = sqrt(max(min(self.variances), 0.0) + known.bias_var)
        """Sigma of the offset against the surer of host and IMU (s)."""
        self.host_sigma_s = sqrt(max(known.offset_var, 0.0) + known.bias_var)
        """Sigma of the offset against the host (s)."""

    @property
    def state(self) -> OffsetState:
        """How far the offset can be believed."""
        return self.judge(self.sigma_s)

    def judge(self, sigma_s: float, other: ClockEstimate | None = None) -> OffsetState:
        """Return the state that goes with `sigma_s`, of the difference to an `other` clock.

        Where one of them may have stepped it is not locked, whatever sigma says.
        """
        if sigma_s > self._config.unobservable_sigma_s:
            return OffsetState.UNOBSERVABLE
        doubtful = self.in_doubt or (other is not None and other.in_doubt)
        if sigma_s > self._config.lock_sigma_s or doubtful:
            return OffsetState.CONVERGING
        return OffsetState.LOCKED

    @property
    def in_doubt(self) -> bool:
        """Whether the clock may have stepped, or has and nothing came since to confirm it."""
        if self._track is not None:
            return False
        unproven = self.filter is not None and self.filter.is_unproven
        return self._unproven or unproven or self.steps.in_doubt

    def prior(self) -> ClockPrior:
        """Return what the input's declaration says before any message."""
        return declared_prior(self._given, self._config, self._anchor_sigma_s, self._is_anchor)

    def _start(self, stamp_ns: int, arrival_ns: int) -> None:
        """Begin from one message: the offset is the latency prior behind what arrival shows."""
        self.filter = ClockFilter(self.prior(), self._config)
        self._epoch_ns = self._as_usual_ns = arrival_ns
        """`_as_usual_ns`: when the last block began whose arrivals were believed."""
        self.base_ns = 0 if self._given.stamp_source == 'ptp' else stamp_ns - arrival_ns
        self._resumed = self._restored is not None and self._resume(stamp_ns - arrival_ns)
        self._settling = True
        if self._tape is not None:
            self._tape.begin(arrival_ns, self.base_ns, self._epoch_ns)
            self.filter.tape = self._tape
        self._refresh()
        self._start_block(arrival_ns, _FIRST_BLOCK_SHARE)
        self._blocks.add(arrival_ns - stamp_ns)

    def _start_block(self, arrival_ns: int, share: float) -> None:
        self._block_start_ns = arrival_ns
        self._block_end_ns = arrival_ns + int(self._block_ns * share)

    def _close_block(self, arrival_ns: int) -> None:
        """One observation out of the smallest delay of the block."""
        assert self.filter is not None
        late_ns = arrival_ns - self._block_end_ns
        if len(self._blocks) < _BLOCK_MESSAGES and late_ns < self._block_ns and not self._settling:
            return  # a slow stream: the least of a few says little, so wait for some more
        delay_ns = self._blocks.close()
        if self._settling and self._given.stamp_source != 'ptp':
            # The message that started the filter may have been a slow one; the best of the
            # first block is a better start than a correction of the worst.
            if not self._resumed:
                self.filter = ClockFilter(self.prior(), self._config)
                self.base_ns = -delay_ns
            if self._tape is not None:
                self._tape.rebase(self.base_ns)
                self.filter.tape = self._tape
        self._settling = False
        middle_ns = (self._block_start_ns + arrival_ns) // 2
        self.filter.predict((middle_ns - self._epoch_ns) / NS_PER_S)
        z = (-delay_ns - self.base_ns) / NS_PER_S
        known = self._blocks.variance_s2
        if known is not None:
            self.filter.set_arrival_noise(known)
        before_s = self.filter.offset_s
        outcome = self.filter.observe_arrival(z, self.steps.shown_s(self._as_usual_ns))
        if outcome is GateResult.JUMP:
            self.latency_steps += 1
            self.moved_s += abs(self.filter.offset_s - before_s)
        if outcome is not GateResult.REJECTED:
            self._as_usual_ns = self._block_start_ns
        self._unproven = False
        self._refresh()
        self._start_block(arrival_ns, 1.0)

    def _step(self, arrival_ns: int, verdict: Verdict) -> None:
        """The clock stepped, by as much as the stamps' own spacing says; or its latency did."""
        if self.filter is None:
            return
        step_s = self.steps.step_ns / NS_PER_S
        if self._tape is not None:
            self._tape.split(self.steps.step_since_ns)
        if verdict is Verdict.UNSURE:
            self.filter.open_either(step_s)
            self.moved_s += abs(step_s)
        else:
            self.clock_steps += 1
            sigma_s = max(_STEP_SIGMA_FLOOR_S, 2.0 * self.steps.step_spread_ns / NS_PER_S)
            if self.steps.period_ns < 8.0 * self.steps.spread_ns:
                # jitter hides which period it fell in
                sigma_s = max(sigma_s, self.steps.period_ns / NS_PER_S)
            self.filter.step_clock(step_s, sigma_s)
        self._unproven = True
        self._refresh()
        self._blocks.clear()
        self._start_block(arrival_ns, _FIRST_BLOCK_SHARE)

    def dump(self) -> JsonObject | None:
        """Return the learned clock as JSON values, None where there is none."""
        if self.filter is None:
            return None
        return {'base_ns': self.base_ns, **self.filter.dump()}

    def restore(self, values: JsonObject) -> None:
        """Resume from `dump` with the next message, if that message fits; ValueError if unfit."""
        ClockFilter(self.prior(), self._config).load(values)
        int(values['base_ns'])
        self.reset()
        self._restored = dict(values)

    def _resume(self, shown_ns: int) -> bool:
        """Take the saved state, unless the clock has been restarted since it was saved."""
        values, self._restored = self._restored, None
        assert values is not None
        saved = ClockFilter(self.prior(), self._config)
        saved.load(values)
        base_ns = int(values['base_ns'])
        expected_ns = base_ns + round((saved.offset_s - saved.latency_s) * 1e9)
        if abs(shown_ns - expected_ns) > _RESUME_LIMIT_NS:
            return False
        self.filter, self.base_ns = saved, base_ns
        return True
