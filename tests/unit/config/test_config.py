"""The config: what is written is what runs, and what is wrong is named."""

from pathlib import Path

import pytest
import yaml

import mtcd
from mtcd.config.build import build, resolved_yaml
from mtcd.config.read import check_config, read_config
from mtcd.config.schema import Config
from mtcd.core.errors import ConfigError
from mtcd.training.plateau import Plateau

BASE = """
data: {synthetic: ridge, samples: 30, features: 8, clients: 4}
model: {kind: ridge, alpha: 10}
network: {kind: path}
method: {kind: mtcd, tokens: 2, hops: 64, local_updates: 20, stepsize: 1e-5, batch: null, combine: average, walk: lazy}
stop: {gap: 1e-4, iterations: 2e5}
costs: {ratio: 100}
seed: 7
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    return path


def test_numbers_are_read_as_people_write_them(tmp_path) -> None:
    config = read_config(written(tmp_path, BASE))
    assert config.method.stepsize == 1e-5
    assert config.stop.iterations == 200_000
    assert config.stop.gap == 1e-4
    assert config.seed == 7


def test_keys_are_texts_also_where_yaml_reads_true_and_false(tmp_path) -> None:
    text = BASE.replace("ridge", "logistic").replace("alpha: 10", "class_weight: {no: 1, yes: 5}")
    text = text.replace("stop: {", "stop: {plateau: {on: objective, patience: 3}, ")
    text += "callbacks: [{kind: early-stopping, on: train_auc}, {kind: keep-best, on: train_auc}]"
    setup = build(config := read_config(written(tmp_path, text), ["stop.plateau={on: train_auc}"]))
    assert setup.stop.plateau == Plateau(on="train_auc")
    assert [callback.on for callback in setup.callbacks] == ["train_auc", "train_auc"]
    assert config.model.class_weight == {"no": 1, "yes": 5}
    assert read_config(written(tmp_path, resolved_yaml(config))) == config


def test_clients_called_by_numbers_are_found_by_their_names(tmp_path) -> None:
    (tmp_path / "t.csv").write_text("y,a,b,c\n1,2,3,4\n2,1,1,5\n3,0,5,5\n")
    for start in ("1", "'1'", "{1: 1.0}", "[1]"):
        data = "data: {table: t.csv, label: y, clients: {1: [a], 2: [b], 3: [c]}}\n"
        text = f"{data}method: {{kind: stcd, start: {start}}}"
        setup = build(read_config(written(tmp_path, text)))
        parties = setup.method.with_stepsize(1e-3).parties(
            setup.model.problem(setup.data), setup.network, 0
        )
        assert setup.network.clients[parties.opening[-1].to] == "1"
    text = "data: {table: t.csv, label: y, clients: {1: [a], 2: [b], 3: [c]}}\nmethod: {clusters: [[1, 2], [3]]}"
    setup = build(read_config(written(tmp_path, text)))
    assert setup.method.token_clusters(setup.network, 0) == ((0, 1), (2,))


def test_the_resolved_config_says_what_was_left_open(tmp_path) -> None:
    text = "data: {synthetic: ridge, samples: 30, features: 8, clients: 4}\n"
    resolved = yaml.safe_load(resolved_yaml(read_config(written(tmp_path, text))))
    assert resolved["model"]["alpha"] == 1.0
    assert resolved["method"]["acceleration"] == "conjugate"
    with_method = yaml.safe_load(
        resolved_yaml(read_config(written(tmp_path, text + "method: {hops: 8}\n")))
    )
    assert with_method["method"]["kind"] == "mtcd"
    assert with_method["method"]["combine"] == "average"
    assert resolved["stop"]["iterations"] == 10_000


def test_the_parts_are_built_as_written(tmp_path) -> None:
    setup = build(read_config(written(tmp_path, BASE)))
    assert setup.method == mtcd.MTCD(
        tokens=2, hops=64, local_updates=20, stepsize=1e-5, combine="average"
    )
    assert setup.model == mtcd.Glm("ridge", alpha=10)
    assert setup.network.neighbours == ((1,), (0, 2), (1, 3), (2,))
    assert setup.stop == mtcd.Stop(gap=1e-4, iterations=200_000)
    assert setup.data.fingerprint == mtcd.synthetic("ridge", 30, 8, 4, seed=7).fingerprint


def test_changes_from_the_command_line(tmp_path) -> None:
    changes = [
        "method.hops=16",
        "method.clusters=[[0, 1], [2, 3]]",
        "network.kind=cycle",
        "stop.gap=null",
        "model.intercept=true",
    ]
    config = read_config(written(tmp_path, BASE), changes, seed=3)
    assert (config.method.hops, config.network.kind, config.stop.gap, config.seed) == (
        16,
        "cycle",
        None,
        3,
    )
    assert config.method.clusters == [[0, 1], [2, 3]]
    assert config.model.intercept is True


def test_the_resolved_config_repeats_itself(tmp_path) -> None:
    config = read_config(written(tmp_path, BASE), ["method.kind=svfl"])
    again = read_config(written(tmp_path, resolved_yaml(config)))
    assert resolved_yaml(again) == resolved_yaml(config)
    assert "tokens" not in yaml.safe_load(resolved_yaml(config))["method"]


RANDOM = """
data: {synthetic: ridge, samples: 30, features: 20, clients: 20}
network: {kind: erdos-renyi, p: 0.5}
method: {kind: stcd}
stop: {iterations: 20}
"""


def drawn(tmp_path: Path, changes: list[str], seed: int) -> tuple[str, object, bytes]:
    """The data, the network, and the parameters, which tell where the token went."""

    def outcome(config: Config) -> tuple[str, object, bytes]:
        setup = build(config)
        return (
            setup.data.fingerprint,
            setup.network.neighbours,
            setup.train().coefficients.tobytes(),
        )

    config = read_config(written(tmp_path, RANDOM), changes, seed)
    again = read_config(written(tmp_path, resolved_yaml(config)))
    assert outcome(again) == outcome(config)
    return outcome(config)


def test_data_and_network_can_have_seeds_of_their_own(tmp_path) -> None:
    plain, other = drawn(tmp_path, [], seed=1), drawn(tmp_path, [], seed=2)
    assert all(a != b for a, b in zip(plain, other, strict=True))
    data = drawn(tmp_path, ["data.seed=1"], seed=2)
    assert data[0] == plain[0]
    assert data[1] == other[1]
    both = drawn(tmp_path, ["data.seed=1", "network.seed=1"], seed=2)
    assert both[:2] == plain[:2]
    assert both[2] != plain[2]  # the walk is that of seed 2
    assert drawn(tmp_path, ["data.seed=1", "network.seed=1"], seed=1) == plain
    assert (
        drawn(tmp_path, ["data.seed=0", "network.seed=0"], seed=2)[:2]
        == drawn(tmp_path, [], seed=0)[:2]
    )


def test_clients_that_leave_and_join(tmp_path) -> None:
    written_ = (
        "network.changes=[{iteration: 9e1, join: client_2}, {iteration: 40, leave: [client_2, 0]}]"
    )
    config = read_config(written(tmp_path, BASE), [written_])
    network = build(config).network
    assert network.changes == (mtcd.Change(40, leave=(2, 0)), mtcd.Change(90, join=(2,)))
    again = build(read_config(written(tmp_path, resolved_yaml(config)))).network
    assert again.changes == network.changes
    assert "changes" not in resolved_yaml(read_config(written(tmp_path, BASE)))


def test_keys_that_a_method_has_no_use_for_are_said(tmp_path) -> None:
    setup = build(read_config(written(tmp_path, BASE), ["method.kind=stcd"]))
    assert setup.method == mtcd.STCD(local_updates=20, stepsize=1e-5)
    assert "batch, combine, hops, tokens" in setup.notes[0]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("method.tokns=2", "unknown key 'method.tokns', did you mean 'tokens'"),
        ("modle.kind=ridge", "unknown key 'modle', did you mean 'model'"),
        ("data.sample=3", "unknown key 'data.sample', did you mean 'samples'"),
        ("costs.ration=3", "did you mean 'ratio'"),
        ("network.zzz=3", "unknown key 'network.zzz', known: kind, p, rows, radius, edges"),
        ("method.kind=mtdc", "method.kind: no method is called 'mtdc'; did you mean 'mtcd'\\?$"),
        ("method.hops=often", "method.hops: .*integer.*got 'often'"),
        ("data.clients=0", "data.clients: .*greater than or equal to 1"),
        ("network.edges=links.csv", "network: give either a kind"),
        ("seed=-1", "seed: "),
        ("method.stepsize=quick", "method.stepsize"),
        ("method.hops", "not of the form"),
        ("method.hops=[1", "not valid YAML"),
        ("seed.value=3", "'seed' holds a value"),
        ("data=null", "the key 'data' is missing"),
        ("data=[]", "data must hold keys"),
        ("method.hops=true", "method.hops: should be a number"),
        ("method.stepsize=true", "method.stepsize: should be a number"),
        (
            "data={table: t.csv, label: y, clients: {a: {table: b.csv, colums: [x]}}}",
            "'data.clients.a.colums', did you mean 'columns'",
        ),
        ("data={table: t.csv, label: y, clients: {a: x}}", "data.clients"),
        (
            "data={table: t.csv, label: y, clients: {a: [no]}}",
            "data.clients.a.0: write it in quotes: .*no.* false",
        ),
        (
            "data={table: t.csv, label: y, clients: 2, prepare: auot}",
            "data.prepare: prepare must be .* is 'auot'.$",
        ),
        (
            "data={table: t.csv, label: y, clients: 2, prepare: {default: {bin: {bins: 1}}}}",
            "data.prepare: bin: bins must be 2 or more, but is 1.$",
        ),
        (
            "data={table: t.csv, label: y, clients: 2, prepare: {default: {impute: {strategy: "
            "avg}}}}",
            "data.prepare: impute: strategy should be 'median', .*, but is 'avg'.$",
        ),
        ("method.start=[a, null]", "method.start"),
        ("data={dataset: gisette, client: 3}", "'data.client', did you mean 'clients'"),
        ("data={dataset: gisette, clients: 3, sample: 3}", "'data.sample', did you mean 'samples'"),
        (
            "data={dataset: gisette, clients: 3, noise: 3}",
            "'data.noise', known: dataset, clients, samples, features",
        ),
        ("data={datset: gisette, clients: 3}", "'data.datset', did you mean 'dataset'"),
        (
            "data={dataset: [], clients: 3}",
            "data.dataset: should be the name of a data set, or a list of names",
        ),
        (
            "data={dataset: {a: 1}, clients: 3}",
            "data.dataset: should be the name of a data set, or a list of names",
        ),
        ("data={dataset: [gisette, 3], clients: 3}", "data.dataset: should be the name"),
        (
            "data={dataset: gisette, clients: 3, seed: -1}",
            "data.seed: .*greater than or equal to 0",
        ),
        ("data.seed=true", "data.seed: should be a number"),
        ("network.seed=3", "seed is for the kinds erdos-renyi and random-geometric"),
        (
            "network.changes=[{iteration: 3}]",
            "network.changes.0: name the clients that leave or join",
        ),
        (
            "network.changes=[{iteration: -3, leave: [a]}]",
            "network.changes.0.iteration: .*greater than or equal to 0",
        ),
        (
            "network.changes=[{iteration: 3, leav: [a]}]",
            "'network.changes.0.leav', did you mean 'leave'",
        ),
        (
            "network={edges: links.csv, seed: 3}",
            "network: seed is for the kinds erdos-renyi and random-geometric only",
        ),
    ],
)
def test_a_wrong_key_or_value_is_named(tmp_path, change: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        read_config(written(tmp_path, BASE), [change])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("model.kind=rigde", "model.kind: no model is called 'rigde'.*ridge"),
        ("model.l2=3", "alpha and model.l2"),
        ("model.l1=-1", "l1"),
        ("model.delta=2", "huber"),
        ("method.stepsize=0", "stepsize must be above 0"),
        ("method.stepsize=-1e-3", "stepsize must be above 0"),
        ("method.combine=mean", "method.combine"),
        ("stop.gap=-1", "stop.gap"),
        ("costs.ratio=0", "costs.ratio"),
    ],
)
def test_a_setting_that_cannot_work_is_named(tmp_path, change: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        build(read_config(written(tmp_path, BASE), [change]))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not a config"),
        ("- a\n- b\n", "is not a config"),
        ("data: {synthetic: ridge", "line 1.* is not valid YAML"),
        ("seed: 1\nseed: 2\n", "line 2.*'seed' is given twice"),
        ("seed: 1\n", "the key 'data' is missing"),
        ("data: {table: x.csv, clients: 2}", "the key 'data.label' is missing"),
        ("data: {synthetic: ridge, samples: 3, features: 2}", "the key 'data.clients' is missing"),
        ("data: 3", "data must hold keys"),
        ("data: {{ template }}", "not valid YAML"),
        ("[" * 3000, "nested too deeply|not valid YAML"),
    ],
)
def test_files_that_are_no_config(tmp_path, text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        read_config(written(tmp_path, text))


def test_what_pydantic_calls_its_types_is_no_news_to_the_user(tmp_path) -> None:
    for change in (
        "method.start=[a, null]",
        "method.stepsize=quick",
        "data={table: t, label: y, clients: {a: x}}",
    ):
        with pytest.raises(ConfigError) as said:
            read_config(written(tmp_path, BASE), [change])
        assert not any(
            word in str(said.value)
            for word in ("constrained", "literal[", "dict[", "union[", "OwnTable", "<")
        )


@pytest.mark.parametrize(
    "text", ["stop:", "stop: {}", "model:\nstop: null\ncosts:\nnetwork:\nmethod:"]
)
def test_empty_sections_count_as_left_out(tmp_path, text: str) -> None:
    data = "data: {synthetic: ridge, samples: 30, features: 8, clients: 4}\n"
    assert read_config(written(tmp_path, data + text)) == read_config(written(tmp_path, data))


def test_yaml_merge_keys_work(tmp_path) -> None:
    text = "base: &b {synthetic: ridge, samples: 30, features: 8}\ndata: {<<: *b, clients: 4, samples: 50}\n"
    with pytest.raises(ConfigError, match="unknown key 'base'"):
        read_config(written(tmp_path, text))
    text = "data: {synthetic: ridge, <<: {samples: 30, features: 8}, clients: 4, samples: 50}\n"
    assert read_config(written(tmp_path, text)).data.samples == 50


def test_a_missing_file_and_a_folder(tmp_path) -> None:
    with pytest.raises(ConfigError, match="no config file"):
        read_config(tmp_path / "nowhere.yaml")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_config(tmp_path)


def test_paths_are_looked_for_beside_the_config_and_then_from_here(tmp_path, monkeypatch) -> None:
    (tmp_path / "configs").mkdir()
    table = "y,a,b\n1,2,3\n2,1,1\n3,0,5\n"
    (tmp_path / "configs" / "beside.csv").write_text(table)
    (tmp_path / "here.csv").write_text(table)
    monkeypatch.chdir(tmp_path)
    for name in ("beside.csv", "here.csv"):
        config = written(tmp_path / "configs", f"data: {{table: {name}, label: y, clients: 2}}")
        assert build(read_config(config)).data.samples == 3


@pytest.mark.parametrize(
    ("acceleration", "noted"), [(None, True), ("momentum", True), ("anderson", False)]
)
def test_a_depth_that_nobody_reads_is_noted(acceleration: str | None, noted: bool) -> None:
    method = {"kind": "stcd", "walk": "tour", "acceleration": acceleration, "depth": 7}
    config = check_config(
        {
            "data": {"synthetic": "ridge", "samples": 9, "features": 4, "clients": 2},
            "method": method,
        }
    )
    assert any("depth" in note for note in build(config).notes) == noted
    again = check_config(yaml.safe_load(resolved_yaml(config)))
    assert not (noted and build(again).notes)


@pytest.mark.parametrize("kind", ["svfl", "dcpa", "tree-cg"])
@pytest.mark.parametrize("start", [1, [1, 2], "client_1"])
def test_a_start_is_ignored_by_methods_that_start_everywhere(
    tmp_path: Path, kind: str, start: object
) -> None:
    config = read_config(written(tmp_path, BASE), [f"method={{kind: {kind}, start: {start}}}"])
    assert f"{kind} has no use for start here: ignored." in build(config).notes
