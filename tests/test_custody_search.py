"""Who looks for a lone token: what follows from the answers so far, and who has to wait for whom; case by case."""

import numpy as np
import pytest

from lone_worlds import DATA, lone_world
from mtcd.federation.custody.letters import End, Freeze, Frozen, Letter, Thaw
from mtcd.federation.custody.lone_token import LonePostman, is_cut
from mtcd.federation.custody.search import Search, Verdict
from mtcd.network.topology import make_network
from mtcd.protocol.party import Message
from mtcd.protocol.token import Token
from simulated import Faults

NEAR = make_network("cycle", DATA.clients).neighbours  # five clients
SEEKER, TO, BEYOND, FROM, OTHER = 0, 1, 2, 4, 3
HOP = 10
FIRM, SOFT = True, False


def search(firm: bool, *answers: int, hop: int = HOP, down: bool = True, number: int = 20) -> Search:
    """Client 0 had the token from 4, passed it on to 1, and believes that one gone; these have answered."""
    made = Search(HOP, TO, frozenset({BEYOND}), frozenset({FROM, TO}))
    made.ask(number, firm)
    made.down[SEEKER] = frozenset({TO})
    for sequence, k in enumerate(answers):
        gone = frozenset({TO}) if down and TO in NEAR[k] else frozenset()
        made.hear(k, sequence, Frozen(number, hop, 0, gone))
    return made


@pytest.mark.parametrize(
    ("firm", "answers", "verdict"),
    [
        (SOFT, (), Verdict.WAIT),
        (SOFT, (BEYOND,), Verdict.WAIT),  # the witness is missing
        (SOFT, (FROM, OTHER), Verdict.WAIT),  # the one beyond is missing
        (SOFT, (BEYOND, FROM), Verdict.ASK_FIRMLY),
        (SOFT, (TO,), Verdict.WAIT),  # nobody else has told whether it is there
        (FIRM, (), Verdict.WAIT),
        (FIRM, (BEYOND,), Verdict.WAIT),
        (FIRM, (BEYOND, FROM), Verdict.ANEW),
        (FIRM, (TO,), Verdict.ANEW),
    ],
)
def test_what_the_answers_allow(firm: bool, answers: tuple[int, ...], verdict: Verdict) -> None:
    assert search(firm, *answers).verdict(NEAR) is verdict


def test_somebody_who_had_the_token_later_ends_the_search() -> None:
    for firm in (SOFT, FIRM):
        assert search(firm, OTHER, hop=HOP + 1).verdict(NEAR) is Verdict.ELSEWHERE
        assert search(firm, OTHER, hop=HOP).verdict(NEAR) is Verdict.WAIT


def test_a_receiver_that_is_there_after_all_and_has_not_had_the_token_is_enough() -> None:
    assert search(SOFT, TO, BEYOND, down=False).verdict(NEAR) is Verdict.ASK_FIRMLY
    assert search(SOFT, BEYOND, down=False).verdict(NEAR) is Verdict.WAIT


def test_as_long_as_a_neighbour_believes_the_receiver_there_nobody_is_asked_firmly() -> None:
    heard = search(SOFT, BEYOND, FROM, down=False)
    assert heard.verdict(NEAR) is Verdict.WAIT
    heard.hear(BEYOND, 5, Frozen(20, HOP, 0, frozenset({TO})))
    assert heard.verdict(NEAR) is Verdict.ASK_FIRMLY
    heard.hear(BEYOND, 3, Frozen(20, HOP, 0, frozenset()))  # it went before the other one
    assert heard.verdict(NEAR) is Verdict.ASK_FIRMLY


def test_whoever_answered_a_firm_question_with_a_higher_number_has_to_be_asked_again() -> None:
    for answers in ((), (BEYOND, FROM), (TO,)):
        firm, soft = search(FIRM, *answers), search(SOFT, *answers)
        before = soft.verdict(NEAR)
        firm.hear(OTHER, 9, Frozen(20, HOP, 21, frozenset()))
        soft.hear(OTHER, 9, Frozen(20, HOP, 21, frozenset()))
        assert firm.verdict(NEAR) is Verdict.ASK_FIRMLY
        assert soft.verdict(NEAR) is before  # nothing depends on its number yet
    same = search(FIRM, BEYOND, FROM)
    same.hear(OTHER, 9, Frozen(20, HOP, 20, frozenset()))
    assert same.verdict(NEAR) is Verdict.ANEW


def test_a_firm_question_that_nobody_can_answer_any_more_is_withdrawn() -> None:
    heard = search(FIRM, FROM)
    heard.down[OTHER] = frozenset({BEYOND})  # all of its neighbours that were heard believe it to be gone
    assert heard.verdict(NEAR) is Verdict.ASK
    assert heard.missing(NEAR) == [frozenset({BEYOND})]


def test_answers_to_an_older_question_do_not_count() -> None:
    heard = search(FIRM, BEYOND, FROM)
    heard.ask(25, FIRM)
    assert heard.verdict(NEAR) is Verdict.WAIT
    heard.hear(BEYOND, 7, Frozen(20, HOP, 0, frozenset({TO})))
    heard.hear(FROM, 7, Frozen(25, HOP, 0, frozenset()))
    assert heard.verdict(NEAR) is Verdict.WAIT


@pytest.mark.parametrize(
    ("fences", "over"),
    [
        ({}, False),
        ({20: HOP}, True),  # it led to this one
        ({25: HOP}, True),
        ({19: HOP}, False),
        ({20: HOP + 1}, False),
        ({6: HOP - 1}, True),  # its asker did not know of it, and is cut off
        ({5: HOP - 1}, False),  # its asker knew of it
        ({6: HOP}, False),
    ],
)
def test_when_a_question_is_over(fences: dict[int, int], over: bool) -> None:
    assert is_cut(Freeze(HOP, 20, FIRM), 5, fences) is over


