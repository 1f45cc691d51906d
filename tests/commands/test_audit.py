"""`claimgate audit`: findings with their lines, counts of all other objects, and the exit code."""

import json
from pathlib import Path

import pytest

from webhook.cli import run_command_line
from webhook.yamltext import yamlfile

HERE = Path(__file__).parents[1] / "data" / "commands"
POLICIES = ["--only", str(HERE / "policies")]


def audit(*arguments):
    return run_command_line(["audit", *POLICIES, *map(str, arguments)])


def test_findings_name_file_line_object_and_policy(capsys):
    assert audit(HERE / "objects") == 1
    objects = HERE / "objects"
    out = capsys.readouterr().out
    assert out.splitlines()[:21] == [
        "Pod team/bad",
        f"  ✖ fail  {objects}/list.yaml:13:7  policy denies",
        "    metadata.labels.deny: is not allowed; remove it",
        '    13 | deny: "1"',
        "       | ^^^^",
        "",
        "Pod team/reviewed",
        f"  ✖ fail  {objects}/review.json:11:18  policy denies",
        "    metadata.labels.deny: is not allowed; remove it",
        '    11 | "labels": {"deny": "1"}}}',
        "       |            ^^^^^^",
        "",
        "Deployment default/d",
        f"  ✖ fail  {objects}/several.yaml:8:9  policy denies",
        "    spec.template.metadata.labels.deny: is not allowed; remove it",
        '    8 | deny: "1"',
        "      | ^^^^",
        "",
        "Pod default/warned",
        f"  ⚠ warn  {objects}/several.yaml:11:1  policy warns",
        "    is frowned upon",
    ]
    assert out.splitlines()[-1] == (
        "7 objects in 3 files: 1 without findings, 5 with findings (3 fail, 1 warn, 1 error), 1 not read "
        "(-v names the kinds); also not read: 1 document without a Kubernetes object"
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("kind: Pod\napiVersion: v1\nmetadata: {name: a}\n", 0, id="nothing found"),
        pytest.param("values: only\n", 0, id="nothing to audit"),
        pytest.param(
            "kind: Pod\napiVersion: v1\nmetadata: {name: a, labels: {warn: x}}\n", 1, id="a warning is a finding"
        ),
        pytest.param("kind: Pod\napiVersion: v1\nmetadata: {name: a, labels: {fail: x}}\n", 0, id="not decided"),
        pytest.param("kind: [\n", 2, id="unreadable"),
        pytest.param("", 0, id="an empty file"),
    ],
)
def test_exit_codes(text, code, tmp_path):
    (tmp_path / "x.yaml").write_text(text)
    assert audit(tmp_path) == code


STORED = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: raw, namespace: team}
spec: {runtimeRef: {name: r}, trainer: {resourcesPerNode: {limits: {gpu: 2}}}}
---
apiVersion: v1
kind: Pod
metadata: {name: bound, namespace: team}
spec:
  nodeName: node-1
  containers: [{name: a, image: x, resources: {claims: [{name: g}]}}]
  resourceClaims: [{name: g, resourceClaimName: c}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c, namespace: team}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}
