"""The federation file: what it means, and what is refused, in words."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federations import changed, written
from mtcd.core.errors import MtcdError
from mtcd.federation.file import check_keys, network_of, read_federation
from mtcd.federation.names import LONGEST_CHARACTERS, parse_address, usable_name
from mtcd.methods.tree_cg.tree_cg import TreeMessages
from mtcd.models.losses import LOSSES
from mtcd.network.topology import make_network
from project import ROOT


def test_a_good_file_says_who_talks_to_whom(tmp_path: Path) -> None:
    federation, notes = read_federation(written(tmp_path))
    assert network_of(federation).neighbours == ((1,), (0, 2), (1,))
    assert list(federation.places) == ["a", "b", "c", "server"]
    assert federation.parties["a"].address == "127.0.0.1:7001"
    assert federation.parties["b"].data.columns == ["x", "y"]
    assert notes == ()


def test_the_file_in_the_docs_can_be_founded(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "federation.md").read_text()
    (tmp_path / "docs.yaml").write_text(page.split("```yaml\n")[1].split("```")[0])
    federation, notes = read_federation(tmp_path / "docs.yaml")
    assert federation.parties["hospital_b"].listen == "0.0.0.0:7447"
    assert notes == ()


def test_without_a_server_the_method_is_stcd(tmp_path: Path) -> None:
    assert read_federation(written(tmp_path, server=None, method=None))[0].method.kind == "stcd"
    assert (
        read_federation(written(tmp_path, server=None, method={"walk": "tour"}))[0].method.kind
        == "stcd"
    )
    assert (
        read_federation(written(tmp_path, server=None, method={"kind": "dcpa"}))[0].method.kind
        == "dcpa"
    )
    notes = read_federation(written(tmp_path, server=None, method={"kind": "stcd", "hops": 3}))[1]
    assert "hops" in notes[0]


def test_conjugate_gradients_on_a_tree_need_no_server(tmp_path: Path) -> None:
    alone = {"server": None, "method": {"kind": "tree-cg", "degree": 2}}
    assert read_federation(written(tmp_path, **alone))[0].method.degree == 2
    with pytest.raises(MtcdError, match="tree-cg works without a server"):
        read_federation(written(tmp_path, method={"kind": "tree-cg"}))
    with pytest.raises(MtcdError, match="tree-cg needs a smooth objective"):
        read_federation(written(tmp_path, **alone, model__l1=1))
    plateau = {"iterations": 9, "plateau": {"patience": 3, "min_improvement": 1e-6}}
    with pytest.raises(MtcdError, match="with tree-cg no party of a federation evaluates"):
        read_federation(written(tmp_path, **alone, stop=plateau))


@pytest.mark.parametrize(
    ("privacy", "says"),
    [
        ({"aggregation": "masked"}, "tree-cg has no sums at a server that could be masked"),
        ({"aggregation": "double-masked"}, "tree-cg has no sums at a server"),
        ({"mode": "sealed"}, "tree-cg cannot train with sealed tokens"),
    ],
)
def test_sums_of_a_tree_can_be_neither_masked_nor_sealed(
    privacy: dict, says: str, tmp_path: Path
) -> None:
    given = {"server": None, "method": {"kind": "tree-cg"}, "privacy": privacy}
    if "mode" in privacy:
        given["labels__shared_with"] = None
    with pytest.raises(MtcdError, match=says):
        read_federation(written(tmp_path, **given))


def test_a_method_that_declares_no_messages_trains_in_one_process_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(TreeMessages, "declared")
    with pytest.raises(MtcdError, match="tree-cg does not declare its messages: .* one process"):
        read_federation(written(tmp_path, server=None, method={"kind": "tree-cg"}))


@pytest.mark.parametrize("kind", [kind for kind in LOSSES if not LOSSES[kind].not_linear])
def test_every_model_and_method_can_be_federated(kind: str, tmp_path: Path) -> None:
    for method in ("mtcd", "svfl"):
        read_federation(
            written(tmp_path, method={"kind": method, "batch": 50}, model={"kind": kind})
        )
    read_federation(written(tmp_path, server=None, method={"kind": "stcd"}, model={"kind": kind}))


def test_split_networks_need_the_labels_at_the_server(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    model, both = {"kind": "split", "client": "mlp"}, ["parties", "server"]
    read_federation(written(tmp_path, model=model, labels__shared_with=both))
    with pytest.raises(MtcdError, match="fusion module takes the labels at the server"):
        read_federation(written(tmp_path, model=model))
    with pytest.raises(MtcdError, match="linear models"):
        read_federation(written(tmp_path, model=model, server=None, method={"kind": "dcpa"}))


@pytest.mark.parametrize(
    "method",
    [
        {"combine": "optimal", "tokens": 2},
        {"acceleration": "momentum", "walk": "tour", "clusters": [["a", "b", "c"]]},
        {"kind": "svfl", "acceleration": "conjugate"},
    ],
)
def test_syncs_that_look_at_the_objective_need_the_labels_at_the_server(
    method: dict, tmp_path: Path
) -> None:
    method = {"kind": "mtcd", "hops": 8, **method}
    read_federation(written(tmp_path, method=method, labels__shared_with=["parties", "server"]))
    with pytest.raises(MtcdError, match="takes the labels at the server"):
        read_federation(written(tmp_path, method=method))


def test_mtcd_with_a_server_works_on_pieces(tmp_path: Path) -> None:
    read_federation(written(tmp_path, network={"links": [["a", "b"]]}))


Refused = list[tuple[dict[str, Any], list[str]]]
"""Changes of a good file, and words of the error."""
WHOLE: Refused = [
    ({"nmae": "x"}, ["unknown key 'nmae'", "did you mean 'name'"]),
    ({"name": None}, ["'name' is missing"]),
    ({"name": "a*b"}, ["'a*b' cannot be a name"]),
    ({"alignment": "guess"}, ["alignment", "'psi', 'hashed' or 'given order'"]),
    ({"alignment": "given order"}, ["parties.b.data.id", "does not use ids"]),
    ({"limits": {"message_mb": 0}}, ["limits.message_mb"]),
    ({"limits": {"lease_ms": True}}, ["limits.lease_ms", "should be a number"]),
    ({"seed": -1}, ["seed"]),
]
LINKS: Refused = [
    ({"network__links": [["a", "b"], ["b", "d"]]}, ["network.links.1", "no party is called 'd'"]),
    ({"network__links": [["a", "b"], ["b", "server"]]}, ["has a link to the server"]),
    ({"network__links": [["a", "a"]]}, ["linked to itself"]),
    ({"network__links": [["a", "b", "c"]]}, ["network.links.0", "at most 2"]),
    ({"network": {"kind": "pth"}}, ["did you mean 'path'"]),
    ({"network": {"kind": "path", "links": [["a", "b"]]}}, ["either a kind"]),
    ({"network": {"links": [["a", "b"]], "p": 0.5}}, ["p, rows and radius", "not to links"]),
    ({"network": {"links": [["a", "b"]], "rows": 2}}, ["p, rows and radius", "not to links"]),
    ({"network": {"links": [["a", "b"]], "radius": 1}}, ["p, rows and radius", "not to links"]),
    ({"network": {"links": [["a", "b"]], "seed": 1}}, ["seed is for the kinds", "leave it out"]),
    ({"network": {"kind": "path", "seed": 1}}, ["seed is for the kinds", "leave it out"]),
]
PARTIES: Refused = [
    ({"parties__b__data__table": "/etc/passwd"}, ["not a path inside the bundle", "--data"]),
    ({"parties__b__data__table": "../a/a.csv"}, ["not a path inside the bundle", "--data"]),
    ({"parties__a": "127.0.0.1:7002"}, ["'a' and 'b' have the same address"]),
    ({"parties__a": "127.0.0.1:7000"}, ["'a' and 'server' have the same address"]),
    (
        {"parties__a": {"address": "127.0.0.1:7001", "listne": "x"}},
        ["parties.a.listne", "did you mean 'listen'"],
    ),
    ({"parties__a": {}}, ["parties.a", "address is missing"]),
    (
        {"parties__a": {"address": "127.0.0.1:7001", "dial_out_only": True}},
        ["parties.a", "leave address and listen"],
    ),
    (
        {"parties__a": {"listen": "0.0.0.0:7001", "dial_out_only": True}},
        ["parties.a", "leave address and listen"],
    ),
    (
        {"parties__a": {"dial_out_only": True}, "parties__b": {"dial_out_only": True}},
        ["'a' and 'b' are neighbours", "both dial out only", "network.links"],
    ),
    ({"parties__a": "127.0.0.1"}, ["parties.a", "host:port"]),
    ({"parties__a": "127.0.0.1:0"}, ["host:port"]),
    ({"parties__a": "0.0.0.0:7001"}, ["cannot be reached by others"]),
    ({"parties__a": "10.0.0.300:7001"}, ["neither an IP address nor the name of a host"]),
    ({"parties__a": "kliniк.org:7001"}, ["neither an IP address"]),
    ({"parties__server": "127.0.0.1:7009"}, ["'server' is a reserved name"]),
    ({"parties__Operator": "127.0.0.1:7009"}, ["'operator' is a reserved name"]),
    ({"parties__authority": "127.0.0.1:7009"}, ["'authority' is a reserved name"]),
    ({"parties__A": "127.0.0.1:7009"}, ["'A' differs from another name in capitals only"]),
    ({"parties__Zürich": "127.0.0.1:7009"}, ["'Zürich' cannot be a name"]),
    ({"parties__x/../y": "127.0.0.1:7009"}, ["cannot be a name"]),
    ({"parties": {"a": "127.0.0.1:7001"}}, ["two parties or more"]),
]
LABELS: Refused = [
    ({"holdout": 0}, ["holdout", "greater than 0"]),
    ({"holdout": 1}, ["holdout", "less than 1"]),
    ({"holdout": -0.2}, ["holdout", "greater than 0"]),
    ({"holdout": "a fifth"}, ["holdout", "number"]),
    (
        {"holdout": 0.2, "predictions": {"seen_by": "a"}},
        ["holdout: 'b' holds the labels", "for 'a' alone", "Leave"],
    ),
    (
        {"holdout": 0.2, "predictions": {"seen_by": "server"}},
        ["for 'server' alone (predictions.seen_by)"],
    ),
    ({"labels": None}, ["'labels' is missing"]),
    ({"labels__heldby": "b"}, ["labels.heldby", "did you mean 'held_by'"]),
    ({"labels__held_by": "bb"}, ["labels.held_by", "'bb'", "did you mean 'b'"]),
    ({"labels__shared_with": None}, ["takes the labels", "shared_with: parties", "cannot train"]),
    ({"labels__shared_with": "server"}, ["takes the labels"]),
    ({"labels__shared_with": "everyone"}, ["labels.shared_with", "'parties' or 'server'"]),
    (
        {"labels__shared_with": ["parties", "server"], "server": None, "method": None},
        ["there is no server"],
    ),
    ({"labels__column": "x"}, ["parties.b.data.columns", "'x' is the label"]),
    ({"predictions": {"seen_by": "bb"}}, ["predictions.seen_by", "'bb'", "did you mean 'b'"]),
    (
        {"predictions": {"seen_by": "operator"}},
        ["predictions.seen_by", "neither a party nor the server"],
    ),
    (
        {"predictions": {"seen_by": "server"}, "server": None, "method": None},
        ["predictions.seen_by", "there is none"],
    ),
    ({"predictions": {"seen_by": ["a", "b"]}}, ["predictions.seen_by"]),
    ({"predictions": {"seenby": "b"}}, ["did you mean 'seen_by'"]),
]
METHODS: Refused = [
    ({"server": None}, ["mtcd needs a server", "stcd"]),
    ({"method": {"kind": "stcd"}}, ["stcd works without a server", "mtcd"]),
    ({"method": {"kind": "dcpa"}}, ["dcpa works without a server"]),
    (
        {"server": None, "method": {"kind": "stcd"}, "network": {"links": [["a", "b"]]}},
        ["connected network", "'c'"],
    ),
    (
        {"server": None, "method": {"kind": "dcpa"}, "network": {"links": [["a", "b"]]}},
        ["connected network"],
    ),
    ({"method__kind": "mtdc"}, ["method.kind"]),
    ({"method__batch": -1}, ["method.batch"]),
    ({"method__start": "nobody"}, ["nobody"]),
    ({"method__clusters": [["a"], ["b", "z"]], "method__tokens": None}, ["z"]),
    (
        {"method__combine": "optimal", "method__tokens": 2},
        ["labels at the server", "[parties, server]"],
    ),
    ({"server": {"address": "127.0.0.1:7000", "dial_out_only": True}}, ["server.dial_out_only"]),
    ({"stop": {"gap": 1e-4}}, ["stop.gap", "no party of a federation"]),
    ({"stop": {"cost": 3}, "costs": {"account": "sent"}}, ["stop.cost", "costs.account"]),
    (
        {"server": None, "method": {"kind": "dcpa"}, "model": {"kind": "multinomial"}},
        ["dcpa", "Use mtcd"],
    ),
    (
        {"server": None, "method": {"acceleration": "conjugate", "walk": "tour"}, "model__l1": 1},
        ["needs a smooth penalty"],
    ),
    (
        {"server": None, "method": {"kind": "dcpa", "batch": 3}, "model__kind": "split"},
        ["model.client"],
    ),
    ({"method__walk": "tuor"}, ["tour"]),
    ({"method__tokens": 100_000}, ["method.tokens"]),
    ({"model": {"kind": "rigde"}}, ["ridge"]),
]


def check_refused(folder: Path, changes: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(MtcdError) as told:
        read_federation(written(folder, **changes))
    for word in ["federation.yaml", *words]:
        assert word in str(told.value)


@pytest.mark.parametrize(("changes", "words"), WHOLE, ids=lambda x: str(x)[:50])
def test_keys_and_values_that_are_none_are_refused_in_words(
    changes: dict[str, Any], words: list[str], tmp_path: Path
) -> None:
    check_refused(tmp_path, changes, words)


@pytest.mark.parametrize(("changes", "words"), LINKS, ids=lambda x: str(x)[:50])
def test_links_that_cannot_be_are_refused_in_words(
    changes: dict[str, Any], words: list[str], tmp_path: Path
) -> None:
    check_refused(tmp_path, changes, words)


@pytest.mark.parametrize(("changes", "words"), PARTIES, ids=lambda x: str(x)[:50])
def test_parties_that_cannot_be_named_or_reached_are_refused_in_words(
    changes: dict[str, Any], words: list[str], tmp_path: Path
) -> None:
    check_refused(tmp_path, changes, words)


@pytest.mark.parametrize(("changes", "words"), LABELS, ids=lambda x: str(x)[:50])
def test_labels_and_predictions_that_nobody_may_see_are_refused_in_words(
    changes: dict[str, Any], words: list[str], tmp_path: Path
) -> None:
    check_refused(tmp_path, changes, words)


@pytest.mark.parametrize(("changes", "words"), METHODS, ids=lambda x: str(x)[:50])
def test_methods_and_limits_that_no_federation_has_are_refused_in_words(
    changes: dict[str, Any], words: list[str], tmp_path: Path
) -> None:
    check_refused(tmp_path, changes, words)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(MtcdError, match="There is no federation file"):
        read_federation(tmp_path / "no.yaml")
    (tmp_path / "list.yaml").write_text("[1, 2]")
    with pytest.raises(MtcdError, match="is not a federation"):
        read_federation(tmp_path / "list.yaml")
    for text in (
        "parties: [a, b]",
        "parties: {a: 1, b: 2}",
        "method: 3\nname: x",
        "server: [1]",
        "labels: b",
    ):
        (tmp_path / "odd.yaml").write_text(text)
        with pytest.raises(MtcdError, match="odd.yaml"):
            read_federation(tmp_path / "odd.yaml")


@given(st.text(max_size=LONGEST_CHARACTERS + 5))
def test_a_usable_name_is_one_plain_part_of_a_path_and_of_a_key(name: str) -> None:
    try:
        usable_name(name)
    except ValueError:
        return
    assert name.isascii()
    assert 0 < len(name) <= LONGEST_CHARACTERS
    assert not set(name) & set("/\\.*$?#~ \n\0")
    assert Path("x", name).parent == Path("x")


@given(st.ip_addresses(), st.integers(1, 65535))
def test_addresses_are_read_as_they_are_written(ip: Any, port: int) -> None:
    text = f"[{ip}]:{port}" if ip.version == 6 else f"{ip}:{port}"
    if ip.is_multicast or ip.is_unspecified:
        with pytest.raises(ValueError, match="cannot be reached"):
            parse_address(text)
    else:
        read = parse_address(text)
        assert read.ip == ip
        assert (read.port, parse_address(str(read))) == (port, read)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        "a:",
        ":1",
        "a:65536",
        "a:1e3",
        "a:-1",
        "a b:1",
        "::1:7",
        "[::1:7",
        "[a]:7",
        "a..b:7",
        "-a:7",
        "a:٣",
    ],
)
def test_odd_addresses_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="host|brackets"):
        parse_address(text)
    with pytest.raises(ValueError, match="host|brackets"):
        parse_address(text, listening=True)
    assert parse_address("0.0.0.0:7", listening=True).host == "0.0.0.0"


@pytest.mark.parametrize(
    "text", ["https://lab.org:9102", "tcp://10.0.0.1:7447", "lab.org:9102/", "https://[::1]:80"]
)
def test_an_address_with_a_scheme_or_a_path_is_told_its_form(text: str, tmp_path: Path) -> None:
    with pytest.raises(MtcdError) as told:
        read_federation(written(tmp_path, parties__a=text))
    assert "host:port" in str(told.value)
    assert "without https://" in str(told.value)
    assert "IPv6" not in str(told.value)


def test_ipv6_numbers_are_addresses_to_connect_to_and_to_listen_at(tmp_path: Path) -> None:
    place = "[2001:db8::1]:7447"
    changes: dict[str, Any] = {
        "parties": {"a": {"address": place, "listen": "[::]:7447"}, "b": "b.example.org:7447"},
        "labels__held_by": "a",
        "network": None,
        "server": "[2001:db8::2]:7447",
    }
    federation, _ = read_federation(written(tmp_path, **changes))
    assert federation.parties["a"].address == place
    assert federation.parties["a"].listen == "[::]:7447"


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("a:1", True),
        ("a:0", False),
        ("a:65535", True),
        ("a:65536", False),
        (f"{'a' * 63}:7", True),
        (f"{'a' * 64}:7", False),
        (f"{'a.' * 126}a:7", True),
        (f"{'a.' * 126}ab:7", False),
    ],
    ids=lambda one: str(one)[-20:],
)
def test_ports_labels_and_hosts_end_at_their_limits(text: str, fits: bool) -> None:
    """A label has 63 characters at most, the name of a host 253."""
    if fits:
        assert str(parse_address(text)) == text
        return
    with pytest.raises(ValueError, match="host"):
        parse_address(text)


def test_a_name_has_as_many_characters_as_a_certificate_has_room_for() -> None:
    assert usable_name("a" * LONGEST_CHARACTERS) == "a" * LONGEST_CHARACTERS
    with pytest.raises(ValueError, match="cannot be a name"):
        usable_name("a" * (LONGEST_CHARACTERS + 1))


DRAWN: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"kind": "grid", "rows": 4}, {"rows": 4}),
    ({"kind": "erdos-renyi", "p": 0.7, "seed": 3}, {"p": 0.7, "seed": 3}),
    ({"kind": "erdos-renyi", "p": 0.7}, {"p": 0.7, "seed": 5}),
    ({"kind": "random-geometric", "radius": 0.8, "seed": 3}, {"radius": 0.8, "seed": 3}),
]


@pytest.mark.parametrize(("section", "drawn"), DRAWN, ids=lambda one: str(one))
def test_a_network_of_a_kind_is_the_one_that_one_process_makes(
    section: dict[str, Any], drawn: dict[str, Any]
) -> None:
    """Without a seed of its own it is drawn from that of the training."""
    names = [f"p{k}" for k in range(8)]
    places = {name: f"127.0.0.1:{7001 + k}" for k, name in enumerate(names)}
    told = changed(parties=places, labels={"held_by": "p0"}, network=section, seed=5)
    network = network_of(check_keys(told, "here"))
    assert network.neighbours == make_network(section["kind"], names, **drawn).neighbours
    assert list(network.graph.edges) == sorted(network.graph.edges)


@pytest.mark.parametrize(("server", "kind"), [("127.0.0.1:7000", "mtcd"), (None, "stcd")])
def test_the_default_method_needs_a_server_where_there_is_one(
    server: str | None, kind: str
) -> None:
    assert check_keys(changed(server=server, method=None), "here").method.kind == kind
