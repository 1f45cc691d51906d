"""`claimgate.yaml`: mistakes with their places, precedence, and exceptions that are used, expired or not needed."""

import datetime as dt
import json
import os
import re
from pathlib import Path

import pytest

from tests.rows import all_rows
from webhook import assembly
from webhook.cli import run_command_line
from webhook.commands import config as commands_config
from webhook.errors import ConfigurationError, InputError
from webhook.manifests import leave_alone
from webhook.manifests.configuration import FileConfiguration, configuration_schema, read_configuration
from webhook.settings.configured import read_settings
from webhook.settings.shared import Settings

ROOT = Path(__file__).parents[2]
JOB = ROOT / "tests" / "data" / "commands" / "denials" / "ten-mistakes.yaml"
NUMBER = "pod-resources/whole-number"
EVERYBODY = "creates the Pods of all users, so no policy would have an effect: name another user"
EXCEPTION = """
exceptions:
- rules: [pod-resources/whole-number]
  kinds: [PyTorchJob]
  namespaces: [def*]
  owner: ml-platform
  reason: fractions for now
  expires: "2999-01-31"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder, text, name="claimgate.yaml"):
    file = folder / name
    file.write_text(text)
    return file


def found(capsys, *arguments):
    code = run_command_line(["audit", str(JOB), "-o", "ndjson", "--show=skip", *arguments])
    lines = capsys.readouterr()
    return code, {each["rule"]: each for each in map(json.loads, lines.out.splitlines()) if "rule" in each}, lines.err


@all_rows(
    ("text", "mistake"),
    [
        ("level: {}\n", "1:1: level: unknown field: did you mean `levels`?"),
        ("levels: {group: {}}\n", "1:10: levels.group: unknown field: did you mean `groups`?"),
        (
            "levels: {rules: {a/b: off}}\n",
            (
                '1:18: levels.rules["a/b"]: expected one of deny, warn, audit, advice, off, found `false`: '
                'write `"off"` in quotes, because YAML reads off as false'
            ),
        ),
        (
            'levels: {rules: {a/b: "no"}}\n',
            '1:18: levels.rules["a/b"]: expected one of deny, warn, audit, advice, off, found `no`',
        ),
        ("policies: here\n", "1:1: policies: expected a list, found `here`"),
        (
            "releases: {kueue: new}\n",
            "1:12: releases.kueue: is not a release: write a release such as `0.18`, in quotes",
        ),
        ("exceptions: [{owner: a, reason: b, expires: '2030-01-01'}]\n", "1:14: exceptions[0].rules: is required"),
        ("exceptions: [{rules: [a/b], owner: a, expires: '2030-01-01'}]\n", "1:14: exceptions[0].reason: is required"),
        (
            "exemptions: [{groups: ['system:authenticated'], owner: a, reason: b, expires: '2030-01-01'}]\n",
            f"1:24: exemptions[0].groups[0]: `system:authenticated` {EVERYBODY}",
        ),
        (
            (
                "exemptions: [{users: ['system:serviceaccount:kube-system:job-controller'], owner: a, reason: b, "
                "expires: '2030-01-01'}]\n"
            ),
            f"1:23: exemptions[0].users[0]: `system:serviceaccount:kube-system:job-controller` {EVERYBODY}",
        ),
        (
            "exemptions: [{users: [''], owner: a, reason: b, expires: '2030-01-01'}]\n",
            "1:23: exemptions[0].users[0]: is not a name of 1 to 256 printable characters",
        ),
        (
            "exemptions: [{owner: a, reason: b, expires: '2030-01-01'}]\n",
            "1:14: exemptions[0]: has no user and no group: write users or groups",
        ),
        ("- a\n", "expected one document with a map of fields, found another value"),
        ("a: b\n---\nc: d\n", "expected one document with a map of fields, found 2 documents"),
    ],
)
def test_a_mistake_is_reported_with_its_place(text, mistake, tmp_path):
    file = write(tmp_path, text)
    with pytest.raises(InputError) as error:
        read_configuration(file)
    assert str(error.value).removeprefix(f"{file}:").strip() == mistake


@all_rows(
    ("text", "place"),
    [
        ("levels: {rules: {pod-resources/whole-numbr: warn}}", 'levels.rules["pod-resources/whole-numbr"]'),
        (EXCEPTION.replace("whole-number", "whole-numbr"), "exceptions[0].rules[0]"),
        ("report: {skip: [pod-resources/whole-numbr]}", "report.skip[0]"),
    ],
)
def test_an_unknown_rule_is_an_error_in_every_verb(text, place, tmp_path, capsys):
    file = write(tmp_path, text)
    for verb in (["audit", str(JOB)], ["replay", str(JOB)], ["config", "check"], ["policies", "list"]):
        told = ["--config", str(file)] if verb[0] != "config" else [str(file)]
        assert run_command_line([*verb, *told]) == 2, verb
        err = capsys.readouterr().err
        assert f"{place}: unknown rule `pod-resources/whole-numbr`: did you mean `{NUMBER}`?" in err


def test_an_unknown_group_is_an_error(tmp_path, capsys):
    file = write(tmp_path, "levels: {groups: {pod-resource: warn}}")
    assert run_command_line(["audit", str(JOB), "--config", str(file)]) == 2
    assert "unknown group `pod-resource`: did you mean `pod-resources`?" in capsys.readouterr().err


def test_flags_name_rules_that_exist(folder, capsys):
    for flag in ("--rule", "--skip"):
        assert run_command_line(["audit", str(JOB), flag, "pod-resources/whole-numbr"]) == 2
        assert f"{flag}: unknown rule, group or policy" in capsys.readouterr().err


def test_a_flag_for_rules_may_be_repeated_and_have_commas(folder, capsys):
    _, every, _ = found(capsys)
    first, second, *others = every
    assert others
    for given in ((f"{first},{second}",), (first, second), (f" {second} , {first} ",)):
        assert found(capsys, *(f"--rule={names}" for names in given))[1].keys() == {first, second}
        assert found(capsys, *(f"--skip={names}" for names in given))[1].keys() == set(others)


def test_the_file_of_the_working_directory_decides_what_rules_do(folder, capsys):
    code, before, _ = found(capsys)
    assert (code, before[NUMBER]["result"]) == (1, "fail")
    write(folder, f"levels: {{groups: {{pod-resources: warn}}, rules: {{{NUMBER}: 'off'}}}}\n")
    code, now, err = found(capsys)
    assert (code, now["pod-resources/request-above-limit"]["result"]) == (1, "warn")
    assert NUMBER not in now
    assert "note: policies: the shipped ones, under claimgate.yaml" in err


def test_a_rule_of_a_cel_policy_can_be_chosen_too(folder, capsys):
    write(folder, "levels: {rules: {gpu-portable/all: warn}}\n")
    assert run_command_line(["replay", str(JOB), "-o", "ndjson", "--phase", "mutate"]) == 0
    [answer] = map(json.loads, capsys.readouterr().out.splitlines())
    assert "(gpu-portable/all)" in answer["warnings"][0]


def test_an_exception_allows_the_object_and_is_reported(folder, capsys):
    write(folder, EXCEPTION)
    _, now, err = found(capsys)
    assert now[NUMBER]["result"] == "skip"
    assert now[NUMBER]["exception"] == "excepted until 2999-01-31 by ml-platform: fractions for now"
    assert "nothing here needs" not in err
    assert run_command_line(["replay", str(JOB), "-o", "ndjson"]) == 1
    assert NUMBER not in json.loads(capsys.readouterr().out)["message"]


POD_SPEC = "{restartPolicy: Never, containers: [{name: a, image: x, resources: {limits: {nvidia.com/gpu: '0.5'}}}]}"
JOBS = {
    "batch/v1": f"template: {{spec: {POD_SPEC}}}",
    "batch.volcano.sh/v1alpha1": f"tasks: [{{name: a, replicas: 1, template: {{spec: {POD_SPEC}}}}}]",
}


@pytest.mark.parametrize(
    ("kinds", "excepted"),
    [
        ("Job.batch", {"batch/v1"}),
        ("Job.batch.volcano.sh", {"batch.volcano.sh/v1alpha1"}),
        ("Job.batch, Job.batch.volcano.sh", set(JOBS)),
        ("Job.core", set()),
    ],
)
def test_an_exception_applies_to_the_kind_of_its_group(kinds, excepted, folder, capsys):
    write(folder, EXCEPTION.replace("PyTorchJob", kinds))
    for version, spec in JOBS.items():
        text = f"{{apiVersion: {version}, kind: Job, metadata: {{name: v, namespace: default}}, spec: {{{spec}}}}}"
        run_command_line(["audit", str(write(folder, text, "job.yaml")), "-o", "json", "--show=skip"])
        results = {each["result"] for each in json.loads(capsys.readouterr().out)["findings"] if each["rule"] == NUMBER}
        assert (results == {"skip"}) is (version in excepted), (version, results)


@pytest.mark.parametrize("verb", [["config", "check"], ["audit", str(JOB)], ["webhook-config"]])
def test_a_kind_of_several_groups_is_reported(verb, folder, capsys):
    write(folder, EXCEPTION.replace("PyTorchJob", "PyTorchJob, Job, Service"))
    assert run_command_line(verb) == 2
    told = capsys.readouterr().err
    assert "`Job` is a kind of 2 groups: write `Job.batch` or `Job.batch.volcano.sh`, or several of them" in told
    assert "claimgate.yaml:4:23" in told
    assert "write `Service.core`, `Service.inference.llmaz.io` or `Service.serving.knative.dev`" in told
    assert "PyTorchJob` is" not in told


def test_a_kind_of_only_one_group_needs_no_group(folder):
    write(folder, EXCEPTION.replace("PyTorchJob", "PyTorchJob, Deployment, Event, Mine, Mine.example.com"))
    assert run_command_line(["config", "check"]) == 0


def test_an_expired_exception_has_no_effect_and_is_reported(folder, capsys):
    write(folder, EXCEPTION.replace("2999", "2020"))
    _, now, err = found(capsys)
    assert now[NUMBER]["result"] == "fail"
    assert "warning: claimgate.yaml:3:3: exceptions[0]: expired on 2020-01-31 and has no effect" in err


@pytest.mark.parametrize(
    ("expires", "told"),
    [
        ("2026-12-15", "exceptions[0]: ends on 2026-12-15, in 14 days; then pod-resources/whole-number applies again"),
        ("2026-12-02", "in 1 day; then pod-resources/whole-number applies again: mend the objects, or ask ml-platform"),
        ("2026-12-01", "ends today, on 2026-12-01; then"),
        ("2026-12-16", ""),
    ],
)
def test_an_exception_that_ends_soon_is_reported(expires, told, folder, capsys, monkeypatch):
    write(folder, EXCEPTION.replace("2999-01-31", expires))
    monkeypatch.setattr(commands_config, "current_day", lambda: dt.date(2026, 12, 1))
    assert run_command_line(["config", "check"]) == 0
    err = capsys.readouterr().err
    assert told in err
    assert bool(err) is bool(told)


def test_an_exception_applies_on_its_last_day(folder, capsys, monkeypatch):
    write(folder, EXCEPTION.replace("2999-01-31", "2026-11-30"))
    for day, result in ((dt.date(2026, 11, 30), "skip"), (dt.date(2026, 12, 1), "fail")):
        monkeypatch.setattr(leave_alone, "current_day", lambda day=day: day)
        assert found(capsys)[1][NUMBER]["result"] == result


def test_an_unused_exception_is_reported(folder, capsys):
    write(folder, EXCEPTION.replace("def*", "other"))
    _, now, err = found(capsys)
    assert now[NUMBER]["result"] == "fail"
    assert "note: claimgate.yaml:3:3: exceptions[0]: no finding needed this exception of ml-platform" in err


ANNOTATED = "{rules: [pod-resources/whole-number], owner: us, reason: for now, expires: '2999-01-31'}"
REPEATED = f"x: &a {'x' * 500}\nb: &b [{'*a,' * 30}]\nc: &c [{'*b,' * 30}]\nrules: [{'*c,' * 30}]\n"
"""881 characters of YAML with aliases that resolve to 13 MB."""


@all_rows(
    ("allowed", "text", "result", "told"),
    [
        ("ignoreAnnotations: [default]", ANNOTATED, "skip", ""),
        ("ignoreAnnotations: [other]", ANNOTATED, "fail", "has no effect because the configuration does not allow it"),
        ("shipped: true", ANNOTATED, "fail", "has no effect because the configuration does not allow it here"),
        ("ignoreAnnotations: ['*']", "{rules: [a]}", "fail", "cannot be read (owner is required)"),
        ("ignoreAnnotations: ['*']", "true", "fail", "cannot be read"),
        ("ignoreAnnotations: ['*']", "[[],[],[" * 7_000, "fail", "has no effect because it has 56000 characters"),
        ("ignoreAnnotations: ['*']", f"{ANNOTATED}{' ' * 1_000}", "fail", "at most 1000 are read: shorten it"),
        ("ignoreAnnotations: ['*']", f"[{ANNOTATED}, {ANNOTATED}]", "skip", ""),
        ("ignoreAnnotations: ['*']", "[" * 300 + "]" * 300, "fail", "nested deeper than 200 levels"),
        ("ignoreAnnotations: ['*']", REPEATED, "fail", "has no effect because its aliases repeat too much"),
        ("ignoreAnnotations: ['*']", f"[&a {ANNOTATED}, *a]", "skip", ""),
    ],
)
def test_an_annotation_makes_an_exception_only_where_the_configuration_allows_it(
    allowed, text, result, told, tmp_path, capsys
):
    file = write(tmp_path, allowed)
    job = tmp_path / "job.yaml"
    annotation = f"  annotations:\n    claimgate.dev/ignore: {json.dumps(text)}\n"
    job.write_text(JOB.read_text().replace("  namespace: default\n", f"  namespace: default\n{annotation}"))
    run_command_line(["audit", str(job), "--config", str(file), "-o", "ndjson", "--show=skip"])
    lines = [each for each in map(json.loads, capsys.readouterr().out.splitlines()) if "rule" in each]
    assert [each["result"] for each in lines if each["rule"] == NUMBER] == [result]
    assert any(told in each["message"] for each in lines)


@all_rows(
    "ignore",
    [
        "namespaces: [def*]",
        "objectSelector: {matchLabels: {team: a}}",
        "objectSelector: {matchExpressions: [{key: team, operator: Exists}]}",
    ],
)
def test_an_ignored_object_has_no_finding(ignore, tmp_path, capsys):
    file = write(tmp_path, f"ignore: {{{ignore}}}")
    job = tmp_path / "job.yaml"
    job.write_text(JOB.read_text().replace("  namespace: default\n", "  namespace: default\n  labels: {team: a}\n"))
    assert run_command_line(["audit", str(job), "--config", str(file)]) == 0
    assert run_command_line(["replay", str(job), "--config", str(file)]) == 0


def test_a_namespace_may_be_ignored_by_its_labels(tmp_path, capsys):
    context = write(tmp_path, "{apiVersion: v1, kind: Namespace, metadata: {name: default, labels: {x: a}}}", "ns.yaml")
    file = write(tmp_path, "ignore: {namespaceSelector: {matchLabels: {x: a}}}")
    assert run_command_line(["audit", str(JOB), "--config", str(file), "--context", str(context)]) == 0
    assert run_command_line(["audit", str(JOB), "--config", str(file)]) == 1


def test_keys_of_the_params_win_over_the_config_map(tmp_path, capsys):
    job = tmp_path / "pod.yaml"
    job.write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b}, "
        "spec: {containers: [{name: c, image: d, resources: {limits: {gpu: 1}}}]}}"
    )
    file = write(tmp_path, "params: {gpu-portable: {resource: amd.com/gpu}}")
    run_command_line(["replay", str(job), "--config", str(file), "-o", "ndjson"])
    [answer] = map(json.loads, capsys.readouterr().out.splitlines())
    assert "amd.com~1gpu" in json.dumps(answer["patch"])


@pytest.mark.parametrize(
    ("params", "told"),
    [
        (
            "kueue: {denny: a}",
            "1:18: params.kueue.denny: unknown key `denny` of ConfigMap `kueue`: did you mean `deny`?",
        ),
        ("kueue: {deny: a}", "1:18: params.kueue.deny: unknown rule `a`: "),
        (
            "gpu-portable: {resorce: a/b}",
            "1:25: params.gpu-portable.resorce: unknown key `resorce` of ConfigMap `gpu-portable`: did you mean `resource`?",
        ),
    ],
    ids=["a key that no list has", "a rule that does not exist", "a key of a policy without checks"],
)
def test_mistaken_keys_of_params_are_refused(params, told, tmp_path, capsys):
    file = write(tmp_path, f"params: {{{params}}}")
    assert run_command_line(["config", "check", str(file)]) == 2
    assert f"error: {file}:{told}" in capsys.readouterr().err
    assert run_command_line(["audit", str(JOB), "--config", str(file)]) == 2


def test_keys_of_a_family_are_accepted_and_params_of_no_policy_get_a_warning(tmp_path, capsys):
    families = "{gpu-portable: {resource.team: a/b, vendor.amd: c/d}, kueue: {kueue: '0.18'}}"
    assert run_command_line(["config", "check", str(write(tmp_path, f"params: {families}"))]) == 0
    assert capsys.readouterr().err == ""
    file = write(tmp_path, "params: {kueu: {deny: a}}")
    assert run_command_line(["config", "check", str(file)]) == 0
    warning = f"warning: {file}:1:10: params.kueu: no policy has a parameter `kueu`: did you mean `kueue`?"
    assert warning in capsys.readouterr().err


def test_flags_win_over_variables_and_variables_win_over_the_file(folder):
    (folder / "sub").mkdir()
    file = write(folder / "sub", "{kubernetesVersion: '1.35', policies: [mine], contextIsWhole: true}")
    chosen = read_settings(Settings, {"config": file}, {})
    assert (chosen.kubernetes_version, chosen.context_is_whole) == ((1, 35), True)
    assert chosen.policies == (folder / "sub" / "mine",)
    assert chosen.origins["kubernetes_version"] == str(file)
    chosen = read_settings(Settings, {"config": file}, {"CLAIMGATE_KUBERNETES_VERSION": "1.36"})
    assert (chosen.kubernetes_version, chosen.origins["kubernetes_version"]) == (
        (1, 36),
        "CLAIMGATE_KUBERNETES_VERSION",
    )
    chosen = read_settings(Settings, {"config": file, "policies": [Path("more")]}, {})
    assert chosen.policies == (folder / "sub" / "mine", Path("more"))


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("CLAIMGATE_ENFORCMENT_ACTION", "CLAIMGATE_ENFORCEMENT_ACTION"),
        ("CLAIMGATE_LOGLEVEL", "CLAIMGATE_LOG_LEVEL"),
        ("CLAIMGATE_POLICES", "CLAIMGATE_POLICIES"),
    ],
)
def test_a_misspelt_variable_is_refused_by_every_verb(variable, meant):
    with pytest.raises(ConfigurationError, match=f"^{variable}: there is no such variable: did you mean {meant}\\?$"):
        read_settings(Settings, {}, {variable: "warn"})
    assert read_settings(Settings, {}, {variable: ""})


def test_variables_of_kubernetes_and_of_other_verbs_are_accepted():
    names = ("SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTPS", "PORT_443_TCP_ADDR", "PORT_443_TCP_PORT", "TESTS")
    names += ("METRICS_SERVICE_HOST", "METRICS_PORT", "LOG_LEVEL", "VALIDATORS")
    assert read_settings(Settings, {}, {f"CLAIMGATE_{name}": "1" for name in names})


def test_policies_are_added_and_only_replaces_the_shipped_policies(folder, capsys):
    own = ROOT / "examples" / "first-policy"
    for flags, holds in ((["--policies", str(own)], True), (["--only", str(own)], False)):
        _, now, err = found(capsys, *flags)
        assert (NUMBER in now) is holds
        assert (f"note: policies: the shipped ones, {own}" in err) is holds
    assert len(assembly.policy_folders_of_settings(Settings(policies=(ROOT / "policies",)))) == 1


def test_the_shipped_policies_can_be_left_out_by_the_file(folder, capsys):
    write(folder, f"{{shipped: false, policies: [{ROOT / 'examples' / 'first-policy'}]}}")
    assert NUMBER not in found(capsys)[1]


def test_config_show_names_the_source_of_each_setting(folder, capsys, monkeypatch):
    write(folder, "{kubernetesVersion: '1.35', levels: {groups: {pod-resources: warn}}}")
    monkeypatch.setitem(os.environ, "CLAIMGATE_API_SERVER_TEXT", "yes")
    assert run_command_line(["config", "show", "--context-is-whole"]) == 0
    out = capsys.readouterr().out
    assert "\nconfig: claimgate.yaml  # the working directory\n" in out
    assert "kubernetes-version: 1.35  # claimgate.yaml\n" in out
    assert "api-server-text: true  # CLAIMGATE_API_SERVER_TEXT\n" in out
    assert "context-is-whole: true  # --context-is-whole\n" in out
    assert "levels:\n  groups:\n    pod-resources: warn\n" in out


def test_the_schema_is_published_and_printed(capsys):
    assert run_command_line(["config", "schema"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == configuration_schema() == json.loads((ROOT / "docs" / "claimgate.schema.json").read_text())


def test_a_file_with_every_field_is_written_and_sets_nothing(folder, capsys):
    assert run_command_line(["config", "init"]) == 0
    written = folder / "claimgate.yaml"
    assert (
        capsys.readouterr().out == "wrote claimgate.yaml: edit it, then run `claimgate config check claimgate.yaml`\n"
    )
    assert read_configuration(written).value == FileConfiguration()
    kept = written.read_bytes()
    assert run_command_line(["config", "init"]) == 2
    assert "claimgate.yaml exists: name another file" in capsys.readouterr().err
    assert written.read_bytes() == kept
    examples = re.findall(r"^#(?! \S)(.*\n)", written.read_text(), re.MULTILINE)
    written.write_text("".join(examples))
    every = read_configuration(written).value.model_dump(by_alias=True, exclude_defaults=True)
    assert set(every) == {field.alias for field in FileConfiguration.model_fields.values()}
    assert run_command_line(["config", "init", str(folder / "none" / "a.yaml")]) == 2
    assert "cannot be written: No such file or directory" in capsys.readouterr().err


def test_the_schema_accepts_what_the_reader_accepts(tmp_path):
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(configuration_schema())
    validator = Draft202012Validator(configuration_schema())
    page = (ROOT / "docs" / "configuration.md").read_text()
    example = page.split("```yaml\n", 1)[1].split("```", 1)[0]
    file = write(tmp_path, example)
    validator.validate(json.loads(json.dumps(read_configuration(file).document.value)))
    assert not validator.is_valid({"level": {}})
