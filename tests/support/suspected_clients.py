"""Simulated federations of a lone token whose clients are suspected of being down."""

from mtcd.testing.simulator.world import World
from simulated_deliveries import no_more_faults


def all_is_well(world: World) -> None:
    """No more faults, and all links say so."""
    no_more_faults(world)
    world.hung, world.cuts = {}, {}
    for who in world.numbers:
        for k in world.numbers:
            world.report(who, k, False)


def slander(world: World) -> None:
    """The last to pass the token on believes the next one gone, and is itself believed gone by the
    one before."""
    passers = [
        reliable
        for reliable in world.parties.values()
        if reliable.policy.history.last_sent and reliable.policy.history.arrival
    ]
    if passers:
        last = max(
            passers, key=lambda reliable: reliable.policy.history.last_sent.message.payload.hop
        )
        receiver, giver = last.policy.history.last_sent.to, last.policy.history.arrival[0]
        world.report(last.number, receiver, True)
        world.report(giver, last.number, True)
        if world.random.random() < 0.8:
            world.hung[receiver] = world.time + world.random.randrange(50, 200)
        if world.random.random() < 0.6:
            world.hung[last.number] = world.time + world.random.randrange(1, 60)
