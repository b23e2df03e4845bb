"""Network code in a federation: what runs is what the party's own person named or agreed to, and
nothing else."""

import hashlib
import json
import os
import py_compile
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import yaml

from federations import written
from mtcd.core.errors import MtcdError
from mtcd.federation.administrator import init_federation
from mtcd.federation.credentials.bundle import Bundle, read_bundle
from mtcd.federation.file import read_federation
from mtcd.federation.node.log import Log
from mtcd.federation.node.opening import Agreed
from mtcd.federation.own_code import OwnCode, SourceFile, _below, read_code
from mtcd.federation.participant.kinds import make_participant

SPLIT = {
    "labels__shared_with": ["parties", "server"],
    "alignment": "given order",
    "method": {"kind": "svfl", "stepsize": 0.1},
    "parties__b": "127.0.0.1:7002",
}
NETS = """
from subprocess import check_output
from torch import nn
from torch.nn import Linear

def make(shape): return nn.Linear(shape[0], 2)
class Net(nn.Linear):
    def __init__(self, shape): super().__init__(shape[0], 2)
def _hidden(shape): return make(shape)
partial = make.__get__(3)
number = 3
"""


def bundles(folder: Path, network: str, **changes: Any) -> Path:
    """Bundles whose party.yaml name a client network as a hostile administrator would, without the
    checks of `init`."""
    init_federation(
        written(folder, **SPLIT, model={"kind": "split", "client": "mlp"}), folder / "bundles", 90
    )
    for path in (folder / "bundles").glob("*/party.yaml"):
        content = yaml.safe_load(path.read_text())
        content["model"] |= {"client": network, **changes}
        path.write_text(yaml.safe_dump(content))
    return folder / "bundles"


def table(folder: Path) -> Path:
    path = folder / "table.csv"
    path.write_text("x,y\n1,2\n3,4\n5,7\n")
    return path


def started(folder: Path, bundle: Bundle) -> None:
    """As mtcd party does before it calls anybody; then its network is made."""
    participant = make_participant(bundle, {"data": table(folder), "columns": ["x", "y"]})
    participant.facts(range(3))


def refused(folder: Path, network: str, *words: str, given: Any = (), **changes: Any) -> None:
    with pytest.raises(MtcdError) as told:
        started(folder, read_bundle(bundles(folder, network, **changes) / "a", given))
    for word in words:
        assert word in str(told.value), str(told.value)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# What a bundle may not do


@pytest.mark.parametrize("key", ["client", "fusion"])
def test_a_bundle_that_names_an_installed_function_is_refused_and_nothing_runs(
    key: str, tmp_path: Path
) -> None:
    proof = tmp_path / "proof"
    settings = {"args": [sys.executable, "-c", f"open({str(proof)!r}, 'w')"]}
    model = {key: "subprocess:check_output", f"{key}_settings": settings}
    refused(tmp_path, "mlp", "subprocess:check_output", "installed", "--code mynets.py", **model)
    assert not proof.exists()


def test_a_hostile_bundle_runs_nothing_in_a_real_process(tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    settings = {"args": [sys.executable, "-c", f"open({str(proof)!r}, 'w')"]}
    made = bundles(tmp_path, "subprocess:check_output", client_settings=settings)
    for words in (
        ["party", "a", "--data", table(tmp_path)],
        ["predict", "a", "--data", table(tmp_path)],
    ):
        asked = [words[0], made / words[1], *words[2:]]
        done = subprocess.run(
            [sys.executable, "-m", "mtcd", *map(str, asked)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=120,
        )
        assert done.returncode == 2, done.stderr
        assert "subprocess:check_output" in done.stderr
        assert "Traceback" not in done.stderr
    assert not proof.exists()


@pytest.mark.parametrize(
    "name", ["torch.nn:Linear", "mtcd.cli.app:main", "numpy:load", "os:system", "os.path:join"]
)
def test_administrators_are_told_that_installed_names_do_not_work(
    name: str, tmp_path: Path
) -> None:
    with pytest.raises(MtcdError, match="never runs by name"):
        read_federation(written(tmp_path, **SPLIT, model={"kind": "split", "client": name}))


@pytest.mark.parametrize(
    "name", ["../x:make", "a/b:make", "nets:Net.x", "nets:__class__", ":make", "nets:", "n:a:b"]
)
def test_names_that_are_more_than_names_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(MtcdError, match="module:function"):
        read_federation(written(tmp_path, **SPLIT, model={"kind": "split", "client": name}))


def test_a_file_that_says_where_code_is_is_refused(tmp_path: Path) -> None:
    model = {"kind": "split", "client": "nets:make", "code": "../../elsewhere"}
    with pytest.raises(MtcdError, match="model.code"):
        read_federation(written(tmp_path, **SPLIT, model=model))
    refused(tmp_path, "nets:make", "model.code", code="/")


def test_modules_beside_the_bundle_or_in_the_current_folder_are_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    made = bundles(tmp_path, "lying_about:make")
    for folder in (tmp_path, made / "a"):
        (folder / "lying_about.py").write_text("raise SystemExit('this ran')")
    with pytest.raises(MtcdError, match="--code lying_about.py"):
        started(tmp_path, read_bundle(made / "a"))


# Code that the party names itself


@pytest.mark.parametrize("function", ["make", "Net"])
def test_code_named_on_the_command_line_is_used_and_its_hash_is_told(
    function: str, tmp_path: Path
) -> None:
    (tmp_path / "nets.py").write_text(NETS)
    bundle = read_bundle(bundles(tmp_path, f"nets:{function}") / "a", [tmp_path / "nets.py"])
    started(tmp_path, bundle)
    assert any(sha256(tmp_path / "nets.py") in note and "nets.py" in note for note in bundle.notes)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("check_output", "only imported there, from subprocess"),
        ("Linear", "only imported there, from torch"),
        ("number", "not a function"),
        ("partial", "not a function"),
        ("_hidden", "module:function"),
        ("absent", "has no function"),
        ("nn", "not a function"),
    ],
)
def test_only_what_the_file_itself_defines_is_used(
    function: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "nets.py").write_text(NETS)
    refused(tmp_path, f"nets:{function}", said, given=[tmp_path / "nets.py"])


