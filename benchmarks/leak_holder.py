"""What a key holder of sealed tours reads of a party's table if it does not follow the protocol.

``python -m benchmarks.leak_holder`` (seconds). Attacks on a table of 300 rows and 12 columns:

- a *trapdoor*: public keys whose second polynomial is short, so that it hides nothing;
- *chosen noise*: honest keys, but tokens with noise of the holder's choice, which a product
  multiplies with the table;
- *false answers*: the holder adds what it likes to a gradient that it has decrypted, and reads the
  step that the party takes from the token;
- *tokens of its choice*: it encrypts other numbers than the derivative, and answers truly. This is
  not prevented, but limited by the cap on tours.

The holder is the server. Each of the first three prints the relative error of the table that it finds, beside
that of a party that can be attacked: one that sends both polynomials of its products, takes public
keys as they are, and does not check answers. Parties did so before each of these was mended.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import tenseal.sealapi as seal

from benchmarks.leak import HOLDER, L2, MODEL, SAMPLES, A, Recording, table
from benchmarks.leak_attacks import Matrix, overlap
from mtcd.core.errors import WireError
from mtcd.network.topology import make_network
from mtcd.privacy.sealed.bfv import seal_format
from mtcd.privacy.sealed.bfv.bfv import SCHEME, BfvKey, BfvSealer
from mtcd.privacy.sealed.bfv.fixed_point import fix_matrix
from mtcd.privacy.sealed.bfv.keys import join, split, uniform
from mtcd.privacy.sealed.bfv.layout import centred
from mtcd.privacy.sealed.bfv.parameters import SENT_PRIMES, choose_parameters
from mtcd.privacy.sealed.bfv.public_keys import Context, EncryptionKeys
from mtcd.privacy.sealed.bfv.seal_format import Polynomials
from mtcd.privacy.sealed.bfv.wire import PRODUCT, VECTOR, CipherFrame
from mtcd.privacy.sealed.plan import SealedPlan
from mtcd.privacy.sealed.settings import SealedTours
from mtcd.protocol.party import SERVER

WINDOW = 16
"""The bits of each coefficient that a visit shows: those between the flooding noise and the mask."""
FINEST = 2**59 + 1
"""A plaintext modulus with which decryption shows what is below the message: the noise."""


@dataclass
class Victim:
    """A party with its table, and the sealer that it has made from the holder's keys."""

    X: Matrix
    sealer: BfvSealer
    encoded: Any
    careless: bool

    def question(self, token: bytes) -> Any:
        """What the key holder has of the request when a token has arrived: two polynomials."""
        sealer = self.sealer
        product = sealer.product(sealer.vector_from_bytes(token), self.encoded)
        if self.careless:
            return self._both(product.ciphertext)

        masked, _ = sealer.mask(product)
        _, [sent] = sealer._from_bytes(sealer.to_bytes(masked), PRODUCT, SENT_PRIMES)
        return np.array([np.zeros_like(sent.limbs[0]), sent.limbs[0]])

    def _both(self, ciphertext: Any) -> Any:
        """Both polynomials, with a mask of the message, and flooded as tokens are."""
        sealer = self.sealer
        modulus = sealer.parameters.plain_modulus
        mask = sealer._plain(centred(uniform(modulus, sealer.parameters.degree), modulus))
        sealer._evaluator.add_plain_inplace(ciphertext, mask)
        return seal_format.polynomials(sealer._flooded(ciphertext)).limbs


def victim_of(keys: EncryptionKeys, X: Matrix, careless: bool) -> Victim:
    """A party that has received these public keys."""
    sealer = BfvSealer(keys if careless else EncryptionKeys.from_bytes(keys.to_bytes()))
    integers = fix_matrix(X, sealer.parameters).integers
    return Victim(integers, sealer, sealer.encode(integers), careless)


class ChosenKeys(EncryptionKeys):
    """Public keys with a second polynomial of the holder's choice."""

    second: Any

    @cached_property
    def _content(self) -> bytes:
        agreed, first, _, *rotations = split(super()._content)
        second = Polynomials(self.second[None]).pack(self.context.moduli)
        return join([agreed, first, second, *rotations])

    @cached_property
    def public_key(self) -> Any:
        limbs = np.array([self.first, self.second])
        return seal_format.public_key(self.context.seal, Polynomials(limbs))