class Client:
    """A client that has never had the token, and is asked by others."""

    def __init__(self) -> None:
        world = lone_world("complete", 0, Faults())
        self.postman = next(one for one in world.postmen.values() if not one.waiting())
        self.sequences = dict.fromkeys(world.numbers, 0)

    def hears(self, who: int, payload: object, gone: frozenset[int] = frozenset(), generation: int = 0) -> bool:
        """Whether it takes in what somebody tells it."""
        assert isinstance(self.postman, LonePostman)
        me = self.postman.number
        letter = Letter(who, me, self.sequences[who], 0, generation, {}, Message(who, me, payload), gone)
        taken = self.postman.deliver(letter).receipt is not None
        self.sequences[who] += taken
        return taken

    def answers(self) -> list[tuple[int, int, int]]:
        """To whom, to which question, and the highest number it knows of."""
        told = [(letter.to, letter.message.payload) for letter in self.postman.waiting()]
        return [(to, said.asked, said.highest) for to, said in told if isinstance(said, Frozen)]


@pytest.fixture
def client() -> Client:
    return Client()


def others(client: Client) -> list[int]:
    return [k for k in client.sequences if k != client.postman.number]


def test_of_two_who_ask_firmly_the_one_with_the_later_hop_waits(client: Client) -> None:
    first, second, *_ = others(client)
    assert client.hears(first, Freeze(HOP, 20, FIRM))
    assert not client.hears(second, Freeze(HOP + 1, 26, FIRM))
    assert client.hears(second, Freeze(HOP + 1, 26, SOFT))  # that binds nobody
    assert client.hears(first, Thaw(20))
    assert client.hears(second, Freeze(HOP + 1, 31, FIRM))
    assert client.answers() == [(first, 20, 20), (second, 26, 20), (second, 31, 31)]


def test_the_one_with_the_earlier_hop_is_answered_and_told_of_the_higher_number(client: Client) -> None:
    first, second, *_ = others(client)
    assert client.hears(first, Freeze(HOP, 57, FIRM))
    assert client.hears(second, Freeze(HOP - 1, 20, FIRM))
    assert client.answers() == [(first, 57, 57), (second, 20, 57)]


def test_no_token_is_taken_in_while_a_firm_question_is_open(client: Client) -> None:
    first, second, *_ = others(client)
    token = Token(0, 0, 3, np.zeros(DATA.samples), 0.0)
    assert client.hears(first, Freeze(HOP, 20, FIRM))
    assert not client.hears(second, token)
    assert client.hears(first, Thaw(20))
    assert client.hears(second, token)


def test_a_question_without_harm_lets_tokens_in(client: Client) -> None:
    first, second, *_ = others(client)
    assert client.hears(first, Freeze(HOP, 20, SOFT))
    assert client.hears(second, Token(0, 0, 3, np.zeros(DATA.samples), 0.0))


def test_a_question_that_is_over_is_not_answered_again(client: Client) -> None:
    first, *_ = others(client)
    assert client.hears(first, Thaw(20))  # which came before the question
    assert client.hears(first, Freeze(HOP, 20, FIRM))
    assert client.answers() == []
    assert client.hears(first, Freeze(HOP, 25, FIRM))
    assert client.answers() == [(first, 25, 25)]


def test_a_token_that_may_be_passed_on_to_nobody_who_is_there_waits_and_says_for_whom(client: Client) -> None:
    first, *rest = others(client)
    client.postman.lost(first)
    assert client.hears(first, Token(0, 0, 3, np.zeros(DATA.samples), 0.0), gone=frozenset(rest))
    assert isinstance(client.postman, LonePostman)
    said = client.postman.unreachable()
    assert said is not None
    assert f"until {DATA.clients[first]} is back" in said
    assert said.endswith(f"to go round {', '.join(DATA.clients[k] for k in rest)}.")
    client.postman.found(first)
    assert client.postman.unreachable() is None


def test_who_asks_after_the_end_is_told_of_it_once(client: Client) -> None:
    first, second, *_ = others(client)
    assert client.hears(first, End("stopped", 0, 7))
    assert client.postman.ended is not None
    assert not client.postman.ended_here
    for number in (20, 25):
        assert client.hears(second, Freeze(HOP, number, SOFT))
    ends = [letter.to for letter in client.postman.waiting() if isinstance(letter.message.payload, End)]
    assert sorted(ends) == sorted(set(ends))
    assert second in ends


def test_as_long_as_answers_are_missing_it_says_whose(client: Client) -> None:
    postman, names = client.postman, DATA.clients
    assert isinstance(postman, LonePostman)
    assert postman.unreachable() is None
    postman.search = search(SOFT, BEYOND)
    said = postman.unreachable() or ""
    assert f"passed on to {names[TO]}" in said
    assert f"{names[TO]} or {names[FROM]}. Or start {names[TO]} again." in said
    assert names[BEYOND] not in said
    postman.search = search(SOFT, BEYOND, FROM)
    assert (postman.unreachable() or "").endswith("The others are being asked where it is.")


def test_if_one_who_asked_firmly_is_gone_it_says_so(client: Client) -> None:
    first, *_ = others(client)
    assert isinstance(client.postman, LonePostman)
    assert client.hears(first, Freeze(HOP, 20, SOFT))
    client.postman.lost(first)
    assert client.postman.unreachable() is None
    client.postman.found(first)
    assert client.hears(first, Freeze(HOP, 25, FIRM))
    assert client.postman.unreachable() is None
    client.postman.lost(first)
    assert f"Start {DATA.clients[first]} again" in (client.postman.unreachable() or "")
