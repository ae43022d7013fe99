"""Every page of a site in headless Chromium: `python -m tests.site.browser FOLDER SHOTS [PAGE...]` of the site's HTML.

Looks at the console, at what is asked of other hosts, at axe's rules in both colour schemes, and at the width of a phone; keeps
pictures of some pages, and of a report of `opc test`. With pages, such as `gallery/gelu/`, looks at these alone. Chromium is
looked for on PATH, since a package index has none. Exit code 1 when something is found.
"""

from __future__ import annotations

import functools
import shutil
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, sync_playwright

from opc.testing.html import write_html
from opc.testing.results import Column, Report, Result, Status

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SIZES = {"desk": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}
# Pages of which pictures are kept: the first one, the gallery, and ops of different kinds.
OPS = ("attention", "conv2d", "embedding", "gelu", "leaky_relu", "pixel_shuffle", "softmax")
KEPT = ("", "gallery/", *(f"gallery/{op}/" for op in OPS), "benchmarks/", "api/opc/", "docs/language/", "report/")
# The rules of WCAG 2.1, levels A and AA. Of these, contrast alone differs between the schemes of a page, and what must be
# scrolled between sizes.
AXE = {
    "light": {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}, "resultTypes": ["violations"]},
    "dark": {"runOnly": {"type": "rule", "values": ["color-contrast"]}, "resultTypes": ["violations"]},
    "phone": {"runOnly": {"type": "rule", "values": ["scrollable-region-focusable"]}, "resultTypes": ["violations"]},
}
# The index of the search is 1 MB, which each page would read anew: all but the search itself are given an empty one.
NO_INDEX = '{"config": {"lang": ["en"], "separator": "[\\\\s]+", "pipeline": ["stopWordFilter"], "fields": {}}, "docs": []}'


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a log."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Yield the address that a folder is served at."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()


def pages(folder: Path) -> list[str]:
    """Return the addresses of a site's pages below that of the site."""
    found = sorted(p.relative_to(folder).parent.as_posix() for p in folder.rglob("index.html"))
    return ["" if p == "." else f"{p}/" for p in found]


class Looker:
    """Looks at one page after the other in one colour scheme, and remembers what the page in view said."""

    def __init__(self, browser: Browser, base: str, scheme: str, shots: Path) -> None:
        self.base, self.scheme, self.shots = base, scheme, shots
        self.said: list[str] = []
        context = browser.new_context(color_scheme=scheme, reduced_motion="reduce")
        context.route("**/search_index.json", lambda route: route.fulfill(content_type="application/json", body=NO_INDEX))
        self.page = context.new_page()
        self.page.on("console", lambda m: self.said.append(f"console: {m.text}") if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda e: self.said.append(f"error: {e}"))
        self.page.on("request", lambda r: self.asked(r.url))
        self.page.on("response", lambda r: self.said.append(f"{r.status} {r.url}") if r.status >= 400 else None)

    def asked(self, url: str) -> None:
        """Remember what is asked of another host."""
        if not url.startswith((self.base, "data:", "blob:")):
            self.said.append(f"asks another host: {url}")

    def look(self, address: str) -> list[str]:
        """Return what is wrong with a page."""
        self.said.clear()
        name = address.strip("/").replace("/", "-") or "home"
        for size, viewport in SIZES.items():
            self.page.set_viewport_size(viewport)
            if size == "desk":
                self.page.goto(self.base + address, wait_until="load")
            for v in Axe().run(self.page, options=AXE[self.scheme if size == "desk" else size]).response["violations"]:
                nodes = "; ".join(str(n["target"]) for n in v["nodes"][:3])
                self.said.append(f"{size}: axe {v['id']}: {v['help']} ({len(v['nodes'])}: {nodes})")
            wide = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            if wide > 0:
                self.said.append(f"{size}: {wide} pixels wider than the window")
            if address in KEPT:
                self.page.screenshot(path=self.shots / f"{name}-{self.scheme}-{size}.png", full_page=size == "desk")
        return [f"/{address} {self.scheme}: {text}" for text in self.said]