def honest_key(X: Matrix) -> BfvKey:
    """A key of a training on this table."""
    key = SCHEME.generate(choose_parameters(len(X), X.shape[1:], visits=4))
    assert isinstance(key, BfvKey)
    return key


def trapdoor(X: Matrix, careless: bool) -> Matrix:
    """The table from one request, by keys with a trapdoor.

    A quotient of two short polynomials would look uniform, and would do as well as 1.
    """
    honest = honest_key(X)
    context = honest._context
    second = np.zeros_like(honest._keys.first)
    for number, modulus in enumerate(context.moduli):
        # the last prime is divided out of every encryption: what is left is the polynomial 1
        second[number] = context.moduli[-1] % modulus
    keys = ChosenKeys(context, honest._keys.first, honest._keys.seed, honest._keys.rotations)
    object.__setattr__(keys, "second", second)
    victim = victim_of(keys, X, careless)

    # the second polynomial of a product is now the factor times the encoded table, and little else
    token = empty_token(context, np.random.default_rng(0))
    left = context.moduli[2]
    factor = left << 52
    for number, modulus in enumerate(context.moduli[: context.primes]):
        token[1, number, 0] = factor % modulus
    [_, second] = victim.question(framed(keys, token))

    seen = lifted(second, context.moduli[:SENT_PRIMES])
    coefficients = [round_divided(value, factor // left) for value in seen]
    return table_in(victim, np.array(coefficients))


def empty_token(context: Context, draw: np.random.Generator) -> Any:
    """Two polynomials: the first one random, the second one zero."""
    moduli = context.moduli[: context.primes]
    limbs = np.zeros((2, len(moduli), context.parameters.degree), np.uint64)
    for number, modulus in enumerate(moduli):
        limbs[0, number] = draw.integers(0, modulus, limbs.shape[2], np.uint64)
    return limbs


def framed(keys: EncryptionKeys, limbs: Any) -> bytes:
    """A token of these polynomials, as it travels."""
    moduli = keys.context.moduli[: keys.context.primes]
    content = Polynomials(limbs).pack(moduli)
    return CipherFrame(VECTOR, len(moduli), False, 0, 1, keys.mark, content).to_bytes()


def lifted(limbs: Any, moduli: list[int]) -> list[int]:
    """Integers from their residues modulo two primes, centred around 0."""
    first, second = moduli
    inverse, whole = pow(first, -1, second), first * second
    found = [int(a) + first * ((int(b) - int(a)) * inverse % second) for a, b in limbs.T]
    return [value - whole if value > whole // 2 else value for value in found]


def round_divided(value: int, divisor: int) -> int:
    """The nearest integer to a quotient."""
    return (2 * value + divisor) // (2 * divisor)


def table_in(victim: Victim, coefficients: Any) -> Matrix:
    """The table whose encoding is a polynomial with these coefficients."""
    sealer = victim.sealer
    modulus = sealer.parameters.plain_modulus
    plain = plaintext(sealer, np.asarray(coefficients, np.int64) % modulus)
    slots = np.array(sealer._context.encoder.decode_int64(plain), np.int64)

    rows, columns = victim.X.shape
    layout = sealer.parameters.layout(columns)
    places = layout.diagonal(1 + np.arange(rows * columns).reshape(rows, columns), 0, 0)
    found = np.zeros(rows * columns)
    found[places[places > 0] - 1] = slots[places > 0]
    return found.reshape(rows, columns)


def plaintext(sealer: BfvSealer, coefficients: Any) -> Any:
    """A plaintext polynomial, which SEAL loads."""
    count = len(coefficients)
    words = struct.pack("<Q", count) + coefficients.astype("<u8").tobytes()
    fields = struct.pack("<4QQd", 0, 0, 0, 0, count, 1.0) + seal_format._framed(words)
    return seal_format.loaded(seal.Plaintext(), sealer._seal, seal_format._framed(fields))


def chosen_noise(X: Matrix, careless: bool) -> Matrix:
    """The table from three visits, by tokens with noise, with honest keys."""
    key = honest_key(X)
    context = key._context
    parameters = context.parameters
    victim = victim_of(key._keys, X, careless)
    modulus = 1
    for prime in context.moduli[: context.primes]:
        modulus *= prime

    known, bits = np.zeros(parameters.degree), 0
    while bits < parameters.plain_modulus.bit_length():
        bits += WINDOW
        token = seal_format.polynomials(key.encrypt(np.zeros(len(X), np.int64)).ciphertexts[0])
        limbs = token.limbs.copy()
        noise = modulus // (parameters.plain_modulus << bits)
        for number, prime in enumerate(context.moduli[: context.primes]):
            limbs[0, number, 0] = (int(limbs[0, number, 0]) + noise) % prime
        question = victim.question(framed(key._keys, limbs))

        # all that the mask hides is a multiple of the unit: below it is the table, and some noise
        shown = noise_shown(key, question) * 2.0**bits
        known = known + np.rint((shown - known) / 2 ** (bits - WINDOW)) * 2 ** (bits - WINDOW)

    return table_in(victim, known)


def noise_shown(key: BfvKey, question: Any) -> Any:
    """The noise of a request, as a share of the unit of the message, from -1/2 to 1/2."""
    context = key._context
    finer = seal.EncryptionParameters(seal.SCHEME_TYPE.BFV)
    finer.set_poly_modulus_degree(context.parameters.degree)
    finer.set_coeff_modulus([seal.Modulus(prime) for prime in context.moduli])
    finer.set_plain_modulus(FINEST)
    shows = seal.SEALContext(finer, True, seal.SEC_LEVEL_TYPE.TC128)
    fields = bytes(seal_format._fields(key._secret))
    level = np.array(shows.key_parms_id(), "<u8").tobytes()
    secret = seal_format.loaded(seal.SecretKey(), shows, seal_format._framed(level + fields[32:]))

    data = shows.first_context_data()
    while len(data.parms().coeff_modulus()) > SENT_PRIMES:
        data = data.next_context_data()
    asked = seal_format.ciphertext(shows, tuple(data.parms_id()), Polynomials(question))
    plain = seal.Plaintext()
    seal.Decryptor(shows, secret).decrypt(asked, plain)

    t, found = context.parameters.plain_modulus, np.zeros(context.parameters.degree)
    for place in range(plain.coeff_count()):
        share = plain[place] * t % FINEST
        found[place] = (share - FINEST if share > FINEST // 2 else share) / FINEST
    return found


def false_answers(careless: bool) -> tuple[Matrix, Matrix]:
    """The table of the party that is visited last, and what the server finds of it in as many
    tours as it has columns.

    In tour j the server adds to the sum of column j, and reads X H^-1 e_j from the token: the step
    of the party, but for a factor. It lets every tour start at 0.
    """
    data = table(2)
    problem, network = MODEL.problem(data), make_network("complete", data.clients)
    run = Recording(SealedTours(scheme="clear"), problem, network)
    if careless:
        no_checks(run)
    victim = run.by_number[A].block
    holding = run.by_number[SERVER].holding
    columns = problem.blocks[A].shape[1]
    opened: list[Matrix] = []
    at_start = {name: getattr(holding.steering, name) for name in holding.steering.state_fields}
    released, end_tour = holding.steering.released, holding.end_tour
    lie = int(2.0**-6 * holding.key.parameters.half)

    def lied(values: Any, client: int, t: int) -> Any:
        told = released(values, client, t).copy()
        if client == A and t > 1:
            told[t - 2] += lie
        modulus = holding.key.parameters.plain_modulus
        return (told + modulus // 2) % modulus - modulus // 2

    def read(found: Any, start: Any, label_sum: Any) -> Any:
        opened.append((found - start)[:SAMPLES] / (holding.scale * problem.loss.curvature))
        messages = end_tour(found, start, label_sum)
        vars(holding.steering).update(deepcopy(at_start))
        return messages

    holding.steering.released, holding.end_tour = lied, read
    run.run(columns + 1)
    steps = np.stack([one - opened[0] for one in opened[1 : columns + 1]], axis=1)
    steps *= holding.scale / lie
    return np.asarray(victim.rounded), table_behind(-steps, problem.loss.curvature)


def chosen_tokens(parties: int) -> tuple[float, float]:
    """What is left: the holder encrypts random numbers in the place of the derivative, up to the
    cap on tours. Returns the share that it finds of the column space of all parties together, and
    of that of one party."""
    data = table(parties)
    problem, network = MODEL.problem(data), make_network("complete", data.clients)
    run = Recording(SealedTours(scheme="clear"), problem, network)
    holding = run.by_number[SERVER].holding
    draw = np.random.default_rng(4)
    opened: list[Matrix] = []
    at_start = {name: getattr(holding.steering, name) for name in holding.steering.state_fields}
    end_tour = holding.end_tour

    def read(found: Any, start: Any, label_sum: Any) -> Any:
        opened.append((found - start)[:SAMPLES] / holding.scale)
        messages = end_tour(found, start, label_sum)
        vars(holding.steering).update(deepcopy(at_start))
        return messages

    holding.end_tour = read
    holding.steering.slope = lambda: draw.uniform(0.0, 1.0, SAMPLES)
    run.run(holding.plan.most_tours)
    vectors = np.stack(opened, axis=1)
    blocks = [np.asarray(X) for X in problem.blocks]
    return overlap(vectors, np.hstack(blocks)), overlap(vectors, blocks[A])


def no_checks(run: Recording) -> None:
    """Parties that take every answer, and go on for ever."""
    for number in (HOLDER, A):
        plan = run.by_number[number].plan
        run.by_number[number].plan = Unchecked(**{**vars(plan), "most_tours": None})
    holding = run.by_number[SERVER].holding
    holding.plan = Unchecked(**{**vars(holding.plan), "most_tours": None})


class Unchecked(SealedPlan):
    """The plan of such parties."""

    checks_answers = False


def table_behind(steps: Matrix, curvature: float) -> Matrix:
    """X, from X H^-1 divided by a power of two, where H = c X^T X + l2, and the columns of X are
    about of variance 1."""
    best, error = steps, np.inf
    for factor in 2.0 ** np.arange(60):
        sizes, axes = np.linalg.eigh(steps.T @ steps * factor**2)
        # of each direction, h^-1 - l2 h^-2 is known, times 1/c
        below = 1 - 4 * L2 * curvature * sizes
        if below.min() < 0:
            continue
        inverse = (1 - np.sqrt(below)) / (2 * L2)
        found = steps * factor @ (axes / inverse) @ axes.T
        off = abs(float(np.mean(np.square(found))) - 1.0)
        if off < error:
            best, error = found, off
    return best


def relative_error(found: Matrix, X: Matrix) -> float:
    """The length of what is wrong in a guess of a table, as a share of that of the table."""
    return float(np.linalg.norm(found - X) / np.linalg.norm(X))


def tried(name: str, attack: Callable[[bool], tuple[Matrix, Matrix]]) -> str:
    """A line on an attack: on a party that can be attacked, and on one as it is."""
    found = []
    for careless in (True, False):
        try:
            X, guess = attack(careless)
        except WireError as error:
            found.append(f"refused ({error})")
        else:
            found.append(f"error {relative_error(guess, X):.2g}")
    return f"{name}: {found[0]}; now: {found[1]}"


def main() -> None:
    """A line for each attack."""
    X = np.asarray(MODEL.problem(table(2)).blocks[A])
    integers = fix_matrix(X, honest_key(X).parameters).integers
    print(tried("trapdoor in the keys, 1 request", lambda how: (integers, trapdoor(X, how))))
    print(tried("chosen noise, 3 visits", lambda how: (integers, chosen_noise(X, how))))
    print(tried("false answers, 13 tours", false_answers))
    for parties in (2, 3, 8):
        joint, one = chosen_tokens(parties)
        print(
            f"tokens of its choice up to the cap, {parties} parties: {joint:.2f} of the joint column "
            f"space, {one:.2f} of that of one party"
        )


if __name__ == "__main__":
    main()
