"""The page in a real browser: it works, also after hostile input, and axe finds no barrier.

`make browser` runs these tests. Pictures of every sample go to CLAIMGATE_PICTURES. CLAIMGATE_AXE names axe-core.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.playground.browser import browser, is_there
from webhook.playground.application import read_samples

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not is_there(), reason="no chromium and chromedriver on this machine"),
]
AXE = os.environ.get("CLAIMGATE_AXE", "")
PICTURES = os.environ.get("CLAIMGATE_PICTURES", "")
HOSTILE = "<img src=x onerror=alert(1)><script>document.title='gone'</script>"


@pytest.fixture(scope="module")
def page():
    """Open the page. At the end of the test, the log of the browser must be empty."""
    command = [sys.executable, "-m", "webhook", "ui", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = re.search(r"http://\S+", server.stdout.readline())[0]
            with browser() as opened:
                opened.open(address)
                opened.wait("document.body.dataset.ready")
                yield opened
        finally:
            server.terminate()


def choose(page, number):
    page.run(
        "const s = document.getElementById('sample'); s.value = args[0]; s.dispatchEvent(new Event('change'))", number
    )


def write(page, editor, text):
    page.run(
        "const view = document.querySelector(`#${args[0]} .cm-content`).cmTile.view;"
        "view.dispatch({changes: {from: 0, to: view.state.doc.length, insert: args[1]}})",
        editor,
        text,
    )


def evaluate(page):
    page.run("document.getElementById('run').click()")
    page.wait("/allowed,|Not evaluated/.test(document.getElementById('state').textContent)", 40)
    page.wait("!document.querySelector('.stale')")
    return page.run("return document.getElementById('state').textContent")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
def test_every_sample_is_shown_without_a_barrier(page, width, scheme):
    page.look(width, scheme)
    for number, name in enumerate(read_samples()):
        choose(page, str(number))
        assert re.fullmatch(r"\d+ allowed, \d+ denied\.", evaluate(page)), name
        assert page.run("return document.documentElement.scrollWidth <= window.innerWidth"), name
        if width < 700:
            assert everything_fits(page), name
        if PICTURES:
            page.picture(Path(PICTURES) / f"{name}-{width}-{scheme}.png")
        assert_no_barrier(page)
    assert page.log() == []


def everything_fits(page):
    """Return whether a narrow page cuts off no table, and does not show the comparison side by side."""
    tables = "[...document.querySelectorAll('.wide')].every(each => each.scrollWidth <= each.clientWidth)"
    return page.run(f"return {tables} && !document.querySelector('.cm-mergeView')")


def assert_no_barrier(page):
    """Fail if axe finds a violation in the present state of the page. Without axe, do nothing."""
    if not AXE:
        return
    page.devtools("Runtime.evaluate", expression=Path(AXE).read_text() + ";0")
    script = "axe.run(document).then(r => JSON.stringify(r.violations.map(v => [v.id, v.nodes.map(n => n.html)])))"
    barriers = page.devtools("Runtime.evaluate", expression=script, awaitPromise=True)
    assert json.loads(barriers["result"]["value"]) == []


def test_a_narrow_page_shows_a_field_beside_its_label(page):
    page.look(360, "light")
    script = "const at = e => e.getBoundingClientRect(); const field = document.getElementById('phase');"
    assert page.run(f"{script} return at(field.labels[0]).bottom > at(field).top"), "put the field into its label"


def test_a_denying_finding_is_listed_first(page):
    page.look(1440, "light")
    choose(page, "0")
    evaluate(page)
    results = page.run(
        "return [...document.querySelectorAll('[aria-label=Findings] td:first-child')].map(e => e.innerText)"
    )
    assert results == ["warn", "skip", "skip"]


def test_a_rule_of_a_finding_opens_its_page(page):
    choose(page, "0")
    evaluate(page)
    assert page.run("return document.querySelector('#result .rule')") is None
    page.run("document.querySelector('[aria-label=Findings] button.link').click()")
    shown = page.run("return document.querySelector('#result .rule').innerText")
    assert "training-job/processes-and-gpus" in shown
    assert "Why it matters" in shown or "Bad:" in shown
    assert page.run("return document.activeElement.closest('.rule') !== null")
    assert_no_barrier(page)
    page.run("[...document.querySelectorAll('#result .rule button')].pop().click()")
    assert page.run("return document.querySelector('#result .rule')") is None
    assert page.run("return document.activeElement.className") == "link"


def test_only_an_object_without_a_finding_that_was_evaluated_in_full_is_green(page):
    for number, sample in enumerate(read_samples().values()):
        choose(page, str(number))
        evaluate(page)
        verdicts = page.run(
            "return [...document.querySelectorAll('#result .verdict')].map(e => [e.className, "
            "[...e.querySelectorAll('[aria-label=Findings] td:first-child')].map(c => c.textContent)])"
        )
        assert verdicts, sample["title"]
        for colours, results in verdicts:
            is_green = colours == "verdict allowed"
            assert not is_green or set(results) <= {"advice"}, sample["title"]


def test_markup_in_names_is_shown_as_text(page):
    write(page, "object", f'apiVersion: v1\nkind: "{HOSTILE}"\nmetadata: {{name: "{HOSTILE}"}}\nspec: {{}}\n')
    write(page, "cluster", "")
    evaluate(page)
    assert page.run("return document.title") == "claimgate playground"
    assert page.run("return document.querySelectorAll('#result img, #result script').length") == 0
    assert HOSTILE in page.run("return document.getElementById('result').textContent")


def test_the_page_works_after_twenty_megabytes(page):
    page.run(
        "const view = document.querySelector('#object .cm-content').cmTile.view;"
        "view.dispatch({changes: {from: 0, to: view.state.doc.length, insert: 'a: 1 # ' + 'x'.repeat(20 << 20)}})"
    )
    assert "more than 4 MiB" in evaluate(page)
    choose(page, "0")
    assert evaluate(page) == "1 allowed, 0 denied."


def test_a_policy_that_loops_leaves_the_page_usable(page):
    choose(page, "6")
    loop = "[1,2,3,4,5,6,7,8,9,10].all(a, " * 9 + "true" + ")" * 9
    text = read_samples()["07-own-policy"]["cluster"].replace("'team' in object.metadata.?labels.orValue({})", loop)
    write(page, "cluster", text)
    assert evaluate(page) == "0 allowed, 1 denied."
    choose(page, "6")
    assert evaluate(page) == "0 allowed, 1 denied."


def test_the_page_works_with_only_the_keyboard(page):
    """From the top, Tab reaches every control, Escape and Tab leave an editor, and Ctrl+Enter evaluates."""
    choose(page, "0")
    page.run("document.activeElement.blur(); window.scrollTo(0, 0)")
    reached = []
    for _ in range(40):  # enough steps from any element
        for key, code in (("Escape", 27), ("Tab", 9)):
            for kind in ("rawKeyDown", "keyUp"):
                page.devtools("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)
        reached.append(
            page.run("const a = document.activeElement; return a.id || a.parentElement?.closest('[id]')?.id || ''")
        )
    assert {"sample", "file", "save", "share", "case", "object", "cluster", "run", "phase", "whole"} <= set(reached)
    page.run("document.querySelector('#object .cm-content').focus()")
    for kind in ("rawKeyDown", "keyUp"):
        page.devtools(
            "Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, modifiers=2
        )
    page.wait("document.getElementById('state').textContent === '1 allowed, 0 denied.'")


def test_an_error_selects_its_line(page):
    write(page, "object", "apiVersion: v1\nkind: Pod\nmetadata: {name: p\n")
    assert evaluate(page) == "Not evaluated: 1 error."
    page.run("document.querySelector('#result button').click()")
    assert page.run("return document.activeElement.closest('.editor').id") == "object"


def test_a_saved_state_can_be_opened(page):
    choose(page, "7")
    saved = page.run(
        "let text; const made = URL.createObjectURL;"
        "URL.createObjectURL = (blob) => { text = blob.text(); return made.call(URL, blob); };"
        "document.getElementById('save').click(); URL.createObjectURL = made; return await text"
    )
    choose(page, "0")
    page.run(
        "const input = document.getElementById('file'); const data = new DataTransfer();"
        "data.items.add(new File([args[0]], 'shared.json')); input.files = data.files;"
        "input.dispatchEvent(new Event('change'))",
        saved,
    )
    page.wait("document.querySelector('#cluster .cm-content').textContent.includes('ConfigMap')")
    assert evaluate(page) == "0 allowed, 1 denied."


POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n"
OWN = """apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: own
  annotations: {claimgate.dev/facts: gpu}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
  validations:
  - expression: EXPRESSION
