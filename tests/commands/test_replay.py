"""`claimgate replay`: the answer and the exit code for each kind of fixture."""

import base64
import io
import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.literals import validating
from webhook.admission.fixtures import attributes_of_object
from webhook.cli import run_command_line
from webhook.input import shipped
from webhook.patch import jsonpatch
from webhook.yamltext import yamlfile

EXAMPLES = Path(__file__).parents[2] / "examples" / "research-team"
DATA = Path(__file__).parents[1] / "data"
HERE = DATA / "commands"
POLICIES = ["--only", str(HERE / "policies")]


def pod(name="a", **labels):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "team", "labels": labels}}


def request(obj, operation="CREATE", **more):
    return {"operation": operation, "object": obj, **more}


def write(tmp_path, value, name="fixture.json"):
    file = tmp_path / name
    file.write_text(value if isinstance(value, str) else json.dumps(value))
    return str(file)


def replay(*arguments):
    return run_command_line(["replay", *POLICIES, *arguments])


def lines(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("value", "code"),
    [
        pytest.param(pod(), 0, id="allowed is 0"),
        pytest.param(pod(warn="1"), 0, id="a warning is allowed"),
        pytest.param(pod(deny="1"), 1, id="denied is 1"),
        pytest.param(pod(fail="1"), 0, id="an ignored error is reported"),
        pytest.param([pod(fail="1"), pod(deny="1")], 1, id="denied counts before undecided"),
        pytest.param([pod(deny="1"), {"replicas": 1}], 2, id="unreadable counts before denied"),
        pytest.param("{not json", 2, id="broken JSON is 2"),
        pytest.param(
            {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}, 2, id="a review without request"
        ),
        pytest.param([], 2, id="no review at all is 2"),
    ],
)
def test_exit_codes(value, code, tmp_path, capsys):
    assert replay(write(tmp_path, value)) == code
    assert (code == 2) is ("error: " in capsys.readouterr().err)


def test_an_absent_file_and_a_broken_policy_are_2(tmp_path, capsys):
    assert replay(str(tmp_path / "absent.json")) == 2
    assert "no such file or folder" in capsys.readouterr().err
    broken = write(tmp_path, "kind: ValidatingAdmissionPolicy\napiVersion: admissionregistration.k8s.io/v1\n", "p.yaml")
    assert run_command_line(["replay", "--only", broken, write(tmp_path, pod())]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "p.yaml" in err


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        pytest.param(json.dumps(request(pod())), "x.json", [True], id="a bare request"),
        pytest.param(json.dumps([request(pod()), pod(deny="1")]), "x.json", [True, False], id="a JSON list of both"),
        pytest.param(f"{json.dumps(pod())}\n{json.dumps(pod(deny='1'))}\n", "x.ndjson", [True, False], id="NDJSON"),
        pytest.param(
            yamlfile.dump(pod()) + "---\n" + yamlfile.dump(request(pod(deny="1"))), "x.yaml", [True, False], id="YAML"
        ),
        pytest.param(
            yamlfile.dump({"apiVersion": "v1", "kind": "List", "items": [pod(), pod(deny="1")]}),
            "x.yaml",
            [True, False],
            id="kind List",
        ),
        pytest.param((HERE / "objects" / "review.json").read_text(), "x.json", [False], id="an AdmissionReview"),
    ],
)
def test_kinds_of_fixtures(text, name, expected, tmp_path, capsys):
    replay(write(tmp_path, text, name), "-o", "ndjson")
    found = lines(capsys)
    assert [one["allowed"] for one in found] == expected
    assert [one["index"] for one in found] == list(range(len(expected)))


def test_valid_lines_are_replayed_next_to_an_invalid_line(tmp_path, capsys):
    text = f"{json.dumps(pod())}\n{{oops\n{json.dumps(pod(deny='1'))}\n"
    assert replay(write(tmp_path, text, "x.jsonl"), "-o", "ndjson") == 2
    out, err = capsys.readouterr()
    assert [json.loads(line)["allowed"] for line in out.splitlines()] == [True, False]
    assert err == f"error: {tmp_path}/x.jsonl:2:2: not JSON: expecting property name enclosed in double quotes\n"


def test_empty_stdin_is_named(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert replay("-") == 2
    assert capsys.readouterr().err == "error: <stdin>: no review found; expected YAML, JSON or NDJSON\n"


def test_stdin_and_folders(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(pod()).encode())))
    assert replay("-", "-o", "ndjson") == 0
    assert [one["source"] for one in lines(capsys)] == ["<stdin>"]
    assert replay(str(HERE / "objects"), "-o", "ndjson") == 2
    assert [Path(one["source"]).name for one in lines(capsys)] == ["list.yaml"] * 3 + ["review.json"] + [
        "several.yaml"
    ] * 3


