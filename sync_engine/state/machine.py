"""The engine's four states and the ways between them."""

from __future__ import annotations

from collections import deque
from enum import Enum


class SyncState(str, Enum):
    """What the engine is doing."""

    IDLE = 'idle'
    """No packet in any buffer."""
    BUFFERING = 'buffering'
    """Packets are there; the earliest reference frame still waits for its partners."""
    SYNCING = 'syncing'
    """Every stream has settled the reference frame, or its deadline has passed; selecting."""
    OUTPUT_READY = 'output_ready'
    """A bundle is made and about to be handed out."""


ALLOWED: dict[SyncState, frozenset[SyncState]] = {
    SyncState.IDLE: frozenset({SyncState.BUFFERING}),
    SyncState.BUFFERING: frozenset({SyncState.SYNCING, SyncState.IDLE}),
    SyncState.SYNCING: frozenset({SyncState.OUTPUT_READY, SyncState.BUFFERING, SyncState.IDLE}),
    SyncState.OUTPUT_READY: frozenset({SyncState.BUFFERING, SyncState.IDLE}),
}
"""Beyond the design notes: a selection that finds too little goes back (SYNCING -> BUFFERING or
IDLE), and buffers can run empty by expiry or a flush (BUFFERING -> IDLE)."""


class StateMachine:
    """The current state, and the last transitions."""

    def __init__(self, history: int = 32) -> None:
        self.state = SyncState.IDLE
        self.recent: deque[tuple[SyncState, SyncState]] = deque(maxlen=history)

    def enter(self, state: SyncState) -> None:
        """Go to `state`; staying is no transition, and a way that does not exist is a bug."""
        if state is self.state:
            return
        if state not in ALLOWED[self.state]:
            raise RuntimeError(f'no transition from {self.state.value} to {state.value}')
        self.recent.append((self.state, state))
        self.state = state
