"""In which order stamps come."""

from __future__ import annotations

from sync_engine.streams.stamp_order import StampOrder


def test_the_allowance_is_the_largest_disorder_and_fades() -> None:
    order = StampOrder()
    assert not order.reached(0)
    seen = [order.see(stamp) for stamp in (100, 300, 250, 400, 360)]
    assert seen == [True, True, False, True, False]
    assert order.allowance_ns == 50
    assert order.reached(400)
    assert not order.reached(401)
    order.fade()
    assert order.allowance_ns == 47