def test_a_line_has_everything_and_its_response_is_a_whole_review(tmp_path, capsys):
    replay(write(tmp_path, pod(warn="1")), "-o", "ndjson")
    [line] = lines(capsys)
    assert list(line) == [
        *("source", "index", "phase", "allowed", "code", "reason", "message", "warnings"),
        *("patch", "patchedObject", "decisions", "furtherDecisions", "response"),
    ]
    assert (line["phase"], line["code"], line["reason"], line["message"]) == ("auto", 200, "", "")
    assert line["warnings"] == ["is frowned upon (policy warns)"]
    response = line["response"]["response"]
    assert line["response"]["kind"] == "AdmissionReview"
    assert response["warnings"] == line["warnings"]
    assert json.loads(base64.b64decode(response["patch"])) == line["patch"]
    sent = attributes_of_object(pod(warn="1")).object
    assert jsonpatch.apply_operations(sent, line["patch"]) == line["patchedObject"]
    assert [(made["policy"], made["phase"]) for made in line["decisions"]] == [
        ("marks", "mutate"),
        ("denies", "validate"),  # reported once, although the policy has `expand: pods`: a Pod is not its own template
        ("warns", "validate"),
    ]


def test_a_denied_line_has_status_and_no_patch(tmp_path, capsys):
    replay(write(tmp_path, pod(deny="1")), "-o", "ndjson")
    [line] = lines(capsys)
    assert (line["code"], line["reason"]) == (403, "Forbidden")
    assert line["message"] == "metadata.labels.deny: is not allowed; remove it (policy denies)"
    assert (line["patch"], line["patchedObject"]) == ([], None)
    assert line["response"]["response"]["status"]["code"] == 403
    assert "patch" not in line["response"]["response"]


@pytest.mark.parametrize(
    ("phase", "policies"),
    [("mutate", {"marks"}), ("validate", {"denies", "warns"}), ("auto", {"marks", "denies", "warns"})],
)
def test_a_phase_evaluates_only_its_policies(phase, policies, tmp_path, capsys):
    replay(write(tmp_path, pod()), "--phase", phase, "-o", "ndjson")
    [line] = lines(capsys)
    assert {made["policy"] for made in line["decisions"]} == policies
    assert bool(line["patch"]) is (phase != "validate")
    assert ("seen" in line["patchedObject"]["metadata"].get("labels", {})) is (phase != "validate")


def test_delete_is_never_patched(tmp_path, capsys):
    replay(write(tmp_path, request(None, "DELETE", oldObject=pod())), "-o", "ndjson")
    [line] = lines(capsys)
    assert (line["allowed"], line["patch"], line["patchedObject"]) == (True, [], None)


def test_text_is_for_people(tmp_path, capsys):
    replay(write(tmp_path, [pod("one", warn="1", fail="1"), pod("two", deny="1")]))
    file = tmp_path / "fixture.json"
    assert capsys.readouterr().out == (
        f"✔ allowed  {file}:1  CREATE Pod team/one\n"
        "    warning: is frowned upon (policy warns)\n"
        "    not evaluated: expression 'object.spec.absent == 1' resulted in error: no such key: absent\n"
        '    patch: add /metadata/labels/seen = "yes"\n'
        f"✖ denied 403 Forbidden  {file}:1  CREATE Pod team/two\n"
        "    metadata.labels.deny: is not allowed; remove it (policy denies)\n"
        "2 reviews: 1 allowed, 1 denied\n"
    )


def test_several_outputs_in_one_run(tmp_path, capsys):
    kept = tmp_path / "kept.ndjson"
    replay(write(tmp_path, pod()), "-o", "json", "-o", f"ndjson={kept}")
    assert json.loads(capsys.readouterr().out) == [json.loads(kept.read_text())]