def test_packages_and_files_that_import_each_other_work(tmp_path: Path) -> None:
    package = tmp_path / "pack"
    (package / "deep").mkdir(parents=True)
    (package / "__init__.py").write_text("from .deep.layer import wide\n")
    (package / "deep" / "__init__.py").write_text("")
    (package / "deep" / "layer.py").write_text(
        "wide = 3\ndef make(shape): return __import__('other').make(shape, wide)\n"
    )
    (tmp_path / "other.py").write_text(
        "from torch import nn\ndef make(shape, wide): return nn.Linear(*shape, wide)\n"
    )
    made = bundles(tmp_path, "pack.deep.layer:make")
    bundle = read_bundle(made / "a", [package, tmp_path / "other.py"])
    participant = make_participant(bundle, {"data": table(tmp_path), "columns": ["x", "y"]})
    assert json.loads(participant.facts(range(3))) == 3
    with pytest.raises(MtcdError, match="No module named 'other'"):
        started(tmp_path, read_bundle(made / "a", [package]))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("raise SystemExit(0)", "SystemExit"),
        ("def make(:", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_code_that_cannot_be_loaded_is_told_in_words(
    content: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "nets.py").write_text(content)
    refused(tmp_path, "nets:make", "nets.py cannot be loaded", said, given=[tmp_path / "nets.py"])


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (["gone.py"], "cannot be read"),
        (["nets.txt"], "Python file"),
        (["."], "Python file"),
        (["nets.py"] * 2, "twice"),
    ],
)
def test_wrong_files_are_told_in_words(paths: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text(NETS)
    refused(tmp_path, "nets:make", said, given=[tmp_path / path for path in paths])


def test_a_file_that_is_called_as_an_installed_package_is_refused(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text(NETS)
    refused(tmp_path, "nets:make", "rename your file", given=[tmp_path / "torch.py"])
    import torch

    assert torch.nn.Linear


def test_code_where_none_is_named_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text(NETS)
    refused(tmp_path, "mlp", "leave --code", given=[tmp_path / "nets.py"])


def test_the_server_needs_no_code_of_the_parties(tmp_path: Path) -> None:
    make_participant(read_bundle(bundles(tmp_path, "nets:make") / "server"), {})


# Code in the bundle


def with_code(folder: Path, **files: str) -> Path:
    made = bundles(folder, "nets:make")
    (made / "a" / "code").mkdir()
    for name, content in files.items():
        (made / "a" / "code" / f"{name}.py").write_text(content)
    return made / "a"


def test_code_in_the_bundle_runs_only_when_its_hash_was_agreed_to(tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    bundle = with_code(tmp_path, nets=f"open({str(proof)!r}, 'w').close()\n" + NETS)
    digest = sha256(bundle / "code" / "nets.py")
    with pytest.raises(MtcdError, match=f"--agree-code {digest}"):
        started(tmp_path, read_bundle(bundle))
    assert not proof.exists()
    started(tmp_path, read_bundle(bundle, (), [digest]))
    assert proof.exists()


def test_code_that_was_changed_after_it_was_agreed_to_does_not_run(tmp_path: Path) -> None:
    bundle = with_code(tmp_path, nets=NETS)
    digest = sha256(bundle / "code" / "nets.py")
    (bundle / "code" / "nets.py").write_text(NETS + "\nraise SystemExit('this ran')")
    with pytest.raises(MtcdError, match="not what you agreed to"):
        read_bundle(bundle, (), [digest])
    for wrong in ("abc", digest[:32], "x" * 64):
        with pytest.raises(MtcdError, match="whole sha256"):
            read_bundle(bundle, (), [wrong])


def test_a_second_file_in_the_bundle_needs_consent_of_its_own(tmp_path: Path) -> None:
    bundle = with_code(
        tmp_path, nets="from evil import make\n" + NETS, evil="raise SystemExit('this ran')"
    )
    nets, evil = (sha256(bundle / "code" / f"{name}.py") for name in ("nets", "evil"))
    with pytest.raises(MtcdError, match=f"--agree-code {evil}"):
        started(tmp_path, read_bundle(bundle, (), [nets]))


def test_bytecode_in_the_bundle_is_not_run_in_the_place_of_the_source(tmp_path: Path) -> None:
    bundle = with_code(tmp_path, nets="raise SystemExit('this ran')".ljust(len(NETS.encode())))
    source = bundle / "code" / "nets.py"
    py_compile.compile(str(source))
    times = source.stat()
    # of the same size and time: Python's own import would now run the cache
    source.write_text(NETS)
    os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
    started(tmp_path, read_bundle(bundle, (), [sha256(source)]))


def test_own_files_go_before_those_of_the_bundle(tmp_path: Path) -> None:
    bundle = with_code(tmp_path, nets="raise SystemExit('this ran')")
    (tmp_path / "nets.py").write_text(NETS)
    started(tmp_path, read_bundle(bundle, [tmp_path / "nets.py"]))


def test_two_parties_in_one_process_each_have_their_own_code_of_one_name(tmp_path: Path) -> None:
    sources = [
        SourceFile("samenets", tmp_path / "samenets.py", f"def make(): return {k}".encode())
        for k in range(2)
    ]
    codes = [OwnCode([source]) for source in sources]
    for k in (0, 1, 0):
        assert codes[k].load("samenets:make", "here")() == k


def test_files_that_cannot_be_imported_are_left_out(tmp_path: Path) -> None:
    bundle = with_code(tmp_path, nets=NETS)
    for name in ("code/no package/x.py", "code/plain/x.py", "code/two-words.py"):
        (bundle / name).parent.mkdir(exist_ok=True)
        (bundle / name).write_text("raise SystemExit('this ran')")
    config = read_bundle(bundle).config
    assert [source.module for source in read_code(config, bundle).withheld] == ["nets"]


# The fusion module, which all must have alike

HEAD = "from torch import nn\ndef head(width, outputs): return nn.Linear(width, outputs)\n"


def test_a_fusion_module_from_another_file_is_refused_before_training(tmp_path: Path) -> None:
    made = bundles(tmp_path, "mlp", fusion="heads:head")
    (tmp_path / "other").mkdir()
    for folder, content in ((tmp_path, HEAD), (tmp_path / "other", HEAD + "# changed\n")):
        (folder / "heads.py").write_text(content)
    labelled = tmp_path / "labelled.csv"
    labelled.write_text("x,y,label\n1,2,0\n3,4,1\n5,7,0\n")
    holder = make_participant(
        read_bundle(made / "b", [tmp_path / "heads.py"]), {"data": labelled, "label": "label"}
    )
    told, labels = holder.resolve(range(3), dict.fromkeys("abc", b"16"))
    agreed = Agreed("run1", told, labels, b"")
    given = {"data": table(tmp_path)}
    make_participant(read_bundle(made / "a", [tmp_path / "heads.py"]), given).role(
        agreed, Log("a", None)
    )
    other = make_participant(read_bundle(made / "a", [tmp_path / "other" / "heads.py"]), given)
    with pytest.raises(MtcdError) as refusal:
        other.role(agreed, Log("a", None))
    for path in (tmp_path / "heads.py", tmp_path / "other" / "heads.py"):
        assert sha256(path) in str(refusal.value)
    server = make_participant(read_bundle(made / "server", [tmp_path / "other" / "heads.py"]), {})
    with pytest.raises(MtcdError, match="the same for all"):
        server.role(agreed, Log("server", None))


def test_bundles_and_administrators_are_told_whose_code_runs(tmp_path: Path) -> None:
    model = {"kind": "split", "client": "nets:make", "fusion": "heads:head"}
    _, notes = init_federation(written(tmp_path, **SPLIT, model=model), tmp_path / "bundles", 90)
    assert ["--code nets.py" in note for note in notes] == [True, False]
    assert "--code heads.py" in notes[1]
    told = {
        name: " ".join((tmp_path / "bundles" / name / "README.txt").read_text().split())
        for name in ("a", "server")
    }
    assert "--code nets.py --code heads.py" in told["a"]
    assert "--agree-code" in told["a"]
    assert "nets.py" not in told["server"]
    assert "--code heads.py" in told["server"]
    assert "--code" not in (tmp_path / "bundles" / "operator" / "README.txt").read_text()


def test_the_files_of_a_package_are_told_in_the_order_of_their_names(tmp_path: Path) -> None:
    """A folder gives them in any order."""
    names = [f"m{number}" for number in range(30)]
    for name in names:
        (tmp_path / f"{name}.py").write_text("")
    assert [source.module for source in _below(tmp_path, "")] == sorted(names)
