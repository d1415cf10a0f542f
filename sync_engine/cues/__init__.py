"""What a sensor's own data tells about its rotation, so that its clock can be compared.

A cue takes a stamp and named arrays and returns the rotation since its last good input, with a
variance of its own. Which arrays it wants stands in its class; a shell decodes payloads into them.
"""
