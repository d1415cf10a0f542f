"""Ray casting against a MuJoCo model: one interface, several backends, one answer."""

from sim_sensors.raycast.base import (
    Hits,
    RayCaster,
    Surface,
    make_caster,
    subtree_bodies,
    visible_geoms,
)

__all__ = ['Hits', 'RayCaster', 'Surface', 'make_caster', 'subtree_bodies', 'visible_geoms']
