"""Objects of one input are context for each other, in replay and in audit. Warnings do not change the exit code 0."""

import json
from pathlib import Path

import pytest
import yaml

from tests import quick_yaml
from webhook.cli import run_command_line
from webhook.rules.catalogue import REPEATED_KEY, RULES_OF_FILES

TEMPLATE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: single, namespace: team}
spec: {spec: {devices: {requests: [{name: main, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: team}
spec:
  containers: [{name: a, image: x, resources: {claims: [{name: g, request: main}]}}]
  resourceClaims: [{name: g, resourceClaimTemplateName: single}]
"""
DOMAIN = """\
apiVersion: resource.nvidia.com/v1beta1
kind: ComputeDomain
metadata: {name: d, namespace: team}
spec: {numNodes: 2, channel: {resourceClaimTemplate: {name: single}}}
"""
CREATED = yaml.safe_dump({"operation": "CREATE", "object": quick_yaml.load(TEMPLATE)})


@pytest.mark.parametrize(
    "command, other",
    [("audit", TEMPLATE), ("replay", TEMPLATE), ("replay", CREATED)],
    ids=["audit", "replay", "replay of a request"],
)
def test_a_template_in_the_same_input_exists(command: str, other: str, tmp_path: Path, capsys):
    file = tmp_path / "all.yaml"
    file.write_text(f"{POD}---\n{other}")
    assert run_command_line([command, str(file)]) == 0
    assert "not found" not in capsys.readouterr().out


@pytest.mark.parametrize("command", ["audit", "replay"])
def test_a_missing_object_of_a_warning_does_not_change_the_exit_code(command: str, tmp_path: Path, capsys):
    file = tmp_path / "pod.yaml"
    file.write_text(POD)
    assert run_command_line([command, str(file)]) == 0
    out = capsys.readouterr().out
    assert "ResourceClaimTemplate single not found" in out.replace("team/single", "single")


def test_a_template_of_a_compute_domain_is_not_reported(tmp_path: Path, capsys):
    file = tmp_path / "domain.yaml"
    file.write_text(f"{POD.replace(', request: main', '')}---\n{DOMAIN}")
    assert run_command_line(["audit", str(file)]) == 0
    assert "not found" not in capsys.readouterr().out


LIMITS = [f"resources: {{limits: {{nvidia.com/gpu: {amount}}}}}" for amount in (1, "half")]
TWICE = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: a\n    image: x\n    "


def test_replay_reports_a_repeated_key_and_reviews_the_last_value(tmp_path: Path, capsys):
    file = tmp_path / "pod.yaml"
    file.write_text(TWICE + "\n    ".join(LIMITS))
    assert run_command_line(["replay", str(file)]) == 1
    out, err = capsys.readouterr()
    assert err.count("\n") == 1
    assert f"warning: {file}:9:5: spec.containers[0]: key `resources` appears twice in one mapping" in err
    assert "`half` must be a whole number" in out
    file.write_text(TWICE + "\n    ".join(reversed(LIMITS)))
    assert run_command_line(["replay", str(file)]) == 0
    assert "must be a whole number" not in capsys.readouterr().out


def test_a_repeated_key_with_an_empty_first_value_loses_nothing(tmp_path: Path, capsys):
    file = tmp_path / "queue.yaml"
    queue = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: q}\nspec:\n"
    empty, groups = "  resourceGroups: {}\n", "  resourceGroups: [{coveredResources: [cpu], flavors: []}]\n"
    run_command_line(["audit", str(_with(file, queue + empty + groups))])
    assert "repeated-key" not in capsys.readouterr().out
    run_command_line(["audit", str(_with(file, queue + groups + empty))])
    assert "repeated-key" in capsys.readouterr().out


def _with(file: Path, text: str) -> Path:
    file.write_text(text)
    return file


def test_kubectl_does_not_read_the_repeated_key_of_a_configuration(tmp_path: Path, capsys):
    write = "apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\nscheduler: {extraArgs: {v: '2'}}\nscheduler: {}\n"
    (tmp_path / "kubeadm.yaml").write_text(write)
    assert run_command_line(["audit", str(tmp_path)]) == 1
    assert "twice in one mapping, and most programs use only the last value\n" in capsys.readouterr().out


def test_a_repeated_key_is_a_finding_of_audit(tmp_path: Path, capsys):
    file = tmp_path / "pod.yaml"
    file.write_text(
        f"kind: ConfigMap\napiVersion: v1\nmetadata: {{name: c}}\n---\n{TWICE}" + "\n    ".join(LIMITS[::-1])
    )
    assert run_command_line(["audit", str(file)]) == 1
    out, err = capsys.readouterr()
    assert err == ""
    assert (
        f"Pod default/p\n"
        f"  ⚠ warn  {file}:13:5  manifest/repeated-key\n"
        "    spec.containers[0]: key `resources` appears twice in one mapping, and kubectl uses the last value\n"
        "    fix: keep one of them, or merge their values\n"
    ) in out
    assert "1 warn" in out
    file.write_text(TWICE + LIMITS[0])
    assert run_command_line(["audit", str(file)]) == 0
    file.write_text(TWICE + "\n    ".join(LIMITS[:1] * 2))
    assert run_command_line(["audit", str(file)]) == 0
    assert "repeated-key" not in capsys.readouterr().out


def test_a_key_that_kustomize_refuses_is_reported_even_if_it_loses_nothing(tmp_path: Path, capsys):
    """kustomize 1.36 refuses a resource with such a key: mapping key "data" already defined. A patch with such a key is
    merged.
    """
    twice = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\ndata: {k: v}\n"
    for name in ("listed", "patch", "alone"):
        (tmp_path / f"{name}.yaml").write_text(twice)
    (tmp_path / "kustomization.yaml").write_text("resources: [listed.yaml]\npatches: [{path: patch.yaml}]\n")
    assert run_command_line(["audit", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert (out.count("manifest/repeated-key"), err.count("appears")) == (1, 0)
    assert f"{tmp_path}/listed.yaml:5:1  manifest/repeated-key" in out
    assert "key `data` appears twice in one mapping, and kustomize refuses the file" in out


def test_a_repeated_key_in_a_list_is_reported_for_its_object(tmp_path: Path, capsys):
    file = tmp_path / "list.json"
    head = '"apiVersion": "v1", "kind": "ConfigMap", "metadata"'
    first = f'{{{head}: {{"name": "a"}}, "data": {{"k": "1"}}}}'
    second = f'{{{head}: {{"name": "b"}}, "data": {{"k": "1", "k": "2"}}}}'
    file.write_text(f'{{"kind": "List", "apiVersion": "v1", "items": [{first},\n{second}]}}')
    assert run_command_line(["audit", "--output", "json", str(file)]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    (found,) = (each for each in findings if each["result"] == "warn")
    assert (found["path"], found["line"], found["object"]["name"], found["rule"]) == (
        "",  # for JSON, the reader records only the position
        2,
        "b",
        "manifest/repeated-key",
    )


def test_a_repeated_key_outside_objects_is_reported_on_stderr(tmp_path: Path, capsys):
    (tmp_path / "values.yaml").write_text("image: a\nimage: b\n")
    (tmp_path / "c.yaml").write_text("kind: ConfigMap\napiVersion: v1\nmetadata: {name: c}\n")
    (tmp_path / "texts.json").write_text('{"reason": "Reason",\n"reason": {"lost": "Lost"}}')
    (tmp_path / "half.yaml").write_text("kind: ConfigMap\ndata: a\ndata: b\n")
    assert run_command_line(["audit", str(tmp_path)]) == 0
    err = capsys.readouterr().err
    assert "values.yaml:2:1: key `image` appears twice in one mapping; expected it once\n" in err
    assert "texts.json:2:1: key `reason` appears twice in one object; expected it once\n" in err
    assert "half.yaml:3:1: key `data` appears twice in one mapping, and most programs use only the last value" in err


def test_the_keys_that_one_mapping_repeats_are_one_finding(tmp_path, capsys):
    file = tmp_path / "a.yaml"
    part = "  labels: {a: %s}\n  annotations: {a: %s}\n"
    file.write_text("apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n" + part % ("b", "b") + part % ("c", "c"))
    run_command_line(["audit", str(file)])
    out = capsys.readouterr().out
    assert out.count("manifest/repeated-key") == 1
    assert (
        "key `labels` appears twice in one mapping, and kubectl uses the last value (likewise `annotations`)\n" in out
    )


NAMED_POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: a, image: %s}]}\n"


def test_a_missing_separator_is_one_finding_of_its_file(tmp_path, capsys):
    file = tmp_path / "a.yaml"
    file.write_text(
        NAMED_POD % ("a", "x") + NAMED_POD % ("b", "z") + "---\n" + NAMED_POD % ("c", "x") + NAMED_POD % ("d", "z")
    )
    run_command_line(["audit", str(file)])
    out = capsys.readouterr().out
    assert out.count("manifest/repeated-key") == 1
    assert f"  {file}:5:1  manifest/repeated-key\n" in out
    assert (
        "    apiVersion: a line `---` is missing above, so several objects are one document, and kubectl uses the last "
        "value of each key\n    fix: write `---` above this line\n"
    ) in out
    assert f"also in {file}:14:1\n" in out


def test_kustomize_refuses_a_file_without_a_separator(tmp_path, capsys):
    (tmp_path / "a.yaml").write_text(NAMED_POD % ("a", "x") + NAMED_POD % ("b", "z"))
    (tmp_path / "kustomization.yaml").write_text("resources: [a.yaml]\n")
    run_command_line(["audit", str(tmp_path)])
    assert "several objects are one document, and kustomize refuses the file\n" in capsys.readouterr().out


def test_an_object_that_is_written_twice_loses_nothing(tmp_path, capsys):
    (tmp_path / "a.yaml").write_text(NAMED_POD % ("a", "x") * 2)
    run_command_line(["audit", str(tmp_path)])
    assert "repeated-key" not in capsys.readouterr().out


def test_items_of_a_list_that_repeat_keys_are_one_finding(tmp_path, capsys):
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n"
    item = "  - {name: %s, image: x, name: %s}\n"
    (tmp_path / "a.yaml").write_text(pod + item % ("a", "b") + item % ("c", "d"))
    run_command_line(["audit", str(tmp_path)])
    out = capsys.readouterr().out
    assert out.count("manifest/repeated-key") == 1
    assert "spec.containers[0]: key `name` appears twice" in out
    assert "kubectl uses the last value (likewise spec.containers[1])\n" in out


def test_fields_of_the_object_before_a_missing_separator_are_not_reported(tmp_path, capsys):
    role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r}\nrules: []\n"
    budget = "kind: PodDisruptionBudget\napiVersion: policy/v1\nmetadata: {name: b}\nspec: {minAvailabel: 1}\n"
    (tmp_path / "a.yaml").write_text(role + budget)
    run_command_line(["audit", str(tmp_path)])
    out = capsys.readouterr().out
    assert "rules" not in out
    assert "spec.minAvailabel: is not a field" in out


@pytest.mark.parametrize("rule", list(RULES_OF_FILES))
def test_rules_of_files_are_chosen_left_out_and_explained(rule: str, tmp_path: Path, capsys):
    job = "apiVersion: ray.io/v10\nkind: RayJob\nmetadata: {name: j, namespace: a, namespace: b}\n"
    (tmp_path / "a.yaml").write_text(job)
    run_command_line(["audit", "-o", "json", "--rule", rule, str(tmp_path)])
    chosen = json.loads(capsys.readouterr().out)["findings"]
    assert {(each["rule"], each["result"]) for each in chosen} == {(rule, "warn")}
    configuration = tmp_path / "claimgate.yaml"
    configuration.write_text(f"report: {{skip: [{rule}]}}\n")
    for skip in (["--skip", rule], ["--config", str(configuration)]):
        run_command_line(["audit", "-o", "json", *skip, str(tmp_path / "a.yaml")])
        others = {each["rule"] for each in json.loads(capsys.readouterr().out)["findings"]}
        assert others & RULES_OF_FILES.keys() == RULES_OF_FILES.keys() - {rule}
    assert run_command_line(["explain", rule]) == 0
    assert capsys.readouterr().out.startswith(f"{rule}\n")


def test_a_level_of_a_rule_of_files_is_refused(tmp_path: Path, capsys):
    """Params and levels change the rules of policies, and no policy has this rule."""
    configuration = tmp_path / "claimgate.yaml"
    rules, groups = f'{{{REPEATED_KEY.id}: "off"}}', f'{{{REPEATED_KEY.group}: "off"}}'
    configuration.write_text(f"levels: {{rules: {rules}, groups: {groups}}}\n")
    assert run_command_line(["audit", "--config", str(configuration), str(tmp_path)]) == 2
    printed = capsys.readouterr().err
    assert f"no policy has the rule `{REPEATED_KEY.id}`: write it into report.skip" in printed
    assert f"no policy has the rules of `{REPEATED_KEY.group}`: write their ids into report.skip" in printed
