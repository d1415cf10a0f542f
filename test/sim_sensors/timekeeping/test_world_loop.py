"""The world's loop against a wall clock that the test turns by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from rig_common.lockstep.again import Kept
from rig_common.times import NEVER_NS
from sim_sensors.timekeeping.conductor import Conductor
from sim_sensors.timekeeping.pacer import Pacer
from sim_sensors.timekeeping.world_loop import WorldLoop
from sim_sensors.world.config.world import WorldConfig
from sim_sensors.world.world import make_world

MS = 1_000_000


@dataclass
class Channel:
    """Truth of every step, as the loop sees it."""

    next_ns: int = 0
    preparing: bool = False
    limit_ns: int = NEVER_NS
    held: list[int] = field(default_factory=list)
    released: list[list[int]] = field(default_factory=list)

    def work(self, view: Any, sent: Counter[str]) -> None:
        self.held.append(view.time_ns)
        self.next_ns = view.time_ns + view.dt_ns

    def release(self) -> None:
        self.released.append(self.held)
        self.held = []


class Stage:
    """A loop at a real-time factor of 1 with one channel and nobody who follows."""

    def __init__(self) -> None:
        self.wall_s = 0.0
        self.channel = Channel()
        self.pacer = Pacer(1.0)
        self.world = make_world(WorldConfig(model='rover_yard.xml', timestep_s=0.001))
        conductor = Conductor(
            dt_ns=self.world.dt_ns,
            seed=1,
            lockstep=False,
            sensors=(),
            collectors=(),
            timeout_s=10.0,
            send_tick=lambda tick: None,
            send_settled=lambda tick: None,
            connected=lambda readers: True,
            time_base=self.world.time_base,
            kept=Kept(),
        )
        self.loop = WorldLoop(
            self.world,
            conductor,
            self.pacer,
            [self.channel],  # type: ignore[list-item]
            [],
            lambda: None,
            wall_s=lambda: self.wall_s,
        )
        self.loop.advance()

    def pass_s(self, seconds: float) -> None:
        self.wall_s += seconds
        self.loop.advance()


@pytest.mark.parametrize('who', ['channel', 'process'])
def test_time_stands_still_while_something_is_prepared_and_is_not_called_slow(who: str) -> None:
    """A first capture that sets up its renderer, or another node of the same process."""
    stage, preparing = Stage(), True
    stage.pass_s(0.010)
    before_ns = stage.world.time_ns
    stage.channel.preparing = who == 'channel'
    stage.loop.held = lambda: preparing and who == 'process'
    for _ in range(10):
        stage.pass_s(0.3)
    assert stage.world.time_ns == before_ns
    stage.channel.preparing = preparing = False
    stage.loop.advance()
    stage.pass_s(0.010)
    assert stage.world.time_ns - before_ns == pytest.approx(10 * MS, abs=MS)
    assert stage.pacer.slipped_s == 0.0


def test_a_machine_that_is_too_slow_is_called_so() -> None:
    stage = Stage()
    stage.pass_s(0.010)
    stage.world.step()
    stage.channel.limit_ns = stage.world.time_ns  # held back for good
    stage.pass_s(0.3)
    assert stage.pacer.slipped_s > 0.2


def test_truth_of_all_steps_of_a_waking_goes_out_together() -> None:
    stage = Stage()
    first_ns = stage.world.time_ns + MS
    stage.channel.released.clear()
    stage.pass_s(0.005)
    assert [each for each in stage.channel.released if each] == [
        [first_ns + step * MS for step in range(5)]
    ]
    assert stage.channel.held == []


@pytest.mark.parametrize('count', [1, 7, 50])
def test_steps_that_end_on_a_tick_end_too(count: int) -> None:
    """Ticks come every 50 steps here; some of these ends fall on one."""
    stage = Stage()
    for _ in range(51):
        stage.loop.step(count)
        before = stage.world.tick
        for _ in range(10):
            stage.pass_s(0.02)
        assert stage.loop.paused
        assert stage.world.tick == before + count
    assert stage.pacer.slipped_s == 0.0


def test_the_world_stands_still_where_it_should_stop() -> None:
    stage = Stage()
    stage.loop.stop_ns = 120 * MS
    for _ in range(20):
        stage.pass_s(0.01)
    assert stage.loop.paused
    assert stage.world.time_ns == 120 * MS
