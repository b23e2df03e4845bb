"""mtcd federation, from the command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bundles_on_disk import found
from federation_commands import run
from federations import written
from mtcd.core import features


def test_found_revoke_renew_and_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, bundles = written(tmp_path), tmp_path / "bundles"
    code, out, _ = run(capsys, "init", path, "--out", bundles, "--days", 40)
    assert code == 0
    assert "5 bundles" in out
    assert "PRIVATE" not in out
    code, out, _ = run(capsys, "revoke", bundles, "c")
    assert code == 0
    assert "c is revoked" in out
    assert "was revoked before" in run(capsys, "revoke", bundles, "c")[1]
    states = {row["name"]: row for row in json.loads(run(capsys, "list", bundles, "--json")[1])}
    assert [row["state"] for row in states.values()] == [
        "valid",
        "valid",
        "revoked",
        "valid",
        "valid",
    ]
    assert states["c"]["address"] == "c.example.org:7001"
    assert states["operator"]["address"] is None
    assert run(capsys, "renew", bundles, "c", "--days", 10)[0] == 0
    code, out, _ = run(capsys, "list", bundles)
    assert "revoked" not in out
    for word in ("server", "127.0.0.1:7002", "39", "9"):
        assert word in out
    code, out, _ = run(capsys, "move", bundles, "a", "10.0.0.9:7001", "--listen", "0.0.0.0:7001")
    assert code == 0
    assert "a is now at 10.0.0.9:7001 and listens at 0.0.0.0:7001" in out
    assert "new key and certificate" in out
    assert "certificate stays" in run(capsys, "move", bundles, "a", "10.0.0.9:7002")[1]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["init", "FILE", "--out", "BUNDLES"], "not an empty folder"),
        (["init", "FILE", "--out", "BUNDLES/new", "--days", "0"], "lasts 1 to"),
        (["init", "BUNDLES", "--out", "BUNDLES/new"], "cannot be read"),
        (["renew", "BUNDLES", "d"], "No party is called 'd'"),
        (["revoke", "BUNDLES", "ü"], "No party is called"),
        (["move", "BUNDLES", "a", "nowhere"], "host:port"),
        (["move", "BUNDLES", "operator", "10.0.0.9:7001"], "has no address"),
        (["list", "BUNDLES/a"], "is not the authority"),
    ],
)
def test_mistakes_are_told_without_a_traceback(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, bundles = written(tmp_path), tmp_path / "bundles"
    run(capsys, "init", path, "--out", bundles)
    before = sorted(bundles.rglob("*"))
    given = [word.replace("FILE", str(path)).replace("BUNDLES", str(bundles)) for word in words]
    code, _, err = run(capsys, *given)
    assert code == 2
    assert told in err
    assert sorted(bundles.rglob("*")) == before


def test_a_missing_package_is_told_with_what_to_install(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['cryptography'] = None\n"
        f"from mtcd.cli.app import main; main(['federation', 'list', {str(tmp_path)!r}])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 2
    assert "pip install '.[federation]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_missing_psi_is_told_when_ids_are_aligned() -> None:
    script = (
        "import sys; sys.modules['private_set_intersection'] = sys.modules['google'] = None\n"
        "from mtcd.core.errors import NotInstalledError; from mtcd.federation.alignment import "
        "asker\n"
        "try: asker('psi', ['a'])\nexcept NotInstalledError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "need private_set_intersection" in done.stdout
    assert "pip install '.[federation]'" in done.stdout


def test_help_of_other_commands_needs_no_federation() -> None:
    script = (
        "import sys, mtcd.cli.app\n"
        "print([m for m in ('cryptography', 'ssl', 'pydantic', 'yaml', 'numpy') if m in "
        "sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_status_imports_neither_methods_nor_tables(tmp_path: Path) -> None:
    """It answers within a second, most of which would be imports; and the operator needs no plugin
    of a method."""
    script = (
        "import sys; from mtcd.cli.app import main\n"
        f"try: main(['federation', 'status', {str(found(tmp_path))!r}])\n"
        "except SystemExit as end: print(end.code)\n"
        "heavy = ('numpy', 'scipy', 'networkx', 'polars', 'matplotlib', 'mtcd.methods.method', "
        "'mtcd.config.schema')\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-2:] == ["1", "[]"]  # 1: no party answers


def test_without_a_dashboard_the_command_names_another(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dashboard is a feature, which an installation may lack."""
    monkeypatch.setattr(features, "parts", lambda group: {})
    code, _, err = run(capsys, "dashboard")
    assert code == 2
    assert "has no dashboard" in err
    assert "mtcd federation status" in err