"""


def text(page, editor):
    return page.run("return document.querySelector(`#${args[0]} .cm-content`).cmTile.view.state.doc.toString()", editor)


def state(page):
    return page.run("return document.getElementById('state').textContent")


def test_the_first_sight_is_an_evaluation(page):
    page.run("localStorage.clear(); location.hash = ''")
    reload(page)
    page.wait("/allowed, /.test(document.getElementById('state').textContent)", 40)
    assert page.run("return document.querySelectorAll('#result .verdict').length") >= 1
    page.look(360, "light")
    box = page.run("return document.getElementById('state').getBoundingClientRect().toJSON()")
    assert 0 < box["top"] < box["bottom"] <= page.run("return innerHeight"), (
        "the sums are on the first screen of a phone"
    )
    page.look(1440, "light")


def reload(page):
    page.run("location.reload()")
    page.wait("document.body.dataset.ready", 20)


def test_what_is_typed_is_evaluated_and_survives_a_refresh(page):
    choose(page, "0")
    evaluate(page)
    write(page, "object", POD)
    assert page.run("return document.querySelector('.stale') !== null")
    assert state(page) == "Changed since this result."
    page.wait("/Pod default.p|Pod p/.test(document.getElementById('result').textContent)", 20)
    reload(page)
    assert text(page, "object") == POD


def test_a_sample_that_replaced_a_text_can_be_undone(page):
    choose(page, "0")
    write(page, "object", POD)
    choose(page, "1")
    assert text(page, "object") != POD
    page.run("document.getElementById('undo').click()")
    assert text(page, "object") == POD
    choose(page, "1")
    choose(page, "2")  # another sample replaces the sample
    assert text(page, "object") == read_samples()["03-all-gpus"]["object"]


def test_a_link_has_both_texts(page):
    write(page, "object", POD)
    write(page, "cluster", OWN.replace("EXPRESSION", "'ö' != ''"))
    page.run(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) => { window.copied = text; }}})"
    )
    page.run("document.getElementById('share').click()")
    page.wait("window.copied")
    link = page.run("return window.copied")
    page.run("localStorage.clear()")
    page.open("about:blank")
    page.open(link)
    page.wait("document.body.dataset.ready", 20)
    assert text(page, "object") == POD
    assert "'ö' != ''" in text(page, "cluster")
    page.open("about:blank")
    page.open(f"{link.partition('#')[0]}#damaged")
    page.wait("document.body.dataset.ready", 20)
    assert "damaged" in page.run("return document.getElementById('about').textContent")


@pytest.mark.parametrize(("own", "is_kept"), [(POD, True), ("", False)], ids=["a text that was typed", "a sample"])
def test_a_link_from_another_person_loses_no_text(page, own, is_kept):
    page.run(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) => { window.copied = text; }}})"
    )
    write(page, "object", POD.replace("name: p", "name: other"))
    page.run("document.getElementById('share').click()")
    page.wait("window.copied")
    link = page.run("return window.copied")
    choose(page, "0")
    sample = text(page, "object")
    if own:
        write(page, "object", own)
    page.open("about:blank")
    page.open(link)
    page.wait("document.body.dataset.ready", 20)
    assert text(page, "object") not in (own, sample)
    assert page.run("return document.getElementById('undo').hidden") is not is_kept
    if is_kept:
        page.run("document.getElementById('undo').click()")
        assert text(page, "object") == own


@pytest.mark.parametrize(
    ("name", "editor"), [("pod", "object"), ("policy", "cluster"), ("json", "cluster"), ("config", "cluster")]
)
def test_a_dropped_file_opens_in_the_editor_that_fits(page, name, editor):
    contents = {
        "pod": POD,
        "policy": OWN.replace("EXPRESSION", '"true"'),
        "json": json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}),
        "config": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: n}\n",
    }
    choose(page, "0")
    other = {"object": "cluster", "cluster": "object"}[editor]
    kept = text(page, other)
    page.run(
        "const data = new DataTransfer(); data.items.add(new File([args[0]], 'file.yaml'));"
        "const at = document.querySelector('#object .cm-content');"
        "at.dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true}))",
        contents[name],
    )
    page.wait(f"document.querySelector('#{editor} .cm-content').cmTile.view.state.doc.toString().length > 0")
    page.wait("!/Evaluating/.test(document.getElementById('state').textContent)", 40)
    assert text(page, editor) == contents[name]
    assert text(page, other) == kept


@pytest.mark.parametrize(
    ("typed", "label"),
    [
        ("gpu.dev", "devices"),
        ("object.spec.contai", "containers"),
        ("object.spec.containers[0].resour", "resources"),
        ("quant", "quantity"),
        ("'a'.startsW", "startsWith"),
        ("namesp", "namespaceObject"),
    ],
)
def test_fields_functions_and_facts_are_completed(page, typed, label):
    write(page, "object", POD)
    write(page, "cluster", OWN.replace("EXPRESSION", typed))
    page.run(
        "const view = document.querySelector('#cluster .cm-content').cmTile.view;"
        "view.focus(); view.dispatch({selection: {anchor: view.state.doc.length - 1}})"
    )
    press(page, " ", 32, modifiers=2)
    page.wait("document.querySelector('.cm-tooltip-autocomplete li')", 20)
    labels = page.run("return [...document.querySelectorAll('.cm-completionLabel')].map(e => e.textContent)")
    assert label in labels
    press(page, "Escape", 27)


def press(page, key, code, modifiers=0):
    for kind in ("rawKeyDown", "keyUp"):
        page.devtools(
            "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, modifiers=modifiers
        )


def test_an_error_of_an_expression_is_marked_in_the_editor(page):
    write(page, "object", POD)
    write(page, "cluster", OWN.replace("EXPRESSION", "gpu.devises == 1"))
    assert evaluate(page) == "Not evaluated: 1 error."
    marked = "return [...document.querySelectorAll('#cluster .cm-lintRange-error')].map(e => e.textContent).join('')"
    assert page.run(marked) == ".devises"
    assert_no_barrier(page)
    write(page, "cluster", OWN.replace("EXPRESSION", "gpu.devices == 1"))
    evaluate(page)
    assert page.run("return document.querySelectorAll('.cm-lintRange-error').length") == 0


@pytest.mark.parametrize(
    ("expression", "marked", "line"),
    [
        ("objekt.metadata.name == 'x'", "objekt.metadata.name", 9),
        ("\"'a' == 'a' && objekt.x == 'y'\"", "objekt.x", 9),
        ("\"'\\u00e9' == 'a' && objekt.x == 1\"", "objekt.x", 9),
        ("|\n      true &&\n        objekt.x == 1", "objekt.x", 11),
        (">-\n      true &&\n      objekt.x == 1", "objekt.x", 11),
    ],
    ids=["plain", "in quotes", "escaped", "of several lines", "folded"],
)
def test_the_mark_of_an_error_is_at_its_word(page, expression, marked, line):
    write(page, "object", POD)
    write(page, "cluster", OWN.replace("EXPRESSION", expression))
    assert evaluate(page) == "Not evaluated: 1 error."
    shown = "[...document.querySelectorAll('#cluster .cm-lintRange-error')]"
    assert page.run(f"return {shown}.map(e => e.textContent).join('')") == marked
    above = f"const at = {shown}[0].closest('.cm-line'); return [...at.parentElement.children].indexOf(at)"
    assert page.run(above) == line


def test_what_policies_check_says_is_shown(page):
    write(page, "object", POD)
    write(page, "cluster", OWN.replace("EXPRESSION", "object.metadata.labels.team == 'a'"))
    evaluate(page)
    shown = page.run("return document.querySelector('[aria-label=Checks]').textContent")
    assert "fails on the smallest valid Pod" in shown


def test_a_case_is_saved_as_a_policy_and_a_suite(page):
    write(page, "object", POD)
    write(page, "cluster", OWN.replace("EXPRESSION", "object.metadata.name == 'x'"))
    saved = page.run(
        "const files = {}; const made = URL.createObjectURL; const click = HTMLAnchorElement.prototype.click;"
        "let last; URL.createObjectURL = (blob) => { last = blob.text(); return made.call(URL, blob); };"
        "HTMLAnchorElement.prototype.click = function () { files[this.download] = last; };"
        "document.getElementById('case').click();"
        "for (let i = 0; i < 200 && !files['suite.yaml']; i += 1) await new Promise(done => setTimeout(done, 50));"
        "URL.createObjectURL = made; HTMLAnchorElement.prototype.click = click;"
        "return {policy: await files['policy.yaml'], suite: await files['suite.yaml']}"
    )
    assert "name: Pod p is denied" in saved["suite"]
    assert "kind: ValidatingAdmissionPolicyBinding" in saved["policy"]
    assert "Put both into one folder" in state(page)


def test_rows_that_say_nothing_are_counted(page):
    choose(page, "0")
    evaluate(page)
    outcomes = page.run("return [...document.querySelectorAll('[data-head=Outcome]')].map(e => e.textContent)")
    assert not {"no problem", "unchanged", "not matched"} & set(outcomes)
    assert "found nothing wrong." in page.run("return document.getElementById('result').textContent")


def test_a_pasted_denial_loads_the_policy_of_its_rule(page):
    write(page, "object", "Error from server: denied the request: gpu: `all` is not allowed (gpu-portable/all)")
    page.run("document.getElementById('run').click()")
    page.wait("/the text is a denial, which names 1 rule/.test(document.getElementById('state').textContent)", 40)
    assert "Docker understands all" in page.run("return document.querySelector('#result .page').textContent")
    assert_no_barrier(page)
    page.run("document.querySelector('#result .verdict > button').click()")
    page.wait("/, 1 denied/.test(document.getElementById('state').textContent)", 40)
    assert "gpu: all" in text(page, "object")
    assert "name: gpu-portable-refused" in text(page, "cluster")
    page.run("document.getElementById('undo').click()")
    assert text(page, "object").startswith("Error from server")