def test_long_patch_values_are_cut_in_text_only(tmp_path, capsys):
    value = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    policy = (HERE / "policies" / "policies.yaml").read_text().replace('"seen": "yes"', f'"seen": "{"y" * 300}"')
    policies = write(tmp_path, policy, "p.yaml")
    run_command_line(["replay", "--only", policies, write(tmp_path, value)])
    patch = next(line for line in capsys.readouterr().out.splitlines() if "patch:" in line)
    assert patch.endswith("…")
    assert len(patch) < 220


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--ca", "x"], "--ca: is only used with --server", id="ca without server"),
        pytest.param(
            ["--server", "https://h"],
            "the server has its own objects, policies and settings; leave out --only",
            id="server with policies",
        ),
        pytest.param(["--kubernetes-version", "new"], "is not a version", id="no version"),
        pytest.param(["-o", "xml"], "unknown format `xml`", id="unknown format"),
    ],
)
def test_flags_that_cannot_be_used(arguments, message, tmp_path, capsys):
    assert replay(write(tmp_path, pod()), *arguments) == 2
    assert message in capsys.readouterr().err


def test_the_second_engine_agrees(tmp_path, capsys):
    fixture = write(tmp_path, [pod(warn="1"), pod(deny="1"), pod()])
    answers = []
    for engine in ("compiled", "celpy"):
        policy = (
            (HERE / "policies" / "policies.yaml")
            .read_text()
            .partition("apiVersion: admissionregistration.k8s.io/v1\nkind: Mut")[0]
        )
        policies = write(
            tmp_path, policy.replace("object.?metadata.?labels.orValue({})", "object.metadata.labels"), "p.yaml"
        )
        run_command_line(["replay", "--only", policies, fixture, "--cel-engine", engine, "-o", "ndjson"])
        answers.append([(one["allowed"], one["warnings"]) for one in lines(capsys)])
    assert answers[0] == answers[1]


def test_beta_reviews_are_read_and_noted_once(tmp_path, capsys):
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1", "request": request(pod(deny="1"))}
    file = write(tmp_path, [review, review])
    assert replay(file) == 1
    out, err = capsys.readouterr()
    assert out.endswith("2 reviews: 0 allowed, 2 denied\n")
    note = "apiVersion `admission.k8s.io/v1beta1` of a review is read as `admission.k8s.io/v1`"
    assert err.startswith(f"note: {file}:1:2: {note}")
    assert err.count(note) == 1


def test_junit_names_what_cannot_be_read(tmp_path, capsys):
    assert replay(write(tmp_path, "{not json"), "-o", "junit") == 2
    assert '<testsuites tests="1" failures="0" errors="1">' in capsys.readouterr().out


def test_advice_is_shown_on_request(tmp_path, capsys):
    folder = tmp_path / "storage"
    shutil.copytree(shipped.policies_folder() / "storage", folder)
    params = folder / "params.yaml"
    params.write_text(params.read_text().replace('advice: ""', "advice: storage/read-write-once"))
    pods = str(EXAMPLES / "broken" / "pytorchjob-storage.yaml")
    arguments = [pods, "--only", str(folder), "--context", str(EXAMPLES / "cluster")]
    outputs = {}
    for verb in ("replay", "audit"):
        for flags in ([], ["--advice"]):
            assert run_command_line([verb, *arguments, *flags]) == 0
            outputs[verb, *flags] = capsys.readouterr().out
    told = "claim `scratch` is ReadWriteOnce"
    assert [told in out for out in outputs.values()] == [False, True, False, True]
    assert (
        "    advice: spec.pytorchReplicaSpecs.Master.template.spec.volumes[0]: claim" in outputs["replay", "--advice"]
    )
    assert "  ▸ advice  " in outputs["audit", "--advice"]
    assert "\n    spec.pytorchReplicaSpecs.Master.template.spec.volumes[0]: claim" in outputs["audit", "--advice"]


