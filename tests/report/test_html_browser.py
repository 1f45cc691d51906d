"""The HTML report in a real browser: filters, search, keyboard only, print, without scripts, and no findings of axe.

`make browser` runs these tests. Pictures go to CLAIMGATE_PICTURES. CLAIMGATE_AXE names axe-core.
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
    opened.wait("!document.getElementById('filtering').hidden")
    return opened


def keys(page, *pressed):
    """Press keys. They go to the element with the focus."""
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


def test_search_and_filters_work_with_only_the_keyboard(page):
    order = []
    for _ in range(12):
        keys(page, "Tab")
        order.append(page.run("return document.activeElement.id"))
        if order[-1] == "search":
            break
    assert order[-5:] == ["result", "severity", "rule", "namespace", "search"]
    assert set(order[:-5]) <= {""}  # elements without an id: how the report was made, and the queues
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
    assert page.run("return getComputedStyle(document.getElementById('filtering')).display") == "none"
    page.devtools("Emulation.setEmulatedMedia", media="")


def test_the_worst_findings_are_first_and_what_was_not_evaluated_is_folded(page):
    titles = page.run("return [...document.querySelectorAll('.group > h2')].map(e => e.textContent)")
    ranks = [(["Denied", "Warning", "Advice"].index(title.split(",")[0]), title) for title in titles]
    assert [rank for rank, _ in ranks] == sorted(rank for rank, _ in ranks)
    severities = [title.split(", ")[1].split(":")[0] for title in titles if title.startswith("Denied")]
    assert severities == sorted(severities, key=["critical", "high", "medium", "low", "info"].index)
    assert page.run("return [...document.querySelectorAll('.open details')].every(e => !e.open)")


@pytest.mark.parametrize(("width", "height"), [(360, 640), (1440, 900)])
def test_the_first_finding_is_on_the_first_screen(opened, report, width, height):
    opened.look(width, "light")
    opened.open(report.as_uri())
    opened.wait("!document.getElementById('filtering').hidden")
    said = "document.querySelector('.finding .message').getBoundingClientRect()"
    assert opened.run(f"return {said}.bottom") < height
    assert opened.run("return window.scrollY") == 0


def test_a_row_of_a_chart_sets_a_filter_that_the_address_keeps(page, report):
    every = page.run(f"return {SHOWN}")
    row = "[...document.querySelectorAll('.charts a')].find(e => e.textContent === args[0])"
    count = int(page.run(f"return {row}.closest('tr').lastElementChild.textContent", RULE))
    page.run(f"{row}.click()", RULE)
    page.wait(f"document.getElementById('rule').value === '{RULE}'")
    assert page.run(f"return {SHOWN}") == count < every
    address = page.run("return location.href")
    assert address == f"{report.as_uri()}#rule={RULE.replace('/', '%2F')}"
    page.run(
        "const s = document.getElementById('search'); s.value = 'no such words'; s.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    assert page.run("return location.hash") == f"#rule={RULE.replace('/', '%2F')}&search=no+such+words"
    assert page.run(f"return {SHOWN}") == 0
    page.open("about:blank")
    page.open(address)
    page.wait(f"document.getElementById('rule').value === '{RULE}'")
    assert page.run(f"return {SHOWN}") == count
    page.run("document.getElementById('every').click()")
    assert page.run(f"return {SHOWN}") == every
    page.run("location.hash = '#rule=no-such-rule'")
    page.wait("document.getElementById('filtering').open")
    assert page.run(f"return {SHOWN}") == every, "a value that the page does not have is no filter"


def test_no_chart_counts_what_was_not_evaluated(page):
    charts = page.run(
        "return [...document.querySelectorAll('.charts table')].map(t => "
        "[...t.querySelectorAll('td:last-child')].reduce((sum, e) => sum + Number(e.textContent), 0))"
    )
    assert charts == [page.run("return document.querySelectorAll('.finding').length")] * 3


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
def test_the_report_fits_the_screen_and_axe_finds_no_violation(page, width, scheme):
    page.look(width, scheme)
    assert page.run("return document.documentElement.scrollWidth <= window.innerWidth")
    if PICTURES:
        page.picture(Path(PICTURES) / f"report-{width}-{scheme}.png")
    if AXE:
        page.devtools("Runtime.evaluate", expression=Path(AXE).read_text() + ";0")
        found = page.run("return (await axe.run()).violations.map(v => `${v.id}: ${v.nodes.map(n => n.target)}`)")
        assert found == []
    assert page.log() == []
