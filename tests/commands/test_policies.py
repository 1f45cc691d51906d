"""`claimgate policies`: the loaded policies, the kinds for which they are evaluated, and what a cluster accepts."""

import datetime as dt
import io
import json
import re
import shutil
from pathlib import Path

import pytest

from tests.literals import mutating, validating
from webhook.cli import run_command_line
from webhook.input import shipped
from webhook.manifests.leave_alone import current_day
from webhook.yamltext import input_files, yamlfile

ROOT = Path(__file__).parents[2]
SAMPLE = Path(__file__).parents[2] / "deploy/samples/reviews/07-pod-delete.json"
POLICIES = str(Path(__file__).parents[1] / "data" / "commands" / "policies")


def test_list_names_policies_actions_and_files(capsys):
    assert run_command_line(["policies", "list", POLICIES]) == 0
    heading, *rows = capsys.readouterr().out.splitlines()
    assert heading.split() == ["NAME", "KIND", "ACTIONS", "SEVERITY", "FILE"]
    assert [row.split()[:4] for row in rows] == [
        ["denies", "ValidatingAdmissionPolicy", "Deny", "high"],
        ["fails", "ValidatingAdmissionPolicy", "Deny", "-"],
        ["warns", "ValidatingAdmissionPolicy", "Warn", "-"],
        ["marks", "MutatingAdmissionPolicy", "-", "-"],
    ]


def test_check_reports_coverage_and_portability(capsys):
    assert run_command_line(["policies", "check", POLICIES, "-o", "json"]) == 1
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert (found["warns"]["covers"], found["warns"]["portable"]) == (["pods"], True)
    assert "pytorchjobs.kubeflow.org" in found["denies"]["covers"]
    assert (found["denies"]["portable"], found["denies"]["exported"]) == (False, "rewritten")
    assert (found["warns"]["exported"], found["warns"]["notRewritten"]) == ("as it is", [])
    assert found["denies"]["obstacles"] == ["expands to the pod templates of workloads (claimgate.dev/expand)"]
    assert found["marks"]["phase"] == "mutate"
    assert found["warns"]["worstCase"].keys() == {"most", "request", "within"}


def test_check_in_text_prints_a_summary(capsys):
    verdict = "4 policies compile; API servers can evaluate 3, and 1 more after export; 1 fails for every object, 1 may be wrong\n"
    wrong = (
        f"fails (ValidatingAdmissionPolicy, {input_files.path_as_shown(POLICIES)}/policies.yaml): compiles\n"
        "    fails for every object: `object.spec.absent` does not exist in Pod\n"
    )
    assert run_command_line(["policies", "check", POLICIES]) == 1
    assert capsys.readouterr().out == f"{verdict}{wrong}"
    assert run_command_line(["policies", "check", POLICIES, "-v"]) == 1
    out = capsys.readouterr().out
    assert out.startswith(verdict)
    covered = next(line for line in out.splitlines() if "covers: pods, and the pods of " in line)
    assert {"trainjobs.trainer.kubeflow.org,", "pytorchjobs.kubeflow.org,"} <= set(covered.split())
    assert "nimservices.apps.nvidia.com" not in covered
    unread = next(line for line in out.splitlines() if "not evaluated: the pods of " in line)
    assert {"dynamographdeployments.nvidia.com,", "workflows.argoproj.io,"} <= set(unread.split())
    partly = next(line for line in out.splitlines() if "evaluated in part, in files: the pods of " in line)
    assert "nimservices.apps.nvidia.com, sparkapplications.sparkoperator.k8s.io, as far as" in partly
    assert (
        "    portable: after `claimgate policies export`, which writes its expansion out; "
        "not for appwrappers.workload.codeflare.dev, experiments.kubeflow.org: their templates are those of the objects "
        "that they wrap; not for sparkapplications.sparkoperator.k8s.io, scheduledsparkapplications.sparkoperator.k8s.io, "
        "sparkconnects.sparkoperator.k8s.io: their controllers complete the templates with other fields\n"
    ) in out
    assert out.count("    worst-case cost: ") == 4


