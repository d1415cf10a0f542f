"""The live page: the world in 3D, the timeline of captures, stamps and arrivals, and controls."""
