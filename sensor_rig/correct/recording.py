"""Corrects a recording: the same messages in the same order, with right stamps.

    result = correct_recording('drive', 'drive_right')

Two passes: the first learns the clocks of all inputs, as `rig sync` does, the second writes.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rig_common.cdr import CdrError, read_stamp_ns
from rig_common.errors import RigError
from rig_common.jsonable import JsonObject, json_text
from rig_common.validation import hint
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.sidecar import Sidecar, load_sidecar
from sensor_rig.bags.writer import BagWriter, Storage
from sensor_rig.correct.arrivals import Grid, grid_of
from sensor_rig.correct.clocks import Advance, LearnedRecording, learn_recording
from sensor_rig.correct.followers import Followers, find_followers
from sensor_rig.correct.report import StreamReport, TopicReport
from sync_engine.clocks.offset_state import OffsetState
from sync_engine.clocks.offset_track import OffsetTrack
from sync_engine.config import SyncConfig
from sync_engine.config.input_config import TF_TYPE
from sync_engine.wire.correction import Corrector, Moved

VERSION = 1
"""Of the JSON document and of the mark; it grows when a key changes its meaning or goes."""
MARK = 'sensor_rig_corrected'
"""Key of `custom_data` in metadata.yaml by which a corrected recording is known."""

To = Literal['host', 'reference']
MinState = Literal['locked', 'converging']


@dataclass(frozen=True)
class CorrectOptions:
    """What is corrected, and how."""

    to: To = 'host'
    """Clock that the stamps are put on: the host's, or the reference input's."""
    min_state: MinState = 'locked'
    """How well a clock must be known; else the stream stays as it is."""
    only: tuple[str, ...] = ()
    """Inputs to correct; empty for all."""
    topics: tuple[str, ...] = ()
    """Topics to correct; empty for all."""
    smooth_arrivals: bool = False
    """Whether the jitter of stamps written on arrival is taken out."""


@dataclass(frozen=True)
class CorrectResult:
    """What came of a recording."""

    source: Path
    target: Path
    options: CorrectOptions
    reference: str
    already: str
    """What the mark of the input says; empty where it has none. Then nothing was changed."""
    streams: dict[str, StreamReport]
    topics: dict[str, TopicReport]
    problems: list[str] = field(default_factory=list)

    def as_dict(self) -> JsonObject:
        """Return the document of `--json`."""
        return {
            'version': VERSION,
            'input': str(self.source),
            'output': str(self.target),
            'to': self.options.to,
            'min_state': self.options.min_state,
            'reference': self.reference,
            'already_corrected': bool(self.already),
            'streams': {name: each.as_dict() for name, each in self.streams.items()},
            'topics': {name: each.as_dict() for name, each in self.topics.items()},
            'problems': self.problems,
        }


def correct_recording(
    source: str | Path,
    target: str | Path,
    sync: SyncConfig | None = None,
    options: CorrectOptions | None = None,
    *,
    sidecar: Path | None = None,
    storage: Storage | None = None,
    compress: bool = False,
    advance: Advance = lambda count: None,
) -> CorrectResult:
    """Correct the recording `source` into `target`.

    `sync` says which topics are which sensors and what is known of them; without it, this is
    found as `inspect --write` does. A `sidecar` alone is what is corrected. `advance` gets the
    number of messages done now and then, over all passes. A mistake raises before `target` is
    made.
    """
    options = options or CorrectOptions()
    with BagReader(source, keep_seq=storage in (None, 'bag')) as bag:
        job = BagCorrect(bag, options, load_sidecar(sidecar) if sidecar else None)
        if not job.already:
            with BagReader(source, sidecar) as learned:
                job.learn(learned, sync, advance)
        writer = BagWriter.like(bag, target, storage, compress=compress)
        try:
            with writer:
                job.run(writer, advance)
        except BaseException:
            writer.discard()  # nothing half done is left
            raise
        return CorrectResult(
            Path(source), Path(target), options, job.reference, job.already, job.streams,
            job.topics, bag.problems,
        )  # fmt: skip


class BagCorrect:
    """One correction of a recording: `learn`, then `run`."""

    def __init__(self, bag: BagReader, options: CorrectOptions, sidecar: Sidecar | None) -> None:
        self._bag, self._options, self._sidecar = bag, options, sidecar
        self.already = bag.note.get(MARK, '')
        self.reference = ''
        self.streams: dict[str, StreamReport] = {}
        self.topics = {name: TopicReport(known.message_count) for name, known in
                       bag.topics.items()}  # fmt: skip
        self._wanted = self._wanted_topics()
        self._corrector: Corrector | None = None
        self._input_of: dict[str, str] = {}
        """Topic -> input whose clock stamped it."""
        self._tracks: dict[str, OffsetTrack] = {}
        """By input; those that are corrected."""
        self._grids: dict[str, Grid] = {}
        self._transforms: frozenset[str] = frozenset()

    def _wanted_topics(self) -> frozenset[str]:
        wanted = set()
        for topic in self._options.topics:
            known = self._bag.find(topic)
            if known is None:
                raise RigError(
                    f'{self._bag.path} has no topic {topic} (--topics); '
                    f'{hint(topic, list(self._bag.topics), "it has")}'
                )
            wanted.add(known.name)
        return frozenset(wanted or self._bag.topics)

    # ---- what the recording tells ---------------------------------------------------------------

    def learn(self, bag: BagReader, sync: SyncConfig | None, advance: Advance) -> None:
        """Find out how far every clock is off; `bag` comes with the corrections of the sidecar."""
        if sync is None and self._sidecar is not None:
            return
        learned = learn_recording(bag, sync, advance)
        config, names = learned.config, learned.names
        for name in self._options.only:
            if name not in config.inputs:
                raise RigError(f'--only {name}: {hint(name, list(config.inputs), "inputs are")}')
        self.reference = config.reference_sensor_id
        tracks = learned.tracks(self.reference, to_host=self._options.to == 'host')
        followers = find_followers(bag, names)
        for topic, name in names.items():
            self._judge(name, topic, learned, tracks.get(name))
        self._input_of = {**followers.topics, **names}
        self._corrector = self._make_corrector(config, followers)
        for topic, name in followers.topics.items():
            self.topics[topic].follows = name
        if self._options.smooth_arrivals:
            self._smooth(bag, learned)

    def _make_corrector(self, config: SyncConfig, followers: Followers) -> Corrector:
        corrector = Corrector(config, self._offset_ns)
        for (frame_id, child_frame_id), name in followers.frames.items():
            corrector.add_frame(frame_id, child_frame_id, name)
        if corrector.has_frames:
            self._transforms = followers.moving
        return corrector

    def _judge(
        self, name: str, topic: str, learned: LearnedRecording, track: OffsetTrack | None
    ) -> None:
        """Decide whether a stream is corrected, and say why not."""
        state = learned.state(track)
        report = self.streams[name] = StreamReport.of(topic, track, state)
        if name in learned.headerless:
            report.why = 'its type has no stamp'
        elif self._options.only and name not in self._options.only:
            report.why = 'not asked for'
        elif track is None:
            report.why = 'nothing is known of its clock'
        elif state is OffsetState.UNOBSERVABLE or (
            state is OffsetState.CONVERGING and self._options.min_state == 'locked'
        ):
            report.why = (
                f'its clock is {state.value}, known to ± {report.sigma_ms:.3g} ms; '
                f'--min-state is {self._options.min_state}'
            )
        else:
            self._tracks[name] = track

    def _smooth(self, bag: BagReader, learned: LearnedRecording) -> None:
        """Put what is stamped on arrival on its grid."""
        config, names = learned.config, learned.names
        status = learned.engine.engine.status().sensors
        topics = {
            topic: name
            for topic, name in names.items()
            if name in self._tracks
            and config.inputs[name].stamp_source == 'host'
            and not config.inputs[name].clock_of
            and config.inputs[name].type != TF_TYPE
        }
        stamps: dict[str, list[int]] = {name: [] for name in topics.values()}
        for topic, _, raw, _ in bag.messages([*topics]) if topics else ():
            with suppress(CdrError):
                shift_ns = config.inputs[topics[topic]].stamp_shift_ns
                stamps[topics[topic]].append(read_stamp_ns(raw) + shift_ns)
        for name, times in stamps.items():
            grid = grid_of(times, earliest=not status[name].motion_fixes)
            if grid is None:
                self.streams[name].note = 'its messages come too irregularly to have a grid'
                continue
            self.streams[name].jitter_ms = grid.jitter_s * 1e3
            for other, given in config.inputs.items():
                if name in (other, given.clock_of):
                    self._grids[other] = grid

    def _offset_ns(self, name: str, stamp_ns: int, arrival_ns: int) -> int | None:
        track = self._tracks.get(name)
        if track is None:
            return None
        grid = self._grids.get(name)
        if grid is None:
            return track.at(stamp_ns, arrival_ns)
        steady_ns = grid.at(stamp_ns)
        return track.at(steady_ns, arrival_ns) + stamp_ns - steady_ns

    # ---- the new recording ----------------------------------------------------------------------

    def run(self, writer: BagWriter, advance: Advance) -> None:
        """Write the corrected recording; one that is corrected already as it is."""
        for topic in self._bag.topics.values():
            writer.add_topic_like(topic)
        changed = frozenset() if self.already else self._wanted
        for block in self._bag.blocks():
            writer.write_all(
                [
                    (topic, receive_ns, self._corrected(topic, receive_ns, raw), publish_ns)
                    if topic in changed
                    else (topic, receive_ns, raw, publish_ns)
                    for topic, receive_ns, raw, publish_ns in block
                ]
            )
            advance(len(block))
        for key, value in self._bag.note.items():
            writer.note(key, value)
        if not self.already:
            writer.note(MARK, json_text(self._mark()))

    def _corrected(self, topic: str, receive_ns: int, raw: bytes) -> bytes:
        known, about = self._bag.topics[topic], self.topics[topic]
        before = raw
        if self._sidecar is not None:
            raw = self._sidecar.correct(topic, known.type_name, raw, self._bag.start_ns)
        moved = Moved(raw, None)
        if self._corrector is not None:
            name = self._input_of.get(topic)
            if topic in self._transforms:
                with suppress(CdrError):
                    moved = self._corrector.correct_transforms(raw, receive_ns)
            elif name is not None:
                moved = self._corrector.correct(name, raw, receive_ns, known.type_name)
        by_ns = moved.by_ns
        if raw is not before:
            by_ns = read_stamp_ns(moved.raw) - read_stamp_ns(before)
        if by_ns is not None:
            about.moved(by_ns)
        return moved.raw

    def _mark(self) -> JsonObject:
        return {
            'version': VERSION,
            'to': self._options.to,
            'reference': self.reference,
            'moved_ms': {
                name: round(each.mean_ms, 6) for name, each in self.topics.items() if each.count
            },
        }