def test_check_reports_reasons_that_export_cannot_remove(tmp_path, capsys):
    text = yamlfile.dump(yamlfile.read(Path(POLICIES) / "policies.yaml")[0].value)
    (tmp_path / "p.yaml").write_text(text.replace("claimgate.dev/expand: pods", "claimgate.dev/facts: gpu"))
    assert run_command_line(["policies", "check", "--verbose", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "    portable: no: uses facts (gpu), which only claimgate computes\n" in out
    assert out.startswith("1 policy compiles; API servers can evaluate 0; 1 may be wrong\n")


DEPLOYMENTS = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["deployments"]}


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("object.spec.replica < 3", "`object.spec.replica` does not exist in Deployment: did you mean `replicas`?"),
        ("!has(oldObject.spec.replica)", "`oldObject.spec.replica` does not exist in Deployment"),
        ("object.spec.?replica.orValue(1) < 3", "`object.spec.replica` does not exist"),
        ("object.spec.template.spec.containers.all(c, c.imag != 'a')", "`c.imag` does not exist in Deployment"),
        ("object.spec.template.spec.containers[0].imag != 'a'", "`object.spec.template.spec.containers[0].imag`"),
        ("variables.pod.conainers.size() > 0", "`variables.pod.conainers` does not exist"),
        ("object.status.replicas > 0 && object.metadata.namespace != ''", ""),
        ("object.metadata.labels.team == 'a' && object.metadata.labels.all(l, l.size() > 1)", ""),
        ("variables.pod.containers.map(c, c.image).all(i, i != '')", ""),
        ("namespaceObject.metadata.name != '' && request.kind.kind == 'x' && dyn(object).whatever", ""),
    ],
)
def test_check_names_fields_that_no_kind_has(expression, told, tmp_path, capsys):
    """kube-apiserver reports the same mistakes in status.typeChecking."""
    pod = [{"name": "pod", "expression": "object.spec.template.spec"}]
    made = validating(expression, variables=pod, rule=DEPLOYMENTS)
    (tmp_path / "policy.yaml").write_text("---\n".join(map(yamlfile.dump, made)))
    fails = bool(told) and "has(" not in expression and ".?" not in expression
    run_command_line(["policies", "check", str(tmp_path)])
    out = capsys.readouterr().out
    assert ("    fails for every object: " in out, "    field: " in out) == (fails, bool(told) and not fails)
    assert told in out


@pytest.mark.parametrize("resources", [["deployments", "daemonsets"], ["deployments", "widgets"], ["*"]], ids=str)
def test_a_field_that_some_kinds_may_have_is_not_named(resources, tmp_path, capsys):
    expression = "!has(object.spec.updateStrategy) || has(object.spec.strategy)"
    made = validating(expression, rule={**DEPLOYMENTS, "resources": resources})
    (tmp_path / "policy.yaml").write_text("---\n".join(map(yamlfile.dump, made)))
    run_command_line(["policies", "check", str(tmp_path)])
    assert "    field: " not in capsys.readouterr().out


