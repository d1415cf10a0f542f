"""The engine in the place of message_filters' synchronizers (docs/from_message_filters.md)."""

from sync_engine.filters.synchronizer import AdaptiveTimeSynchronizer

__all__ = ['AdaptiveTimeSynchronizer']
