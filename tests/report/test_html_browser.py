"""The HTML report in a real browser: filters, search, keyboard only, print, without scripts, and no findings of axe.

`make browser` runs these; pictures go to CLAIMGATE_PICTURES, and axe-core is read from CLAIMGATE_AXE.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.playground.browser import browser, is_there

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not is_there(), reason="no chromium and chromedriver on this machine"),
]
AXE = os.environ.get("CLAIMGATE_AXE", "")
PICTURES = os.environ.get("CLAIMGATE_PICTURES", "")
ROOT = Path(__file__).parents[2]
SHOWN = "[...document.querySelectorAll('.finding')].filter(e => e.offsetParent !== null).length"
RULE = "training-job/slots-for-ranks"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    file = tmp_path_factory.mktemp("report") / "report.html"
    command = ("audit", "examples/research-team", "--context-is-whole", "-o", f"html={file}")
    subprocess.run([sys.executable, "-m", "webhook", *command], cwd=ROOT, check=False, timeout=120)
    return file


@pytest.fixture(scope="module")
def opened(report):
    with browser() as page:
        yield page


@pytest.fixture
def page(opened, report):
    opened.look(1440, "light")
    opened.open(report.as_uri())
    opened.wait("!document.getElementById('filters').hidden")
    return opened


def keys(page, *pressed):
    """Press keys as a person would, in the element with the focus."""
    for key in pressed:
        text = {"text": key} if len(key) == 1 else {}
        code = {"Tab": 9, "ArrowDown": 40, "Enter": 13}.get(key, ord(key.upper()[0]))
        for kind in ("keyDown", "keyUp"):
            page.devtools(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                windowsVirtualKeyCode=code,
                **(text if kind == "keyDown" else {}),
            )


def test_a_filter_leaves_the_findings_of_a_rule(page):
    before = page.run(f"return {SHOWN}")
    page.run(
        "const s = document.getElementById('rule'); s.value = args[0]; s.dispatchEvent(new Event('input', {bubbles: true}))",
        RULE,
    )
    assert page.run(f"return {SHOWN}") == 1 < before
    assert page.run("return document.getElementById('shown').textContent") == f"1 of {before} findings"
    assert page.run("return [...document.querySelectorAll('.object')].filter(e => e.offsetParent !== null).length") == 1


def test_search_and_filters_work_by_keyboard_alone(page):
    order = []
    for _ in range(12):
        keys(page, "Tab")
        order.append(page.run("return document.activeElement.id"))
        if order[-1] == "search":
            break
    assert order[-4:] == ["result", "rule", "namespace", "search"]
    assert set(order[:-4]) <= {""}  # links to the queues
    keys(page, *"slots")
    page.wait(f"{SHOWN} === 1")
    assert RULE in page.run(
        "return [...document.querySelectorAll('.finding')].find(e => e.offsetParent !== null).textContent"
    )


def test_the_printed_report_has_every_finding_and_no_form(page):
    page.run(
        "const s = document.getElementById('search'); s.value = 'slots'; s.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    page.devtools("Emulation.setEmulatedMedia", media="print")
    every = page.run("return document.querySelectorAll('.finding').length")
    assert page.run(f"return {SHOWN}") == every
    assert page.run("return getComputedStyle(document.getElementById('filters')).display") == "none"
    page.devtools("Emulation.setEmulatedMedia", media="")


def test_queue_details_open_by_keyboard_and_in_print(page):
    jobs = "[...document.querySelectorAll('.queues details li')].filter(e => e.checkVisibility()).length"
    assert page.run(f"return {jobs}") == 0
    page.run("document.querySelector('.queues summary').focus()")
    keys(page, " ")
    page.wait(f"{jobs} > 0")
    page.run("document.querySelector('.queues details').open = false")
    page.devtools("Emulation.setEmulatedMedia", media="print")
    assert page.run(f"return {jobs}") == page.run("return document.querySelectorAll('.queues details li').length") > 5
    page.devtools("Emulation.setEmulatedMedia", media="")


def test_the_report_is_complete_without_scripts(opened, report):
    opened.devtools("Emulation.setScriptExecutionDisabled", value=True)
    try:
        opened.open(report.as_uri())
        tree = opened.devtools("DOMSnapshot.captureSnapshot", computedStyles=["display"])
        assert RULE in json.dumps(tree["strings"])
    finally:
        opened.devtools("Emulation.setScriptExecutionDisabled", value=False)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
def test_it_fits_and_has_no_barrier(page, width, scheme):
    page.look(width, scheme)
    assert page.run("return document.documentElement.scrollWidth <= window.innerWidth")
    if PICTURES:
        page.picture(Path(PICTURES) / f"report-{width}-{scheme}.png")
    if AXE:
        page.devtools("Runtime.evaluate", expression=Path(AXE).read_text() + ";0")
        found = page.run("return (await axe.run()).violations.map(v => `${v.id}: ${v.nodes.map(n => n.target)}`)")
        assert found == []
    assert page.log() == []