def test_check_reports_needed_lookups_and_policies_that_cannot_be_converted(tmp_path, capsys):
    rule = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["widgets"]}
    asks = validating("authorizer.requestResource.check('get').allowed()", name="asks", rule=rule)
    old = validating("true", name="old", rule={**rule, "apiVersions": ["v1beta1"]})
    (tmp_path / "policy.yaml").write_text("---\n".join(map(yamlfile.dump, [*asks, *old])))
    assert run_command_line(["policies", "check", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "evaluate 2; 2 may be wrong; 1 only with `claimgate serve --authorizer`\n" in told
    assert "    it uses `authorizer`, which `claimgate serve` accepts only with --authorizer; " in told
    assert "API servers send widgets.example.com in version v1, which claimgate cannot convert to v1beta1" in told


def test_check_reports_expressions_that_are_hard_to_read(tmp_path, capsys):
    policy, *_ = (each.value for each in yamlfile.read(Path(POLICIES) / "policies.yaml"))
    policy["spec"]["validations"] = [{"expression": " && ".join(["true"] * 70)}]
    policy["spec"]["variables"] = [{"name": f"v{number}", "expression": "1"} for number in range(13)]
    (tmp_path / "p.yaml").write_text(yamlfile.dump(policy))
    assert run_command_line(["policies", "check", "-v", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "    hard to read: an expression of 556 characters, more than 400\n" in out
    assert "    hard to read: 13 variables, more than 12\n" in out


def test_a_rule_in_params_that_does_not_exist_is_an_error(tmp_path, capsys):
    folder = tmp_path / "gpu-limits"
    shutil.copytree(Path(shipped.policies_folder()) / "gpu-limits", folder)
    params = folder / "params.yaml"
    text = params.read_text()
    params.write_text(text.replace('"off": ""', '"off": pod-resources/quantity pod-resources/limit-require'))
    line = text[: text.index('"off":')].count("\n") + 1
    told = "data.off: unknown rule `pod-resources/limit-require`: did you mean `pod-resources/limit-required`?\n"
    for command in (["policies", "check", str(folder)], ["replay", "-", "--only", str(folder)]):
        assert run_command_line(command) == 2
        assert capsys.readouterr() == ("", f"error: {params}:{line}:3: {told}")


def test_the_renamed_param_ignore_is_an_error(tmp_path, capsys):
    folder = tmp_path / "gpu-limits"
    shutil.copytree(Path(shipped.policies_folder()) / "gpu-limits", folder)
    params = folder / "params.yaml"
    params.write_text(params.read_text().replace('"off": ""', 'ignore: ""'))
    assert run_command_line(["policies", "check", str(folder)]) == 2
    assert capsys.readouterr().err.endswith('data.ignore: unknown list of rules `ignore`: write `"off"`\n')


def test_a_param_of_the_context_is_read_as_strictly(tmp_path, capsys):
    context = tmp_path / "context.yaml"
    context.write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: storage, namespace: claimgate-system}\n"
        "data:\n  deny: storage/read-write-one\n"
    )
    review = str(SAMPLE)
    assert run_command_line(["replay", review, "--context", str(context)]) == 2
    told = "data.deny: unknown rule `storage/read-write-one`: did you mean `storage/read-write-once`?\n"
    assert capsys.readouterr().err == f"error: {context}:5:3: {told}"
    for verb in ("replay", "audit"):  # this file is a param, so it is an error; the other files are still reviewed
        assert run_command_line([verb, str(context)]) == 2
        assert f"error: {context}:5:3: {told}" in capsys.readouterr().err
    context.write_text(context.read_text().replace("namespace: claimgate-system", "namespace: other"))
    # no binding names a ConfigMap of this namespace
    assert run_command_line(["replay", review, "--context", str(context)]) == 0


def test_rules_are_printed_with_their_examples(capsys):
    assert run_command_line(["policies", "rules", str(Path(shipped.policies_folder()) / "gpu-limits")]) == 0
    out = capsys.readouterr().out
    assert "\n## pod-resources/limit-required\n" in out
    assert "Bad: a request without a limit is denied\n" in out


def test_one_rule_is_printed(capsys):
    assert run_command_line(["policies", "rules", "--rule", "gpu-portable/all"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("## gpu-portable/all\n")
    assert out.count("\n## ") == 0
    assert "\nGood: " in out


@pytest.mark.parametrize(
    ("rule", "hint"),
    [
        pytest.param("gpu-portable/al", "did you mean `gpu-portable/all`?", id="misspelt"),
        pytest.param("x", "`claimgate policies rules` lists all rules", id="like no other"),
    ],
)
def test_a_rule_without_a_policy_is_reported(rule, hint, capsys):
    assert run_command_line(["policies", "rules", "--rule", rule]) == 2
    assert capsys.readouterr() == ("", f"error: no policy states the rule `{rule}`: {hint}\n")


def test_pages_of_rules_are_written(tmp_path, capsys):
    """The pages of a site's own policies have the form of the shipped pages, and an index of their own."""
    folder = str(Path(shipped.policies_folder()) / "claims-exactly-one")
    assert run_command_line(["policies", "rules", folder, "--pages", str(tmp_path / "pages")]) == 0
    assert capsys.readouterr().out == ""
    assert {path.name for path in (tmp_path / "pages").iterdir()} == {"README.md", "claims-exactly-one.md"}
    assert "(claims-exactly-one.md#claims-exactly-oneone-source)" in (tmp_path / "pages" / "README.md").read_text()


def test_only_one_kind_of_reference_can_be_printed(capsys):
    assert run_command_line(["policies", "rules", "--late", "--rule", "gpu-portable/all"]) == 2
    assert "--rule, --pages and --late exclude each other" in capsys.readouterr().err


def test_late_failures_are_printed_as_tables(capsys):
    folder = str(Path(shipped.policies_folder()) / "gpu-limits")
    assert run_command_line(["policies", "rules", "--late", folder]) == 0
    out = capsys.readouterr().out
    assert "\n## GPU requests\n" in out
    rule = "| [pod-resources/limit-required](rules/pod-resources.md#pod-resourceslimit-required)"
    assert f"{rule}: The device or hugepages have a request but no limit" in out
    assert "\n## Not covered\n" not in out  # only the table of all shipped policies has this section
    assert run_command_line(["policies", "rules", "--late"]) == 0
    assert "\n## Not covered\n" in capsys.readouterr().out


def test_check_reads_standard_input(monkeypatch, capsys):
    text = (Path(POLICIES) / "policies.yaml").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert run_command_line(["policies", "check", "-", "-v"]) == 1
    assert "    portable: no: expands to the pod templates" in capsys.readouterr().out


def test_a_policy_without_binding_is_reported(tmp_path, capsys):
    text = yamlfile.read(Path(POLICIES) / "policies.yaml")[0].value
    (tmp_path / "p.yaml").write_text(yamlfile.dump(text))
    assert run_command_line(["policies", "check", str(tmp_path)]) == 1
    assert "never evaluated: no binding names it" in capsys.readouterr().out
    assert run_command_line(["policies", "list", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "  unbound  " in out
    assert err.startswith("warning: policy `denies` (")


def test_mistakes_are_all_named_with_their_places(tmp_path, capsys):
    text = (Path(POLICIES) / "policies.yaml").read_text()
    (tmp_path / "p.yaml").write_text(
        text.replace("policyName: warns", "policyName: wrans").replace("object.spec", "objekt.spec")
    )
    assert run_command_line(["policies", "check", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count(f"error: {tmp_path}/p.yaml:") == 2
    assert "undeclared reference to 'objekt'" in err
    assert "wrans" in err


def test_export_prints_policies_that_a_cluster_accepts(capsys):
    assert run_command_line(["policies", "export", POLICIES]) == 0
    out, err = capsys.readouterr()
    names = [(one.value["kind"], one.value["metadata"]["name"]) for one in yamlfile.load(out)]
    kind = "ValidatingAdmissionPolicy"
    kaito = ("inference-template", "spec-template-inference-template")
    template = ("template", "spec-template", "spec-jobtemplate-spec-template", *kaito, "spec-podtemplate")
    more = ("spec-jobtargetref-template", "spec-worker-spec", "spec-job-spec-template")
    several = ("templates", *(f"templates-{number}" for number in range(2, 7)), "pod-specs")
    parts = ["denies", *(f"denies-{part}" for part in (*template, *more, *several))]
    assert names == [
        *(pair for part in parts for pair in ((kind, part), (f"{kind}Binding", part))),
        (kind, "fails"),
        (f"{kind}Binding", "fails"),
        (kind, "warns"),
        (f"{kind}Binding", "warns"),
        ("MutatingAdmissionPolicy", "marks"),
        ("MutatingAdmissionPolicyBinding", "marks"),
    ]
    why = "their templates are those of the objects that they wrap"
    spark = "sparkapplications.sparkoperator.k8s.io, scheduledsparkapplications.sparkoperator.k8s.io, sparkconnects"
    assert err == (
        f"not rewritten: denies for appwrappers.workload.codeflare.dev, experiments.kubeflow.org: {why}\n"
        f"not rewritten: denies for {spark}.sparkoperator.k8s.io: their controllers complete the templates with other fields\n"
    )


def test_exported_policies_need_nothing_of_this_project(tmp_path, capsys):
    assert run_command_line(["policies", "export"]) == 0
    (tmp_path / "p.yaml").write_text(capsys.readouterr().out)
    assert run_command_line(["policies", "export", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert (sorted(out.split("---\n")), err) == (sorted((tmp_path / "p.yaml").read_text().split("---\n")), "")


def test_exported_bindings_and_params_are_where_claimgate_runs(tmp_path, capsys):
    run_command_line(["policies", "new", "team", "--param", "--in", str(tmp_path)])
    capsys.readouterr()
    assert run_command_line(["policies", "export", str(tmp_path), "--own-namespace", "gates"]) == 0
    out = capsys.readouterr().out
    assert (out.count("namespace: gates\n"), out.count("claimgate-system")) == (2, 0)


def test_an_exported_name_that_exists_already_is_reported(tmp_path, capsys):
    text = (Path(POLICIES) / "policies.yaml").read_text()
    (tmp_path / "p.yaml").write_text(
        text.replace("Name: fails", "Name: denies-templates").replace("{name: fails}", "{name: denies-templates}")
    )
    assert run_command_line(["policies", "export", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "not exported: denies: its expansion cannot be rewritten: one part would have the name of the" in err
    assert "name: denies\n" not in out


def test_policies_that_cannot_be_rewritten_are_named(tmp_path, capsys):
    text = (Path(POLICIES) / "policies.yaml").read_text()
    (tmp_path / "p.yaml").write_text(
        text.replace('\'!("deny" in object.', '\'[1].all(object, true) || !("deny" in object.')
    )
    assert run_command_line(["policies", "export", str(tmp_path)]) == 0
    assert capsys.readouterr().err.startswith(
        "not exported: denies: its expansion cannot be rewritten: a macro has a variable"
    )


def test_policies_on_standard_input_need_a_file(capsys, monkeypatch):
    text = (Path(POLICIES) / "policies.yaml").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert run_command_line(["policies", "export", "-"]) == 2
    assert "name their file or folder" in capsys.readouterr().err


def test_a_policy_is_left_out_only_if_it_cannot_be_rewritten(tmp_path, capsys):
    text = (Path(POLICIES) / "policies.yaml").read_text()
    uses = "claimgate.dev/updates: spec, claimgate.dev/facts: gpu, "
    (tmp_path / "p.yaml").write_text(text.replace("annotations: {", "annotations: {" + uses, 1))
    assert run_command_line(["policies", "export", str(tmp_path)]) == 0
    assert "not exported: denies: uses facts (gpu), which only claimgate computes\n" in capsys.readouterr().err


def test_export_prints_the_shipped_policy_that_readme_names(capsys):
    assert run_command_line(["policies", "export"]) == 0
    exported = re.findall(r"^  name: (.+)$", capsys.readouterr().out, re.MULTILINE)
    assert [name for name in exported if not name.startswith("claims-exactly-one")] == []
    assert "only `claims-exactly-one` remains" in (ROOT / "docs" / "limits.md").read_text()


def test_a_mutating_policy_that_expands_is_named(tmp_path, capsys):
    text = (Path(POLICIES) / "policies.yaml").read_text()
    (tmp_path / "p.yaml").write_text(
        text.replace("{name: marks}", "{name: marks, annotations: {claimgate.dev/expand: pods}}", 1)
    )
    assert run_command_line(["policies", "export", str(tmp_path)]) == 0
    assert (
        "not exported: marks: expands to the pod templates of workloads (claimgate.dev/expand), which is rewritten for"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("selector", [False, True])
def test_export_includes_the_params_of_bindings(selector, tmp_path, capsys):
    reference = {"selector": {}} if selector else {"name": "wanted"}
    spec = {
        "policyName": "p",
        "validationActions": ["Deny"],
        "paramRef": {**reference, "parameterNotFoundAction": "Deny"},
    }
    manifests = [
        {
            "kind": "ValidatingAdmissionPolicy",
            "apiVersion": "admissionregistration.k8s.io/v1",
            "metadata": {"name": "p"},
            "spec": {
                "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
                "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]},
                "validations": [{"expression": "params.data.x == 'y'"}],
            },
        },
        {
            "kind": "ValidatingAdmissionPolicyBinding",
            "apiVersion": "admissionregistration.k8s.io/v1",
            "metadata": {"name": "b"},
            "spec": spec,
        },
        *({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}} for name in ("wanted", "other")),
    ]  # fmt: skip
    (tmp_path / "p.yaml").write_text("---\n".join(map(yamlfile.dump, manifests)))
    assert run_command_line(["policies", "export", str(tmp_path)]) == 0
    names = [one.value["metadata"]["name"] for one in yamlfile.load(capsys.readouterr().out)]
    assert names == ["p", "b", "wanted", *(["other"] if selector else [])]


@pytest.mark.parametrize(
    ("mutation", "told"),
    [
        (
            "Object{spec: Object.spec{priorityClasName: 'high'}}",
            "in Pod, which the API server reports only at admission (403): did you mean `priorityClassName`?",
        ),
        ("Object{spec: Object.spec{containers: [Object.spec.containers{imag: 'x'}]}}", "`Object.spec.containers.imag`"),
        ("Object{sepc: Object.sepc{a: 1}}", "`Object.sepc` does not exist in Pod"),
        ("has(object.spec.x) ? Object{} : Object{spec: Object.spec{hostNetwork: true}}", "`object.spec.x` does not"),
        ("Object{spec: Object.spec{containers: [Object.spec.containers{name: 'a', image: 'x'}]}}", ""),
        ("Object{metadata: Object.metadata{labels: {'anything': 'x'}}}", ""),
    ],
)
def test_check_names_fields_that_a_mutation_cannot_set(mutation, told, tmp_path, capsys):
    """kube-apiserver 1.36 accepts the policy, and then answers 403 to every request that the policy would change."""
    (tmp_path / "policy.yaml").write_text("---\n".join(map(yamlfile.dump, mutating(mutation))))
    fails = bool(told) and "has(" not in mutation
    run_command_line(["policies", "check", str(tmp_path)])
    out = capsys.readouterr().out
    assert ("    fails for every object: " in out, "    field: " in out) == (fails, bool(told) and not fails)
    assert told in out


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        (
            "[?object.metadata.labels[?'a']].size() == 0",
            'the optional entry `?object.metadata.labels[?"a"]` has the type dyn',
        ),
        ("{?'a': object.spec}.size() == 1", "the optional entry `?object.spec` has the type dyn"),
        ("{b'a': 1}.size() == 1", "has a key that no map can have"),
        ("true || {'x': {bytes('a'): 1}}.size() == 1", "has a key that no map can have"),
        ("[?object.spec.?nodeName].size() == 0 && [?optional.of(object)].size() == 1", ""),
        ("[[1]].map(v, {?'a': v[?0]}).size() == 1", ""),
        ("{b'a': object.metadata.name}.size() == 1 && {1: 'a'}.size() == 1", ""),
    ],
)
def test_check_names_policies_that_crash_the_api_server(expression, told, tmp_path, capsys):
    """kube-apiserver 1.36.2 drops the connection of the client that creates such a policy."""
    (tmp_path / "policy.yaml").write_text("---\n".join(map(yamlfile.dump, validating(expression))))
    run_command_line(["policies", "check", str(tmp_path)])
    out = capsys.readouterr().out
    assert ("kube-apiserver 1.36 crashes" in out) is bool(told)
    assert told in out


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("[Object{name: 'a'}]", '`Object{name: "a"}` must not be inside a list or a map of a JSONPatch value'),
        ("{'k': [{'a': Object.b{}}]}", "must not be inside a list or a map of a JSONPatch value"),
        ("Object{b: Object.b{c: 'd'}, l: [Object.l{}]}", ""),
        ("[{'name': 'a'}]", ""),
    ],
)
def test_check_names_patches_that_crash_the_api_server(value, told, tmp_path, capsys):
    """kube-apiserver 1.36.2 drops the connection of every request for which the policy is evaluated."""
    patch = f"[JSONPatch{{op: 'add', path: '/spec/k', value: {value}}}]"
    (tmp_path / "policy.yaml").write_text("---\n".join(map(yamlfile.dump, mutating(patch))))
    run_command_line(["policies", "check", str(tmp_path)])
    out = capsys.readouterr().out
    assert (told in out) if told else ("must not be inside" not in out)


KYVERNO = str(ROOT / "tests/data/suites/kyverno-kinds/policies.yaml")


def test_convert_prints_native_policies_and_names_policies_that_it_does_not_convert(capsys, tmp_path):
    assert run_command_line(["policies", "convert", KYVERNO]) == 1
    out, err = capsys.readouterr()
    assert err.endswith(
        "`looks-up` is not converted: uses `resource`, which only Kyverno has\n5 policies: 4 converted, 1 not\n"
    )
    (tmp_path / "native.yaml").write_text(out)
    assert run_command_line(["policies", "list", str(tmp_path)]) == 0
    assert "team-label-autogen-cronjobs" in capsys.readouterr().out


@pytest.mark.parametrize("verb", [["policies", "check"], ["policies", "list"], ["replay", str(SAMPLE), "--only"]])
def test_policies_of_other_projects_are_counted_in_a_warning(verb, capsys, tmp_path):
    assert run_command_line([*verb, KYVERNO]) == 2
    found = "found 1 ClusterPolicy of Kyverno, 1 MutatingPolicy of Kyverno, 1 NamespacedValidatingPolicy of Kyverno, 2 ValidatingPolicies of Kyverno"
    assert f"no native policy found; {found}" in capsys.readouterr().err
    shutil.copy(KYVERNO, tmp_path)
    shutil.copy(f"{POLICIES}/policies.yaml", tmp_path / "native.yaml")
    run_command_line([*verb, str(tmp_path)])
    assert f"warning: {found}" in capsys.readouterr().err


def test_nothing_to_convert_is_exit_2(capsys):
    assert run_command_line(["policies", "convert", POLICIES]) == 2
    assert "no policy of Kyverno, Gatekeeper or Kubewarden found" in capsys.readouterr().err


EXCEPTION = """
apiVersion: claimgate.dev/v1alpha1
kind: PolicyException
metadata: {name: old-plugin, namespace: research-a}
spec:
  rules: [pod-resources/whole-number]
  owner: ada@example.com
  reason: the old device plugin
  expires: "SOON"
""".replace("SOON", str(current_day() + dt.timedelta(days=20)))
BOUNDS = "policyExceptions: [{namespaces: [research-*], rules: [pod-resources], maxDays: 30}]\n"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("owner", "ownr", "x.yaml:7:3: spec.ownr: unknown field: did you mean `owner`?"),
        (
            "whole-number",
            "whole-numbr",
            "x.yaml:6:11: spec.rules[0]: unknown rule, group or policy `pod-resources/whole-numbr`: did you mean",
        ),
        ('"20', '"2020-01-31" # ', "x.yaml:9:3: spec.expires: it has no effect: it expired on 2020-01-31"),
        ('"20', '"9999-01-31" # ', "x.yaml:9:3: spec.expires: it has no effect: it ends on 9999-01-31, and claimgate"),
        ("research-a", "other", "x.yaml:6:3: spec.rules: it has no effect: claimgate.yaml allows no PolicyException"),
        ("  rules", "  kinds: [Job]\n  rules", "x.yaml:6:11: spec.kinds[0]: `Job` is a kind of 2 groups"),
    ],
)
def test_check_reports_mistakes_of_policy_exceptions(old, new, told, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("x.yaml").write_text(EXCEPTION)
    Path("claimgate.yaml").write_text(BOUNDS)
    assert run_command_line(["policies", "check", "x.yaml"]) == 0
    assert capsys.readouterr().out == "1 PolicyException: no mistake found (claimgate.yaml)\n"
    Path("x.yaml").write_text(EXCEPTION.replace(old, new))
    assert run_command_line(["policies", "check", "x.yaml"]) == 1
    assert told in capsys.readouterr().out


def test_exceptions_are_checked_beside_policies_and_without_bounds(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("x.yaml").write_text(EXCEPTION.replace("pod-resources/whole-number", "gpu-portable/all, own"))
    Path("own.yaml").write_text("---\n".join(map(yamlfile.dump, validating("true", name="own"))))
    assert run_command_line(["policies", "check", "."]) == 0
    told = capsys.readouterr().out
    assert told.startswith("1 policy compiles")
    assert "1 PolicyException: no mistake found (no configuration file, so bounds are not checked" in told
    assert run_command_line(["audit", "own.yaml", "--policies", "."]) == 0
    assert "x.yaml:2: a PolicyException has no effect among policies" in capsys.readouterr().err
