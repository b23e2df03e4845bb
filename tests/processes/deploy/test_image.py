"""The image: its Dockerfile is followed line by line, and what comes out is used as a container
would."""

from __future__ import annotations

import subprocess
from pathlib import Path

from containers import default_entrypoint
from roots import Image

MOST_MEGABYTES = 700  # on top of the base image
NO_TOOLS = ("gcc", "cc", "make", "pip", "pip3")


def run(image: Image, *words: str, bundle: Path | None = None) -> subprocess.CompletedProcess[str]:
    """In a container with a read-only root."""
    mounts = {} if bundle is None else {"/bundle": bundle}
    command = image.root.command(words, image.environment, mounts, image.user, writable=False)
    return subprocess.run(command, capture_output=True, text=True)


def test_the_program_runs_on_a_read_only_root(image: Image) -> None:
    done = run(image, *default_entrypoint(), "--version")
    assert (done.returncode, done.stdout[:5]) == (0, "mtcd "), done.stderr
    helped = run(image, *default_entrypoint(), "party", "--help")
    assert (helped.returncode, "--metrics" in helped.stdout) == (0, True)


def test_it_is_nobody_special_and_writes_to_its_bundle_only(image: Image, tmp_path: Path) -> None:
    tmp_path.chmod(0o711)
    bundle = tmp_path / "bundle"
    bundle.mkdir(mode=0o700)
    assert (
        run(image, "touch", "/bundle/x", bundle=bundle).returncode != 0
    )  # it belongs to somebody else
    subprocess.run(["chown", image.user, bundle], check=True)
    assert run(image, "touch", "/bundle/x", bundle=bundle).returncode == 0
    assert (bundle / "x").exists()
    for place in ("/", "/opt/mtcd", "/usr", "/etc", "/var"):
        assert "Read-only file system" in run(image, "touch", f"{place}/x").stderr, place
    told = run(
        image, "grep", "-E", "Uid|CapBnd|CapEff|NoNewPrivs", "/proc/self/status"
    ).stdout.split()
    assert told[told.index("Uid:") + 1] == "10001"
    assert {told[told.index(name) + 1] for name in ("CapEff:", "CapBnd:")} == {"0" * 16}


def test_what_it_needs_is_there_and_no_more(image: Image) -> None:
    check = run(
        image, "/usr/local/bin/python", "-m", "pip", "--python", "/opt/mtcd/bin/python", "check"
    )
    assert check.returncode == 0, check.stdout
    for name in NO_TOOLS:
        assert not (image.root.path("/opt/mtcd/bin") / name).exists()
    assert run(image, "python", "-c", "import pip").returncode != 0
    assert not image.root.path("/src").exists()
    written = [path for path in image.root.path("/").rglob("*") if not path.is_symlink()]
    assert [path.name for path in written if path.stat().st_uid != 0] == ["bundle"]
    # set-user-id, or writable by all
    assert not [path for path in written if path.stat().st_mode & 0o6002]
    size = sum(path.stat().st_size for path in written if path.is_file())
    assert 10 < size / 1e6 < MOST_MEGABYTES


def test_without_the_extras_of_tests_a_party_says_what_is_wrong(image: Image) -> None:
    done = run(image, *default_entrypoint(), "party", "/bundle", "--metrics", "0.0.0.0:9100")
    assert (done.returncode, "party.yaml" in done.stderr) == (2, True), done.stderr
