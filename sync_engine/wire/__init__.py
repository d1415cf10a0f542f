"""The engine for serialised messages: bytes in, bytes out, no ROS.

The sync node and the bag command are thin shells around `session.WireSync`, so what is true of
one is true of the other.
"""
