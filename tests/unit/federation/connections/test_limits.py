"""Places for connections whose certificate is not known yet."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from mtcd.federation.connections.refusals import Places, group_of


@dataclass(eq=False)
class One:
    group: str
    has_spoken: bool = False


def test_the_oldest_of_an_address_that_said_nothing_goes_first() -> None:
    places = Places(most_per_address=3, most=10)
    spoke, silent, later = One("x", True), One("x"), One("x")
    other = One("y")
    for one in (spoke, silent, other, later):
        assert places.add(one) is None
    assert places.add(One("x", True)) is silent
    assert places.add(One("x", True)) is later
    assert places.add(One("x", True)) is spoke


def test_the_address_with_most_gives_way_if_there_are_too_many_in_all() -> None:
    places = Places(most_per_address=3, most=4)
    crowd = [One("x") for _ in range(3)]
    for one in (One("y"), *crowd):
        assert places.add(one) is None
    assert places.add(One("z")) is crowd[0]
    places.remove(crowd[1])
    places.remove(crowd[1])
    assert len(places) == 3
    assert places.add(One("z")) is None


def test_a_network_of_ipv6_counts_as_one_address() -> None:
    assert group_of("2001:db8:0:1::5") == group_of("2001:db8:0:1:ffff::1%eth0")
    assert group_of("2001:db8:0:1::5") != group_of("2001:db8:0:2::5")
    assert group_of("10.0.0.1") != group_of("10.0.0.2")


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.booleans(), st.booleans()), max_size=80))
def test_limits_hold_whatever_comes(events: list[tuple[str, bool, bool]]) -> None:
    places = Places(most_per_address=4, most=9)
    here: list[One] = []
    for group, spoke, leaves in events:
        one = One(group, spoke)
        goes = places.add(one)
        here.append(one)
        if goes is not None:
            here.remove(goes)
            full = sum(other.group == group for other in here) == 4
            assert goes.group == group if full else len(here) == 9
        if leaves:
            places.remove(here.pop(0))
        assert len(places) == len(here) <= 9
        assert all(sum(x.group == name for x in here) <= 4 for name in "abcde")
