"""A backtest reviews the requests of an audit log again, counts requests that it cannot review, and compares two sets
of policies.
"""

import gzip
import json
import os
from pathlib import Path

import pytest

from tests.literals import validating
from webhook.cli import run_command_line

HERE = Path(__file__).parents[1] / "data" / "commands"
POLICIES = ["--only", str(HERE / "policies")]


def pod(name, label="ok", namespace="team"):
    labels = {label: "x"}
    spec = {"containers": []}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": spec,
    }


def event(verb="create", obj=None, user="alice", code=201, **more):
    name, namespace = (obj["metadata"]["name"], obj["metadata"]["namespace"]) if obj else ("x", "team")
    reference = {"resource": "pods", "namespace": namespace, "name": name, "apiVersion": "v1"}
    made = {
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": f"id-{name}",
        "stage": "ResponseComplete", "requestURI": f"/api/v1/namespaces/{namespace}/pods", "verb": verb,
        "user": {"username": user, "groups": ["system:authenticated"]}, "objectRef": reference,
        "responseStatus": {"metadata": {}, "code": code},
    }  # fmt: skip
    if obj is not None:
        made |= {"requestObject": obj, "responseObject": obj}
    return {**made, **more}


PATCHED = event("patch", pod("patched", "deny"), "carol", 200) | {
    "requestObject": {"metadata": {"labels": {"deny": "x"}}}
}
EVENTS = [
    event("create", pod("fine")),
    event("create", pod("bad", "deny"), "bob"),
    event("create", pod("warned", "warn", "other"), "bob"),
    PATCHED,
    event("get"),
    event("create", pod("early", "deny"), stage="RequestReceived"),
    event("create", pod("refused", "deny"), code=403),
    event("delete", code=200),
    event("create", pod("dry", "deny"), requestURI="/api/v1/namespaces/team/pods?dryRun=All"),
    event("create", level="Metadata"),
    event("create", pod("b", "deny"), objectRef={"resource": "pods", "subresource": "binding", "apiVersion": "v1"}),
]
SKIPPED = {
    "create at level Metadata; the object needs level Request or RequestResponse": 1,
    "dry runs": 1,
    "refused by the API server": 1,
    "subresource binding": 1,
    "verb delete, which has no object": 1,
}


def lines(events):
    return "".join(f"{json.dumps(each)}\n" for each in events)


def backtest(*arguments):
    return run_command_line(["backtest", *POLICIES, *map(str, arguments)])


def test_requests_are_reviewed_and_other_events_are_counted(tmp_path, capsys):
    log = tmp_path / "audit.log"
    log.write_text(lines(EVENTS))
    assert backtest(log, "-o", "json") == 1
    made = json.loads(capsys.readouterr().out)
    assert (made["events"], made["requests"], made["reads"], made["skipped"]) == (11, 4, 2, SKIPPED)
    counts = made["policies"]
    assert (counts["denied"], counts["warned"]) == (2, 1)
    assert counts["namespaces"] == {"team": 2, "other": 1}
    assert counts["users"] == {"bob": 2, "carol": 1}
    assert counts["rules"]["denies"]["denied"] == 2
    assert counts["rules"]["denies"]["example"] == f"{log}:2 Pod team/bad"


def test_the_text_output_explains_the_finding(tmp_path, capsys):
    (tmp_path / "audit.log").write_text(lines(EVENTS))
    assert backtest(tmp_path / "audit.log") == 1
    out = capsys.readouterr().out
    assert out.startswith("these policies would have denied 2 requests and warned of 1\n  denies: denied 2\n")
    assert "  by user: bob 2, carol 1\n" in out
    assert "11 events: 4 reviewed, 2 reads\n  not reviewed: 1: create at level Metadata" in out


def test_rotated_and_compressed_logs_are_one_log_and_processes_change_nothing(tmp_path, capsys):
    many = [event("create", pod(f"p{n}", "deny" if n % 7 == 0 else "ok"), f"user-{n % 5}") for n in range(300)]
    with gzip.open(tmp_path / "audit-1.log.gz", "wt") as old:
        old.write(lines(many[:200]))
    (tmp_path / "audit.log").write_text(lines(many[200:]))
    (tmp_path / "notes.txt").write_text("no log")
    os.utime(tmp_path / "audit-1.log.gz", (1, 1))
    written = []
    for jobs in (1, 3):
        assert backtest(tmp_path, "--jobs", jobs, "-o", "json") == 1
        written.append(capsys.readouterr().out)
    assert written[0] == written[1]
    made = json.loads(written[0])
    assert (made["requests"], made["policies"]["denied"]) == (300, 43)
    assert made["policies"]["rules"]["denies"]["example"] == f"{tmp_path / 'audit-1.log.gz'}:1 Pod team/p0"