"""


@pytest.mark.parametrize(
    ("reviewed", "found"),
    [
        pytest.param((), ["device-claims/node-name"], id="by default, as new objects with gpu translated"),
        pytest.param(
            ("--as", "create"), ["device-claims/node-name"], id="with --as create, as new objects with gpu translated"
        ),
        pytest.param(
            ("--as", "stored"),
            ["gpu-portable/untranslated"],
            id="with --as stored, unchanged and on the scheduler's node",
        ),
    ],
)
def test_a_dump_is_validated_as_stored_objects(reviewed, found, tmp_path, capsys):
    (tmp_path / "dump.yaml").write_text(STORED)
    assert run_command_line(["audit", *reviewed, str(tmp_path), "-o", "json"]) == 1
    entries = json.loads(capsys.readouterr().out)["findings"]
    assert [one["rule"] for one in entries if one["result"] in ("fail", "warn")] == found


def test_unreadable_files_are_reported_after_the_findings(tmp_path, capsys):
    (tmp_path / "broken.yaml").write_text("kind: [\n")
    assert audit(tmp_path, HERE / "objects" / "list.yaml", "-o", "json") == 2
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert document["summary"]["findings"]["fail"] == 1
    assert [one["file"] for one in document["unreadable"]] == [str(tmp_path / "broken.yaml")]
    assert err.startswith(f"error: {tmp_path}/broken.yaml:")


def test_a_mistake_does_not_hide_other_mistakes(tmp_path, capsys):
    text = "kind: Pod\napiVersion: v1\nmetadata: {name: a, labels: {warn: x}}\n---\nkind: {{ .Values.kind }}\n"
    (tmp_path / "chart.yaml").write_text(text)
    assert audit(tmp_path) == 1
    out, err = capsys.readouterr()
    assert out.endswith("1 with findings (1 warn); not read: 1 template\n")
    assert err == (
        f"note: 1 file is a template and not audited, first {tmp_path}/chart.yaml: "
        "render the templates and audit the result, for example with `helm template CHART | claimgate audit -`\n"
    )


def test_a_value_that_sed_replaces_makes_a_file_a_template(tmp_path, capsys):
    text = "kind: Pod\napiVersion: v1\nmetadata:\n  name: %s\n"
    (tmp_path / "user.yaml").write_text(text % "%USER%")
    assert audit(tmp_path) == 0
    assert "not read: 1 template" in capsys.readouterr().out
    (tmp_path / "user.yaml").write_text(text % "%USER")
    assert audit(tmp_path) == 2


POD = "kind: Pod\napiVersion: v1\nmetadata: {name: a, labels: {warn: x}}\n"


@pytest.fixture
def tree(tmp_path):
    files = {
        "charts/web/Chart.yaml": "apiVersion: v2\nname: web\n",
        "charts/web/values.yaml": "replicas: 1\n",
        "charts/web/templates/quoted.yaml": POD.replace("name: a", 'name: "{{ .Release.Name }}"'),
        "charts/web/templates/ranged.yaml": "{{- range .Values.x }}\nkind: Pod\n{{- end }}\n",
        "charts/web/templates/plain.yaml": "kind: Secret\napiVersion: v1\nmetadata: {name: s}\n",
        "base/kustomization.yaml": "resources: [pod.yaml]\n",
        "base/patch.yaml": "- {op: remove, path: /spec}\n",
        "base/pod.yaml": POD,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_repositories_of_charts_and_kustomizations_get_no_false_findings(tree, capsys):
    assert audit(tree) == 1
    out, err = capsys.readouterr()
    assert out == (
        "Pod default/a\n"
        f"  ⚠ warn  {tree}/base/pod.yaml:1:1  policy warns\n"
        "    is frowned upon\n"
        "\n"
        "2 objects in 8 files: 0 without findings, 1 with findings (1 warn), 1 not read (-v names the kinds); "
        "also not read: 2 templates, 3 documents without a Kubernetes object, 1 patch or object that is not applied\n"
    )
    assert err == (
        f"note: 2 files are templates and not audited, first {tree}/charts/web/templates/quoted.yaml: "
        f"render the templates and audit the result, for example with `helm template {tree}/charts/web | claimgate audit -`\n"
    )


def test_a_subchart_is_rendered_with_its_parent(tree, capsys):
    inner = tree / "charts" / "web" / "charts" / "db"
    (inner / "templates").mkdir(parents=True)
    (inner / "Chart.yaml").write_text("apiVersion: v2\nname: db\n")
    (inner / "templates" / "pod.yaml").write_text("{{ .Values.x }}\n")
    assert audit(inner, "--require-input") == 2
    assert f"`helm template {tree}/charts/web | claimgate audit -`" in capsys.readouterr().err


def test_a_beta_review_is_read_and_noted(tmp_path, capsys):
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1"}
    request = {"operation": "CREATE", "object": yamlfile.load(POD)[0].value}
    (tmp_path / "x.json").write_text(json.dumps({**review, "request": request}))
    assert audit(tmp_path) == 1
    assert capsys.readouterr().err.startswith(f"note: {tmp_path}/x.json:1: apiVersion `admission.k8s.io/v1beta1`")


def test_verbose_names_what_is_only_counted(tree, capsys):
    assert audit(tree, "-v") == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(": not audited")[0] for line in lines[4:9]] == [
        f"{tree}/base/kustomization.yaml:1",
        f"{tree}/base/patch.yaml:1",
        f"{tree}/charts/web/Chart.yaml:1",
        f"{tree}/charts/web/values.yaml:1",
        "no policy is about Secret: 1 object",
    ]


def test_an_object_with_unread_pods_does_not_pass(tmp_path, capsys):
    container = {"image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    spec = {"entrypoint": "a", "templates": [{"name": "a", "container": container}]}
    head = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "a", "namespace": "team"}}
    (tmp_path / "workflow.json").write_text(json.dumps({**head, "spec": spec}))
    assert run_command_line(["audit", str(tmp_path)]) == 0
    said = "1 object in 1 file: 0 without findings, 0 with findings, 1 not read (-v names the kinds)"
    assert said in capsys.readouterr().out
    assert run_command_line(["audit", str(tmp_path), "-v"]) == 0
    assert "the pods of Workflow.argoproj.io are not read: 1 object" in capsys.readouterr().out
    run_command_line(["audit", str(tmp_path), "-o", "json"])
    assert json.loads(capsys.readouterr().out)["podsNotRead"] == {"Workflow.argoproj.io": 1}


@pytest.mark.parametrize("pattern", ["base", "base/*", "pod.yaml", "*.yaml", "**/pod.yaml", "/base/"])
def test_files_are_left_out_by_name_and_path(pattern, tree, capsys):
    (tree / "note.json").write_text("{}")
    assert audit(tree, "--exclude", pattern) == 0
    assert "frowned" not in capsys.readouterr().out


def test_a_pattern_that_excludes_every_file_is_reported_as_the_cause(tree, capsys):
    said = f"{tree}: no object was audited: --include, --exclude or .claimgateignore leaves out every file\n"
    assert audit(tree, "--exclude", "*") == 0
    assert f"warning: {said}" in capsys.readouterr().err
    assert audit(tree, "--exclude", "*", "--require-input") == 2
    assert f"error: {said}".replace("no object", "--require-input: no object") in capsys.readouterr().err


def test_a_group_without_a_version_is_reported(tmp_path, capsys):
    (tmp_path / "x.yaml").write_text("apiVersion: apps\nkind: Deployment\nmetadata: {name: a}\n")
    assert run_command_line(["audit", *POLICIES, "-o", "json", str(tmp_path)]) == 1
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    text = "apiVersion: `apps` is a group without a version, so the API server refuses the object: write `apps/v1`"
    assert (finding["rule"], finding["message"]) == ("manifest/unknown-kind", text)


@pytest.mark.parametrize(
    ("version", "kind", "said"),
    [
        ("apps/v1", "deployment", "`deployment` is not a kind of `apps/v1`, so the API server refuses the object: write `Deployment`"),
        ("apps/v1", "Deploymet", "write `Deployment`"),
        ("kubeflow.org/v1", "PytorchJob", "write `PyTorchJob`"),
        ("v1", "Job", "group `batch` or `batch.volcano.sh` has that kind"),
        ("v1", "Widget", "`Widget` is not a kind of `v1`, so the API server refuses the object"),
        ("batch/v1", "Pod", "write `apiVersion: v1`"),
        ("v1", "<kind>", ""),
        ("v1", "Template", ""),
        ("v1", "Config", ""),
        ("v1", "Status", ""),
        ("v1", "APIResourceList", ""),
        ("apps/v1", "DeleteOptions", ""),
        ("networking.k8s.io/v1alpha1", "ClusterCIDR", ""),
        ("networking.k8s.io/v1", "ClusterCIDR", "`ClusterCIDR` is not a kind of `networking.k8s.io/v1`"),
        ("v1alpha1", "HostnameConfig", ""),
        ("v1alpha1", "Secrets", ""),
        ("v1beta1", "Deployment", "group `apps` has that kind"),
        ("v1.0", "distributed", ""),
        ("v1.0", "Job", "group `batch` or `batch.volcano.sh` has that kind"),
        ("resource.k8s.io/v1alpha2", "ResourceClass", ""),
        ("kubeflow.org/v1", "Notebook", ""),
        ("example.org/v1", "Widget", ""),
    ],
)  # fmt: skip
def test_an_unknown_kind_is_reported(version, kind, said, tmp_path, capsys):
    (tmp_path / "x.yaml").write_text(f'apiVersion: {version}\nkind: "{kind}"\nmetadata: {{name: a}}\n')
    assert run_command_line(["replay", *POLICIES, str(tmp_path)]) == 0
    err = capsys.readouterr().err
    assert err.startswith(f"warning: {tmp_path}/x.yaml:2: kind: `{kind}` is not a kind of ") is bool(said)
    assert said in err
    assert run_command_line(["audit", *POLICIES, "-o", "json", str(tmp_path)]) == bool(said)
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [(each["rule"], each["result"]) for each in findings] == [("manifest/unknown-kind", "warn")] * bool(said)
    assert all(said in each["message"] for each in findings)


@pytest.mark.parametrize(
    ("rest", "is_object"),
    [("metadata: {name: a}\n", True), ("metadata: {}\n", True), ("", False), ("spec: {steps: []}\n", False)],
)
def test_a_configuration_of_a_program_has_no_metadata(rest, is_object, tmp_path, capsys):
    (tmp_path / "x.yaml").write_text(f"apiVersion: v1\nkind: LDAPSyncConfig\n{rest}")
    assert run_command_line(["audit", *POLICIES, "-o", "json", str(tmp_path)]) == is_object
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [each["rule"] for each in findings] == ["manifest/unknown-kind"] * is_object


def test_a_misspelled_kind_without_metadata_is_reported(tmp_path, capsys):
    (tmp_path / "x.yaml").write_text("apiVersion: apps/v1\nkind: Deploymet\nspec: {}\n")
    assert run_command_line(["audit", *POLICIES, "-o", "json", str(tmp_path)]) == 1
    assert "write `Deployment`" in capsys.readouterr().out


def test_policyreports_beside_text(tmp_path, capsys):
    kept = tmp_path / "report.yaml"
    assert audit(HERE / "objects", "-o", "text", "-o", f"policyreport={kept}") == 1
    reports = [document.value for document in yamlfile.read(kept)]
    assert [(one["kind"], one["metadata"].get("namespace")) for one in reports] == [
        ("PolicyReport", "default"),
        ("PolicyReport", "team"),
    ]
    assert [one["summary"]["fail"] for one in reports] == [1, 2]
    assert "7 objects" in capsys.readouterr().out


def test_audited_objects_are_context_for_each_other(tmp_path, capsys):
    """A TrainJob is not evaluated if its runtime is missing in the input and Trainer does not ship the runtime."""
    samples = Path(__file__).parents[2] / "deploy" / "samples" / "manifests"
    job, runtime = tmp_path / "job.yaml", tmp_path / "runtime.yaml"
    for path, name in (
        (job, "kubeflow-trainjob-multi-node.yaml"),
        (runtime, "kubeflow-runtime-torch-distributed.yaml"),
    ):
        path.write_text((samples / name).read_text().replace("torch-distributed", "torch-own"))
    run_command_line(["audit", str(job)])
    assert "  ○ ClusterTrainingRuntime torch-own not found (" in capsys.readouterr().out
    run_command_line(["audit", str(job), str(runtime)])
    assert "not found" not in capsys.readouterr().out
    run_command_line(["audit", str(samples / "kubeflow-trainjob-multi-node.yaml")])
    assert "not found" not in capsys.readouterr().out


def test_a_missing_object_in_another_kustomization_is_named_with_its_file(tmp_path, capsys, monkeypatch):
    """The object is not used, because the other kustomization may be for another cluster."""
    meta = {"name": "j", "namespace": "team"}
    pod = {"restartPolicy": "Never", "priorityClassName": "high", "containers": [{"name": "a", "image": "x"}]}
    pod["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": {"spec": pod}}}
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1}
    for folder, obj in (("cluster", high), ("jobs", job), ("more", {**high, "value": 2})):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "kustomization.yaml").write_text("resources: [object.yaml]")
        (tmp_path / folder / "object.yaml").write_text(json.dumps(obj))
    monkeypatch.chdir(tmp_path)
    where = "not among the files that are applied together with the object"
    run_command_line(["audit", "cluster", "jobs"])
    assert f"○ PriorityClass high is only in cluster/object.yaml, {where} (" in flat(capsys.readouterr().out)
    run_command_line(["audit", "."])
    assert f"is only in cluster/object.yaml and 1 other file, {where} (" in flat(capsys.readouterr().out)
    run_command_line(["audit", "jobs", "--context", "cluster"])
    assert "PriorityClass high" not in capsys.readouterr().out


def flat(text):
    """Return a text with its wrapped lines joined."""
    return " ".join(text.split())


def example(request):
    """Return a ResourceClaimTemplate with this request, and a Pod that names the request. The template has the same
    name in each example.
    """
    return f"""
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: gpus}}
spec: {{spec: {{devices: {{requests: [{{name: {request}, exactly: {{deviceClassName: gpu.nvidia.com}}}}]}}}}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: pod-{request}}}
spec:
  resourceClaims: [{{name: gpus, resourceClaimTemplateName: gpus}}]
  containers: [{{name: main, image: i, resources: {{claims: [{{name: gpus, request: {request}}}]}}}}]
