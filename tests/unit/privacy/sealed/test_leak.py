"""The attacks of ``benchmarks.leak`` find what is there, and on sealed tours nothing beyond the
promise."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import leak
from benchmarks.leak_attacks import (
    auc,
    gram,
    gram_found,
    labels_from_gradient,
    overlap,
    squared_correlation,
)
from sklearn.metrics import roc_auc_score

from mtcd.core.errors import WireError

RNG = np.random.default_rng(5)
X = RNG.standard_normal((60, 4))


def test_the_column_space_is_found_in_vectors_of_it_and_by_chance_elsewhere() -> None:
    assert overlap(X @ RNG.standard_normal((4, 9)), X) == pytest.approx(1.0)
    assert overlap(X @ RNG.standard_normal((4, 2)), X) == pytest.approx(0.5)
    assert overlap(RNG.standard_normal((60, 9)), X) < 0.3


def test_inner_products_are_found_from_changes_at_known_derivatives() -> None:
    derivatives = RNG.standard_normal((60, 12))
    assert gram_found(gram(-0.01 * X @ X.T @ derivatives, derivatives, 4), X) == pytest.approx(1.0)
    assert gram_found(gram(RNG.standard_normal((60, 12)), derivatives, 4), X) < 0.05


def test_labels_are_guessed_as_well_as_scores_order_them() -> None:
    labels = (X[:, 0] > 0).astype(float)
    scores = X[:, 0] + RNG.standard_normal(60)
    assert auc(scores, labels) == pytest.approx(roc_auc_score(labels, scores))
    assert auc(-scores, labels) == auc(scores, labels)
    guess = labels_from_gradient(X, X.T @ (0.5 - labels))
    np.testing.assert_allclose(guess, X @ np.linalg.pinv(X) @ (labels - 0.5), atol=1e-12)
    assert squared_correlation(scores, 3 * scores - 1) == pytest.approx(1.0)


def test_open_tokens_of_two_parties_reveal_all_that_the_threat_model_says() -> None:
    seen, (problem, run) = leak.open_party(2, 2000)
    row = leak.measured("open", "party", 2, seen, problem, run)
    assert min(row.labels, row.scores, row.columns, row.grams) > 0.95
    assert row.permuted < 0.2


def test_masks_hide_the_parts_of_a_sum() -> None:
    for masked in (False, True):
        seen, (problem, run, own) = leak.server_of_rounds(3, 60, masked)
        row = leak.measured("", "server", 3, seen, problem, run)
        assert (row.scores > 0.99) == (not masked)
        assert (
            squared_correlation(own[-1], problem.blocks[0] @ run.by_number[0].parameters()) < 0.1
            or not masked
        )


def test_a_party_of_sealed_tours_learns_its_own_gradients_only() -> None:
    pytest.importorskip("tenseal")
    party, holder, (problem, run) = leak.sealed(3, 2, server=True)
    row = leak.measured("sealed", "party", 3, party, problem, run)
    assert max(row.scores, row.columns, row.grams) < 0.15
    own = np.asarray(problem.blocks[leak.A])
    fitted = own @ np.linalg.lstsq(own, problem.labels - problem.labels.mean(), rcond=None)[0]
    assert row.labels < auc(fitted, problem.labels) + 0.05  # what it could fit if it had the labels
    at_server = leak.measured("sealed", "server", 3, holder, problem, run)
    assert at_server.scores < 0.9


def test_a_dishonest_key_holder_reads_the_table_of_a_careless_party_only() -> None:
    pytest.importorskip("tenseal")
    from benchmarks import leak_holder

    X = np.asarray(leak.MODEL.problem(leak.table(2)).blocks[leak.A])
    integers = leak_holder.victim_of(leak_holder.honest_key(X)._keys, X, careless=True).X
    np.testing.assert_array_equal(leak_holder.trapdoor(X, careless=True), integers)
    with pytest.raises(WireError, match="do not have the size"):
        leak_holder.trapdoor(X, careless=False)

    np.testing.assert_array_equal(leak_holder.chosen_noise(X, careless=True), integers)
    guess = leak_holder.chosen_noise(X, careless=False)
    assert squared_correlation(guess.ravel(), integers.ravel()) < 0.01

    rounded, found = leak_holder.false_answers(careless=True)
    assert leak_holder.relative_error(found, rounded) < 1e-3
    with pytest.raises(WireError, match="does not pass this client's check"):
        leak_holder.false_answers(careless=False)

    # the cap on tours is all that limits tokens of its choice
    joint, one = leak_holder.chosen_tokens(3)
    assert joint == pytest.approx(0.5, abs=0.02)
    assert one < 0.4


def test_members_that_put_together_what_they_have_seen_find_more() -> None:
    from benchmarks import leak_together

    found = {}
    for row in leak_together.rows():
        who, what, share = (cell.strip() for cell in row.strip("|").split("|"))
        found[who, what] = float(share)
    # a token that only the neighbour had in between tells its columns; alone, it is 0.04
    assert found["server and party", "the label holder's columns"] > 0.5
    assert found["server and party", "labels, from the first token of the party"] == 1.0
    assert found["server and label holder", "a party's columns"] > 0.5
    alone = found["one party", "labels, from its first gradient"]
    assert alone + 0.05 < found["two parties", "labels, from both"] < 0.95
