"""Dockerfile and compose file: everything that they name exists, and every command line is one of
mtcd.

`make deploy-test` runs them.
"""

import fnmatch
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from command_lines import parsed
from containers import (
    DEPLOY,
    ROOT,
    Service,
    compose,
    health_command,
    instructions,
    services,
    stages,
)

FEDERATION = yaml.safe_load((DEPLOY / "demo" / "federation.yaml").read_text())
PLACES = {**FEDERATION["parties"], "server": FEDERATION["server"]}
SERVICES = services()
MEMBERS = [name for name in SERVICES if name in PLACES]
KEYS = {  # of the compose specification, those that are used
    "image", "build", "read_only", "tmpfs", "cap_drop", "security_opt", "networks", "depends_on", "restart",
    "entrypoint", "command", "healthcheck", "volumes",
}  # fmt: skip


@pytest.mark.parametrize("service", SERVICES.values(), ids=lambda service: service.name)
def test_what_a_service_names_exists(service: Service) -> None:
    whole = compose()
    assert set(service.settings) <= KEYS
    assert {mount.source for mount in service.mounts if mount.volume} <= set(whole["volumes"])
    assert set(service.settings["networks"]) <= set(whole["networks"])
    assert set(service.settings.get("depends_on", ())) <= set(SERVICES) - {service.name}
    for mount in service.mounts:
        assert mount.volume or ((DEPLOY / mount.source).is_file() and mount.read_only)
    context = DEPLOY / service.settings["build"]["context"]
    assert (context / service.settings["build"]["dockerfile"]).samefile(DEPLOY / "Dockerfile")


@pytest.mark.parametrize("service", SERVICES.values(), ids=lambda service: service.name)
def test_a_service_may_do_little(service: Service) -> None:
    assert service.settings["read_only"] is True
    assert service.settings["cap_drop"] == ["ALL"]
    assert service.settings["security_opt"] == ["no-new-privileges:true"]
    assert "ports" not in service.settings  # nothing is published on the host


@pytest.mark.parametrize("service", SERVICES.values(), ids=lambda service: service.name)
def test_every_command_line_is_one_of_mtcd_and_finds_its_files(service: Service) -> None:
    lines = service.command_lines()
    assert lines
    for line in lines:
        assert line[0] == "mtcd"
        name, given = parsed(line[1:])
        inside = [mount.target for mount in service.mounts]
        for path in (one for one in given.values() if isinstance(one, Path)):
            assert any(path.is_relative_to(target) for target in inside), path
        assert name == {"bundles": "federation init", "server": "server"}.get(service.name, "party")


def test_the_services_are_the_members_of_the_federation() -> None:
    assert set(MEMBERS) == set(PLACES) == set(SERVICES) - {"bundles"}
    (init,) = SERVICES["bundles"].command_lines()
    out = parsed(init[1:])[1]["out"]
    (exposed,) = [set(one.text.split()) for one in stages()[""] if one.word == "EXPOSE"]
    healthy = re.search(r":(\d+)/healthz", health_command()[-1])
    for name in MEMBERS:
        host, _, port = PLACES[name]["address"].partition(":")
        assert host == name
        assert PLACES[name]["listen"] == f"0.0.0.0:{port}"
        given = parsed(SERVICES[name].arguments[1:])[1]
        metrics = given["metrics"].rpartition(":")[2]
        assert metrics == healthy[1]
        assert {port, metrics} == exposed
        (bundle,) = [
            mount for mount in SERVICES[name].mounts if mount.target == str(given["bundle"])
        ]
        (bundles,) = [mount for mount in SERVICES["bundles"].mounts if mount.volume]
        assert Path(bundles.target) / bundle.subpath == out / name  # its own bundle, and no other
        assert SERVICES[name].settings["depends_on"] == {
            "bundles": {"condition": "service_completed_successfully"}
        }


def test_the_builder_sees_what_is_copied_and_nothing_else() -> None:
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    kept = {line[1:] for line in lines if line.startswith("!")}
    copied = {
        source
        for one in stages()["build"]
        if one.word == "COPY"
        for source in one.text.split()[:-1]
    }
    assert "*" in lines
    assert copied == kept
    assert all((ROOT / name).exists() for name in kept)
    assert [
        pattern
        for pattern in lines
        if fnmatch.fnmatch("src/mtcd/__pycache__", pattern) and pattern != "*"
    ]


def test_the_last_stage_runs_as_nobody_special() -> None:
    last = stages()[""]
    assert [one.text for one in last if one.word == "USER"] == ["10001:10001"]
    assert [one.word for one in last].index("USER") > max(
        i for i, one in enumerate(last) if one.word in ("RUN", "COPY")
    )
    assert not [one for one in last if one.word == "RUN" and re.search("pip|apt|gcc", one.text)]


def test_the_command_on_the_page_fits_the_image() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    (run,) = re.findall(r"^docker run (.*?)\n```", page, re.MULTILINE | re.DOTALL)
    options, _, arguments = run.replace("\\\n", " ").partition(" mtcd ")
    name, given = parsed(arguments.split())
    targets = [mount.split(":")[1] for mount in re.findall(r'-v "([^"]*)"', options)]
    assert (name, [str(given["bundle"]), str(given["data"])]) == ("party", targets)
    published = {one.rpartition(":")[2] for one in re.findall(r"-p (\S+)", options)}
    (exposed,) = [set(one.text.split()) for one in stages()[""] if one.word == "EXPOSE"]
    assert published == exposed
    assert [one.text for one in stages()[""] if one.word == "VOLUME"] == [str(given["bundle"])]


def test_the_extras_of_the_image_are_a_build_argument() -> None:
    lines = [one for one in instructions() if one.word == "ARG" and one.text.startswith("EXTRAS")]
    ((name, _, default),) = {tuple(one.text.partition("=")) for one in lines}
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert name == "EXTRAS"
    assert {"federation", "metrics"} <= set(default.split(",")) <= set(known)
    (install,) = [
        one.text for one in stages()["build"] if one.word == "RUN" and "--constraint" in one.text
    ]
    assert install.endswith('[$EXTRAS]"')
    for stage in ("base", "build"):  # an argument is unknown in a stage that does not name it
        assert any(one.word == "ARG" and one.text.startswith("EXTRAS") for one in stages()[stage])
    for service in SERVICES.values():
        assert service.settings["build"]["args"] == {"EXTRAS": f"${{EXTRAS:-{default}}}"}
