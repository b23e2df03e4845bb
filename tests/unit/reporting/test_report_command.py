"""mtcd report, and mtcd train --live, as they are called on the command line."""

import json
import re
import sys
import threading
import urllib.request
import webbrowser
from pathlib import Path
from typing import Any

import pytest

import mtcd
from commands import run
from mtcd.reporting.report import unique_names
from mtcd.reporting.serve import Serving, serve
from problems import make_data
from report_contract import Report, checked
from waiting import until

RIDGE = mtcd.Glm("ridge", alpha=1.0)
CONFIG = """
data: {synthetic: ridge, samples: 30, features: 12, clients: 4}
model: {kind: ridge, alpha: 1}
network: {kind: cycle}
method: {kind: mtcd, tokens: 2, hops: 3, stepsize: 1e-3}
stop: {iterations: 30}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    addresses: list[str] = []
    monkeypatch.setattr(webbrowser, "open", addresses.append)
    return addresses


def save(folder: Path) -> None:
    data = make_data(RIDGE, 12, [2, 1, 2, 3], seed=1)
    mtcd.train(data, RIDGE, "path", mtcd.MTCD(2, 3, stepsize=1e-3), mtcd.Stop(iterations=6)).save(
        folder
    )


def inside(page: Path) -> Report:
    found = re.search(
        r'<script type="application/json" id="report">(.*?)</script>', page.read_text(), re.DOTALL
    )
    return checked(json.loads(found[1]))


def test_one_page_about_several_runs(
    folder: Path, opened: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("train", "small.yaml", "--out", "a", "--quiet") == 0
    for name in ("deep/a", "b"):
        save(folder / name)
    assert run("report", "a", "deep/a", "b", "a") == 0
    assert "report.html" in capsys.readouterr().out
    report = inside(folder / "report.html")
    assert report.mode == "file"
    here = folder.name
    assert [one.name for one in report.runs] == [f"{here}/a", "deep/a", "b", f"{here}/a (2)"]
    assert report.runs[0].yaml == (folder / "a" / "config.yaml").read_text()
    assert opened == []
    assert run("report", "b", "--open") == 0  # a report may be replaced
    assert [one.name for one in inside(folder / "report.html").runs] == ["b"]
    assert opened == [(folder / "report.html").as_uri()]


def test_from_python_runs_and_folders_make_the_same_page(folder: Path) -> None:
    data = make_data(RIDGE, 12, [2, 1, 2, 3], seed=1)
    run = mtcd.train(data, RIDGE, "path", mtcd.MTCD(2, 3, stepsize=1e-3), mtcd.Stop(iterations=6))
    run.save(folder / "a")
    diverged = mtcd.train(
        data, RIDGE, "path", mtcd.MTCD(2, 3, stepsize=1e9), mtcd.Stop(iterations=60)
    )
    assert diverged.status == "diverged"

    page = mtcd.report([run, folder / "a", str(folder / "a"), run, diverged], folder / "page.html")
    assert page == folder / "page.html"
    of_run, of_folder, again, *_, last = inside(page).runs
    names = [run.method, "a", "a (2)", f"{run.method} (2)"]
    assert [one.name for one in inside(page).runs][:4] == names
    assert of_run.model_copy(update={"name": "a"}) == of_folder
    assert again.coefficients == of_folder.coefficients != []
    assert last.status == "diverged"
    assert last.coefficients == []

    mtcd.report({"mine": run}, page)
    assert [one.name for one in inside(page).runs] == ["mine"]
    mtcd.report(run, page)
    assert [one.name for one in inside(page).runs] == [run.method]
    with pytest.raises(mtcd.MtcdError, match="at least one run"):
        mtcd.report([], page)
    with pytest.raises(mtcd.MtcdError, match="is not a run folder"):
        mtcd.report([run, folder], page)
    assert [one.name for one in inside(page).runs] == [run.method]


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (["/x/a/run", "/y/a/run", "/x/b/run"], ["x/a/run", "y/a/run", "b/run"]),
        (["/x/run", "/y/x/run"], ["/x/run", "y/x/run"]),
        (["/z", "/z", "/x/../z"], ["z", "z (2)", "z (3)"]),
        (["/"], [""]),
    ],
)
def test_names_are_told_apart(folders: list[str], names: list[str]) -> None:
    assert unique_names([Path(folder) for folder in folders]) == names


def test_what_cannot_be_reported_says_so_and_leaves_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(folder / "a")
    (folder / "mine.html").write_text("<html>my own page")
    (folder / "empty").mkdir()
    before = sorted(folder.rglob("*"))
    for arguments, words in (
        (("empty",), "is not a run folder"),
        (("a", "nowhere"), "nowhere is not a run folder"),
        (("a", "--out", "mine.html"), "is no report"),
        (("a", "--out", "empty"), "cannot be written"),
        (("a", "--out", "nowhere/x.html"), "a folder that exists"),
    ):
        assert run("report", *arguments) == 2
        assert words in " ".join(capsys.readouterr().err.split())
    (folder / "a" / "trace.npz").write_bytes(b"x")
    assert run("report", "a") == 2
    assert "not a complete run folder" in " ".join(capsys.readouterr().err.split())
    assert sorted(folder.rglob("*")) == before
    assert (folder / "mine.html").read_text() == "<html>my own page"


def test_without_bokeh_it_says_what_to_install(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bokeh", None)
    save(folder / "a")
    for arguments in (("report", "a"), ("train", "small.yaml", "--live", "--out", "b")):
        assert run(*arguments) == 2
        assert "pip install '.[report]'" in " ".join(capsys.readouterr().err.split())
    assert not (folder / "report.html").exists()
    assert not (folder / "b").exists()


class Viewer:
    """Somebody who asks for the document all the time, as soon as the address is known."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reports: list[Report] = []
        self.pages: list[str] = []
        self.url = ""
        self.done = threading.Event()
        monkeypatch.setattr(webbrowser, "open", self.open)

    def open(self, url: str) -> None:
        self.url = url
        self.pages.append(urllib.request.urlopen(url, timeout=60).read().decode())
        threading.Thread(target=self.ask, daemon=True).start()

    def ask(self) -> None:
        try:
            while True:
                answer = urllib.request.urlopen(f"{self.url}data", timeout=60)
                self.reports.append(checked(json.loads(answer.read())))
        except OSError:  # the program has ended
            self.done.set()