def test_a_suite_may_expect_advice(tmp_path, capsys):
    folder = tmp_path / "storage"
    shutil.copytree(shipped.policies_folder() / "storage", folder)
    params = folder / "params.yaml"
    params.write_text(params.read_text().replace('advice: ""', "advice: storage/read-write-once"))
    told = "claim `scratch` is ReadWriteOnce"
    case = {
        "name": "advised",
        "rule": "storage/read-write-once",
        "input": yamlfile.read(EXAMPLES / "broken" / "pytorchjob-storage.yaml")[0].value,
        "context": [each.value for file in (EXAMPLES / "cluster").glob("*.yaml") for each in yamlfile.read(file)],
        "expect": {"allowed": True, "warnings": [], "advice": [told]},
    }
    (folder / "suite.yaml").write_text(json.dumps({"cases": [case]}))
    assert run_command_line(["test", str(folder)]) == 0
    assert "advice" not in capsys.readouterr().err
    assert run_command_line(["test", str(folder), "--advice"]) == 0
    assert "note: 1 case: advice: spec.pytorchReplicaSpecs.Master.template.spec.volumes[0]" in capsys.readouterr().err


ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}}
NULLS = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: nulls}
spec:
  matchConstraints: {resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [CREATE], resources: ["*"]}]}
  validations:
  - expression: object.kind != 'ClusterRole' || (has(object.rules) && object.rules == null)
  - expression: object.kind != 'Pod' || quantity(object.spec.containers[0].resources.limits['nvidia.com/gpu']) == quantity('1')
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: nulls}
spec: {policyName: nulls, validationActions: [Deny]}
"""


@pytest.mark.parametrize(
    ("fixture", "code"),
    [
        pytest.param(request({**ROLE, "rules": None}), 0, id="a null of a review is kept"),
        pytest.param(request(ROLE), 1, id="a review gets no null"),
        pytest.param(ROLE, 0, id="a file gets the null that an API server writes"),
        pytest.param({**ROLE, "rules": None}, 0, id="a null of a file is kept"),
        pytest.param({**ROLE, "rules": []}, 1, id="an empty list is not a null"),
        pytest.param(
            {**pod(), "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}},
            0,
            id="a number in a file becomes a text",
        ),
    ],
)
def test_objects_have_the_form_that_an_api_server_sends(fixture, code, tmp_path):
    policies = write(tmp_path, NULLS, "policies.yaml")
    file = write(tmp_path, fixture)
    assert run_command_line(["replay", "--only", policies, file]) == code
    assert code or run_command_line(["audit", "--only", policies, file]) == 0


def test_a_new_object_is_not_in_its_own_context(tmp_path, capsys):
    """Volcano refuses the first of three queues, because its parent has pods. The other two queues of the input must
    not change this result.
    """

    def queue(name, parent, **status):
        spec = {"parent": parent, "reclaimable": True}
        metadata = {"name": name}
        return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": metadata, "spec": spec} | (
            {"status": status} if status else {}
        )

    running = {"allocated": {"pods": "3"}, "state": "Open"}
    alone, others = [queue("org-b", "org")], [queue("other", "root"), queue("third", "root")]
    context = write(tmp_path, [queue("org", "root", **running), queue("root", "", state="Open")], "context.json")
    for number, fixture in enumerate((alone, [*alone, *others], [*others, *alone])):
        file = write(tmp_path, fixture, f"{number}.json")
        assert run_command_line(["replay", file, "--context", context, "-o", "ndjson"]) == 1
        [denied] = [line for line in lines(capsys) if not line["allowed"]]
        assert fixture[denied["index"]] is alone[0]
        assert "`org` runs 3 pods now" in denied["message"]


@pytest.mark.parametrize("flags", [[], ["--warn-of-mutations"]], ids=["", "warned"])
def test_a_change_is_a_warning_only_if_the_site_wants_it(flags, tmp_path, capsys):
    asking = {"name": "c", "image": "i", "resources": {"limits": {"gpu": "1"}}}
    (tmp_path / "pod.json").write_text(json.dumps({**pod(), "spec": {"containers": [asking]}}))
    run_command_line(["replay", str(tmp_path / "pod.json"), *flags])
    out = " ".join(capsys.readouterr().out.split())
    assert ("(policy gpu-portable)" in out) is bool(flags)


@pytest.mark.parametrize(
    "flags", [[], ["--docs-address", "https://docs.example"], ["--api-server-text"]], ids=["", "links", "native"]
)
def test_a_warning_of_both_phases_is_shown_once(flags, tmp_path, capsys):
    """After a denial in the mutating phase, the validating phase repeats the warning of the mutating phase. Both texts
    must be equal, also with links and `--api-server-text`.
    """
    problems = {"expression": "problems.size() == 0", "messageExpression": "problems"}
    annotations = {"checks": "pod-resources", "phase": "both", "expand": "pods"}
    policies = [
        *validating(problems, name="warns", annotations=annotations, actions=["Warn"]),
        *validating("false", name="denies", annotations={"phase": "mutate"}),
    ]
    (tmp_path / "policies.yaml").write_text("---\n".join(map(yamlfile.dump, policies)))
    half = {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "500m"}}}
    (tmp_path / "pod.json").write_text(json.dumps({**pod(), "spec": {"containers": [half]}}))
    only = ["--only", str(tmp_path / "policies.yaml")]
    assert run_command_line(["replay", str(tmp_path / "pod.json"), *only, *flags]) == 1
    out = capsys.readouterr().out
    assert out.count("must be a whole number") == 1
    assert "further warning" not in out
