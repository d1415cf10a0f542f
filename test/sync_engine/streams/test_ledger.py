"""The counters themselves: names, sums, and what is missing."""

from __future__ import annotations

from sync_engine.streams.ledger import DROPPED, MEANING, USED, Counts, Ledger, Outcome


def test_every_end_has_a_counter_that_starts_at_zero_and_counts_by_one_or_many() -> None:
    counts = Counts()
    assert set(counts.as_dict()) == {'received', 'out_of_order', *(each.value for each in Outcome)}
    assert not any(counts.as_dict().values())
    for number, fate in enumerate(Outcome, 1):
        counts.add(fate)
        counts.add(fate, number)
        assert counts.as_dict()[fate.value] == 1 + number
    counts.received, counts.out_of_order = 99, 7
    assert counts.settled() == sum(1 + number for number in range(1, len(Outcome) + 1))
    assert counts.ledger() == {
        'received': 99,
        **{fate.value: 1 + number for number, fate in enumerate(Outcome, 1)},
    }


def test_an_imbalance_names_the_sensor_and_the_number_of_messages() -> None:
    ledger = Ledger(['cam', 'imu'])
    ledger['cam'].received = 5
    ledger['cam'].add(Outcome.LATE, 2)
    ledger['imu'].add(Outcome.CONSUMED)
    assert ledger.imbalance({'cam': 3, 'imu': 0}) == {'imu': -1}
    assert ledger.imbalance({'cam': 1, 'imu': -1}) == {'cam': 2}
    assert list(ledger) == ['cam', 'imu']
    assert ledger.as_dict()['cam']['late'] == 2


def test_a_message_was_used_or_dropped_and_the_reader_is_told_why() -> None:
    assert {each.value for each in USED} == {'bundled', 'collected', 'consumed'}
    assert {*USED, *DROPPED} == set(Outcome) and not {*USED} & {*DROPPED}
    assert set(MEANING) == {*DROPPED} - {Outcome.DUPLICATE}
