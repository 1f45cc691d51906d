"""An option, or a field of claimgate.yaml, means the same in replay, audit, simulate and backtest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands.test_backtest import event
from tests.literals import validating
from tests.rows import all_rows
from webhook.cli import run_command_line
from webhook.manifests.leave_alone import current_day
from webhook.yamltext import yamlfile

DOORS = ("replay", "audit", "simulate", "backtest")
FLAGS = {"audit": ["--fail-on", "deny"]}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "team"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
NOTHING = validating("false")
ASKS = validating("authorizer.group('').resource('pods').check('use').allowed()")
UNBOUND = NOTHING[:1]
DEFAULTED = validating("object.spec.?restartPolicy.orValue('') == 'Always'")
ABSENT_USER = validating("request.userInfo.?username.orValue('') != 'bob' && !has(request.userInfo.uid)")
EXCEPTION = {"rules": ["v"], "owner": "ml", "reason": "later", "expires": "2099-01-31"}
GRANTED = ["--context", "team.yaml", "--context", "other.yaml"]
ALLOWED = {"rules": ["v"], "maxDays": 1}

ROWS: dict[str, tuple[list[Any], list[str], dict[str, Any], str]] = {
    "a denial": (NOTHING, [], {}, "denied"),
    "an error": (validating("object.spec.nothing == 1"), [], {}, "denied"),
    "an error under Ignore": (validating("object.spec.nothing == 1", failurePolicy="Ignore"), [], {}, "passes"),
    "an error with a binding that warns": (validating("object.spec.nothing == 1", actions=["Warn"]), [], {}, "passes"),
    "--skip": (NOTHING, ["--skip", "v"], {}, "passes"),
    "--rule of another policy": (NOTHING, ["--rule", "storage"], {}, "passes"),
    "--rule": (NOTHING, ["--rule", "v"], {}, "denied"),
    "--enforcement-action": (NOTHING, ["--enforcement-action", "warn"], {}, "passes"),
    "--unbound": (UNBOUND, ["--unbound"], {}, "denied"),
    "no binding": (UNBOUND, [], {}, "passes"),
    "a question without an answer": (ASKS, [], {}, "passes"),
    "--authorizer that refuses": (ASKS, ["--authorizer", "refuses.yaml"], {}, "denied"),
    "--authorizer that allows": (ASKS, ["--authorizer", "allows.yaml"], {}, "passes"),
    "defaults": (DEFAULTED, [], {}, "passes"),
    "--no-defaults": (DEFAULTED, ["--no-defaults"], {}, "denied"),
    "a user that may be absent": (ABSENT_USER, [], {}, "passes"),
    "levels": (NOTHING, [], {"levels": {"rules": {"v": "off"}}}, "passes"),
    "an exception": (NOTHING, [], {"exceptions": [EXCEPTION]}, "passes"),
    "ignore": (NOTHING, [], {"ignore": {"namespaces": ["team"]}}, "passes"),
    "a PolicyException": (NOTHING, GRANTED, {"policyExceptions": [ALLOWED]}, "passes"),
    "a PolicyException that the configuration does not allow": (NOTHING, GRANTED, {}, "denied"),
    "a PolicyException of another namespace": (NOTHING, GRANTED[2:], {"policyExceptions": [ALLOWED]}, "denied"),
    "a PolicyException out of bounds": (
        NOTHING,
        GRANTED,
        {"policyExceptions": [{**ALLOWED, "namespaces": ["research"]}]},
        "denied",
    ),
}


def answer(door: str, policies: list[Any], flags: list[str], configuration: dict[str, Any]) -> str:
    Path("policy.yaml").write_text("---\n".join(map(yamlfile.dump, policies)))
    Path("claimgate.yaml").write_text(json.dumps({"shipped": False, "policies": ["policy.yaml"], **configuration}))
    for name, allowed in (("refuses", "false"), ("allows", "true")):
        Path(f"{name}.yaml").write_text(f"authorizer: [{{verb: use, allowed: {allowed}}}]\n")
    Path("pod.yaml").write_text(yamlfile.dump(POD))
    for namespace in ("team", "other"):
        spec = {**EXCEPTION, "expires": str(current_day())}
        metadata = {"name": "e", "namespace": namespace}
        value = {"apiVersion": "claimgate.dev/v1alpha1", "kind": "PolicyException", "metadata": metadata, "spec": spec}
        Path(f"{namespace}.yaml").write_text(yamlfile.dump(value))
    defaulted = {**POD, "spec": {**POD["spec"], "restartPolicy": "Always"}}
    Path("log.json").write_text(json.dumps(event("create", defaulted)))
    code = run_command_line([door, "log.json" if door == "backtest" else "pod.yaml", *FLAGS.get(door, []), *flags])
    assert code in (0, 1, 3)
    return "denied" if code == 1 else "passes"


@pytest.mark.parametrize("door", DOORS)
def test_each_option_has_one_meaning(
    door: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = {name: row for name, row in ROWS.items() if not (door == "backtest" and name == "--no-defaults")}
    assert {name: answer(door, *row[:3]) for name, row in rows.items()} == {name: row[3] for name, row in rows.items()}
    capsys.readouterr()


@all_rows("flag", ["--rule", "--skip"])
def test_an_unknown_rule_is_an_error(
    flag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    answer("replay", NOTHING, [], {})
    for door in DOORS:
        file = "log.json" if door == "backtest" else "pod.yaml"
        assert run_command_line([door, file, flag, "storage/claim-exist"]) == 2
        assert f"{flag}: unknown rule, group or policy `storage/claim-exist`" in capsys.readouterr().err


LABELLED = {"namespaceSelector": {"matchLabels": {"gpu": "true"}}}
UNKNOWN = {
    "a selector of a binding": validating("false", binding={"matchResources": LABELLED}),
    "a validation": validating("namespaceObject.metadata.labels['gpu'] == 'true'"),
    "an answer": ASKS,
    "a user": validating("request.userInfo.username != 'bob'"),
}
"""Policies that need labels or a user which no file has, or an answer of an authorizer that is not known."""


@pytest.mark.parametrize("door", DOORS)
@all_rows("policies", UNKNOWN.values(), ids=UNKNOWN)
def test_a_policy_that_may_deny_and_is_not_evaluated_is_undecided(
    policies: list[Any],
    door: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (policy, binding) = policies
    answer(door, policies, [], {})
    if door == "backtest" and policies is UNKNOWN["a user"]:
        return  # an audit log has the user, so nothing is unknown
    file, flags = "log.json" if door == "backtest" else "pod.yaml", ["--fail-on", "deny,undecided"]
    flags = [] if door == "simulate" else flags
    assert run_command_line([door, file, *flags]) == 3
    warning = {**binding, "spec": {**binding["spec"], "validationActions": ["Warn"]}}
    answer(door, [policy, warning], [], {})
    assert run_command_line([door, file, *flags]) == 0
    if door != "simulate":
        assert run_command_line([door, file, "--fail-on", "warn,undecided"]) == 3
    capsys.readouterr()


LEFT_OUT = {
    "exceptions": ({"exceptions": [EXCEPTION]}, "1 finding by exceptions", "excepted until 2099-01-31 by ml: later"),
    "ignore": ({"ignore": {"namespaces": ["team"]}}, "1 object by ignore", ""),
    "levels": (
        {"levels": {"rules": {"v": "off"}}},
        "left out: nothing counted; levels, shipped of claimgate.yaml may leave out more",
        "",
    ),
}


@all_rows("configuration, told, reason", LEFT_OUT.values(), ids=LEFT_OUT)
def test_ignored_objects_of_the_configuration_are_reported(
    configuration: dict[str, Any],
    told: str,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for door in DOORS:
        answer(door, NOTHING, [], configuration)
        text = " ".join(capsys.readouterr().out.split())
        assert told in text, f"{door}: {text}"
        assert reason in text or door == "audit", f"{door}: {text}"


def test_a_problem_that_several_params_find_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two params find the problem. If the message has the name of the param, there are two problems, and otherwise
    one.
    """
    monkeypatch.chdir(tmp_path)
    selected = {"selector": {"matchLabels": {"kind": "quota"}}, "namespace": "x", "parameterNotFoundAction": "Deny"}
    rules = validating(
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        validations=[
            {"expression": "false", "message": "never"},
            {"expression": "false", "messageExpression": "'never by ' + params.metadata.name"},
        ],
        binding={"paramRef": selected},
    )
    params = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "x", "labels": {"kind": "quota"}},
        }
        for name in ("one", "two")
    ]
    Path("params.yaml").write_text("---\n".join(map(yamlfile.dump, params)))
    for door in DOORS:
        assert answer(door, rules, ["--context", "params.yaml"], {}) == "denied"
        out = capsys.readouterr().out
        if door == "backtest":  # backtest counts denials for each rule, and prints one example of each rule
            assert out.count("never") == 1
            continue
        assert [out.count(f"never{by}") for by in ("", " by one", " by two")] == [3, 1, 1], f"{door}: {out}"
