"""Reports: the name of each result, and that every format reports the same."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from webhook.apimachinery.attributes import Attributes, GroupVersionKind, GroupVersionResource, Operation, Phase
from webhook.errors import InputProblem
from webhook.report import finding, formats
from webhook.report.counts import FINDINGS as FINDING_RESULTS
from webhook.report.counts import ObjectCounts
from webhook.report.finding import Result, Subject
from webhook.report.rule import Rule
from webhook.report.writer import SkippedDocument, Totals
from webhook.rules.decisions import Decision, ValidationAction
from webhook.rules.problem import MissingObject
from webhook.rules.problem import Problem as Found
from webhook.rules.text import not_evaluated_sentence
from webhook.yamltext import yamlfile
from webhook.yamltext.source_line import Place

DENY, WARN, AUDIT = ValidationAction.DENY, ValidationAction.WARN, ValidationAction.AUDIT
POD = Subject(api_version="v1", kind="Pod", namespace="team", name="p", uid="u-1")
NODE = Subject(api_version="v1", kind="Node", namespace="", name="n")
CLASS = MissingObject(kind="DeviceClass", name="gpu")
RULES = {"gpu": Rule(id="gpu", policy="gpu", docs="https://docs.example/gpu")}
ROOT = Path(__file__).parents[2]
CRDS = Path(__file__).parents[1] / "data" / "reports" / "crds"


def decided(policy="gpu", evaluation="deny", actions=(DENY,), **more):
    more.setdefault("lets_pass", evaluation == "unknown")
    return Decision(policy=policy, binding=f"{policy}-binding", evaluation=evaluation, actions=actions, **more)


def place(path, _words):
    return Place(file="pod.yaml", line=7 if path else 1, column=1)


def made(*decisions, subject=POD):
    return finding.findings_of_object(((Phase.VALIDATE, decision) for decision in decisions), subject, place, RULES)


def written(name, findings=(), shown=(), **totals):
    writer = formats.writers_of_findings(shown)[name]()
    pieces, found = [*writer.begin(RULES)], ObjectCounts()
    for one in findings:
        pieces += writer.entry(one)
        found.add_finding(one)
    return "".join([*pieces, *writer.end(Totals(counts=found, **totals))])


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        pytest.param(decided(), Result.FAIL, id="a denying binding fails"),
        pytest.param(decided(actions=(WARN,)), Result.WARN, id="a warning binding warns"),
        pytest.param(decided(actions=(AUDIT,)), Result.WARN, id="an auditing binding warns"),
        pytest.param(decided(actions=(DENY, AUDIT)), Result.FAIL, id="deny and audit fails"),
        pytest.param(decided(actions=(), kind="mutating"), Result.FAIL, id="a refusing mutation fails"),
        pytest.param(decided(evaluation="admit"), Result.PASS, id="an admitting validation passes"),
        pytest.param(decided(evaluation="error"), Result.ERROR, id="a failed evaluation is an error"),
        pytest.param(decided(evaluation="error", lets_pass=True), Result.ERROR, id="an ignored error is an error"),
        pytest.param(
            decided(evaluation="unknown"), Result.SKIP, id="a rule without an object that it needs is skipped"
        ),
        pytest.param(
            decided(evaluation="unknown", lets_pass=False),
            Result.FAIL,
            id="a rule without an object that it needs fails closed",
        ),
    ],
)
def test_each_result_has_a_name(decision, expected):
    assert finding.result_of_decision(decision) is expected


def test_a_policy_that_passes_is_listed_once_and_a_failing_policy_only_as_failed():
    found = made(
        decided("a", "admit"),
        decided("a", "admit", index=1),
        decided("b", "admit"),
        decided("b", message="no", index=1),
    )
    assert [(one.decision.policy, one.result) for one in found] == [("b", Result.FAIL), ("a", Result.PASS)]


def test_applied_mutations_are_not_results():
    assert made(decided(kind="mutating", evaluation="admit")) == ()


def test_a_finding_of_both_phases_is_reported_once():
    said = decided(message="spec.x: no", path="spec.x")
    found = finding.findings_of_object([(Phase.MUTATE, said), (Phase.VALIDATE, said)], POD, place, RULES)
    assert [one.phase for one in found] == [Phase.MUTATE]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"object": {"metadata": {"uid": "u"}}, "name": "p"}, ("p", "u"), id="the object on create"),
        pytest.param(
            {"object": {"metadata": {"generateName": "p-"}}}, ("p-", ""), id="generateName, if there is no name yet"
        ),
        pytest.param(
            {"old_object": {"metadata": {"uid": "u"}}, "name": "p"}, ("p", "u"), id="the old object on delete"
        ),
        pytest.param({"object": {"metadata": None}, "name": "p"}, ("p", ""), id="null metadata"),
    ],
)
def test_a_certificate_has_this_subject(changes, expected):
    kind, resource = GroupVersionKind("", "v1", "Pod"), GroupVersionResource("", "v1", "pods")
    attributes = Attributes(
        uid="1",
        kind=kind,
        resource=resource,
        operation=Operation.CREATE,
        request_kind=kind,
        request_resource=resource,
        namespace="team",
        **changes,
    )
    about = finding.subject_of_request(attributes)
    assert (about.name, about.uid) == expected
    assert str(about) == f"Pod team/{expected[0]}"


def test_each_problem_is_a_finding_of_its_rule():
    problems = (
        Found(code="g/whole", path="spec.a", message="must be whole", fix="set 1", found="`1.5`"),
        Found(code="g/there", path="", message="must be there"),
    )
    found = made(decided("gpu", rule="g/whole", problems=problems, message="both", path="spec.a"))
    assert [(one.rule.id, one.path, one.place.line, one.message) for one in found] == [
        ("g/whole", "spec.a", 7, "spec.a: `1.5` must be whole: set 1"),
        ("g/there", "", 1, "must be there"),
    ]
    assert written("text", found).splitlines()[:6] == [
        "Pod team/p",
        "  ✖ fail  pod.yaml:7:1  g/whole",
        "    spec.a: `1.5` must be whole",
        "    fix: set 1",
        "  ✖ fail  pod.yaml:1:1  g/there",
        "    must be there",
    ]
    first, second = json.loads(written("json", found))["findings"]
    assert first["problem"] == {
        "rule": "g/whole",
        "path": "spec.a",
        "found": "`1.5`",
        "message": "must be whole",
        "fix": "set 1",
        "also": [],
        "missing": [],
    }
    assert (second["rule"], second["policy"]) == ("g/there", "gpu")
    (report,) = [document.value for document in yamlfile.load(written("policyreport", found))]
    assert [result["rule"] for result in report["results"]] == ["g/whole", "g/there"]


def skipped(policy, *missing, name="p", path=""):
    text = not_evaluated_sentence(map(str, missing))
    unknown = decided(policy, "unknown", message=f"{path}: {text}" if path else text, path=path, missing=missing)
    return made(unknown, subject=Subject(api_version="v1", kind="Pod", namespace="team", name=name))


def test_the_text_report_names_a_missing_object_once():
    """A missing object is reported once, at its first place, with the count."""
    gpu, nic = (MissingObject(kind="DeviceClass", name=name) for name in ("gpu", "nic"))
    unread = MissingObject(kind="Runtime", name="u", why="not looked up: a, b")
    found = (
        *skipped("a", gpu),
        *skipped("a", gpu, nic, name="q", path="spec"),
        *skipped("b", gpu, name="r"),
        *skipped("a", MissingObject(kind="Runtime", name="t"), name="s"),
        *skipped("a", unread, name="s"),
        *skipped("a", unread, name="t"),
    )
    lines = written("text", found, entries=6, files=1).splitlines()
    assert lines == [
        "Not evaluated:",
        "  ○ DeviceClass gpu not found (3 objects: first Pod team/p at pod.yaml:1:1)",
        "  ○ DeviceClass nic not found (1 object: Pod team/q at pod.yaml:7:1)",
        "  ○ Runtime t not found (1 object: Pod team/s at pod.yaml:1:1)",
        "  ○ Runtime u not looked up: a, b (2 objects: first Pod team/s at pod.yaml:1:1)",
        "    fix: name files that have the missing objects with --context",
        "",
        "6 objects in 1 file: 6 without findings, 0 with findings; 6 objects not evaluated in full",
    ]
    assert "(3 objects: first Pod team/p at pod.yaml:1:1; policies a, b)" in written(
        "text", found, entries=6, files=1, is_verbose=True
    )


def test_no_fix_is_proposed_if_the_pods_of_an_object_are_not_known():
    unknown = MissingObject(kind="Workflow", name="", why="builds pods from parts", is_absent=False)
    lines = written("text", skipped("a", unknown), entries=1, files=1).splitlines()
    assert lines[:3] == [
        "Not evaluated:",
        "  ○ Workflow builds pods from parts (1 object: Pod team/p at pod.yaml:1:1)",
        "",
    ]


WITHOUT_MISSING_OBJECTS = {
    "gitlab": "the widget shows only findings at a place",
    "policyreport": "a result of each policy and object says it",
    "openreports": "a result of each policy and object says it",
}
"""The formats without an entry for each missing object"""


@pytest.mark.parametrize("name", [each for each in formats.format_names() if each not in WITHOUT_MISSING_OBJECTS])
def test_a_missing_object_is_reported_once_in_every_format(name):
    found = (*made(decided(message="is bad")), *skipped("a", CLASS), *skipped("b", CLASS, name="q"))
    text = written(name, found, entries=3, files=1)
    assert text.count("DeviceClass gpu not found") == {"junit": 3}.get(name, 1), (
        f"the writer of `{name}` in webhook/report must write Totals.counts.not_evaluated (webhook/report/ndjson.py "
        "does), or WITHOUT_MISSING_OBJECTS in this file must say why it does not"
    )
    assert name == "sarif" or text.index("is bad") < text.index("DeviceClass gpu")
    assert "2 objects" in text or '"objects": 2' in text or '"objects":2' in text
    with_rows = written(name, found, shown=(Result.SKIP,), entries=3, files=1)
    (has_rows,) = (each.shows_more for each in formats.FORMATS if each.name == name)
    assert (with_rows.count("DeviceClass gpu") > text.count("DeviceClass gpu")) is has_rows


def test_text_names_the_rules_that_are_broken_most_and_counts_the_others():
    found = [one for number in range(23) for one in made(decided(f"p{number:02}"))] + list(made(decided("p07")))
    lines = written("text", found).splitlines()
    table = lines[lines.index("✖ fail        2  policy p07") :]
    assert table[1:3] == ["✖ fail        1  policy p00", "✖ fail        1  policy p01"]
    assert (len(table), table[-3:-1]) == (23, ["and 3 rules more", ""])


FINDINGS = (
    *made(
        decided(
            message="spec.x: is bad\nreally", path="spec.x", index=2, severity="high", category="GPU", param="team/p"
        ),
        decided("quiet", "admit", path="spec.y"),
    ),
    *made(decided(evaluation="unknown", message="not evaluated: x not found", severity="odd"), subject=NODE),
)


def report(name):
    return written(
        name,
        FINDINGS,
        entries=2,
        files=1,
        skipped=(SkippedDocument(place=Place(file="values.yaml", line=3), why="kind: expected a string, found none"),),
        unreadable=(InputProblem(message="not YAML: oops", file="broken.yaml", line=4, column=2),),
    )


def test_text_has_a_line_for_each_finding_and_the_totals():
    assert report("text") == (
        "Pod team/p\n"
        "  ✖ fail  pod.yaml:7:1  policy gpu\n"
        "    spec.x: is bad really\n"
        "\n"
        "Not evaluated:\n"
        "  ○ x not found (1 object: Node n at pod.yaml:1:1)\n"
        "\n"
        "values.yaml:3: not audited: kind: expected a string, found none\n"
        "\n"
        "2 objects in 1 file: 1 without findings, 1 with findings (1 fail); 1 object not evaluated in full;"
        " not read: 1 document without a Kubernetes object; 1 file with errors\n"
    )


@pytest.mark.parametrize("is_finding_first", [True, False])
def test_a_mistake_is_not_both_a_finding_and_not_evaluated(is_finding_first):
    text = "spec.x: must be a string"
    mistake, skipped = made(
        decided(message=text), decided("quiet", evaluation="unknown", message=f"not evaluated: {text}")
    )
    counts = ObjectCounts()
    for each in (mistake, skipped) if is_finding_first else (skipped, mistake):
        counts.add_finding(each)
    assert (counts.incomplete, counts.not_evaluated, counts.with_findings) == (0, {}, 1)


def test_text_without_findings_has_only_the_totals():
    assert written("text", entries=1, files=1) == "1 object in 1 file: 1 without findings, 0 with findings\n"


def test_json_has_everything():
    document = json.loads(report("json"))
    assert document["summary"] == {
        "objects": 2,
        "withoutFindings": 1,
        "withFindings": 1,
        "notRead": 0,
        "leftOut": 0,
        "notEvaluatedInFull": 1,
        "findings": {"fail": 1, "warn": 0, "error": 0},
    }
    [first] = document["findings"]
    assert (first["result"], first["policy"], first["path"], first["line"]) == ("fail", "gpu", "spec.x", 7)
    assert (first["rule"], first["ruleUrl"], first["fix"]) == ("gpu", "https://docs.example/gpu", "")
    assert first["object"] == {"apiVersion": "v1", "kind": "Pod", "namespace": "team", "name": "p"}
    assert document["notKubernetes"][0]["file"] == "values.yaml"
    assert document["unreadable"] == [{"file": "broken.yaml", "line": 4, "column": 2, "reason": "not YAML: oops"}]


def test_json_without_findings_is_a_document():
    assert json.loads(written("json"))["findings"] == []


def test_ndjson_is_a_line_for_each_finding_and_skipped_document():
    lines = [json.loads(line) for line in report("ndjson").splitlines()]
    assert [line["result"] for line in lines] == ["fail", "notEvaluated", "notKubernetes", "summary"]


def test_junit_is_a_test_case_for_each_finding():
    root, unread, unevaluated = ET.fromstring(report("junit"))
    assert (root.attrib["tests"], root.attrib["failures"], unevaluated.attrib["skipped"]) == ("2", "1", "1")
    assert [(case.attrib["name"], [outcome.tag for outcome in case]) for case in root] == [
        ("gpu: Pod team/p", ["failure"]),
        ("quiet: Pod team/p", []),
    ]
    assert (unread.attrib["name"], unread.attrib["errors"]) == ("broken.yaml", "1")


@pytest.mark.parametrize("name", ["json", "ndjson"])
def test_findings_are_written_in_the_order_of_arrival(name):
    writer = formats.writers_of_findings()[name]()
    "".join(writer.begin(RULES))
    assert all("".join(writer.entry(one)) for one in FINDINGS if one.result in FINDING_RESULTS)


def test_policyreport_is_one_object_per_namespace_and_one_for_the_cluster():
    objects = [document.value for document in yamlfile.load(report("policyreport"))]
    assert [(one["kind"], one["metadata"].get("namespace")) for one in objects] == [
        ("PolicyReport", "team"),
        ("ClusterPolicyReport", None),
    ]
    fail, passed = objects[0]["results"]
    assert objects[0]["summary"] == {"pass": 1, "fail": 1, "warn": 0, "error": 0, "skip": 0}
    assert (fail["rule"], fail["severity"], fail["category"], fail["result"]) == (
        "validations[2]",
        "high",
        "GPU",
        "fail",
    )
    assert fail["resources"] == [
        {"apiVersion": "v1", "kind": "Pod", "namespace": "team", "name": "p", "uid": "u-1", "fieldPath": "spec.x"}
    ]
    assert fail["properties"] == {
        "binding": "gpu-binding",
        "param": "team/p",
        "phase": "validate",
        "file": "pod.yaml",
        "line": "7",
    }
    assert "fieldPath" not in passed["resources"][0]
    assert "rule" not in passed
    assert "severity" not in objects[1]["results"][0]


def test_policyreport_without_results_is_empty():
    assert written("policyreport") == ""


@pytest.mark.parametrize("kind", ["policyreports", "clusterpolicyreports"])
def test_policyreports_fit_their_crd(kind):
    [crd] = yamlfile.read(CRDS / f"wgpolicyk8s.io_{kind}.yaml")
    [version] = [one for one in crd.value["spec"]["versions"] if one["name"] == "v1alpha2"]
    wanted = crd.value["spec"]["names"]["kind"]
    [manifest] = [one.value for one in yamlfile.load(written("policyreport", FINDINGS)) if one.value["kind"] == wanted]
    assert manifest["apiVersion"] == f"{crd.value['spec']['group']}/v1alpha2"
    schema = version["schema"]["openAPIV3Schema"]
    schema["properties"]["metadata"] = {}  # a CRD does not describe ObjectMeta
    assert list(misfits(manifest, schema, "")) == []


@pytest.mark.parametrize("kind", ["reports", "clusterreports"])
def test_open_reports_fit_their_crd(kind):
    [crd] = yamlfile.read(CRDS / f"openreports.io_{kind}.yaml")
    [version] = [one for one in crd.value["spec"]["versions"] if one["name"] == "v1alpha1"]
    wanted = crd.value["spec"]["names"]["kind"]
    [manifest] = [one.value for one in yamlfile.load(written("openreports", FINDINGS)) if one.value["kind"] == wanted]
    assert manifest["apiVersion"] == f"{crd.value['spec']['group']}/v1alpha1"
    schema = version["schema"]["openAPIV3Schema"]
    schema["properties"]["metadata"] = {}  # a CRD does not describe ObjectMeta
    assert list(misfits(manifest, schema, "")) == []


def misfits(value, schema, path):
    """Yield what an API server would refuse or prune: unknown fields, wrong types, values out of an enum, and missing
    fields.
    """
    types = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}
    if "type" in schema and not isinstance(value, types[schema["type"]]):
        yield f"{path}: {value!r} is no {schema['type']}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {schema['enum']}"
    if isinstance(value, dict) and "type" in schema:
        yield from (f"{path}.{name}: missing" for name in schema.get("required", ()) if name not in value)
        for name, inner in value.items():
            inner_schema = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if inner_schema is None:
                yield f"{path}.{name}: unknown field"
            else:
                yield from misfits(inner, inner_schema, f"{path}.{name}")
    if isinstance(value, list):
        for index, inner in enumerate(value):
            yield from misfits(inner, schema["items"], f"{path}[{index}]")


def test_the_json_of_an_audit_fits_its_schema():
    from jsonschema import Draft202012Validator

    schema = json.loads((ROOT / "docs" / "report.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(json.loads(report("json")))
    golden = json.loads((ROOT / "tests/data/reports/golden/audit-json.json").read_text())
    Draft202012Validator(schema).validate(golden)
    assert golden.keys() == schema["properties"].keys()


@pytest.mark.parametrize(
    ("is_whole", "fix"),
    [
        (False, "name files that have the missing objects with --context"),
        (True, "create the missing objects, or correct their names"),
    ],
)
def test_the_fix_of_a_missing_object_depends_on_context_is_whole(is_whole, fix):
    missing = (MissingObject(kind="Queue", name="q"),)
    skipped = decided(evaluation="unknown", message="not evaluated: Queue q not found", missing=missing)
    assert f"fix: {fix}\n" in written("text", made(skipped), entries=1, files=1, is_whole=is_whole)
