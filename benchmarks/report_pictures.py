"""The pictures of the report page in the README: trains three methods, writes their report and
photographs it.

`python -m benchmarks.report_pictures [--out docs/images]` writes report.png and tokens.gif.
Chromium and `pip install '.[report,browser]'` are needed.
"""

from __future__ import annotations

import argparse
import base64
import csv
import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Page, sync_playwright

LINKS = """
Lisbon-Porto Lisbon-Seville Lisbon-Madrid Porto-Vigo Vigo-Madrid Madrid-Seville Madrid-Valencia
Valencia-Barcelona Madrid-Bilbao Bilbao-Bordeaux Barcelona-Toulouse Toulouse-Bordeaux Bordeaux-Paris Toulouse-Lyon
Lyon-Paris Paris-London Paris-Brussels London-Brussels Brussels-Amsterdam Lyon-Geneva Geneva-Milan Milan-Turin
Turin-Lyon Milan-Zurich Zurich-Munich Zurich-Geneva Munich-Vienna Munich-Prague Prague-Berlin Berlin-Hamburg
Hamburg-Amsterdam Vienna-Prague Milan-Florence Florence-Rome
"""
METHODS = {
    "three "
    "tokens": "{kind: mtcd, tokens: 3, hops: 16, local_updates: 10, walk: tour, combine: optimal}",
    "one token": "{kind: stcd, local_updates: 10}",
    "client-server": "{kind: svfl, local_updates: 10}",
}
CONFIG = """data: {{table: table.csv, label: y, clients: {{{clients}}}}}
model: {{kind: ridge, alpha: 10}}
network: {{edges: links.csv}}
method: {method}
stop: {{gap: 1.0e-4, iterations: 20000}}
costs: {{ratio: 20}}
"""
STEPS, FRAMES = 36, 3  # two roams with their syncs, three pictures of each hop
WIDE, HIGH = 900, 520


def write_table(folder: Path, cities: list[str]) -> dict[str, list[str]]:
    """Made-up measurements of each city's hospital, and links between neighbours; returns the
    columns by city."""
    rng = np.random.default_rng(0)
    kinds = ("age", "pressure", "glucose")
    columns = {city: [f"{city.lower()}_{kind}" for kind in kinds] for city in cities}
    names = [name for own in columns.values() for name in own]
    X = rng.standard_normal((300, len(names)))
    y = X @ (rng.standard_normal(len(names)) / 4) + 0.3 * rng.standard_normal(300)
    with (folder / "table.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["y", *names], *np.column_stack([y, X]).round(5).tolist()])
    links = [link.replace("-", ",") for link in LINKS.split()]
    (folder / "links.csv").write_text("\n".join(["source,target", *links]))
    return columns


def report(folder: Path) -> Path:
    """Train all methods by the command line, and write their report."""
    cities = list(dict.fromkeys(city for link in LINKS.split() for city in link.split("-")))
    columns = write_table(folder, cities)
    clients = ", ".join(f"{city}: [{', '.join(own)}]" for city, own in columns.items())
    for name, method in METHODS.items():
        (folder / "config.yaml").write_text(CONFIG.format(clients=clients, method=method))
        mtcd(folder, "train", "config.yaml", "--out", name, "--quiet")
    mtcd(folder, "report", *METHODS, "--out", "report.html")
    return folder / "report.html"


def mtcd(folder: Path, *words: str) -> None:
    """Run a command in the folder."""
    subprocess.run([sys.executable, "-m", "mtcd", *words], cwd=folder, check=True)


def photograph(page: Page, path: Path) -> None:
    """The upper part of the page, with tokens on their way."""
    page.evaluate("() => page.shown.player.go(45.55)")
    page.select_option("#curve-x", "cost")
    page.check("#log-x")
    page.evaluate(
        "() => page.shown.choose(page.shown.run.clients.findIndex(({ name }) => name === 'Bilbao'))"
    )
    page.mouse.move(2, 2)
    page.wait_for_timeout(500)
    below = page.evaluate("() => page.at('plot').getBoundingClientRect().bottom + scrollY")
    page.screenshot(
        path=path, clip={"x": 0, "y": 0, "width": 1280, "height": below + 8}, full_page=True
    )
    Image.open(path).convert("RGB").quantize(200, dither=Image.Dither.NONE).save(
        path, optimize=True
    )


def animate(page: Page, path: Path) -> None:
    """Tokens that leave the server, roam and come back, twice."""
    page.evaluate("() => page.shown.choose(null)")
    frames = [frame(page, step / FRAMES) for step in range(STEPS * FRAMES + 1)]
    palette = beside(frames[:: len(frames) // 8]).quantize(
        64, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
    )
    flat = [one.quantize(palette=palette, dither=Image.Dither.NONE) for one in frames]
    flat[0].save(path, save_all=True, append_images=flat[1:], duration=120, loop=0, optimize=True)


def frame(page: Page, time: float) -> Image.Image:
    """The network at a time, on white."""
    page.evaluate("time => page.shown.player.go(time)", time)
    address = page.evaluate("() => page.at('canvas').toDataURL('image/png')")
    drawn = Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))).convert("RGBA")
    paper = Image.new("RGBA", drawn.size, "white")
    return Image.alpha_composite(paper, drawn).convert("RGB")


def beside(frames: list[Image.Image]) -> Image.Image:
    """Some frames in one picture: all of them share its colours."""
    wide, high = frames[0].size
    whole = Image.new("RGB", (wide * len(frames), high))
    for i, one in enumerate(frames):
        whole.paste(one, (i * wide, 0))
    return whole


def main() -> None:
    """Make both pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        address = report(Path(place)).as_uri()
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(address)
        photograph(page, out / "report.png")
        page.set_viewport_size({"width": WIDE, "height": 1000})
        page.add_style_tag(content=f"canvas {{ height: {HIGH}px !important; }}")
        page.wait_for_timeout(300)
        animate(page, out / "tokens.gif")
        browser.close()
    for name in ("report.png", "tokens.gif"):
        print(f"{name}: {(out / name).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
