"""Scripted scenarios, each with a fault and the recovery from it.

``python -m mtcd.testing.simulator NAME`` prints the transcript of one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from mtcd.core import features
from mtcd.data.synthetic import synthetic
from mtcd.federation.recovery.choose import make_reliable_party
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.models.glm.model import Glm
from mtcd.network.topology import make_network
from mtcd.protocol.party import SERVER
from mtcd.testing.simulator.transcript import Transcript
from mtcd.testing.simulator.world import World, make_with

Script = Callable[[Transcript], None]
GROUP = "mtcd.stories"
"""The group in which a feature names the fields of its stories, by their names."""


@dataclass(frozen=True)
class Story:
    """A method on a small network, and a script."""

    title: str
    method: Method
    network: str
    script: Script
    clients: int = 4

    def transcript(self) -> str:
        """Run the script; returns the transcript."""
        data = synthetic("ridge", samples=6, features=self.clients, clients=self.clients, seed=1)
        problem, network = (
            Glm("ridge", alpha=0.1).problem(data),
            make_network(self.network, data.clients),
        )
        world = World(
            lambda: self.method.parties(problem, network, 3),
            0,
            make_with(make_reliable_party, network),
        )
        setting = (
            f"{self.method.describe()} on a {self.network} network of {self.clients} clients, one "
            "feature each."
        )
        transcript = Transcript(world, problem, self.title, setting)
        self.script(transcript)
        transcript.holds()
        return transcript.text()


def lost_and_duplicated(story: Transcript) -> None:
    """Links lose and duplicate envelopes."""
    story.deliver(2)
    story.say("An envelope is lost. Its sender has no ack, so it sends the envelope again.")
    story.lose()
    story.deliver(2)
    story.say(
        "A link duplicates an envelope. The receiver knows its sequence number, and ignores the "
        "second."
    )
    story.duplicate()
    story.deliver(6)


def crash_before_commit(story: Transcript) -> None:
    """A client crashes during a visit."""
    story.deliver(3)
    story.say(
        "The next client makes its local updates, and crashes before they are in its journal."
    )
    k = story.next_receiver()
    story.crash_at_commit(k, after=False)
    story.deliver()
    story.restart(k)
    story.say(
        "There was no ack, so the token comes again, and the visit is made as if for the first "
        "time."
    )
    story.deliver(5)


def crash_after_commit(story: Transcript) -> None:
    """A client crashes between its commit and its ack."""
    story.deliver(3)
    story.say(
        "The next client commits its visit and its outbox, and crashes before it sends the ack."
    )
    k = story.next_receiver()
    story.crash_at_commit(k, after=True)
    story.deliver()
    story.restart(k)
    story.say(
        "The token comes again, but the journal has the visit, and the envelope for the next "
        "client."
    )
    story.deliver(6)


def client_crashes_with_token(story: Transcript) -> None:
    """MTCD: the server restarts the iteration."""
    story.deliver(3)
    k = story.next_receiver()
    story.deliver()
    story.say("The client that holds a token crashes, and what it has sent is lost with it.")
    story.crash(k)
    story.drop_in_flight()
    others = [other for other in story.world.numbers if other not in (k, SERVER)]
    story.notice(k, True, [*others, SERVER])
    story.say("The server cancels the iteration and restarts it from its last sync, in a new term.")
    story.until(lambda: _iteration(story) >= 1)
    story.say("The client is back, with a visit of a term that is over.")
    story.restart(k)
    story.notice(k, False, [*others, SERVER])
    story.until(lambda: _iteration(story) >= 2)


def link_cut(story: Transcript) -> None:
    """MTCD: a token goes around a client that its holder cannot reach."""
    story.deliver(2)
    story.cut(1, 2)
    story.deliver()
    story.notice(2, True, [1])
    story.say(
        "c2 is up, and the server reaches it. But c1 cannot pass the token on, so the iteration "
        "restarts."
    )
    story.until(lambda: _iteration(story) >= 1)
    story.mend(1, 2)
    story.notice(2, False, [1])
    story.until(lambda: _iteration(story) >= 2)


def server_crashes(story: Transcript) -> None:
    """MTCD: visits without the server count when it is back."""
    story.until(lambda: len(_uploaded(story)) == 1)
    story.say("The server has one token of two in its journal, and crashes.")
    story.crash(SERVER)
    story.notice(SERVER, True, [0, 1, 2, 3])
    story.deliver(4)
    story.say(
        "The server does not know what happened meanwhile: it asks for its token again, in the "
        "next term."
    )
    story.drop_in_flight()
    story.restart(SERVER)
    story.notice(SERVER, False, [0, 1, 2, 3])
    story.until(lambda: _iteration(story) >= 1)


def server_had_synced(story: Transcript) -> None:
    """MTCD: visits without the server are undone if it had synced."""
    story.until(lambda: _iteration(story) >= 1)
    story.say("The server has synced, and hangs before any client receives the result.")
    story.drop_in_flight()
    story.hang(SERVER)
    story.notice(SERVER, True, [0, 1, 2, 3])
    story.deliver(4)
    story.wake(SERVER)
    story.notice(SERVER, False, [0, 1, 2, 3])
    story.drop_in_flight()
    story.deliver(2, sender=SERVER)
    story.say(
        "The tokens of iteration 1 have reached c0 and c2, which have undone their speculative "
        "visits."
    )
    story.say("The tokens of iteration 0 roam in vain: what they bring about is undone as well.")
    story.deliver(5)


def token_regenerated(story: Transcript) -> None:
    """STCD: the holder of the only token crashes."""
    story.deliver(2)
    story.say("c2 is visited, passes the token on, and crashes. What it has sent is lost.")
    story.deliver()
    story.crash(2)
    story.drop_in_flight()
    story.notice(2, True, [0, 1])
    story.say(
        "c1 has the token as it passed it on. It asks the others, first with a probe, then with a "
        "ballot."
    )
    story.until(lambda: _term(story) > 0)
    story.deliver(4)
    story.say(
        "c2 is back, with a visit of a term that is over. It learns of the new term, and undoes "
        "the visit."
    )
    story.restart(2)
    story.notice(2, False, [0, 1])
    story.deliver(6)


def two_initiators(story: Transcript) -> None:
    """STCD: two clients search for the token, and one of them decides."""
    story.deliver(2)
    story.say(
        "c1 has passed the token to c2, which hangs before it arrives. c1 takes c2 for down, and "
        "is right;"
    )
    story.say("c0 takes c1 for down, and is wrong. Both search for the token that they passed on.")
    story.drop_in_flight()
    story.hang(2)
    story.notice(1, True, [0])
    story.notice(2, True, [1, 3])
    story.until(lambda: _term(story) > 0)
    story.say("The ballot of c1 has decided: the token is regenerated in term 9.")
    story.wake(2)
    story.deliver(2, sender=1, to=0)


def _term(story: Transcript) -> int:
    """The highest term of the lone token."""
    return max((term for party in story.world.parties.values() for term in party.terms), default=0)


def _uploaded(story: Transcript) -> dict[int, int]:
    """The tokens that the server has, by their indices."""
    uploaders: dict[int, int] = story.world.journals[SERVER].last()["uploaders"]
    return uploaders


def _iteration(story: Transcript) -> int:
    """The iteration of the server."""
    t: int = story.world.journals[SERVER].last()["party"]["t"]
    return t


ROAMING = STCD(stepsize=0.1, walk="tour")
RESTARTING = MTCD(tokens=1, hops=4, stepsize=0.1, walk="tour")
CLUSTERS = MTCD(clusters=[[0, 1], [2, 3]], hops=2, stepsize=0.1)
STORIES: dict[str, Story] = {
    "lost-and-duplicated": Story(
        "Envelopes are lost and duplicated", ROAMING, "cycle", lost_and_duplicated
    ),
    "crash-before-commit": Story(
        "A client crashes before its commit", ROAMING, "cycle", crash_before_commit
    ),
    "crash-after-commit": Story(
        "A client crashes after its commit", ROAMING, "cycle", crash_after_commit
    ),
    "client-crashes": Story(
        "A client crashes with a token", RESTARTING, "cycle", client_crashes_with_token
    ),
    "link-cut": Story("A link between two clients is cut", RESTARTING, "cycle", link_cut),
    "server-crashes": Story("The server crashes before a sync", CLUSTERS, "cycle", server_crashes),
    "server-had-synced": Story(
        "The server hangs after a sync", CLUSTERS, "cycle", server_had_synced
    ),
    "token-regenerated": Story(
        "The only token is lost with its client", ROAMING, "complete", token_regenerated, 3
    ),
    "two-initiators": Story("Two clients search for the token", ROAMING, "cycle", two_initiators),
}
"""By name; features add their own."""
for _name, _home in features.parts(GROUP).items():
    STORIES[_name] = Story(**cast("dict[str, Any]", features.load(_home)))
