"""The measures of a recording: of the bundles in it, or of a sync engine that is run over it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from rig_common.cdr import CdrError
from rig_common.msgs import read_time_reference
from rig_common.quantiles import ExactQuantiles
from rig_common.times import NS_PER_S
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.writer import BagWriter
from sensor_rig.degrade.ledger import Fate
from sensor_rig.measures.bundles import HeardBundles
from sensor_rig.measures.keys import Measures, measures_of, quantiles
from sensor_rig.syncing.bag_sync import BagSync
from sync_engine.config import SyncConfig

TIME, FATE, BUNDLE = '/truth/time/', '/truth/fate/', '/sync/bundle'


def recorded_measures(
    path: str | Path,
    sync: SyncConfig | None = None,
    *,
    writer: BagWriter | None = None,
    learn: bool = False,
    sidecar: Path | None = None,
    advance: Callable[[float], None] = lambda done: None,
) -> Measures:
    """Return the measures of a recording.

    With `sync`, its engine runs over the recording: live, or with `learn` in two passes, into
    `writer` where there is one. Without it the bundles count that the recording itself has.
    """
    with BagReader(path, sidecar) as bag:
        found = _streams(bag, with_bundles=sync is None)
        if sync is not None:
            job = BagSync(bag, writer, sync, '', exact=True)
            if learn:
                job.learn(advance)
            found |= measures_of(job.run(advance))
    return found


def _streams(bag: BagReader, *, with_bundles: bool) -> Measures:
    """Return latencies and losses by the truth in a recording, and the figures of its bundles."""
    latencies: dict[str, ExactQuantiles] = {}
    lost: Counter[str] = Counter()
    heard = HeardBundles()
    topics = [
        topic
        for topic in bag.topics
        if topic.startswith((TIME, FATE)) or (with_bundles and topic == BUNDLE)
    ]
    for topic, receive_ns, raw, _ in bag.messages(topics) if topics else ():
        with suppress(CdrError):
            if topic == BUNDLE:
                heard.bundle(raw)
                continue
            capture_ns, _, stamp_ns, source = read_time_reference(raw)
            if topic.startswith(TIME):
                name = topic.removeprefix(TIME)
                late_s = (receive_ns - capture_ns) / NS_PER_S
                latencies.setdefault(name, ExactQuantiles()).add(max(late_s, 0.0))
                heard.truth(name, stamp_ns, capture_ns)
            elif source in (Fate.LOST.value, Fate.FAULT.value):
                lost[topic.removeprefix(FATE)] += 1
    received = {topic.lstrip('/'): known.message_count for topic, known in bag.topics.items()}
    return {
        'duration_s': bag.duration_s,
        **dict(_figures(bag, latencies, lost)),
        **heard.measures(received),
    }


def _figures(
    bag: BagReader, latencies: dict[str, ExactQuantiles], lost: Counter[str]
) -> Iterator[tuple[str, float]]:
    for name, latency in latencies.items():
        yield f'{name}.received', latency.count
        yield from quantiles(f'{name}.latency_ms', latency.summary())
        if FATE + name in bag.topics:
            yield f'{name}.lost_fraction', lost[name] / (latency.count + lost[name])