def test_a_training_is_watched_to_its_end(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    viewer = Viewer(monkeypatch)
    assert run("train", "small.yaml", "--live", "--open", "--quiet", "--out", "a") == 0
    assert viewer.done.wait(60)
    assert viewer.url.startswith("http://127.0.0.1:")
    assert viewer.url in capsys.readouterr().err
    assert viewer.pages[0].startswith("<!doctype html>")
    last = viewer.reports[-1]
    assert last.mode == "live"
    assert [one.status for one in last.runs] == ["iterations"]
    assert run("report", "a") == 0
    (saved,) = inside(folder / "report.html").runs
    (shown,) = last.runs
    assert shown.yaml == saved.yaml
    assert shown.trace == saved.trace
    assert shown.clients == saved.clients
    assert shown.links == saved.links
    assert shown.coefficients == saved.coefficients


def test_elsewhere_the_address_holds_a_secret(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run("train", "small.yaml", "--live", "--live-address", "0.0.0.0:0", "--quiet", "--out", "a")
        == 0
    )
    said = capsys.readouterr().err
    assert re.search(r"http://[^/ ]+:\d+/[\w-]{32}/", said)
    assert "not encrypted" in said


def test_the_page_stays_if_asked_to(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statuses: list[str] = []

    def wait(seconds: float) -> None:
        (serving,) = served
        statuses.append(
            checked(json.loads(urllib.request.urlopen(f"{serving.url}data").read())).runs[0].status
        )
        raise KeyboardInterrupt

    served: list[Serving] = []
    begin = Serving.__enter__

    def entered(serving: Serving) -> Serving:
        served.append(serving)
        return begin(serving)

    monkeypatch.setattr(Serving, "__enter__", entered)
    monkeypatch.setattr("mtcd.reporting.command_live.time.sleep", wait)
    assert run("train", "small.yaml", "--live", "--stay", "--quiet", "--out", "a") == 0
    assert statuses == ["iterations"]
    assert (folder / "a" / "run.json").exists()


@pytest.mark.parametrize("option", [("--live-address", "127.0.0.1:0"), ("--open",), ("--stay",)])
def test_options_of_the_page_need_it(
    folder: Path, option: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("train", "small.yaml", *option) == 2
    assert "--live" in capsys.readouterr().err
    assert not (folder / "runs").exists()


def test_an_address_that_cannot_be_used_ends_it_before_the_training(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("train", "small.yaml", "--live", "--live-address", "nonsense", "--out", "a") == 2
    assert "HOST:PORT" in capsys.readouterr().err
    assert not (folder / "a").exists()


def test_finishing_waits_for_those_who_watch_only() -> None:
    documents: list[dict[str, Any]] = [{"n": 1}]
    seen: list[int] = []
    with serve("127.0.0.1:0", lambda: documents[-1], lambda report: "") as serving:

        def ask() -> None:
            seen.append(json.loads(urllib.request.urlopen(f"{serving.url}data").read())["n"])

        ask()
        documents.append({"n": 2})
        ending = threading.Thread(target=serving.finish, args=(300.0,))
        ending.start()
        assert until(lambda: serving._latest is None)
        assert ending.is_alive()
        ask()
        ending.join(60)
        assert not ending.is_alive()
    assert seen == [1, 2]
    with serve("127.0.0.1:0", lambda: documents[-1], lambda report: "") as serving:
        serving.finish(300.0)  # nobody has asked: it does not wait


def test_the_error_of_a_training_is_that_of_the_training(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "small.yaml").write_text(
        CONFIG.replace("tokens: 2", "tokens: 2, clusters: [[0], [1]]")
    )
    assert run("train", "small.yaml", "--live", "--quiet", "--out", "a") == 2
    assert "cluster" in capsys.readouterr().err
