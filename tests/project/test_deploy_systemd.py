"""The systemd unit: checked by systemd's own programs, its command line and its exit codes by
ours."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from command_lines import parsed
from mtcd.federation.commands.exit_codes import EXIT_CODES
from project import ROOT

UNITS = ROOT / "deploy" / "systemd"
UNIT = UNITS / "mtcd-party@.service"
INSTANCE = "mtcd-party@clinic_a.service"
SYSTEMS = Path("/usr/lib/systemd/system")
MOST_EXPOSED = 15  # tenths of systemd's exposure level, of 100

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None or not SYSTEMS.is_dir(), reason="needs systemd-analyze"
)


def values(key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", UNIT.read_text(), re.MULTILINE)


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """The files of a host on which mtcd is installed."""
    shutil.copytree(SYSTEMS, tmp_path / "usr/lib/systemd/system", symlinks=True)
    program = tmp_path / "opt/mtcd/bin/mtcd"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "etc/systemd/system").mkdir(parents=True)
    shutil.copy(UNIT, tmp_path / "etc/systemd/system")
    return tmp_path


def analyze(host: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = ["systemd-analyze", f"--root={host}", "--no-pager", *words, INSTANCE]
    return subprocess.run(command, capture_output=True, text=True)


@needs_systemd
def test_systemd_accepts_the_unit(host: Path) -> None:
    done = analyze(host, "--man=no", "verify")
    ours = [line for line in done.stderr.splitlines() if "mtcd" in line]
    assert (done.returncode, ours) == (0, [])
    unit = host / "etc/systemd/system" / UNIT.name
    unit.write_text(unit.read_text().replace("ProtectSystem=strict", "ProtectSystme=strict"))
    assert "'ProtectSystme'" in analyze(host, "--man=no", "verify").stderr


@needs_systemd
def test_the_service_may_do_little(host: Path) -> None:
    done = analyze(host, "security", "--offline=true", f"--threshold={MOST_EXPOSED}")
    assert done.returncode == 0, done.stdout[-300:]
    unit = host / "etc/systemd/system" / UNIT.name
    unit.write_text(
        re.sub(r"^(Capability|SystemCall)\w+=.*\n", "", unit.read_text(), flags=re.MULTILINE)
    )
    assert (
        analyze(host, "security", "--offline=true", f"--threshold={MOST_EXPOSED}").returncode != 0
    )


@pytest.mark.skipif(shutil.which("systemd-sysusers") is None, reason="needs systemd-sysusers")
def test_the_user_of_the_service_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    subprocess.run(
        ["systemd-sysusers", f"--root={tmp_path}", UNITS / "mtcd.sysusers.conf"],
        check=True,
        capture_output=True,
    )
    name, *_, home, shell = (tmp_path / "etc/passwd").read_text().strip().split(":")
    assert [name] == values("User")
    assert (home, shell.rpartition("/")[2]) == ("/var/lib/mtcd", "nologin")


@pytest.mark.parametrize("role", ["party", "server"])
def test_the_command_line_is_one_of_mtcd(role: str) -> None:
    text, (command,) = UNIT.read_text(), values("ExecStart")
    (options,) = re.findall(r'MTCD_OPTIONS="(.*)"', text)
    known = {"$MTCD_ROLE": role, "%S": "/var/lib", "%i": "clinic_a"}
    program, *words = command.replace(
        "$MTCD_OPTIONS", options if role == "party" else "--metrics 9100"
    ).split()
    for name, value in known.items():
        words = [word.replace(name, value) for word in words]
    assert program.endswith("/mtcd")
    name, given = parsed(words)
    assert (name, given["bundle"]) == (role, Path("/var/lib/mtcd/clinic_a"))
    assert given["bundle"] == Path("/var/lib") / values("StateDirectory")[0].replace(
        "%i", "clinic_a"
    )
    assert given["metrics"]


def test_every_exit_code_is_restarted_or_not_on_purpose() -> None:
    """On failure, but neither after the end nor where a restart gives the same error again."""
    (restart,), (stays,), (well,) = (
        values("Restart"),
        values("RestartPreventExitStatus"),
        values("SuccessExitStatus"),
    )
    assert restart == "on-failure"
    assert (
        {0, *map(int, f"{stays} {well}".split())}
        == set(EXIT_CODES["party"])
        == set(EXIT_CODES["server"])
    )
