"""The site of the documentation in a real browser: pages fit, code is copied as commands, and axe finds no barrier.

`make site` builds the site, and `make browser` runs these tests. Pictures go to CLAIMGATE_PICTURES. CLAIMGATE_AXE names
axe-core.
"""

import functools
import os
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.playground.browser import browser, is_there

SITE = Path(__file__).parents[1] / "build" / "site"
AXE = os.environ.get("CLAIMGATE_AXE", "")
PICTURES = os.environ.get("CLAIMGATE_PICTURES", "")
PAGES = ("", "why/", "integrations/", "settings/", "comparison/", "tutorial/", "verbs/", "repository/deploy/")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not is_there(), reason="no chromium and chromedriver on this machine"),
    pytest.mark.skipif(not (SITE / "index.html").is_file(), reason="no site: `make site` builds it"),
]


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Print nothing."""


@pytest.fixture(scope="module")
def address():
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(QuietHandler, directory=SITE)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def page():
    with browser() as opened:
        yield opened


def show(page, address):
    page.open(address)
    page.wait("document.readyState === 'complete'")
    page.wait("document.querySelectorAll('pre > code').length === document.querySelectorAll('.md-code__nav').length")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_and_has_no_barrier(page, address, name, width, scheme):
    page.look(width, scheme)
    show(page, f"{address}/{name}")
    assert page.run("return document.documentElement.scrollWidth <= window.innerWidth")
    tables = "[...document.querySelectorAll('.md-typeset__scrollwrap')]"
    assert page.run(f"return {tables}.every(e => e.getBoundingClientRect().right <= window.innerWidth)")
    if PICTURES:
        page.picture(Path(PICTURES) / f"site-{name.replace('/', '-')}{width}-{scheme}.png")
    if AXE:
        page.devtools("Runtime.evaluate", expression=Path(AXE).read_text() + ";0")
        barriers = "return (await axe.run()).violations.map(v => `${v.id}: ${v.nodes.map(n => n.target)}`)"
        assert page.run(barriers) == []


def test_the_copy_button_of_a_console_copies_its_commands(page, address):
    page.look(1440, "light")
    show(page, f"{address}/tutorial/")
    page.run(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) => { window.copied = text; }}});"
        "document.execCommand = () => { window.copied = document.activeElement.value; return true; }"
    )
    page.run("document.querySelector('.md-code__nav button').click()")
    page.wait("window.copied")
    assert page.run("return window.copied").splitlines() == [
        "mkdir first && cd first",
        "claimgate policies new team",
        "claimgate policies check team",
        "claimgate test team",
    ]
