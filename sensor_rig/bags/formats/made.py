"""A file of another format as a storage file: times in tables, messages made when read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rosbags.interfaces import (
    Connection,
    ConnectionExtRosbag2,
    MessageDefinition,
    MessageDefinitionFormat,
)

from rig_common.arrays import Floats, Ints
from rig_common.cdr import Template
from sensor_rig.bags.storage.base import BrokenError, Message


class MadeStream(NamedTuple):
    """One topic: when its messages were received, and how each is made."""

    topic: str
    type_name: str
    receive_ns: Ints
    """The stamps again, where the format has no receive times."""
    make: Callable[[int], bytes]
    """From the number of a message to its CDR bytes."""
    has_arrivals: bool = False
    """Whether the format tells when messages were received."""


def filled(
    topic: str, template: Template, stamps_ns: Ints, received_ns: Ints, **values: Floats
) -> MadeStream:
    """Return the stream of a template whose blocks are rows of `values`."""
    return MadeStream(
        topic,
        template.type_name,
        received_ns,
        lambda index: template.fill(
            int(stamps_ns[index]), **{name: each[index] for name, each in values.items()}
        ),
    )


class MadeFile:
    """The topics of a file, or of a folder, of another format."""

    def __init__(self, path: Path, streams: list[MadeStream]) -> None:
        self.path = path
        self._streams = [stream for stream in streams if len(stream.receive_ns)]
        if not self._streams:
            raise BrokenError('it holds nothing that is read')
        nothing = MessageDefinition(MessageDefinitionFormat.NONE, '')
        self.connections = [
            Connection(
                number, each.topic, each.type_name, nothing, '', len(each.receive_ns),
                ConnectionExtRosbag2('cdr', []), self,
            )
            for number, each in enumerate(self._streams)
        ]  # fmt: skip
        self.without_arrivals = {each.topic for each in self._streams if not each.has_arrivals}
        """Topics whose receive times are their stamps again."""
        self.said = Counter({each.id: each.msgcount for each in self.connections})
        self.start_ns = min(int(each.receive_ns.min()) for each in self._streams)
        self.end_ns = max(int(each.receive_ns.max()) for each in self._streams)

    def blocks(self, wanted: Collection[int]) -> Iterator[list[Message]]:
        """Yield the messages of some topics in order of receive time, one by one."""
        chosen = sorted(wanted)
        times = [self._streams[number].receive_ns for number in chosen]
        owners = np.repeat(np.array(chosen), [len(each) for each in times])
        indices = np.concatenate([np.arange(len(each)) for each in times])
        together = np.concatenate(times)
        for place in np.argsort(together, kind='stable').tolist():
            number = int(owners[place])
            with suppress(BrokenError):  # the reader counts what is missing
                raw = self._streams[number].make(int(indices[place]))
                yield [(int(together[place]), number, raw, 0)]

    def close(self) -> None:
        """Nothing is kept open."""
