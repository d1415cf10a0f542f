"""The clocks of a recording, learned once: what `correct` applies and `export` writes down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rig_common.errors import RigError
from rig_common.paramfile.reader import parse
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.starter import starter_rig
from sensor_rig.findings.corrections import stamp_points_of
from sensor_rig.findings.recording import inspect_recording
from sensor_rig.rigfile import rig_from_parameters
from sensor_rig.syncing.bag_sync import fitted, learn_clocks
from sync_engine.clocks.offset_state import OffsetState
from sync_engine.clocks.offset_track import OffsetTrack
from sync_engine.config import SyncConfig
from sync_engine.wire.session import WireSync

Advance = Callable[[float], None]


@dataclass(frozen=True)
class LearnedRecording:
    """What a recording tells of its clocks."""

    config: SyncConfig
    names: dict[str, str]
    """Topic -> input."""
    headerless: frozenset[str]
    """Inputs without stamps."""
    engine: WireSync
    """As it was at the end of the recording."""

    def tracks(self, base: str, *, to_host: bool) -> dict[str, OffsetTrack]:
        """Return the offset of every clock that is known, against `base` or `to_host`."""
        return self.engine.engine.clocks.offset_tracks(base, to_host=to_host)

    def state(self, track: OffsetTrack | None) -> OffsetState:
        """Return how far an offset can be believed."""
        adakf = self.config.adakf
        if track is None or track.summary.sigma_s > adakf.unobservable_sigma_s:
            return OffsetState.UNOBSERVABLE
        is_locked = track.summary.sigma_s <= adakf.lock_sigma_s
        return OffsetState.LOCKED if is_locked else OffsetState.CONVERGING


def learn_recording(bag: BagReader, sync: SyncConfig | None, advance: Advance) -> LearnedRecording:
    """Learn the clocks of a recording; without `sync`, of the inputs that `inspect` finds."""
    if sync is None:
        found = inspect_recording(bag, advance)
        text = starter_rig(found.facts, str(bag.path), stamp_points_of(found.findings))
        rig = rig_from_parameters(parse(text).values, Path(f'what was found in {bag.path}'))
        assert rig.sync is not None
        sync = rig.sync
    if sync.estimator != 'adaptive':
        raise RigError(
            f'sync.estimator is {sync.estimator}, but clocks are learned by adaptive only'
        )
    config, names = fitted(sync, bag)
    headerless = [name for topic, name in names.items() if not bag.topics[topic].stamped]
    engine = WireSync(config, headerless)
    learn_clocks(bag, names, engine, advance)
    return LearnedRecording(config, names, engine.headerless, engine)