def test_a_second_set_of_policies_is_compared(tmp_path, capsys):
    (tmp_path / "audit.log").write_text(lines(EVENTS))
    second = tmp_path / "second"
    second.mkdir()
    policy = (HERE / "policies").rglob("*.yaml")
    text = "---\n".join(each.read_text() for each in policy)
    (second / "all.yaml").write_text(text.replace('"deny" in object', '"fine" in object'))
    if (second / "all.yaml").read_text() == text:
        pytest.fail("the second set is the first one")
    assert backtest(tmp_path / "audit.log", "--against", second, "-o", "json") == 1
    out, err = capsys.readouterr()
    assert f"note: --against: {second}\n" in err
    made = json.loads(out)
    assert made["against"]["denied"] == 0
    assert made["changed"]["no longer denied: denies"]["denied"] == 2


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda data: data[: len(data) * 2 // 3], "the gzip stream is cut off here; the part before it was read"),
        (lambda data: data[:-8] + b"\0" * 8, "the gzip stream is damaged here; the part before it was read"),
    ],
    ids=["cut off", "damaged"],
)
def test_a_broken_stream_yields_the_documents_before_the_error(tmp_path, capsys, damage, told):
    import random

    noise = random.Random(1)
    many = [event("create", pod(f"p{noise.random()}", "deny"), f"{noise.random()}") for _ in range(3000)]
    (tmp_path / "audit.log.gz").write_bytes(damage(gzip.compress(lines(many).encode())))
    assert backtest(tmp_path / "audit.log.gz", "-o", "json") == 2
    out, err = capsys.readouterr()
    assert err.startswith(f"error: {tmp_path / 'audit.log.gz'}:")
    assert told in err
    assert json.loads(out)["policies"]["denied"] > 1000


def test_lines_that_are_not_events_are_reported_and_the_others_evaluated(tmp_path, capsys):
    log = tmp_path / "audit.log"
    log.write_text('{"kind": "Pod"}\nnot json\n\n' + lines(EVENTS[:2]))
    assert backtest(log, tmp_path / "absent", "-o", "json") == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["requests"] == 2
    assert f"error: {log}:1: not an audit event: expected an Event of audit.k8s.io, found kind `Pod`" in err
    assert f"error: {log}:2: not an audit event: expecting value" in err
    assert f"error: {tmp_path / 'absent'}: no such file or folder" in err


def test_the_first_of_many_lines_that_are_not_events_are_named(tmp_path, capsys):
    log = tmp_path / "audit.log"
    log.write_text("not json\n" * 25 + lines(EVENTS[:2]))
    assert backtest(log, "-o", "json") == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["broken"] == 25
    told = err.splitlines()
    assert len([line for line in told if "not an audit event: " in line]) == 20
    assert told[-1] == "error: 5 further lines are not audit events"


def test_a_log_without_objects_is_an_error(tmp_path, capsys):
    log = tmp_path / "audit.log"
    log.write_text(lines([event("create", level="Metadata")]))
    assert backtest(log) == 2
    assert "no request with an object was found; expected an audit log of level Request" in capsys.readouterr().err


def test_a_folder_without_logs_is_an_error(tmp_path, capsys):
    (tmp_path / "pod.yaml").write_text("kind: Pod\n")
    assert backtest(tmp_path) == 2
    assert f"error: {tmp_path}: has no logs; expected files with .log or .json" in capsys.readouterr().err


def test_the_policy_sets_in_use_are_named(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("audit.log").write_text(lines([event("create", pod("fine"))]))
    own = HERE / "policies"
    run_command_line(["backtest", "audit.log", "--policies", str(own)])
    assert f"note: policies: the shipped ones, {own}\n" in capsys.readouterr().err
    Path("claimgate.yaml").write_text("levels: {groups: {pod-resources: warn}}\n")
    run_command_line(["backtest", "audit.log", "--against", str(own)])
    err = capsys.readouterr().err
    assert "note: policies: the shipped ones, under claimgate.yaml\n" in err
    assert f"note: --against: {own}, under claimgate.yaml\n" in err


def namespace_event(verb, **labels):
    obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": labels, "namespace": ""}}
    reference = {"resource": "namespaces", "namespace": "team", "name": "team", "apiVersion": "v1"}
    made = event(verb, obj, code=200, objectRef=reference)
    return made if verb != "delete" else {**made, "requestObject": None, "responseObject": None}


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_namespaces_have_their_labels_at_that_time_of_the_log(tmp_path, capsys, jobs):
    policy, binding = validating(
        "false", name="labelled", binding={"matchResources": {"namespaceSelector": {"matchLabels": {"strict": "yes"}}}}
    )
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "labelled.yaml").write_text(f"{json.dumps(policy)}\n---\n{json.dumps(binding)}\n")
    log = tmp_path / "audit.log"
    asked = [namespace_event("create", strict="yes"), namespace_event("patch"), namespace_event("update", strict="yes")]
    events = [event("create", pod("a"))]
    for number, changed in enumerate([*asked, namespace_event("delete")]):
        events += [changed, event("create", pod(f"pod-{number}"))]
    log.write_text("".join(json.dumps(each) + "\n" for each in events))
    only = ["--only", str(tmp_path / "policies")]
    assert run_command_line(["backtest", str(log), *only, "-o", "json", "--jobs", jobs]) == 1
    told = json.loads(capsys.readouterr().out)["policies"]
    assert (told["denied"], told["undecided"]) == (2, 2)
    # the example is the first denied request
    assert told["rules"]["labelled"]["example"].endswith("audit.log:3 Pod team/pod-0")