def keyboard(browser: Browser, base: str, op: str) -> Iterator[str]:
    """Yield what can't be done without a mouse: to skip to the content, to find the page of an op."""
    page = browser.new_page()
    page.goto(f"{base}gallery/{op}/", wait_until="load")
    page.keyboard.press("Tab")
    if not page.evaluate("document.activeElement.classList.contains('md-skip')"):
        yield "keyboard: the first Tab does not lead to the link that skips to the content"
    focused = "getComputedStyle(document.activeElement)"
    if page.evaluate(f"{focused}.outlineStyle === 'none' || parseFloat({focused}.outlineWidth) === 0"):
        yield "keyboard: nothing shows where the focus is"
    page.keyboard.press("Enter")
    if not page.evaluate("location.hash.length > 1"):
        yield "keyboard: the link that skips to the content leads nowhere"
    page.keyboard.press("/")
    if not page.evaluate("document.activeElement.classList.contains('md-search__input')"):
        yield "keyboard: / does not lead into the search"
    page.keyboard.type(op)
    found = page.locator(".md-search-result__link").first
    found.wait_for(state="attached", timeout=30_000)
    if f"gallery/{op}/" not in (found.get_attribute("href") or ""):
        yield f"keyboard: a search for {op} does not find its page first"
    page.close()


def copying(browser: Browser, base: str, op: str) -> Iterator[str]:
    """Yield what is wrong with the button that copies an op's spec."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{base}gallery/{op}/", wait_until="load")
    page.locator("h2#spec ~ div.highlight").first.locator(
        "button[data-clipboard-target], button[data-md-type=copy]"
    ).first.click()
    if f"op: {op}\n" not in page.evaluate("navigator.clipboard.readText()"):
        yield f"the button beside the spec of {op} does not copy it"
    context.close()


def add_report(folder: Path) -> None:
    """Write a report of `opc test` with all that one can have, to be looked at as a page is."""
    columns = {
        "numpy": Column("NumPy", "2.4"),
        "torch": Column("PyTorch", "2.13"),
        "rknn": Column("RKNN", reason="not installed"),
    }
    wrong = "y[0] is 1.5, but must be 0.5 +- 1e-07"
    results = [
        Result("relu", "numpy", "forward", "relu/001", Status.PASSED, 0.4, count=812),
        *(Result("relu", "torch", "forward", f"relu/00{n}", Status.FAILED, 9.0, message=wrong) for n in (1, 2)),
        Result("tanh", "numpy", "gradient", "tanh", Status.NOT_RUN, message="NumPy has no autograd", count=30),
        Result("tanh", "torch", "forward", "tanh/001", Status.EMULATED, 0.2),
        Result("tanh", "rknn", "build", "tanh", Status.REFUSED, message="tanh has tensors of bool"),
    ]
    report = Report(columns, results, {"specs/broken.yaml": "specs/broken.yaml:1:1: error: not valid YAML"})
    (folder / "report").mkdir(exist_ok=True)
    write_html(report, folder / "report" / "index.html")


def filtering(browser: Browser, base: str) -> Iterator[str]:
    """Yield what is wrong with the filters of a report."""
    page = browser.new_page()
    page.goto(f"{base}report/", wait_until="load")
    page.get_by_label("op").first.fill("tan")
    shown = page.locator("tbody tr:visible").all_inner_texts()
    if not shown or any("relu" in text.partition("\n")[0] for text in shown):
        yield "report: the filter of ops shows others"
    page.get_by_label("status").select_option("refused")
    if not any("tensors of bool" in text for text in page.locator("tbody tr:visible").all_inner_texts()):
        yield "report: the filter of statuses hides what has the status"
    page.close()


def look(folder: Path, shots: Path, only: Sequence[str] = ()) -> list[str]:
    """Return what is wrong with a site, or with some of its pages, a line each; pictures go into `shots`."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        raise SystemExit(f"no browser on PATH: one of {', '.join(BROWSERS)} is needed")
    shots.mkdir(parents=True, exist_ok=True)
    add_report(folder)
    addresses = list(only) or pages(folder)
    ops = [a.split("/")[1] for a in addresses if a.startswith("gallery/") and a != "gallery/"]
    wrong = []
    with served(folder) as base, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for op in ops[:1]:
            wrong += [*keyboard(browser, base, op), *copying(browser, base, op)]
        wrong += filtering(browser, base)
        for scheme in ("light", "dark"):
            looker = Looker(browser, base, scheme, shots)
            wrong += [text for address in addresses for text in looker.look(address)]
        browser.close()
    return wrong


if __name__ == "__main__":
    found = look(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
    print("\n".join(found) or "nothing found")
    sys.exit(1 if found else 0)
