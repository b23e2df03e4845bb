"""Clients that look for a lone token, by hand."""

from lone_worlds import lone_world
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.recovery.lone_token import LoneToken
from mtcd.protocol.codec.envelopes import Envelope, Prepare, Promise
from mtcd.protocol.codec.records import pack, unpack
from mtcd.protocol.party import Message
from mtcd.testing.simulator.world import Faults

BINDING, PROBE = True, False


class Client:
    """A client that has never had the token, and is asked by others."""

    def __init__(self) -> None:
        world = lone_world("complete", 0, Faults())
        self.reliable = next(one for one in world.parties.values() if not one.unacknowledged())
        self.sequences = dict.fromkeys(world.numbers, 0)

    def hears(
        self, who: int, payload: object, gone: frozenset[int] = frozenset(), term: int = 0
    ) -> bool:
        """Whether it takes in what somebody tells it."""
        assert isinstance(self.reliable.policy, LoneToken)
        me = self.reliable.number
        envelope = Envelope(
            who, me, self.sequences[who], 0, term, {}, Message(who, me, payload), gone
        )
        taken = self.reliable.deliver(envelope).ack is not None
        self.sequences[who] += taken
        return taken

    def answers(self) -> list[tuple[int, int, int]]:
        """To whom, to which question, and the highest number it knows of."""
        told = [
            (envelope.to, envelope.message.payload) for envelope in self.reliable.unacknowledged()
        ]
        return [(to, said.ballot, said.highest) for to, said in told if isinstance(said, Promise)]


def others(client: Client) -> list[int]:
    return [k for k in client.sequences if k != client.reliable.number]


def passed_on() -> tuple[ReliableParty, Envelope]:
    """Who made the token, on a cycle, and the envelope in which it went on."""
    world = lone_world("cycle", 0, Faults())
    maker = next(one for one in world.parties.values() if one.unacknowledged())
    (envelope,) = maker.unacknowledged()
    while envelope.to == maker.number:
        ack = maker.deliver(unpack(pack(envelope))).ack
        assert ack is not None
        maker.acknowledge(ack)
        (envelope,) = maker.unacknowledged()
    return maker, envelope


def asked(maker: ReliableParty) -> list[tuple[int, Prepare]]:
    told = [(one.to, one.message.payload) for one in maker.unacknowledged()]
    return [(to, payload) for to, payload in told if isinstance(payload, Prepare)]
