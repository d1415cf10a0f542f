"""Where every message went: read + duplicated = written + lost + thinned + in flight, by topic."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum

from rig_common.errors import RigError


class Fate(Enum):
    """What became of a message; the words of `fates.csv` and `truth/fate/<stream>`."""

    DELIVERED = 'delivered'
    DUPLICATE = 'duplicate'
    """The second arrival of a message."""
    LOST = 'lost'
    """On the way: `loss`, or a full queue of a link."""
    FAULT = 'fault'
    """A fault `dead` or `loss_burst`."""
    THINNED = 'thinned'
    """Left out by `rate_hz`."""


@dataclass(slots=True)
class Account:
    """The messages of one topic."""

    stream: str = ''
    """Empty for a topic that passes unchanged."""
    read: int = 0
    written: int = 0
    lost_by_loss: int = 0
    lost_by_fault: int = 0
    thinned: int = 0
    duplicated: int = 0
    """Messages written a second time."""
    replaced: int = 0
    """Of `truth/time/<stream>` of the input: the output's own stands in its place."""
    unreadable: int = 0
    """Too short for the stamp of their type; passed on unchanged, and counted as written."""
    in_flight: int = 0
    """Read and not written yet."""

    def note(self, fate: Fate) -> None:
        """Count what became of one message that does not arrive just once."""
        if fate is Fate.LOST:
            self.lost_by_loss += 1
        elif fate is Fate.FAULT:
            self.lost_by_fault += 1
        elif fate is Fate.THINNED:
            self.thinned += 1
        else:
            self.in_flight += 1
            self.duplicated += 1

    @property
    def difference(self) -> int:
        """Messages without an account; 0, or something is wrong here."""
        return (
            self.read
            + self.duplicated
            - self.written
            - self.lost_by_loss
            - self.lost_by_fault
            - self.thinned
            - self.replaced
            - self.in_flight
        )

    def as_dict(self) -> dict[str, int | str]:
        """Return the account as JSON values."""
        return asdict(self)


def require_balance(accounts: dict[str, Account]) -> None:
    """Raise where a message has no account: then this program is wrong, and says so."""
    for topic, account in accounts.items():
        if account.difference:
            raise RigError(
                f'{account.difference} messages of {topic} have no account; this is a '
                f'mistake of this program: {account.as_dict()}'
            )
