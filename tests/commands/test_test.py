"""`claimgate test` runs suites of four formats, and evaluates and reports them in the same way."""

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.rows import all_rows
from webhook.cli import run_command_line
from webhook.input import shipped
from webhook.report.finding import Result
from webhook.report.formats import writers_of_cases
from webhook.report.results import CaseResult
from webhook.report.writer import Totals
from webhook.yamltext import yamlfile

DATA = Path(__file__).parents[1] / "data"
SUITES = DATA / "suites"
POLICIES = (DATA / "commands" / "policies" / "policies.yaml").read_text()


def pod(**labels):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": labels}}


@pytest.fixture
def suite(tmp_path):
    """Return a function that writes cases as a suite beside the policies, and returns the folder."""

    def write(*cases, text=None):
        folder = tmp_path / "policy"
        folder.mkdir(exist_ok=True)
        (folder / "policy.yaml").write_text(POLICIES)
        (folder / "suite.yaml").write_text(text or yamlfile.dump({"cases": list(cases)}))
        return str(folder)

    return write


def failures(capsys):
    return json.loads(capsys.readouterr().out)["failed"]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"input": pod(), "expect": {"allowed": True, "warnings": [], "patched": {"metadata": {"labels": {"seen": "yes"}}}}}, id="allowed and changed"),
        pytest.param({"input": pod(deny="1"), "expect": {"allowed": False, "code": 403, "reason": "Forbidden", "message": "remove it"}}, id="denied"),
        pytest.param({"input": pod(warn="1"), "expect": {"allowed": True, "warnings": ["frowned"]}}, id="warned"),
        pytest.param({"input": pod(fail="1"), "expect": {"allowed": True, "errors": ["no such key: absent"]}}, id="failed"),
        pytest.param({"input": pod(deny="1"), "phase": "mutate", "expect": {"allowed": True}}, id="one phase only"),
        pytest.param({"input": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}}, "expect": {"allowed": True, "matched": False, "patch": []}}, id="not matched"),
        pytest.param({"input": pod(deny="1"), "operation": "DELETE", "expect": {"allowed": True, "matched": False}}, id="another operation"),
        pytest.param({"input": pod(deny="1"), "oldInput": pod(), "operation": "UPDATE", "expect": {"allowed": False}}, id="an update"),
        pytest.param({"input": {"operation": "CREATE", "object": pod(deny="1")}, "expect": {"allowed": False}}, id="a request"),
    ],
)  # fmt: skip
def test_suites_of_claimgate(case, suite, capsys):
    assert run_command_line(["test", suite({"name": "a case", **case}), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "total": 1,
        "passed": 1,
        "failed": [],
        "skipped": [],
        "errors": [],
    }


def test_input_and_context_may_be_files(suite, tmp_path, capsys):
    folder = suite({"name": "a case", "input": "cases/pod.yaml", "context": ["cases"], "expect": {"allowed": False}})
    (tmp_path / "policy" / "cases").mkdir()
    (tmp_path / "policy" / "cases" / "pod.yaml").write_text(yamlfile.dump(pod(deny="1")))
    assert run_command_line(["test", folder]) == 0
    assert capsys.readouterr().out.endswith("1 case: 1 passed, 0 failed\n")


OUTSIDE = {
    "the folder above": "../pod.yaml",
    "an absolute path": "{out}/pod.yaml",
    "a link": "link.yaml",
    "a folder that is a link": "folder",
    "a link in a folder": "inner",
    "a loop of links": "loop",
    "no file name at all": "a\0b",
}


@pytest.mark.parametrize("name", OUTSIDE.values(), ids=OUTSIDE)
def test_a_suite_names_no_file_outside_the_folder_of_the_run(name, suite, tmp_path, capsys):
    (tmp_path / "pod.yaml").write_text(yamlfile.dump(pod(secret="s3cret")))
    (tmp_path / "policy" / "inner").mkdir(parents=True)
    (tmp_path / "policy" / "link.yaml").symlink_to("../pod.yaml")
    (tmp_path / "policy" / "inner" / "link.yaml").symlink_to(tmp_path / "pod.yaml")
    (tmp_path / "policy" / "folder").symlink_to(tmp_path)
    (tmp_path / "policy" / "loop").symlink_to("loop")
    folder = suite({"name": "a case", "input": name.format(out=tmp_path), "expect": {"allowed": True}})
    assert run_command_line(["test", folder]) == 2
    said = "".join(capsys.readouterr())
    assert ("is outside" in said and "name the folder that contains both" in said) or "loop" in name
    assert "s3cret" not in said


def test_a_suite_may_name_files_in_the_folder_of_the_run(suite, tmp_path, capsys):
    (tmp_path / "pod.yaml").write_text(yamlfile.dump(pod(deny="1")))
    case = {
        "name": "a case",
        "input": "../pod.yaml",
        "context": [str(tmp_path / "pod.yaml")],
        "expect": {"allowed": False},
    }
    folder = suite(case)
    assert run_command_line(["test", str(tmp_path)]) == 0
    assert run_command_line(["test", f"{folder}/suite.yaml"]) == 1
    capsys.readouterr()


def test_a_policy_that_is_a_link_out_of_the_folder_of_the_run_is_not_read(suite, tmp_path, capsys):
    folder = suite({"name": "a case", "input": pod(), "expect": {"allowed": True}})
    (tmp_path / "policy" / "policy.yaml").rename(tmp_path / "policies.yaml")
    (tmp_path / "policy" / "policy.yaml").symlink_to("../policies.yaml")
    assert run_command_line(["test", str(tmp_path)]) == 0
    assert run_command_line(["test", folder]) == 2
    assert "policy.yaml` is not read: the file behind its links is outside" in capsys.readouterr().err


@pytest.mark.parametrize(("folder", "file"), [("kyverno/with-params", "kyverno-test.yaml"), ("gator", "suite.yaml")])
def test_kyverno_and_gator_suites_share_files_inside_the_folder_of_the_run(folder, file, tmp_path, capsys):
    shutil.copytree(SUITES / folder, tmp_path / "suites")
    (tmp_path / "suites" / "tests").mkdir()
    text = (SUITES / folder / file).read_text()
    (tmp_path / "suites" / file).unlink()
    (tmp_path / "suites" / "tests" / file).write_text(re.sub(r"([\w-]+\.yaml)\b", r"../\1", text))
    assert run_command_line(["test", str(tmp_path / "suites")]) == 0
    assert run_command_line(["test", str(tmp_path / "suites" / "tests")]) != 0
    assert "is outside" in "".join(capsys.readouterr())


def test_a_failure_shows_the_difference(suite, capsys):
    folder = suite(
        {"name": "fine", "input": pod(), "expect": {"allowed": True}},
        {"name": "wrong", "input": pod(deny="1"), "expect": {"allowed": True}},
        {"name": "lost", "input": "absent.yaml", "expect": {"allowed": True}},
    )
    assert run_command_line(["test", folder]) == 1
    assert capsys.readouterr().out == (
        f"✖ {folder}/suite.yaml: 1 of 3 passed\n"
        f"  ✖ policy/wrong  {folder}/suite.yaml:11\n"
        "    verdict: expected allowed, found 403 Forbidden: metadata.labels.deny: is not allowed; remove it (policy denies)\n"
        f"  ✖ policy/lost  {folder}/suite.yaml:21\n"
        f"    {folder}/absent.yaml: no such file or folder\n"
        "3 cases: 1 passed, 2 failed\n"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("cases: []\n", "cases: expected one entry or more, found `[]`", id="no case"),
        pytest.param("cases:\n- {name: x, input: {}, expect: {allowed: true, alowed: 1}}\n", "cases[0].expect.alowed: unknown field", id="a typo"),
        pytest.param("cases:\n- {name: x, input: {}}\n", "cases[0].expect: is required", id="no expectation"),
        pytest.param("- a\n", 'expected a map, found `["a"]`', id="a list"),
        pytest.param(
            "cases:\n- {name: x, input: {}, operation: create, expect: {allowed: true}}\n",
            "cases[0].operation: expected one of CREATE, UPDATE, DELETE, CONNECT, found `create`",
            id="an operation",
        ),
        pytest.param("cases:\n- &c {name: x, input: {}, expect: {allowed: true}}\n- *c\n", "two cases have the name `x`", id="a name twice"),
        pytest.param("cases: [\n", "not YAML", id="not YAML"),
        pytest.param("a: 1\n---\nb: 1\n", "expected one document", id="two documents"),
    ],
)  # fmt: skip
def test_mistakes_of_a_suite_are_exit_2_with_their_place(text, message, suite, capsys):
    assert run_command_line(["test", suite(text=text)]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "suite.yaml:" in err


def test_policies_that_do_not_load_are_exit_2(suite, tmp_path, capsys):
    folder = suite({"name": "x", "input": pod(), "expect": {"allowed": True}})
    (tmp_path / "policy" / "policy.yaml").write_text(POLICIES.replace("expression", "expresion", 1))
    assert run_command_line(["test", folder, "-o", "json"]) == 2
    out, err = capsys.readouterr()
    assert "expresion" in json.loads(out)["errors"][0]["why"]
    assert "expresion" in err


def test_a_delete_needs_only_the_deleted_object(suite, capsys):
    text = (
        "cases:\n- {name: goes, operation: DELETE, oldInput: {apiVersion: v1, kind: Pod}, expect: {allowed: true}}\n"
        "- {name: goes too, operation: DELETE, input: {apiVersion: v1, kind: Pod}, expect: {allowed: true}}\n"
    )
    assert run_command_line(["test", suite(text=text)]) == 0
    assert run_command_line(["test", suite(text=text.replace("DELETE", "UPDATE"))]) == 2
    assert ":2:3: cases[0].input: is required; a DELETE may have oldInput instead" in capsys.readouterr().err


REVIEW = (
    "{kind: AdmissionReview, apiVersion: admission.k8s.io/v1, request: {uid: u, operation: DELETE, "
    "kind: {group: '', version: v1, kind: Pod}, resource: {group: '', version: v1, resource: pods}, "
    "oldObject: {apiVersion: v1, kind: Pod, metadata: {name: p}}}}"
)
POD = "{apiVersion: v1, kind: Pod, metadata: {name: p}}"
WITHOUT_EFFECT = {
    "an old object of a CREATE": (
        f"input: {POD}, oldInput: {POD}",
        "cases[0].oldInput: a CREATE has no old object: add `operation: UPDATE`, or remove oldInput",
    ),
    "an operation beside a review": (
        f"input: {REVIEW}, operation: UPDATE",
        "cases[0].operation: is not read beside a whole request, which has this field: write it as `operation` of",
    ),
    "an old object beside a review": (
        f"input: {REVIEW}, oldInput: {POD}",
        "cases[0].oldInput: is not read beside a whole request, which has this field: write it as `oldObject` of the",
    ),
    "an operation beside the file of a review": (
        "input: review.yaml, operation: UPDATE",
        "operation: is not read beside a whole request",
    ),
}


@all_rows(("fields", "said"), WITHOUT_EFFECT.values(), ids=WITHOUT_EFFECT)
def test_a_field_without_effect_is_refused_with_what_to_do(fields, said, suite, tmp_path, capsys):
    folder = suite(text=f"cases:\n- {{name: a, {fields}, expect: {{allowed: true}}}}\n")
    (tmp_path / "policy" / "review.yaml").write_text(REVIEW)
    assert run_command_line(["test", folder]) in (1, 2)
    out, err = capsys.readouterr()
    assert said in out + err


def test_an_input_that_is_not_an_object_fails_its_case(suite, capsys):
    assert (
        run_command_line(["test", suite({"name": "x", "input": {"a": 1}, "expect": {"allowed": True}}), "-o", "json"])
        == 1
    )
    assert "input: apiVersion: expected a string" in failures(capsys)[0]["why"]


def test_suites_of_kyverno_and_gator(capsys):
    assert run_command_line(["test", str(SUITES), "-o", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["total"], report["passed"]) == (35, 32)
    assert [each["why"] for each in report["skipped"]] == [
        "the suite skips it",
        "the file of patchedResources does not have the resource",
        "ValidatingPolicy: uses `resource`, which only Kyverno has",
    ]


@pytest.mark.parametrize(
    ("folder", "file", "before", "after", "why"),
    [
        pytest.param("kyverno/with-params", "kyverno-test.yaml", "result: fail", "result: pass", "result: expected pass, found fail", id="kyverno's fail"),
        pytest.param("kyverno/with-two-params", "patched-resource.yaml", "replicas:", "replicaz:", "patchedResources", id="kyverno's patch"),
        pytest.param("kyverno/with-params", "kyverno-test.yaml", "nginx-deployment2", "absent", "named `absent`", id="kyverno's resource"),
        pytest.param("kyverno-kinds", "kyverno-test.yaml", "[bare], result: fail", "[bare], result: error", "expected error, found fail: a team is missing", id="an error"),
        pytest.param("kyverno-kinds", "kyverno-test.yaml", "[worded], result: error", "[of-shop], result: pass", "named `of-shop` in", id="another kind"),
        pytest.param("gator", "suite.yaml", "violations: 1", "violations: 2", "expected 2, found 1", id="gator's count"),
        pytest.param("gator", "suite.yaml", "labels \\w+", "labels \\d+", "expected yes, found 0", id="gator's message"),
        pytest.param("gator", "suite.yaml", "labels \\w+", "labels (?=t)", "error parsing regexp: invalid", id="gator's pattern, which Go refuses"),
        pytest.param("gator", "suite.yaml", "[{violations: yes, message: label team}]", "[]", "expected at least one", id="gator without assertion"),
        pytest.param("gator", "suite.yaml", "bad-constraint.yaml", "constraint.yaml", "invalid: expected", id="gator's invalid"),
    ],
)  # fmt: skip
def test_a_wrong_expectation_of_kyverno_or_gator_fails(folder, file, before, after, why, tmp_path, capsys):
    for source in (SUITES / folder).iterdir():
        text = source.read_text()
        (tmp_path / source.name).write_text(text.replace(before, after) if source.name == file else text)
    assert run_command_line(["test", str(tmp_path), "-o", "json"]) == 1
    assert any(why in one["why"] for one in failures(capsys))


def test_recorded_cases(tmp_path, capsys):
    line = (DATA / "policies" / "dra-admission.cases.jsonl").read_text().splitlines()[0]
    (tmp_path / "some.cases.jsonl").write_text(f"{line}\n\n")
    assert run_command_line(["test", str(tmp_path)]) == 0
    capsys.readouterr()
    (tmp_path / "bad.cases.jsonl").write_text('{"id": "x"}\n')
    (tmp_path / "worse.cases.jsonl").write_text("nothing\n")
    assert run_command_line(["test", str(tmp_path), "-o", "json"]) == 2
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert (report["total"], report["passed"]) == (3, 1)
    assert [each["id"] for each in report["errors"]] == ["bad.cases.jsonl:1", "worse.cases.jsonl:1"]
    assert "bad.cases.jsonl:1: a case needs policies, expect" in err
    assert "worse.cases.jsonl:1: not a JSON object" in err


def outcomes(capsys):
    """Return the counts of outcomes, and the reasons of skipped cases. The counts must add up to the number of
    cases.
    """
    report = json.loads(capsys.readouterr().out)
    counts = [report["passed"], *(len(report[key]) for key in ("failed", "skipped", "errors"))]
    assert sum(counts) == report["total"]
    return counts, {each["why"] for each in report["skipped"]}


REGO = "templates in Rego are not evaluated, only those in CEL (engine K8sNativeValidation)"


def gator_suite(folder, *replacements, name="suite.yaml"):
    for source in (SUITES / "gator").iterdir():
        text = source.read_text()
        for file, before, after in replacements:
            assert file != source.name or before in text
            text = text.replace(before, after) if file == source.name else text
        folder.joinpath(name if source.name == "suite.yaml" else source.name).write_text(text)


@pytest.mark.parametrize(
    ("replacement", "counts", "why"),
    [
        pytest.param(("template.yaml", "engine: K8sNativeValidation", "engine: Rego"), [1, 0, 6, 0], {REGO}, id="Rego"),
        pytest.param(("suite.yaml", "  template: template.yaml\n  constraint: constraint.yaml", "  template: template.yaml\n  expansion: e.yaml\n  constraint: constraint.yaml"), [2, 0, 5, 0], {"expansion templates of Gatekeeper are not evaluated"}, id="expansion"),
        pytest.param(("suite.yaml", "tests:", "skip: later\ntests:"), [0, 0, 7, 0], {"the suite skips it: later"}, id="the whole suite"),
        pytest.param(("suite.yaml", "  cases:\n", "  cases:\n  - a word\n"), [6, 0, 1, 2], {"the suite skips it"}, id="a case that is a word"),
    ],
)  # fmt: skip
def test_cases_of_gator_that_cannot_run_are_skipped(replacement, counts, why, tmp_path, capsys):
    gator_suite(tmp_path, replacement, name="any.yml")
    assert run_command_line(["test", str(tmp_path), "-o", "json"]) == (2 if counts[3] else 0)
    assert outcomes(capsys) == (counts, why)


def test_a_beta_review_of_a_suite_is_read_and_noted(tmp_path, capsys):
    gator_suite(tmp_path, ("review.yaml", "admission.k8s.io/v1\n", "admission.k8s.io/v1beta1\n"))
    assert run_command_line(["test", str(tmp_path)]) == 0
    assert "note: 1 case: apiVersion `admission.k8s.io/v1beta1` of a review is read as" in capsys.readouterr().err


OWN_KINDS = """\
kind: Test
policies: [policy.yaml]
resources: [policy.yaml]
results:
- {policy: a, kind: Pod, resources: [x, y], result: pass}
- {policy: b, kind: Pod, resources: [x], result: fail, isGeneratingPolicy: true}
- {policy: c, kind: Pod, result: skip}
"""


@pytest.fixture
def own_kinds(tmp_path):
    folder = tmp_path / "suites" / ".kyverno-test"
    folder.mkdir(parents=True)
    text = "".join(
        f"---\napiVersion: {group}\nkind: {kind}\nmetadata: {{name: {name}}}\n"
        for group, kind, name in (
            ("kyverno.io/v1", "ClusterPolicy", "a"),
            ("policies.kyverno.io/v1", "GeneratingPolicy", "b"),
            ("kyverno.io/v1", "Policy", "c"),
        )
    )
    (folder / "policy.yaml").write_text(text)
    (folder / "kyverno-test.yaml").write_text(OWN_KINDS)
    return folder


def test_results_of_kyvernos_own_kinds_are_skipped_and_counted(own_kinds, capsys):
    assert run_command_line(["test", str(own_kinds.parent)]) == 0
    out, err = capsys.readouterr()
    assert out == (
        f"○ {own_kinds}/kyverno-test.yaml: 4 skipped\n"
        "1 suite: 0 run, 1 skipped\n"
        "4 cases: 0 passed, 0 failed, 4 skipped\n"
        "  skipped: 2 cases: policies of kind ClusterPolicy are not evaluated, only those in CEL\n"
        "  skipped: 1 case: policies of kind GeneratingPolicy are not evaluated, only those in CEL\n"
        "  skipped: 1 case: policies of kind Policy are not evaluated, only those in CEL\n"
    )
    assert err == f"warning: {own_kinds.parent}: no case was run: all are skipped\n"
    assert run_command_line(["test", str(own_kinds.parent), "--require-tests"]) == 2


def test_a_missing_policy_is_a_mistake_of_the_suite(own_kinds, capsys):
    file = own_kinds / "kyverno-test.yaml"
    file.write_text(OWN_KINDS.replace("policy: c", "policy: lost"))
    assert run_command_line(["test", str(own_kinds.parent)]) == 2
    assert "results[2]: no policy named `lost` in the files of the test" in capsys.readouterr().err


@pytest.mark.parametrize("text", [OWN_KINDS, "kind: Test\nresults: []\n"], ids=["skipped cases", "no case"])
def test_a_named_file_without_a_case_that_runs_is_exit_2(text, own_kinds, capsys):
    file = own_kinds / "kyverno-test.yaml"
    file.write_text(text)
    assert run_command_line(["test", str(file), str(SUITES)]) == 2
    assert f"error: {file}: no case of this file was run; name its folder" in capsys.readouterr().err


def test_an_invalid_kyverno_result_does_not_affect_other_results(tmp_path, capsys):
    shutil.copytree(SUITES / "kyverno" / "with-params", tmp_path / "suite")
    file = tmp_path / "suite" / "kyverno-test.yaml"
    file.write_text(f"{file.read_text().rstrip()}\n- {{policy: x}}\n- a word\n")
    assert run_command_line(["test", str(tmp_path), "-o", "json"]) == 2
    assert outcomes(capsys) == ([2, 0, 0, 2], set())


def test_an_invalid_case_does_not_affect_other_cases(suite, tmp_path, capsys):
    good = {"name": "good", "input": pod(), "expect": {"allowed": True}}
    folder = suite(good, {"name": "bad", "input": pod(), "expect": {"alowed": True}}, good)
    kept = tmp_path / "junit.xml"
    assert run_command_line(["test", folder, "-o", "text", "-o", f"junit={kept}"]) == 2
    out, err = capsys.readouterr()
    assert out.endswith("suite.yaml: 1 of 1 passed, 2 not readable\n3 cases: 1 passed, 0 failed, 2 not readable\n")
    assert "cases[1].expect.alowed: unknown field" in err
    assert ET.parse(kept).getroot().attrib == {"tests": "3", "failures": "0", "errors": "2"}


def test_an_unreadable_advice_of_a_case_does_not_affect_other_cases(suite, capsys):
    missing = {"name": "missing", "input": "missing.yaml", "expect": {"allowed": True}}
    folder = suite(missing, {"name": "good", "input": pod(), "expect": {"allowed": True}})
    assert run_command_line(["test", folder, "--advice", "-o", "json"]) == 1
    out = json.loads(capsys.readouterr().out)
    assert (out["total"], out["passed"], [each["id"] for each in out["failed"]]) == (2, 1, ["policy/missing"])


def test_a_suite_that_cannot_be_read_is_an_error_of_junit(suite, capsys):
    assert run_command_line(["test", suite(text="cases: [\n"), "-o", "junit"]) == 2
    root = ET.fromstring(capsys.readouterr().out.encode())
    assert root.attrib == {"tests": "1", "failures": "0", "errors": "1"}
    assert "not YAML" in next(root.iter("error")).get("message")


def test_a_folder_without_a_case_is_an_error(tmp_path, capsys):
    assert run_command_line(["test", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert f"error: {tmp_path}: no case found" in err
    assert "`claimgate policies new NAME --in DIR --case FILE` writes a suite" in err
    assert run_command_line(["test", str(tmp_path / "absent")]) == 2


def test_tests_of_chainsaw_are_counted(suite, tmp_path, capsys):
    folder = Path(suite({"name": "good", "input": pod(), "expect": {"allowed": True}}))
    for place in (".chainsaw-test", ".chainsaw-two", ".other"):
        (folder / place).mkdir()
        (folder / place / "chainsaw-test.yaml").write_text("{}")
    assert run_command_line(["test", str(folder)]) == 0
    first = folder / ".chainsaw-test" / "chainsaw-test.yaml"
    assert capsys.readouterr().err == f"note: 2 tests of Chainsaw need a cluster and are not run, first {first}\n"


def test_junit_is_well_formed_with_any_message(suite, tmp_path):
    writer = writers_of_cases()["junit"]()
    bad = CaseResult(id="a <case>", suite="s & t", result=Result.FAIL, why='first "line"\n\x00second\ud800')
    pieces = [*writer.begin({}), *writer.entry(bad), *writer.end(Totals(entries=1, failures=1))]
    root = ET.fromstring("".join(pieces).encode())
    [failure] = root.iter("failure")
    assert failure.get("message") == 'first "line"'
    assert "second" in failure.text
    kept = tmp_path / "junit.xml"
    assert (
        run_command_line(
            ["test", suite({"name": "x", "input": pod(), "expect": {"allowed": True}}), "-o", f"junit={kept}"]
        )
        == 0
    )
    assert ET.parse(kept).getroot().attrib == {"tests": "1", "failures": "0", "errors": "0"}


def test_shipped_policies_pass_their_suites(capsys):
    assert run_command_line(["test", "--require-tests", "-o", "json"]) == 0, capsys.readouterr().out


def test_a_param_of_a_case_with_an_unknown_rule_is_a_mistake_of_the_case(tmp_path, capsys):
    folder = tmp_path / "storage"
    shutil.copytree(shipped.policies_folder() / "storage", folder)
    (param,) = (each.value for each in yamlfile.read(folder / "params.yaml"))
    param["data"]["deny"] = "storage/claim-exist"
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "team"}}
    case = {"name": "misspelt", "input": pod, "params": [param], "expect": {"allowed": True}}
    (folder / "suite.yaml").write_text(json.dumps({"cases": [case]}))
    assert run_command_line(["test", str(folder)]) == 2
    told = "data.deny: unknown rule `storage/claim-exist`: did you mean `storage/claim-exists`?"
    assert f"{folder}/suite.yaml: storage/misspelt: {told}" in capsys.readouterr().err


def test_verbose_names_every_case_with_its_line_and_the_rules_that_no_case_breaks(suite, capsys):
    folder = suite(
        {"name": "fine", "input": pod(), "expect": {"allowed": True}},
        {"name": "denied", "input": pod(deny="1"), "expect": {"allowed": False}},
    )
    assert run_command_line(["test", folder, "-v"]) == 0
    lines = capsys.readouterr().out.splitlines()
    named = [re.sub(r"  \d+ ms$", "", line) for line in lines]
    assert named[0] == f"✔ {folder}/suite.yaml: 2 of 2 passed"
    assert re.fullmatch(rf"  ✔ policy/fine  {re.escape(folder)}/suite\.yaml:2", named[1])
    assert named[-2:] == [
        "2 cases: 2 passed, 0 failed",
        "2 of 4 rules and conditions tried by a case; not tried: fails, warns",
    ]


def test_only_cases_that_match_are_run(suite, capsys):
    folder = suite(
        {"name": "fine", "input": pod(), "expect": {"allowed": True}},
        {"name": "wrong", "input": pod(deny="1"), "expect": {"allowed": True}},
    )
    assert run_command_line(["test", folder, "--run", "^policy/f"]) == 0
    assert capsys.readouterr().out.endswith("1 case: 1 passed, 0 failed; 1 case not run\n")
    assert run_command_line(["test", folder, "--run", "nothing"]) == 2
    assert "--run: no case has a match of `nothing`" in capsys.readouterr().err
    assert run_command_line(["test", folder, "--run", "("]) == 2
    assert "--run: `(` is not a regular expression" in capsys.readouterr().err


def test_a_mistake_in_a_policy_is_reported_once(suite, capsys):
    folder = suite(*({"name": str(number), "input": pod(), "expect": {"allowed": True}} for number in range(3)))
    (Path(folder) / "broken.yaml").write_text(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: broken}\n"
        "spec: {matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], "
        "resources: [pods]}]}, validations: [{expression: 'object.'}]}\n"
    )
    assert run_command_line(["test", folder]) == 2
    out, err = capsys.readouterr()
    assert len([line for line in err.splitlines() if line.startswith("error:")]) == 1
    assert err.count("broken.yaml") == 1
    assert "1 case: 0 passed, 0 failed, 1 not readable" in out