"""


def test_an_example_refers_to_objects_of_its_own_folder(tmp_path, capsys):
    """An audit looks up the objects of a file in the folder of the file. Files of --context are looked up for every
    folder.
    """
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "example.yaml").write_text(example(name))
    assert run_command_line(["audit", str(tmp_path)]) == 0, capsys.readouterr().out
    context = tmp_path / "one" / "example.yaml"
    assert run_command_line(["audit", str(tmp_path), "--context", str(context)]) == 1
    findings = capsys.readouterr().out
    assert "pod-two" in findings
    assert "pod-one" not in findings


def test_context_that_cannot_be_read_stops_the_audit(tmp_path, capsys):
    assert audit(HERE / "objects", "--context", tmp_path / "absent") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "no such file or folder" in err


def test_published_manifests_are_evaluated_without_an_error(tmp_path, capsys):
    """Each manifest is evaluated or reported as unreadable, and no expression of a shipped policy fails."""
    kept = tmp_path / "report.json"
    assert run_command_line(["audit", str(HERE.parent / "manifests"), "-o", f"json={kept}"]) in {1, 2}
    document = json.loads(kept.read_text())
    assert document["summary"]["objects"] > 300
    assert [one for one in document["findings"] if one["result"] == "error"] == []
    errors = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("note: ")]
    assert len(errors) == len(document["unreadable"])


@pytest.mark.parametrize("verb", ["audit", "replay"])
def test_a_policy_without_a_binding_is_reported_and_can_be_evaluated(verb, tmp_path, capsys):
    policy = yamlfile.read(HERE / "policies" / "policies.yaml")[0].value
    (tmp_path / "policy.yaml").write_text(yamlfile.dump(policy))
    (tmp_path / "pod.yaml").write_text("kind: Pod\napiVersion: v1\nmetadata: {name: a, labels: {deny: x}}\n")
    arguments = [verb, "--only", str(tmp_path / "policy.yaml"), str(tmp_path / "pod.yaml")]
    assert run_command_line(arguments) == 0
    said = f"warning: policy `denies` ({tmp_path}/policy.yaml) is not evaluated, because no binding names it: "
    assert capsys.readouterr().err == f"{said}add a binding, or evaluate it with --unbound\n"
    assert run_command_line([*arguments, "--unbound"]) == 1
    out, err = capsys.readouterr()
    assert "metadata.labels.deny: is not allowed; remove it" in out
    assert err == ""


def test_a_broken_file_that_is_not_a_manifest_is_counted(tmp_path, capsys):
    (tmp_path / "tsconfig.json").write_text('{ // comments\n  "compilerOptions": {},\n}\n')
    (tmp_path / "pod.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    assert run_command_line(["audit", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "1 object in 2 files" in out
    assert "1 document without a Kubernetes object" in out
    assert ("tsconfig" in out, err) == (False, "")
    assert run_command_line(["audit", "-v", str(tmp_path)]) == 0
    assert f"{tmp_path}/tsconfig.json:1: not audited: not a Kubernetes manifest: not JSON" in capsys.readouterr().out
    assert run_command_line(["audit", str(tmp_path / "tsconfig.json")]) == 2
    assert run_command_line(["replay", str(tmp_path)]) == 0
    told = "note: 1 file cannot be read and does not look like a Kubernetes manifest, first "
    assert told + f"{tmp_path}/tsconfig.json:1:3: not JSON" in capsys.readouterr().err


def test_findings_link_to_the_published_page_of_their_rule(capsys):
    """People who read a report without a command line need a link to the page of a rule, with its heading."""
    root = Path(__file__).parents[2]
    broken = str(root / "examples" / "research-team" / "broken" / "mpijob-slots.yaml")
    assert run_command_line(["audit", broken, "--docs-address", "https://docs.example/v1/", "-o", "sarif"]) == 1
    sarif = json.loads(capsys.readouterr().out)["runs"][0]
    assert sarif["tool"]["driver"]["informationUri"] == "https://docs.example/v1/"
    [rule] = [each for each in sarif["tool"]["driver"]["rules"] if each["id"] == "training-job/slots-for-ranks"]
    assert rule["helpUri"] == "https://docs.example/v1/rules/training-job/#training-jobslots-for-ranks"
    refused = str(root / "examples" / "research-team" / "broken" / "inference-gpu.yaml")
    run_command_line(["audit", refused, "--docs-address", "https://docs.example/v1/", "-o", "sarif"])
    [rule] = json.loads(capsys.readouterr().out)["runs"][0]["tool"]["driver"]["rules"]
    assert rule["helpUri"] == "https://docs.example/v1/rules/gpu-portable/#gpu-portableall", "a rule in CEL"
    assert rule["fullDescription"]["text"].startswith("Docker understands `all`, but Kubernetes needs a number of")
    assert "`claimgate explain gpu-portable/all`" in rule["help"]["markdown"]
    assert "\n## training-job/slots-for-ranks\n" in (root / "docs" / "rules" / "training-job.md").read_text()


def test_a_file_that_a_kustomization_lists_is_read_as_kustomize_reads_it(tmp_path, capsys):
    job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, namespace: team}\nspec: {template: {spec: {SPEC}}}\n"
    spec = "restartPolicy: Never, containers: [{name: a, image: x, args: [--feature, on]}]"
    (tmp_path / "job.yaml").write_text(job.replace("SPEC", spec))
    assert run_command_line(["audit", str(tmp_path)]) == 1
    assert "must be a string, not true" in capsys.readouterr().out
    (tmp_path / "kustomization.yaml").write_text("resources: [job.yaml]\n")
    assert run_command_line(["audit", str(tmp_path)]) == 0
