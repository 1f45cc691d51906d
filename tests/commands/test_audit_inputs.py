"""Which files an audit reads, what it renders, and which objects changed since a revision."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from webhook.cli import run_command_line
from webhook.commands.audit_index import Indexer
from webhook.commands.rendering import cause_of_failure, replace_by_rendered_objects
from webhook.input.document_stream import DocumentStream

HERE = Path(__file__).parents[1] / "data" / "commands"
POLICIES = ["--only", str(HERE / "policies")]
POD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {0}\n  labels: {{deny: x}}\nspec: {{containers: []}}\n"


def written(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def denied(capsys, *arguments, code=1):
    assert run_command_line(["audit", *POLICIES, *map(str, arguments), "-o", "ndjson"]) == code
    lines = map(json.loads, capsys.readouterr().out.splitlines())
    return [each["object"]["name"] for each in lines if each["result"] == "fail"]


TREE = {"a/one.yaml": POD.format("one"), "a/two.yml": POD.format("two"), "b/three.yaml": POD.format("three")}


@pytest.mark.parametrize(
    ("flags", "ignore", "names"),
    [
        ((), "", ["one", "two", "three"]),
        (("--include", "*.yml"), "", ["two"]),
        (("--include", "a/*", "--exclude", "one.*"), "", ["two"]),
        ((), "# of others\na/\n", ["three"]),
        ((), "*.yaml\n!three.yaml\n", ["two", "three"]),
        (("--include", "b"), "*.yml\n", ["three"]),
    ],
)
def test_patterns_choose_files(tmp_path, capsys, flags, ignore, names):
    written(tmp_path, {**TREE, ".claimgateignore": ignore})
    assert denied(capsys, tmp_path, *flags) == names


def test_a_file_that_the_command_line_names_is_read_despite_include_patterns(tmp_path, capsys):
    written(tmp_path, TREE)
    assert denied(capsys, tmp_path / "a" / "one.yaml", tmp_path / "b", "--include", "none") == ["one"]


def test_patterns_that_match_no_file_are_reported(tmp_path, capsys):
    written(tmp_path, {**TREE, ".claimgateignore": "*\n"})
    assert run_command_line(["audit", *POLICIES, str(tmp_path)]) == 0
    assert "no object was audited: --include, --exclude or .claimgateignore leaves out every" in capsys.readouterr().err


CHART = {
    "Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "templates/pod.yaml": POD.format("{{ .Release.Name }}-web"),
}
KUSTOMIZE = {
    "base/kustomization.yaml": "resources: [pod.yaml]\n",
    "base/pod.yaml": POD.format("plain"),
    "overlay/kustomization.yaml": "resources: [../base]\nnamePrefix: my-\npatches: [{path: patch.yaml}]\n",
    "overlay/patch.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: plain}\nspec: {hostNetwork: true}\n",
}


def test_a_folder_with_only_templates_is_reported(tmp_path, capsys):
    written(tmp_path, CHART)
    (tmp_path / "Chart.yaml").rename(tmp_path / "Chart.yaml.bak")
    (tmp_path / "templates" / "pod.yaml").write_text("{{ range }}\nkind: Pod\n")
    assert run_command_line(["audit", *POLICIES, str(tmp_path)]) == 0
    assert "no object was audited: 1 file is a template; audit what charts make with" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [
        *("$NODE_SELECTOR", "${RESOURCES}", "TOLERATIONS_SPEC", "%{ if use_tls ~}", "%{ endif }", "{{ .resources }}"),
        *("<#if config.tls>", "</#list>", "- %%HOST_NAME%%"),
    ],
)
def test_a_line_that_a_template_engine_replaces_makes_a_broken_manifest_a_template(line, tmp_path, capsys):
    (tmp_path / "pod.yaml").write_text(f"{POD.format('web')}    ports: [\n    {line}\n")
    assert run_command_line(["audit", *POLICIES, str(tmp_path)]) == 0
    assert "1 file is a template" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("labels", "is_template"),
    [
        ("{team: a-${TEAM}, b: c}", True),
        ("{team: ${TEAM}}", True),
        ('{team: "${TEAM}", b: [}', False),
        ("{team: a", False),
        ("{b: [} # ${TEAM}", False),
    ],
)
def test_a_variable_in_braces_makes_a_manifest_a_template(labels, is_template, tmp_path, capsys):
    (tmp_path / "pod.yaml").write_text(f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  labels: {labels}\n")
    assert run_command_line(["audit", *POLICIES, str(tmp_path)]) == (0 if is_template else 2)
    assert ("1 file is a template" if is_template else "not YAML") in capsys.readouterr().err


@pytest.mark.parametrize(
    ("above", "is_told"), [("", True), ("apiVersion: v1\n", True), ("apiVersion: v1\nkind: List\n", False)]
)
def test_a_list_of_objects_without_a_kind_is_reported(above, is_told, tmp_path, capsys):
    (tmp_path / "list.yaml").write_text(
        f"{above}items:\n- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}}}\n"
    )
    run_command_line(["audit", *POLICIES, str(tmp_path)])
    assert ("kubectl reads them only with" in capsys.readouterr().out) == is_told


def test_a_broken_manifest_without_template_syntax_is_an_error(tmp_path, capsys):
    (tmp_path / "pod.yaml").write_text(f"{POD.format('web')}    ports: [\n    costs $5\n")
    assert run_command_line(["audit", *POLICIES, str(tmp_path)]) == 2
    assert "not YAML" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("tests/e2e/01-assert.yaml", "assertion"),
        ("smoke/assert.yaml", "assertion"),
        ("smoke/02-errors.yaml", "assertion"),
        ("tests/expected/pod.yaml", "expected output"),
        ("test/kustomize/expected.yaml", "expected output"),
        ("test/e2e/expectedfailures/pod.yaml", "expected output"),
        ("src/test/helm-output/default/pod.yaml", "expected output"),
        ("test/chart/golden/pod.yaml", "expected output"),
        ("tests/__snapshots__/pod.yaml", "expected output"),
        ("tests/chart/pod.golden.yaml", "expected output"),
        ("fixtures/invalid/pod.yaml", "wrong on purpose"),
        ("tests/cases/pod-invalid.yaml", "wrong on purpose"),
        ("test/invalid_image.k8s.yaml", "wrong on purpose"),
        ("archive/pod.yaml", "a file in a folder of archived files"),
        ("attic/lab/pod.yaml", "a file in a folder of archived files"),
        ("deprecated/lab/pod.yaml", "a file in a folder of archived files"),
        ("projects/deprecated/lab/pod.yaml", "a file in a folder of archived files"),
        ("ZZZ-deprecated/yaml/pod.yaml", "a file in a folder of archived files"),
        ("lb2/notused/pod.yaml", "a file in a folder of archived files"),
        ("apps/_unused/pod.yaml", "a file in a folder of archived files"),
        ("apps/archived/old/pod.yaml", "a file in a folder of archived files"),
        ("infra/k8s/archive/lab/pod.yaml", "a file in a folder of archived files"),
        ("clusters/home/_disabled/lab/pod.yaml", "a file in a folder of archived files"),
    ],
)
def test_objects_of_tests_that_are_never_applied_are_not_read(path, word, tmp_path, monkeypatch, capsys):
    written(tmp_path, {path: POD.format("web")})
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["audit", ".", *POLICIES, "-v"]) == 0
    assert word in "".join(capsys.readouterr())
    assert run_command_line(["audit", path, *POLICIES]) == 1, "a person who names the file wants it audited"


@pytest.mark.parametrize(
    ("path", "is_read"),
    [
        ("a/pod-old.yaml", False),
        ("a/pod.bak.yaml", False),
        ("a/broken_pod.yaml", False),
        ("a/pod-wrong.yaml", False),
        ("b/pod-old.yaml", True),
        ("a/job-old.yaml", True),
        ("a/pod-bold.yaml", True),
        ("a/old.yaml", True),
        ("c/pod-old.yaml", True),
    ],
)
def test_a_former_or_faulty_copy_beside_the_file_is_not_read(path, is_read, tmp_path, monkeypatch, capsys):
    listed = "resources: [pod-old.yaml]\n"
    fine = POD.format("fine").replace("deny", "allow")
    written(tmp_path, {"a/pod.yaml": fine, "c/pod.yaml": fine, "c/kustomization.yaml": listed, path: POD.format("web")})
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["audit", ".", *POLICIES, "-v"]) == int(is_read)
    assert ("a former or faulty copy" in "".join(capsys.readouterr())) is not is_read
    assert run_command_line(["audit", path, *POLICIES]) == 1, "a person names the file"


KYVERNO_TEST = "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: t}\nresources: [%s]\n"
GATOR_SUITE = "apiVersion: test.gatekeeper.sh/v1alpha1\nkind: Suite\ntests: [{name: t, cases: [{object: %s}]}]\n"


@pytest.mark.parametrize(
    ("path", "text", "code"),
    [
        pytest.param("policies/kyverno-test.yaml", KYVERNO_TEST % "inputs/pod.yaml", 0, id="listed for kyverno test"),
        pytest.param("policies/suite.yaml", GATOR_SUITE % "./inputs/pod.yaml", 0, id="listed for gator"),
        pytest.param("policies/kyverno-test.yaml", KYVERNO_TEST % "inputs/job.yaml", 1, id="another file is listed"),
        pytest.param("policies/kyverno-test.yaml", KYVERNO_TEST % "1", 1, id="a number is listed"),
        pytest.param("policies/suite.yaml", GATOR_SUITE % "{}", 1, id="an object without a file"),
    ],
)
def test_an_object_that_a_test_of_policies_lists_is_not_read(path, text, code, tmp_path, monkeypatch, capsys):
    written(tmp_path, {path: text, "policies/inputs/pod.yaml": POD.format("web")})
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["audit", ".", *POLICIES, "-v"]) == code
    assert ("an input of a test of policies" in "".join(capsys.readouterr())) is not bool(code)
    assert run_command_line(["audit", "policies/inputs/pod.yaml", *POLICIES]) == 1, "a person names the file"


SET = """apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: apps}
spec: {generators: [GENERATOR], template: {spec: {source: {path: '{{path}}'}}}}
"""
LISTS_OTHER = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [other.yaml]\n"


def argo_application(source):
    head = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web}\n"
    return f"{head}spec: {{source: {{{source}}}}}\n"


def flux_kustomization(path):
    head = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: web}\n"
    return f"{head}spec: {{path: {path}}}\n"


@pytest.mark.parametrize(
    ("delivery", "kustomization", "is_read"),
    [
        pytest.param(flux_kustomization("./apps/web"), LISTS_OTHER, False, id="flux"),
        pytest.param(flux_kustomization("./apps"), LISTS_OTHER, False, id="flux, a folder above"),
        pytest.param(flux_kustomization("./"), LISTS_OTHER, False, id="flux, the whole repository"),
        pytest.param(argo_application("path: apps/web"), LISTS_OTHER, False, id="argo"),
        pytest.param(
            SET.replace("GENERATOR", "{git: {directories: [{path: apps/*}]}}"), LISTS_OTHER, False, id="a set"
        ),
        pytest.param(
            SET.replace("GENERATOR", "{matrix: {generators: [{git: {directories: [{path: apps/*}]}}]}}"),
            LISTS_OTHER,
            False,
            id="a matrix",
        ),
        pytest.param(
            SET.replace("GENERATOR", "{list: {elements: [{path: apps/web}]}}"), LISTS_OTHER, False, id="a list"
        ),
        pytest.param("", LISTS_OTHER, True, id="nothing delivers"),
        pytest.param(flux_kustomization("./other"), LISTS_OTHER, True, id="another folder"),
        pytest.param(
            SET.replace("GENERATOR", "{git: {directories: [{path: apps/*, exclude: true}, {path: x/*}]}}"),
            LISTS_OTHER,
            True,
            id="excluded",
        ),
        pytest.param(
            argo_application("path: apps/web, directory: {recurse: true}"), LISTS_OTHER, True, id="without kustomize"
        ),
        pytest.param(flux_kustomization("./apps/web"), "resources: [other.yaml, pod.yaml]\n", True, id="listed"),
        pytest.param(
            flux_kustomization("./apps/web"),
            "configMapGenerator: [{name: jobs, files: [job=pod.yaml]}]\n",
            True,
            id="a file of a ConfigMap",
        ),
        pytest.param(flux_kustomization("./apps/web"), None, True, id="no kustomization"),
    ],
)
def test_a_file_that_no_kustomization_lists_is_not_read_where_flux_or_argo_cd_applies_the_folder(
    delivery, kustomization, is_read, tmp_path, monkeypatch, capsys
):
    files = {"clusters/web.yaml": delivery, "apps/web/pod.yaml": POD.format("web")}
    files |= {} if kustomization is None else {"apps/web/kustomization.yaml": kustomization}
    written(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["audit", ".", *POLICIES, "-v"]) == int(is_read)
    told = "".join(capsys.readouterr())
    assert ("neither Flux nor Argo CD applies" in told) is not is_read
    assert not any("neither" in line for line in told.splitlines() if "kustomization.yaml" in line)
    assert run_command_line(["audit", str(tmp_path), *POLICIES]) == int(is_read)
    assert run_command_line(["audit", "apps/web/pod.yaml", *POLICIES]) == 1, "a person names the file"


@pytest.mark.parametrize(
    ("delivered", "code"),
    [
        pytest.param("apps", 0, id="the folder above has a kustomization"),
        pytest.param("apps/web", 1, id="the folder itself, which has none"),
    ],
)
def test_a_folder_that_no_kustomization_lists_is_read_if_flux_applies_it(delivered, code, tmp_path, monkeypatch):
    files = {"clusters/web.yaml": flux_kustomization(delivered), "apps/web/pod.yaml": POD.format("web")}
    written(tmp_path, {**files, "apps/kustomization.yaml": "resources: []\n"})
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["audit", ".", *POLICIES]) == code


def test_a_file_that_a_base_does_not_list_is_not_read_if_an_overlay_is_applied(tmp_path, monkeypatch):
    files = {"clusters/web.yaml": argo_application("path: overlays/x86"), "base/pod.yaml": POD.format("web")}
    files |= {"base/kustomization.yaml": LISTS_OTHER, "overlays/x86/kustomization.yaml": "resources: [../../base]\n"}
    written(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["audit", ".", *POLICIES]) == 0
    written(tmp_path, {"overlays/x86/kustomization.yaml": "resources: []\n"})
    assert run_command_line(["audit", ".", *POLICIES]) == 1, "nothing known applies the base"


@pytest.mark.parametrize(("patterns", "code"), [(100, 0), (101, 1)])
def test_more_patterns_of_folders_than_are_compared_leave_no_file_out(patterns, code, tmp_path, monkeypatch):
    directories = ", ".join(f"{{path: apps/{'*' * number}}}" for number in range(1, patterns + 1))
    text = SET.replace("GENERATOR", f"{{git: {{directories: [{directories}]}}}}")
    written(tmp_path, {"clusters/web.yaml": text, "apps/web/pod.yaml": POD.format("web")})
    written(tmp_path, {"apps/web/kustomization.yaml": LISTS_OTHER})
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["audit", ".", *POLICIES]) == code


def test_a_file_from_which_a_policy_is_generated_is_read(tmp_path, monkeypatch):
    generator = "apiVersion: policy.open-cluster-management.io/v1\nkind: PolicyGenerator\nmetadata: {name: g}\n"
    files = {"clusters/web.yaml": flux_kustomization("apps"), "apps/pod.yaml": POD.format("web")}
    written(tmp_path, {**files, "apps/kustomization.yaml": "generators: [policies.yaml]\n"})
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["audit", ".", *POLICIES]) == 0
    written(tmp_path, {"apps/policies.yaml": f"{generator}policies: [{{manifests: [{{path: pod.yaml}}]}}]\n"})
    assert run_command_line(["audit", ".", *POLICIES]) == 1


def test_the_archive_of_a_folder_that_a_person_names_is_not_read(tmp_path, monkeypatch):
    written(tmp_path, {"home/archive/pod.yaml": POD.format("web")})
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["audit", "home", *POLICIES]) == 0
    written(tmp_path, {"home/apps/archive/pod.yaml": POD.format("web")})
    assert run_command_line(["audit", "home", *POLICIES]) == 1, "an application may have the name archive"


@pytest.mark.parametrize("folder", ["archive", "archive/old", "apps/archived", "k8s/archive", "apps/_disabled"])
def test_an_archive_that_a_person_names_is_read(folder, tmp_path, monkeypatch):
    written(tmp_path, {f"{folder}/pod.yaml": POD.format("web")})
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["audit", folder, *POLICIES]) == 1
    assert run_command_line(["audit", ".", *POLICIES]) == 0


@pytest.mark.parametrize(
    ("path", "code"),
    [
        pytest.param("overlay/patch-probes.yaml", 0, id="named as a patch"),
        pytest.param("overlay/probes.patch.yaml", 0, id="with the word at the end"),
        pytest.param("overlay/patches/probes.yaml", 0, id="in a folder of patches"),
        pytest.param("other/patch-probes.yaml", 1, id="without a kustomization"),
        pytest.param("overlay/dispatch.yaml", 1, id="another word"),
        pytest.param("versions/v-1.26.yaml", 0, id="a listed patch for another release"),
        pytest.param("versions/plain-1.26.yaml", 1, id="another name beside a listed patch"),
        pytest.param("other/v-1.26.yaml", 1, id="in another folder than the listed patch"),
    ],
)
def test_a_patch_that_no_kustomization_lists_is_no_object(path, code, tmp_path, monkeypatch, capsys):
    kustomization = "resources: [../base]\npatches: [{path: ../versions/v-1.28.yaml}]\n"
    written(tmp_path, {"overlay/kustomization.yaml": kustomization, path: POD.format("web")})
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["audit", ".", *POLICIES, "-v"]) == code
    assert ("a patch of a kustomization" in "".join(capsys.readouterr())) is not bool(code)


@pytest.mark.parametrize(
    "path",
    [
        "nginx/custom-errors.yaml",
        "expected.yaml",
        "docs/expected/pod.yaml",
        "tests/output-plugin/pod.yaml",
        "charts/helm-output/pod.yaml",
        "apps/deprecated.yaml",
        "apps/invalid/pod.yaml",
        "tests/invalidation/pod.yaml",
        "deprecated-versions-exporter/pod.yaml",
        "archive.yaml",
        "apps/archive/pod.yaml",
    ],
)
def test_other_files_with_such_names_are_read(path, tmp_path, monkeypatch):
    written(tmp_path, {path: POD.format("web")})
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["audit", ".", *POLICIES]) == 1


def test_an_assertion_that_repeats_a_key_is_reported(tmp_path, monkeypatch, capsys):
    """A file of assertions lacks `---` between two objects, so a test of the cluster would compare only the second
    object.
    """
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {{name: {}}}\n"
    written(tmp_path, {"tests/00-assert.yaml": f"{pod.format('a')}\n{pod.format('b')}"})
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["audit", "."]) == 1
    assert "manifest/repeated-key" in capsys.readouterr().out


MODEL_SERVER = """apiVersion: apps/v1
kind: Deployment
metadata: {name: llm}
spec:
  selector: {matchLabels: {app: llm}}
  template:
    metadata: {labels: {app: llm}}
    spec:
      containers:
      - {name: llm, image: "vllm/vllm-openai:v0.10.0", ports: [{containerPort: 8000}],
         resources: {limits: {nvidia.com/gpu: GPUS}}}
"""


@pytest.mark.parametrize(
    ("path", "gpus", "options", "results"),
    [
        pytest.param("deploy/llm.yaml", 1, [], ["warn"], id="a warning elsewhere"),
        pytest.param("tests/llm.yaml", 1, [], [], id="a test is too short for this warning"),
        pytest.param("tests/llm.yaml", 1, ["--advice"], ["advice"], id="on request it is advice"),
        pytest.param("tests/llm.yaml", 1, ["--config", "warn.yml"], ["warn"], id="a level that a site sets counts"),
        pytest.param("tests/llm.yaml", 0.5, [], ["fail"], id="another mistake in a test is reported"),
    ],
)
def test_in_a_folder_of_tests_warnings_about_long_runs_are_advice(
    path, gpus, options, results, tmp_path, monkeypatch, capsys
):
    levels = "levels: {rules: {device-failures/readiness-probe: warn}}\n"
    written(tmp_path, {path: MODEL_SERVER.replace("GPUS", str(gpus)), "warn.yml": levels})
    monkeypatch.chdir(tmp_path)
    rules = ["--rule", "device-failures/readiness-probe", "--rule", "pod-resources/whole-number"]
    run_command_line(["audit", ".", *rules, *options])
    text = capsys.readouterr().out
    assert [each for each in ("fail", "warn", "advice") if f" {each}  " in text.split("\n\n")[0]] == results


@pytest.mark.parametrize(
    ("path", "options", "results"),
    [
        pytest.param("deploy/map.json", [], ["fail"], id="an object to apply"),
        pytest.param("tests/data/map.json", [], [], id="a recorded or broken object of a test"),
        pytest.param("tests/data/map.json", ["--advice"], ["advice"], id="on request it is advice"),
    ],
)
def test_in_a_folder_of_tests_wrong_types_are_advice(path, options, results, tmp_path, monkeypatch, capsys):
    written(
        tmp_path, {path: '{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a","annotations":{"count":1}}}'}
    )
    monkeypatch.chdir(tmp_path)
    code = run_command_line(["audit", ".", *options])
    text = capsys.readouterr().out
    assert [each for each in ("fail", "warn", "advice") if f" {each}  " in text.split("\n\n")[0]] == results
    assert code == int("fail" in results)


@pytest.mark.parametrize("kind", ["Deploymet", "Widget"])
@pytest.mark.parametrize(
    ("path", "named", "code"),
    [
        pytest.param("deploy/a.yaml", ".", 1, id="an object to apply"),
        pytest.param("tests/a.yaml", ".", 0, id="a broken object of a test"),
        pytest.param("tests/a.yaml", "{}", 0, id="a test below an absolute path"),
        pytest.param("deploy/a.yaml", "{}", 1, id="a folder with a name of tests above an absolute path"),
        pytest.param("a.yaml", "{}/a.yaml", 1, id="a file that a user names"),
    ],
)
def test_an_unknown_kind_in_a_folder_of_tests_is_not_reported(kind, path, named, code, tmp_path, monkeypatch):
    top = tmp_path / "tests" / "project"
    top.mkdir(parents=True)
    written(top, {path: f"apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: a}}\n"})
    monkeypatch.chdir(top)
    assert run_command_line(["audit", named.format(top)]) == code


def test_a_folder_of_tests_below_an_absolute_path_has_milder_levels(tmp_path, capsys):
    written(tmp_path / "tests", {"llm.yaml": MODEL_SERVER.replace("GPUS", "1")})
    run_command_line(["audit", str(tmp_path), "--rule", "device-failures/readiness-probe"])
    assert "readiness-probe" not in capsys.readouterr().out


def test_a_service_that_is_defined_twice_does_not_hide_what_is_wrong_with_another(tmp_path, monkeypatch, capsys):
    service = "apiVersion: v1\nkind: Service\nmetadata: {{name: {0}}}\nspec: {{selector: {{app: {1}}}, ports: [{{port: {2}}}]}}\n"
    server = MODEL_SERVER.replace("GPUS", "1")
    files = {"llm.yaml": server, "chat.yaml": service.format("chat", "llm", 9000)}
    twice = {f"{port}.yaml": service.format("other", "other", port) for port in (1, 2)}
    written(tmp_path, {**files, **twice})
    monkeypatch.chdir(tmp_path)
    run_command_line(["audit", ".", "--rule", "model-server/service-port"])
    assert "sends requests to 9000" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("assets/job.yaml", 1),
        ("backend/tests/assets/job.yaml", 0),
        ("static/kubeflow-v1alpha3-experiment.yaml", 0),
        ("static/kubeflow-v1beta1-experiment.yaml", 1),
        ("static/experiment-v1alpha3.yaml", 0),
        ("static/experiment-v1beta1.yaml", 1),
        ("static/kubeflow.org_v1alpha3_experiment_a.yaml", 1),
        ("experiments-pre-4.6/job.yaml", 0),
        ("static/experiment-before-v1.5.yaml", 0),
        ("experiments-4.6/job.yaml", 1),
        ("suppre-4.6/job.yaml", 1),
    ],
)
def test_a_removed_version_in_a_test_or_in_a_file_for_old_releases_is_advice(path, code, tmp_path, monkeypatch):
    written(tmp_path, {path: "apiVersion: kubeflow.org/v1alpha3\nkind: Experiment\nmetadata: {name: a}\nspec: {}\n"})
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["audit", ".", "--no-config"]) == code


@pytest.mark.parametrize(
    ("labels", "is_named"),
    [
        ("helm.sh/chart: istiod-1.9.0", True),
        ("{chart: istiod-1.9.0, heritage: Tiller}", True),
        ("{chart: istiod-1.9.0}", False),
        ("{helm.sh/chart: '{{ .Chart.Name }}'}", False),
        ("{helm.sh/chart: 'a` run this'}", False),
        (f"{{helm.sh/chart: {'a' * 64}}}", False),
    ],
)
def test_the_chart_of_an_object_is_named_only_if_it_is_the_value_of_a_label(labels, is_named, tmp_path, capsys):
    head = "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata:\n  name: a\n"
    written(tmp_path, {"pdb.yaml": f"{head}  labels:\n    {labels}\nspec: {{minAvailable: 1}}\n"})
    run_command_line(["audit", str(tmp_path), "-o", "json", "--rule", "served-version/removed"])
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    of_chart = ", or take a newer release of chart `istiod-1.9.0`" if is_named else ""
    assert finding["fix"] == f"write policy/v1, with the fields of this version{of_chart}"


@pytest.mark.parametrize(("path", "code"), [("deploy/claim.yaml", 1), ("test/e2e/fixtures/claim.yaml", 0)])
def test_a_deprecated_version_in_a_test_is_advice(path, code, tmp_path, monkeypatch):
    devices = "devices: {requests: [{name: gpu, deviceClassName: gpu.example.com}]}"
    head = "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaim\nmetadata: {name: a}\n"
    written(tmp_path, {path: f"{head}spec: {{{devices}}}\n"})
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["audit", ".", "--no-config", "--rule", "resource-claims/deprecated-version"]) == code


@pytest.mark.parametrize(
    ("path", "code"),
    [
        pytest.param("install/v0.5.0/a.yaml", 0, id="the folder of a former release"),
        pytest.param("install/v0.6.1-rc0/a.yaml", 0, id="a candidate of the newest release"),
        pytest.param("install/v0.6.1/a.yaml", 1, id="the newest release"),
        pytest.param("other/v0.5.0/a.yaml", 1, id="releases of another folder"),
        pytest.param("install/0.2.0/a.yaml", 0, id="a former release without v"),
        pytest.param("install/0.5/a.yaml", 1, id="a folder that may be a chapter"),
        pytest.param("versioned_docs/version-0.9.0/a.yaml", 0, id="the pages of a former release"),
    ],
)
def test_a_removed_version_in_the_folder_of_a_former_release_is_advice(path, code, tmp_path, monkeypatch):
    text = "apiVersion: {}\nkind: CronJob\nmetadata: {{name: a}}\n"
    written(tmp_path, {path: text.format("batch/v1beta1"), "install/v0.6.1/b.yaml": text.format("batch/v1")})
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["audit", ".", "--no-config", "--rule", "served-version/removed"]) == code


@pytest.mark.parametrize(("twin", "code"), [("crd/v1beta1/a.yaml", 0), ("crd/v1beta1/b.yaml", 1), ("crd/v1/a.yaml", 1)])
def test_a_removed_version_in_its_folder_beside_the_folder_of_its_replacement_is_advice(
    twin, code, tmp_path, monkeypatch
):
    experiment = "apiVersion: kubeflow.org/{}\nkind: Experiment\nmetadata: {{name: a}}\nspec: {{}}\n"
    written(tmp_path, {"crd/v1alpha3/a.yaml": experiment.format("v1alpha3"), twin: experiment.format("v1beta1")})
    monkeypatch.chdir(tmp_path)
    args = ["audit", ".", "--no-config", "--rule", "served-version/removed"]
    assert run_command_line(args) == code, "a chart takes such a file only for old releases"


@pytest.mark.parametrize(
    ("beside", "code"),
    [("tuner-0.24.0", 0), ("tuner-v0.18.1", 0), ("tuner-0.9.0", 1), ("other-0.24.0", 1), ("tuner", 1)],
)
def test_a_removed_version_in_a_former_release_beside_a_newer_release_is_advice(beside, code, tmp_path, monkeypatch):
    experiment = "apiVersion: kubeflow.org/{}\nkind: Experiment\nmetadata: {{name: a}}\nspec: {{}}\n"
    former, newer = "base/tuner-0.18.0/install/a.yaml", f"base/{beside}/a.yaml"
    written(tmp_path, {former: experiment.format("v1alpha3"), newer: experiment.format("v1beta1")})
    monkeypatch.chdir(tmp_path)
    args = ["audit", ".", "--no-config", "--rule", "served-version/removed"]
    assert run_command_line(args) == code, "its owner already has the newer release"


@pytest.mark.skipif(not shutil.which("helm"), reason="needs helm")
def test_charts_are_rendered(tmp_path, capsys):
    written(tmp_path / "chart", CHART)
    assert denied(capsys, tmp_path, "--render") == ["chart-web"]


@pytest.mark.skipif(not shutil.which("helm"), reason="needs helm")
def test_an_annotation_that_replaces_the_default_of_a_chart_is_not_reported(tmp_path, capsys):
    written(tmp_path / "chart", CHART)
    template = (
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n"
        '  annotations:\n    license: enterprise\n    {{ toYaml .Values.annotations }}\nspec: {sessionAffinity: "%s"}\n'
    )
    written(
        tmp_path / "chart", {"values.yaml": "annotations: {license: basic}\n", "templates/web.yaml": template % "None"}
    )
    args = ["audit", str(tmp_path), "--render", "--no-config"]
    assert run_command_line(args) == 0
    assert "2 objects" in capsys.readouterr().out
    twice = template % "None" + "spec: {sessionAffinity: ClientIP}\n"
    written(tmp_path / "chart", {"templates/web.yaml": twice})
    assert run_command_line(args) == 1
    assert "key `spec` appears twice" in capsys.readouterr().out


@pytest.mark.skipif(not shutil.which("helm"), reason="needs helm")
@pytest.mark.parametrize(("folder", "name"), [("gatus", "gatus-web"), ("my_chart", "release-web")])
def test_the_release_of_a_chart_has_the_name_of_its_folder(folder, name, tmp_path, capsys):
    written(tmp_path / folder, CHART)
    assert denied(capsys, tmp_path, "--render") == [name]


@pytest.mark.skipif(not shutil.which("helm"), reason="needs helm")
def test_charts_are_rendered_for_the_release_of_the_audit(tmp_path, capsys):
    name = '{{ .Release.Name }}-{{ trimPrefix "v" .Capabilities.KubeVersion.Version }}'
    written(tmp_path / "chart", {**CHART, "templates/pod.yaml": POD.format(f"'{name}'")})
    assert denied(capsys, tmp_path, "--render") == ["chart-1.36.0"]
    assert denied(capsys, tmp_path, "--render", "--kubernetes-version", "1.34") == ["chart-1.34.0"]


@pytest.mark.skipif(not shutil.which("helm"), reason="needs helm")
def test_a_version_that_a_chart_chooses_by_what_the_cluster_serves_is_not_reported(tmp_path, capsys):
    """helm without a cluster has removed versions in its list, so a chart that asks for a removed version gets it."""
    scaler = "apiVersion: {}\nkind: HorizontalPodAutoscaler\nmetadata: {{name: {}}}\nspec: {{maxReplicas: 2}}\n"
    chosen = '{{- define "version" }}{{ if .Capabilities.APIVersions.Has "autoscaling/v2beta1" }}autoscaling/v2beta1{{ end }}{{ end }}'
    written(
        tmp_path / "chart",
        {
            **CHART,
            "charts/sub/Chart.yaml": CHART["Chart.yaml"],
            "charts/sub/templates/_version.tpl": chosen,
            "templates/a-chosen.yaml": scaler.format('{{ include "version" . }}', "chosen"),
            "templates/b-fixed.yaml": scaler.format("autoscaling/v2beta2", "fixed"),
        },
    )
    helm = ["helm", "template", "release", str(tmp_path / "chart")]
    rendered = subprocess.run(helm, capture_output=True, text=True, timeout=60, check=True).stdout
    assert "apiVersion: autoscaling/v2beta1" in rendered
    run_command_line(["audit", str(tmp_path), "--render", "-o", "ndjson", "--rule", "served-version/removed"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    places = [(each["object"]["name"], each["line"]) for each in rows if each.get("rule") == "served-version/removed"]
    line = rendered[: rendered.index("autoscaling/v2beta2")].count("\n") + 1
    assert places == [("fixed", line)], "an object that is left out must not move the lines of later objects"


ADDED_PROXY = """patches:
- target: {kind: Deployment, name: m}
  patch: |-
    - op: add
      path: /spec/template/spec/containers/-
      value: {name: p, image: y, ports: [{name: https, containerPort: 1}]}
"""


@pytest.mark.parametrize(
    ("more", "is_reported"),
    [("", True), ("patches: [{path: proxy.yaml}]\n", False), (ADDED_PROXY, False)],
)
def test_a_patch_may_add_the_port_of_a_service(more, is_reported, tmp_path, monkeypatch, capsys):
    """Operators of kubebuilder add a proxy with the port of the Service in a patch of another folder."""
    manager = (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: m}\nspec: {selector: {matchLabels: {a: b}}, template:"
        " {metadata: {labels: {a: b}}, spec: {containers: [{name: m, image: x}]}}}\n"
    )
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {selector: {a: b}, ports: [{port: 1, targetPort: https}]}\n"
    files = {
        "default/kustomization.yaml": f"resources: [../manager, ../rbac]\n{more}",
        "default/proxy.yaml": manager.replace("name: m, image: x", "name: p, image: y, ports: [{name: https}]"),
        "manager/kustomization.yaml": "resources: [manager.yaml]\n",
        "manager/manager.yaml": manager,
        "rbac/kustomization.yaml": "resources: [service.yaml]\n",
        "rbac/service.yaml": service,
    }
    written(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    run_command_line(["audit", "manager", "rbac", "default", "--rule", "manifest-shape/target-port"])
    assert ("has no port with the name `https`" in capsys.readouterr().out) is is_reported


@pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl")
def test_kustomizations_are_rendered_once(tmp_path, capsys):
    written(tmp_path, {**KUSTOMIZE, "other/pod.yaml": POD.format("other")})
    assert denied(capsys, tmp_path, "--render") == ["my-plain", "other"]


@pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl")
@pytest.mark.parametrize("folder", ["overlay", "base", "base/patches"])
def test_a_patch_that_no_rendered_kustomization_lists_is_no_object(folder, tmp_path, capsys):
    name = "probes.yaml" if folder == "base/patches" else "probes-patch.yaml"
    written(tmp_path, {**KUSTOMIZE, f"{folder}/{name}": POD.format("plain"), f"{folder}/other.yaml": POD.format("b")})
    listed = ["my-plain", *(["b"] if folder != "base/patches" else [])]
    assert sorted(denied(capsys, tmp_path, "--render")) == sorted(listed)
    assert run_command_line(["audit", *POLICIES, str(tmp_path), "--render"]) == 1
    assert "not applied" in "".join(capsys.readouterr()), "count a patch that is not audited"


PROGRAM = """#!/bin/sh
case "$1" in
kustomize) cat "$3/made.txt" ;;
template) echo "no such chart" >&2; exit 1 ;;
esac
"""


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Put a helm that fails, and a kubectl that prints a file, first in PATH. So the tests also run on machines without
    these programs.
    """
    for name in ("helm", "kubectl"):
        written(tmp_path, {f"bin/{name}": PROGRAM})
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")


def test_rendered_objects_replace_their_files_and_a_failure_is_reported(tmp_path, capsys, programs):
    tree = written(tmp_path / "tree", {f"chart/{name}": text for name, text in CHART.items()} | KUSTOMIZE)
    written(tree, {"overlay/made.txt": POD.format("made")})
    assert run_command_line(["audit", *POLICIES, str(tree), "--render", "-o", "ndjson"]) == 2
    out, err = capsys.readouterr()
    assert [json.loads(line)["object"]["name"] for line in out.splitlines() if '"fail"' in line] == ["made"]
    assert f"error: {tree}/chart: cannot be rendered: `helm template` failed: no such chart" in err
    assert err.count(f"{tree}/chart") == 1  # a chart that cannot be rendered is reported once, without its templates


def test_a_library_of_charts_is_not_rendered(tmp_path, capsys, programs):
    library = CHART["Chart.yaml"] + "type: library\n"
    tree = written(tmp_path / "tree", {"common/Chart.yaml": library, "common/templates/_names.tpl": "", **KUSTOMIZE})
    written(tree, {"overlay/made.txt": POD.format("made")})
    assert denied(capsys, tree, "--render") == ["made"]


@pytest.mark.skipif(not shutil.which("helm"), reason="needs helm")
def test_a_chart_gets_its_dependencies_of_the_same_folder(tmp_path, capsys):
    library = "apiVersion: v2\nname: common\nversion: 1.0.0\ntype: library\ndependencies:\n- {name: web, version: 1.0.0, repository: file://../web}\n"
    needs = "dependencies:\n- {name: common, version: 1.0.0, repository: file://../common}\n- {name: far, version: 1.0.0, repository: file://../../far, condition: far.on}\n"
    tree = {
        "web/Chart.yaml": CHART["Chart.yaml"] + needs.partition("- {name: far")[0],
        "web/templates/pod.yaml": POD.format('{{ include "common.name" . }}'),
        "common/Chart.yaml": library,
        "common/templates/_name.tpl": '{{ define "common.name" }}of-the-library{{ end }}',
        "out/Chart.yaml": CHART["Chart.yaml"] + needs,
    }
    written(tmp_path / "tree", tree)
    written(tmp_path, {"far/Chart.yaml": "apiVersion: v2\nname: far\nversion: 1.0.0\n"})
    assert run_command_line(["audit", *POLICIES, str(tmp_path / "tree"), "--render", "-o", "ndjson"]) == 2
    out, err = capsys.readouterr()
    assert [json.loads(line)["object"]["name"] for line in out.splitlines() if '"fail"' in line] == ["of-the-library"]
    assert "missing in charts/ directory: far" in err  # the chart is outside of the folder that the command line names


def test_warnings_of_kustomize_are_not_reported_as_the_cause_of_a_failure(tmp_path, capsys, programs):
    warning = "# Warning: 'commonLabels' is deprecated. Please use 'labels' instead."
    prints = f'echo "{warning}" >&2; ' * 9
    (tmp_path / "bin" / "kubectl").write_text(f"#!/bin/sh\n{prints}echo 'error: no file a.yaml' >&2; exit 1\n")
    tree = written(tmp_path / "tree", KUSTOMIZE)
    assert run_command_line(["audit", *POLICIES, str(tree), "--render"]) == 2
    assert "`kubectl kustomize` failed: no file a.yaml" in capsys.readouterr().err


def test_a_kustomization_of_flux_is_an_object_whatever_the_name_of_its_file(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))  # there is no kubectl, so rendering anything would be an error
    flux = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps}\nspec: {path: ./apps}\n"
    written(tmp_path, {"flux/kustomization.yml": flux, "flux/pod.yaml": POD.format("seen")})
    assert denied(capsys, tmp_path, "--render") == ["seen"]


def test_hidden_folders_are_not_rendered(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))  # there is no helm and kubectl, so rendering anything would be an error
    written(tmp_path / ".archive", CHART)
    written(tmp_path / "clusters/.old", {"kustomization.yaml": "resources: [../../../missing]\n"})
    written(tmp_path, {"pod.yaml": POD.format("seen")})
    assert denied(capsys, tmp_path, "--render") == ["seen"]
    # a hidden folder that the command line names is rendered
    assert run_command_line(["audit", *POLICIES, str(tmp_path / ".archive"), "--render"]) == 2


def test_a_chart_for_other_releases_is_rendered_for_the_release_of_helm(tmp_path, capsys, programs):
    refuses = 'case "$*" in *--kube-version*) echo "Error: chart requires kubeVersion: <1.30" >&2; exit 1 ;; esac\n'
    (tmp_path / "bin" / "helm").write_text(f'#!/bin/sh\n{refuses}cat "$8/made.txt"\n')
    written(tmp_path / "chart", {**CHART, "made.txt": POD.format("made")})
    assert denied(capsys, tmp_path / "chart", "--render") == ["made"]


@pytest.mark.parametrize(("bound", "used"), [({"total_bytes": 1}, "1 bytes of output"), ({"total_s": 0}, "0 minutes")])
def test_no_folder_is_rendered_after_a_bound_of_the_audit(tmp_path, programs, bound, used):
    for name in ("first", "second", "third"):
        kustomization = {f"{name}/kustomization.yaml": "resources: [pod.yaml]\n", f"{name}/pod.yaml": POD.format(name)}
        written(tmp_path, {**kustomization, f"{name}/made.txt": POD.format("made")})
    folders = [str(tmp_path / name) for name in ("first", "second", "third")]
    stream = DocumentStream(folders)
    result = replace_by_rendered_objects(stream, folders, (1, 36), **bound)
    stream.close()
    rendered = folders[:1] if "total_bytes" in bound else []
    assert list(result.texts) == rendered
    assert [problem.file for problem in result.problems] == folders[len(rendered) :]
    assert all(f"the folders before it used {used}, the most for" in problem.message for problem in result.problems)


@pytest.mark.skipif(not shutil.which("helm"), reason="needs helm")
@pytest.mark.parametrize("asked", ["policy/v1", "policy/v1/PodDisruptionBudget"])
def test_a_chart_that_checks_for_an_api_version_finds_the_version(tmp_path, capsys, asked):
    version = f'policy/{{{{ if .Capabilities.APIVersions.Has "{asked}" }}}}v1{{{{ else }}}}v1beta1{{{{ end }}}}'
    budget = f"apiVersion: {version}\nkind: PodDisruptionBudget\nmetadata: {{name: b}}\nspec: {{minAvailable: 1}}\n"
    chart = "apiVersion: v2\nname: c\nversion: 0.1.0\n"
    written(tmp_path / "chart", {"Chart.yaml": chart, "templates/budget.yaml": budget})
    assert run_command_line(["audit", str(tmp_path / "chart"), "--render", "-o", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["findings"] == []
    assert report["summary"]["objects"] == 1


@pytest.mark.skipif(not shutil.which("helm"), reason="needs helm")
def test_a_chart_finds_an_api_version_that_helm_alone_does_not_know(tmp_path, capsys):
    """helm alone knows no API version of APIService. Every cluster serves apiregistration.k8s.io/v1."""
    group = "apiregistration.k8s.io"
    version = f'{group}/{{{{ if .Capabilities.APIVersions.Has "{group}/v1" }}}}v1{{{{ else }}}}v1beta1{{{{ end }}}}'
    service = f"apiVersion: {version}\nkind: APIService\nmetadata: {{name: v1.a.example}}\nspec: {{group: a.example}}\n"
    chart = "apiVersion: v2\nname: c\nversion: 0.1.0\n"
    written(tmp_path / "chart", {"Chart.yaml": chart, "templates/service.yaml": service})
    args = ["audit", str(tmp_path / "chart"), "--render", "-o", "json", "--rule", "served-version/removed"]
    assert run_command_line(args) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["findings"] == []
    assert report["summary"]["objects"] == 1


def test_a_long_chain_of_local_dependencies_is_cut(tmp_path, capsys, programs):
    reads = 'for copy; do :; done; ls "$copy/charts/x/charts/x" >/dev/null && cat "$copy/made.txt"'
    (tmp_path / "bin" / "helm").write_text(f"#!/bin/sh\n{reads}\n")
    needs = CHART["Chart.yaml"] + "dependencies: [{name: x, version: 1.0.0, repository: 'file://%s'}]\n"
    chain = {f".lib/{n}/Chart.yaml": needs % f"../{n + 1}" for n in range(1200)}
    tree = written(tmp_path / "tree", {**chain, "a/Chart.yaml": needs % "../.lib/0", "a/made.txt": POD.format("made")})
    assert denied(capsys, tree, "--render") == ["made"]


def test_a_program_that_is_not_installed_is_reported(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    written(tmp_path / "chart", CHART)
    assert run_command_line(["audit", *POLICIES, str(tmp_path), "--render"]) == 2
    assert "chart: cannot be rendered: `helm` is not installed or not in PATH" in capsys.readouterr().err


def git(folder, *arguments):
    user = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", str(folder), *user, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    written(tmp_path, {"old.yaml": POD.format("same") + "---\n" + POD.format("changes"), "moved.yaml": POD.format("m")})
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    written(
        tmp_path,
        {"old.yaml": "# c\n" + POD.format("changes").replace("[]", "[{name: a}]") + "---\n" + POD.format("same")},
    )
    written(tmp_path, {"new.yaml": POD.format("new")})
    return tmp_path


@pytest.mark.parametrize("jobs", [1, 2])
def test_only_changed_objects_are_audited(repository, capsys, jobs):
    assert denied(capsys, repository, "--changed-since", "HEAD", "--jobs", jobs) == ["new", "changes"]
    assert run_command_line(["audit", *POLICIES, str(repository), "--changed-since", "HEAD"]) == 1
    assert "note: 2 objects unchanged and not audited" in capsys.readouterr().err


def test_nothing_changed_is_a_success(repository, capsys):
    assert denied(capsys, repository / "moved.yaml", "--changed-since", "HEAD", code=0) == []


@pytest.mark.parametrize(
    ("flag", "told"),
    [
        ("nowhere", "--changed-since: `nowhere` is not a revision of a git work tree at "),
        ("--output=/tmp/x", "--changed-since: `--output=/tmp/x` is not a revision"),
    ],
)
def test_a_revision_that_does_not_exist_is_reported(repository, capsys, flag, told):
    assert run_command_line(["audit", *POLICIES, str(repository), f"--changed-since={flag}"]) == 2
    assert capsys.readouterr().err.startswith(f"error: {told}")


@pytest.mark.parametrize(
    ("printed", "cause"),
    [
        ("10:44 no memory for a cache. Error: a.yaml:1: nil pointer Use --debug flag to render out invalid YAML", "a.yaml:1: nil pointer"),
        ("error: accumulating resources: no file", "accumulating resources: no file"),
        ('E1128 22:10:19.538823 7284 run.go:72] "command failed" err="accumulating resources: no file"', "accumulating resources: no file"),
        ('E1128 22:10:19.538823 7284 run.go:72] "command failed" err=< trouble with `name: web`: no file >', "trouble with `name: web`: no file"),
        ("Error: Error: twice", "twice"),
        ("no such chart", "no such chart"),
        ("", "without a message"),
    ],
)  # fmt: skip
def test_only_the_cause_of_a_failure_is_reported(printed, cause):
    assert cause_of_failure(printed) == cause


SERVER = {
    "server.yaml": """apiVersion: apps/v1
kind: StatefulSet
metadata: {name: chat, namespace: team, annotations: {long: text}}
spec:
  replicas: 1
  selector: {matchLabels: {app: chat}}
  template:
    metadata: {labels: {app: chat}}
    spec:
      containers: [{name: server, image: x, args: [a], resources: {limits: {nvidia.com/gpu: 2}}}]
""",
    "budget.yaml": """apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: chat, namespace: team}
spec: {minAvailable: 1, selector: {matchLabels: {app: chat}}}
""",
    "scaling.yaml": """apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: chat, namespace: team}
spec: {maxReplicaCount: 10, scaleTargetRef: {kind: StatefulSet, name: chat}}
""",
    "cluster.yaml": """apiVersion: v1
kind: Node
metadata: {name: a}
status: {allocatable: {cpu: 8, memory: 8Gi, nvidia.com/gpu: 4}}
""",
}


def test_budgets_and_autoscalers_are_compared_with_servers_in_other_files(tmp_path, capsys):
    written(tmp_path, SERVER)
    context = [str(tmp_path / "cluster.yaml"), "--context-is-whole"]
    assert run_command_line(["audit", "--advice", str(tmp_path), "--context", *context, "-o", "ndjson"]) == 0
    rows = map(json.loads, capsys.readouterr().out.splitlines())
    assert {each["message"] for each in rows if each.get("rule", "").startswith("update/")} == {
        (
            "spec.minAvailable: `1` means that this PodDisruptionBudget allows no eviction of StatefulSet `chat` (1 pod): replace minAvailable with "
            "maxUnavailable: 1, or run at least 2 replicas"
        ),
        (
            "spec.maxReplicaCount: is 10, but the nodes have devices for 2 of these pods: set maxReplicaCount 2, or ask "
            "the administrator to add nodes"
        ),
    }


@pytest.mark.parametrize(("name", "is_told"), [("http", False), ("grpc", True)])
def test_ports_of_servers_in_other_files_are_compared_with_services(name, is_told, tmp_path, capsys):
    """A helper has the labels of the server, so the Service of the server selects the pods of both."""
    server = SERVER["server.yaml"].replace("args: [a],", f"ports: [{{name: {name}, containerPort: 80}}],")
    files = {
        "server.yaml": server,
        "service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: chat, namespace: team}\n"
        "spec: {selector: {app: chat}, ports: [{port: 80, targetPort: http}]}\n",
        "helper.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: helper, namespace: team}\n"
        "spec: {selector: {matchLabels: {app: chat}}, template: {metadata: {labels: {app: chat}}, spec: {containers: "
        "[{name: c, image: x}]}}}\n",
    }
    written(tmp_path, files)
    run_command_line(["audit", str(tmp_path), "--rule", "manifest-shape/target-port"])
    assert ("Deployment team/helper" in capsys.readouterr().out) is is_told, "keep the ports of servers in the index"


@pytest.mark.parametrize(("name", "is_reported"), [("https", False), ("grpc", True)])
def test_a_named_port_is_reported_only_if_no_selected_pod_has_the_port(name, is_reported, tmp_path, capsys):
    """A webhook and a scheduler have the same labels. The Service of the webhook is in the file of the webhook."""
    deployment = """apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: team}
spec:
  selector: {matchLabels: {app: queues}}
  template:
    metadata: {labels: {app: queues, part: NAME}}
    spec: {containers: [{name: c, image: x}]}
"""
    service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: webhook, namespace: team}\nspec: {selector: {app: queues}, ports: [{port: 443, targetPort: https}]}\n"
    server = deployment.replace("image: x", f"image: x, ports: [{{name: {name}, containerPort: 9089}}]")
    files = {
        "webhook.yaml": server.replace("NAME", "webhook") + service,
        "scheduler.yaml": deployment.replace("NAME", "scheduler"),
    }
    written(tmp_path, files)
    run_command_line(["audit", str(tmp_path), "--rule", "manifest-shape/target-port"])
    assert ("Deployment team/scheduler" in capsys.readouterr().out) is is_reported, (
        "the index lacks a workload beside a Service"
    )


AUTOSCALER = """apiVersion: apps/v1
kind: Deployment
metadata: {name: autoscaler, namespace: kube-system}
spec: {template: {spec: {containers: [{name: a, image: "registry.example/autoscaling/IMAGE:v1.34.1"}]}}}
"""


@pytest.mark.parametrize(("image", "is_told"), [("cluster-autoscaler", False), ("cluster-dashboard", True)])
def test_a_controller_in_the_audited_files_is_known(image, is_told, tmp_path, capsys):
    written(tmp_path, {**SERVER, "autoscaler.yaml": AUTOSCALER.replace("IMAGE", image)})
    assert run_command_line(["audit", "--advice", str(tmp_path), "--context-is-whole", "-o", "ndjson"]) in (0, 1)
    assert ("the nodes have devices for 2 of these pods" in capsys.readouterr().out) == is_told


STORAGE = {
    "chart/storage.yaml": """
apiVersion: serving.kserve.io/v1alpha1
kind: ClusterStorageContainer
metadata: {name: site}
spec: {supportedUriFormats: [{prefix: "ceph://"}]}
""",
    "models/service.yaml": """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: chat, namespace: team}
spec: {predictor: {model: {modelFormat: {name: huggingface}, storageUri: "SCHEME://a/b"}}}
""",
}


@pytest.mark.parametrize(("scheme", "rules"), [("ceph", []), ("other", ["serving-kind/storage-scheme"])])
def test_storage_containers_of_other_folders_are_known(scheme, rules, tmp_path, capsys):
    written(tmp_path, {name: text.replace("SCHEME", scheme) for name, text in STORAGE.items()})
    assert run_command_line(["audit", "--advice", str(tmp_path), "-o", "ndjson"]) == 0
    rows = map(json.loads, capsys.readouterr().out.splitlines())
    assert [each["rule"] for each in rows if "rule" in each] == rules


def test_patches_and_archived_objects_are_not_documents_without_an_object(tmp_path, capsys, monkeypatch):
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: x}]}\n"
    monkeypatch.chdir(tmp_path)
    written(
        tmp_path,
        {
            "a/kustomization.yaml": "resources: [pod.yaml]\npatches: [{path: patch.yaml}]\n",
            "a/pod.yaml": pod,
            "a/patch.yaml": pod,
            "a/values.yaml": "replicas: 1\n",
            "archive/pod.yaml": pod,
        },
    )
    run_command_line(["audit", "."])
    summary = capsys.readouterr().out.splitlines()[-1]
    assert summary.endswith(
        "not read: 2 documents without a Kubernetes object, 2 patches and objects that are not applied"
    )


def test_a_kind_that_does_not_exist_counts_as_a_finding(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, {"a.yaml": "apiVersion: v1\nkind: Widget\nmetadata: {name: a}\n"})
    assert run_command_line(["audit", ".", "--fail-on", "warn"]) == 1
    out, err = capsys.readouterr()
    assert "manifest/unknown-kind" in out
    assert out.splitlines()[-1].startswith("1 object in 1 file: 0 without findings, 1 with findings (1 warn)")
    assert not err


@pytest.mark.parametrize(
    ("metadata", "is_told"),
    [
        ("{name: a, owner: team-a, environment: dev}", False),
        ("{name: a, labels: {owner: team-a}}", True),
        ("{name: a, lables: {owner: team-a}}", True),
    ],
)
def test_a_document_with_other_metadata_is_of_another_program(metadata, is_told, tmp_path, capsys):
    written(tmp_path, {"catalog.yaml": f"apiVersion: v1\nkind: ServiceCatalog\nmetadata: {metadata}\n"})
    assert run_command_line(["audit", str(tmp_path)]) == int(is_told)
    assert ("manifest/unknown-kind" in capsys.readouterr().out) == is_told


CLAIM = """apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu, namespace: team}
spec:
  devices:
    requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]
    config:
    - opaque:
        driver: gpu.nvidia.com
        parameters: {apiVersion: resource.nvidia.com/v1beta1, kind: GpuConfig, sharing: {strategy: TimeSlicing}}
"""
RELEASES = {
    "flux": "{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: d}, spec: {values: VALUES}}",
    "argo": (
        "{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: d},"
        " spec: {sources: [{chart: d, helm: {valuesObject: VALUES}}]}}"
    ),
}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(("gate", "rules"), [("true", []), ("false", ["nvidia-device-config/feature-gate"])])
def test_feature_gates_in_values_of_charts_in_other_folders_are_known(release, gate, rules, tmp_path, capsys):
    values = f"{{featureGates: {{TimeSlicingSettings: {gate}}}}}"
    files = {"system/driver/release.yaml": RELEASES[release].replace("VALUES", values), "apps/claim.yaml": CLAIM}
    written(tmp_path, files)
    run_command_line(["audit", str(tmp_path), "-o", "ndjson"])
    rows = map(json.loads, capsys.readouterr().out.splitlines())
    assert [each["rule"] for each in rows if "rule" in each] == rules


NODES_AND_VARIABLES = {
    "pool.yaml": """apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: large}}}}
""",
    "class.yaml": "{apiVersion: karpenter.k8s.aws/v1, kind: EC2NodeClass, metadata: {name: large}}\n",
    "secret.yaml": "{apiVersion: v1, kind: Secret, metadata: {name: hub, namespace: team}, stringData: {token: a}}\n",
    "server.yaml": SERVER["server.yaml"].replace(
        "args: [a],", "args: [a], env: [{name: A, valueFrom: {secretKeyRef: {name: hub, key: token}}}],"
    ),
}


@pytest.mark.parametrize(
    ("left_out", "rules"),
    [("", set()), ("class", {"node-pool/node-class"}), ("secret", {"pod-prerequisites/configuration"})],
)
def test_objects_that_only_files_show_are_kept(left_out, rules, tmp_path, capsys):
    """A live view has neither node classes nor Secrets, so no look-up of a server names these kinds."""
    files = {name: text for name, text in NODES_AND_VARIABLES.items() if name != f"{left_out}.yaml"}
    written(tmp_path, files)
    run_command_line(["audit", str(tmp_path), "--context-is-whole", "-o", "ndjson"])
    rows = map(json.loads, capsys.readouterr().out.splitlines())
    assert {"node-pool/node-class", "pod-prerequisites/configuration"} & {each.get("rule") for each in rows} == rules


GANGS = """apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: gang, namespace: team}
spec: {minMember: 4}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: team}
spec:
  completionMode: Indexed
  parallelism: 3
  completions: 3
  template:
    metadata: {annotations: {scheduling.k8s.io/group-name: gang}}
    spec: {schedulerName: volcano, restartPolicy: Never, containers: [{name: main, image: x}]}
"""
POD_OF_GANG = """apiVersion: v1
kind: Pod
metadata:
  name: NAME
  namespace: team
  labels: {kueue.x-k8s.io/queue-name: main, kueue.x-k8s.io/pod-group-name: pair}
  annotations: {kueue.x-k8s.io/pod-group-total-count: "2"}
spec: {containers: [{name: main, image: x, resources: {limits: {nvidia.com/gpu: 1}}}]}
"""
QUEUE_OF_GANG = """apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: main, namespace: team}
spec: {clusterQueue: gpus}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: gpus}
spec:
  namespaceSelector: {}
  resourceGroups:
  - {coveredResources: [nvidia.com/gpu], flavors: [{name: a, resources: [{name: nvidia.com/gpu, nominalQuota: 8}]}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: a}
"""


def test_pods_of_a_gang_in_other_files_are_counted(tmp_path, capsys):
    """The Job of a gang of Volcano has too few pods. A gang of Kueue has all of its pods, in two files."""
    group, job = GANGS.split("---\n")
    files = {"group.yaml": group, "job.yaml": job, "queue.yaml": QUEUE_OF_GANG}
    files |= {f"{name}.yaml": POD_OF_GANG.replace("NAME", name) for name in ("first", "second")}
    written(tmp_path, files)
    run_command_line(["audit", str(tmp_path), "--context-is-whole", "-o", "ndjson"])
    rules = {json.loads(row).get("rule", "") for row in capsys.readouterr().out.splitlines()}
    assert {each for each in rules if "pod-group" in each} == {"volcano-pod-group/members"}


def test_only_compared_fields_of_servers_are_kept(tmp_path):
    stream = DocumentStream([str(written(tmp_path, SERVER) / "server.yaml")])
    [(_, kept)] = Indexer(frozenset(), is_whole=False).index_parts(stream.parts()).objects
    assert kept["spec"]["template"]["spec"] == {
        "containers": [{"name": "server", "resources": {"limits": {"nvidia.com/gpu": 2}}}]
    }
    assert kept["metadata"] == {"name": "chat", "namespace": "team"}


@pytest.mark.parametrize(
    ("version", "is_told"),
    [
        *((f"ray.io/{each}", True) for each in ("v10", "v3beta1", "v1.0", "V1", "1")),
        *((f"ray.io/{each}", False) for each in ("v1", "v1alpha1", "v1beta3", "v2", "v2alpha1", "${VERSION}", "x1")),
    ],
)
def test_a_version_that_cannot_exist_is_a_finding(version, is_told, tmp_path, capsys):
    """A kind may have a newer version than the table. No API server accepts `v1.0`, and no project skips a number."""
    written(tmp_path, {"a.yaml": f"apiVersion: {version}\nkind: RayCluster\nmetadata: {{name: a}}\n"})
    run_command_line(["audit", "-o", "json", str(tmp_path)])
    told = {each["rule"]: (each["path"], each["fix"]) for each in json.loads(capsys.readouterr().out)["findings"]}
    assert told.get("manifest/unknown-kind") == (("apiVersion", "write `ray.io/v1`") if is_told else None)


MOUNTS = """apiVersion: v1
kind: Pod
metadata: {name: a, namespace: t}
spec: {containers: [{name: a, image: x, volumeMounts: [{name: watch, mountPath: /w}]}]}
"""
ADDS_VOLUME = "kind: Pod\nmetadata: {name: a}\nspec: {volumes: [{name: watch, emptyDir: {}}]}\n"
WITHOUT_VOLUME = "kind: Pod\nmetadata: {name: a}\nspec: {hostNetwork: false}\n"
JSON_PATCH = "- op: add\n  path: /spec/volumes\n  value: [{name: watch, emptyDir: {}}]\n"


@pytest.mark.parametrize(
    ("parts", "files", "is_reported", "why"),
    [
        ("", {}, True, ""),
        ("patches: [{path: p.yaml}]", {}, False, "patch a/p.yaml is in no file"),
        ("patchesStrategicMerge: [p.yaml]", {}, False, "patch a/p.yaml is in no file"),
        ("patches: [{path: p.yaml, target: {kind: Job}}]", {}, True, ""),
        ("patches: [{path: p.yaml, target: {kind: Pod, name: b}}]", {}, True, ""),
        ("patches: [{path: p.yaml, target: {name: a.*}}]", {}, False, "patch a/p.yaml is in no file"),
        ("patches: [{path: p.yaml}]", {"p.yaml": ADDS_VOLUME}, False, "patch a/p.yaml may add `volumes`"),
        ("patches: [{path: p.yaml}]", {"p.yaml": WITHOUT_VOLUME}, True, ""),
        ("patches: [{path: p.yaml}]", {"p.yaml": ADDS_VOLUME.replace("name: a", "name: b")}, True, ""),
        ("patches: [{path: p.yaml, target: {kind: Pod}}]", {"p.yaml": JSON_PATCH}, False, "may add `volumes`"),
        (f"patches: [{{patch: {ADDS_VOLUME!r}}}]".replace("'", '"'), {}, False, "a/kustomization.yaml may add"),
        ("components: [../c]", {}, False, "component c is in no file"),
        ("components: [c]", {"c/kustomization.yaml": "patches: [{path: p.yaml}]"}, False, "patch a/c/p.yaml is in no"),
        ("transformers: [t.yaml]", {}, False, "transformer t.yaml is in no file"),
        (
            "labels: [{pairs: {volumes: x}}]\ncommonAnnotations: {a: b}",
            {},
            False,
            "kustomization a/kustomization.yaml may",
        ),
    ],
)
def test_a_field_that_a_kustomization_may_add_is_not_missing(
    parts, files, is_reported, why, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    written(
        tmp_path,
        {
            "a/kustomization.yaml": f"resources: [pod.yaml]\n{parts}\n",
            "a/pod.yaml": MOUNTS,
            **{f"a/{name}": text for name, text in files.items()},
        },
    )
    code = run_command_line(["audit", "--fail-on", "warn", "."])
    told = " ".join(capsys.readouterr().out.split())
    assert ("manifest-shape/volume-exists" in told, code) == (is_reported, int(is_reported))
    assert why in told


ONLY_READ = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: t}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: a, image: x, volumeMounts: [{name: media, mountPath: /media, readOnly: true}]}]
      volumes: [{name: media, emptyDir: {}}]
"""
REPLACES_VOLUME = """patches:
- target: {kind: Deployment, name: web}
  patch: |
    - op: replace
      path: /spec/template/spec/volumes/0
      value: {name: media, persistentVolumeClaim: {claimName: media}}
"""


@pytest.mark.parametrize(("patches", "is_reported"), [("", True), (REPLACES_VOLUME, False)])
def test_a_volume_that_an_overlay_may_replace_is_not_said_to_stay_empty(
    patches, is_reported, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    overlay = f"resources: [../../base]\n{patches}"
    written(
        tmp_path,
        {
            "base/kustomization.yaml": "resources: [web.yaml]\n",
            "base/web.yaml": ONLY_READ,
            "overlays/a/kustomization.yaml": overlay,
            "overlays/b/kustomization.yaml": overlay,
        },
    )
    assert run_command_line(["audit", "--fail-on", "warn", "."]) == int(is_reported)
    told = " ".join(capsys.readouterr().out.split())
    assert ("manifest-shape/volume-only-read" in told) == is_reported
    assert ("may add `volumes`" in told) != is_reported


SET_WITH_MOUNT = """apiVersion: apps/v1
kind: StatefulSet
metadata: {name: dispatcher, namespace: t}
spec:
  serviceName: dispatcher
  selector: {matchLabels: {app: dispatcher}}
  template:
    metadata: {labels: {app: dispatcher, kind: kafka-dispatcher}}
    spec: {containers: [{name: a, image: x, volumeMounts: [{name: watch, mountPath: /w}]}]}
"""
POD_WEBHOOK = """apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: pods.example.org}
webhooks: [{name: pods.example.org, objectSelector: SELECTOR}]
"""


@pytest.mark.parametrize(
    ("selector", "is_reported"),
    [
        ("{matchLabels: {kind: kafka-dispatcher}}", False),
        ("{matchExpressions: [{key: kind, operator: Exists}]}", False),
        ("{matchLabels: {kind: other}}", True),
        ("{matchExpressions: [{key: inject, operator: NotIn, values: [disabled]}]}", True),
        ("{}", True),
    ],
)
def test_a_volume_that_a_webhook_may_add_to_a_statefulset_is_not_missing(selector, is_reported, tmp_path, capsys):
    written(tmp_path, {"webhook.yaml": POD_WEBHOOK.replace("SELECTOR", selector), "set.yaml": SET_WITH_MOUNT})
    code = run_command_line(["audit", "--fail-on", "warn", str(tmp_path)])
    told = " ".join(capsys.readouterr().out.split())
    assert ("manifest-shape/volume-exists" in told, code) == (is_reported, int(is_reported))
    assert ("MutatingWebhookConfiguration pods.example.org may add `volumes` to the pods" in told) != is_reported


FLUX_OBJECT = """apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: web, namespace: flux-system}
spec: {path: PATH, patches: [{patch: PATCH, target: {kind: KIND}}]}
"""
ARGO_OBJECT = """apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: argocd}
spec: {source: {path: PATH, kustomize: {patches: [{patch: PATCH, target: {kind: KIND}}]}}}
"""
ADDED_VOLUME = '"[{op: add, path: /spec/volumes, value: [{name: v, emptyDir: {}}]}]"'


@pytest.mark.parametrize("delivery", [FLUX_OBJECT, ARGO_OBJECT])
@pytest.mark.parametrize(
    ("path", "kind", "patch", "is_reported"),
    [
        ("./apps/web", "Pod", ADDED_VOLUME, False),
        ("apps", "Pod", ADDED_VOLUME, False),
        ("./", "Pod", ADDED_VOLUME, False),
        ("./apps/other", "Pod", ADDED_VOLUME, True),
        ("./apps/web", "Job", ADDED_VOLUME, True),
        ("./apps/web", "Pod", '"[{op: add, path: /spec/tty, value: true}]"', True),
    ],
)
def test_a_field_that_flux_or_argo_cd_may_add_is_not_missing(
    delivery, path, kind, patch, is_reported, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    text = delivery.replace("PATH", path).replace("KIND", kind).replace("PATCH", patch)
    written(tmp_path, {"clusters/web.yaml": text, "apps/web/pod.yaml": MOUNTS})
    run_command_line(["audit", "."])
    told = " ".join(capsys.readouterr().out.split())
    assert ("manifest-shape/volume-exists" in told) == is_reported
    assert ("clusters/web.yaml has patches that may add `volumes`" in told) != is_reported


@pytest.mark.parametrize(
    ("settings", "is_reported"),
    [
        ("policies: [{manifests: [{path: a/}]}]", False),
        ("policies: [{manifests: [{path: a/part.yaml}]}]", False),
        ("policies: [{manifests: [{path: b/}]}]", True),
        ("policies: [{manifests: [{path: a/, complianceType: mustonlyhave}]}]", True),
        ("policyDefaults: {complianceType: mustonlyhave}\npolicies: [{manifests: [{path: a/}]}]", True),
    ],
)
def test_a_policy_merges_a_deployment_without_selector_into_the_cluster(
    settings, is_reported, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    generator = "apiVersion: policy.open-cluster-management.io/v1\nkind: PolicyGenerator\nmetadata: {name: g}\n"
    part = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: t}\n"
    pods = "{metadata: {labels: {app: a}}, spec: {containers: [{name: manager, image: 'x:1'}]}}"
    written(
        tmp_path, {"policies.yaml": f"{generator}{settings}\n", "a/part.yaml": part + f"spec: {{template: {pods}}}\n"}
    )
    run_command_line(["audit", "."])
    told = " ".join(capsys.readouterr().out.split())
    assert ("the API server refuses the Deployment" in told) == is_reported
    assert ("policy policies.yaml merges the object into an object of the cluster" in told) != is_reported


def test_a_tree_with_a_policy_that_merges_is_audited_at_its_absolute_path(tmp_path, capsys):
    generator = "apiVersion: policy.open-cluster-management.io/v1\nkind: PolicyGenerator\nmetadata: {name: g}\n"
    policies = "policies: [{manifests: [{path: a/, complianceType: musthave}]}]\n"
    settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    written(tmp_path, {"policies.yaml": generator + policies, "a/part.yaml": settings, "b/other.yaml": settings})
    assert run_command_line(["audit", str(tmp_path)]) == 0
    assert "3 objects in 3 files: 2 without findings" in capsys.readouterr().out


@pytest.mark.parametrize(("patch", "is_reported"), [("containers: [{name: pytorch}]", False), ("tty: true", True)])
def test_a_rule_about_an_absent_field_names_the_field(patch, is_reported, tmp_path, capsys, monkeypatch):
    """A rule about a field that the object lacks gives the path of this field, or names the field in `needs`."""
    monkeypatch.chdir(tmp_path)
    job = "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: a, namespace: t}\n"
    spec = "spec: {pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: a, image: x}]}}}}}\n"
    settings = "resources: [job.yaml]\npatches: [{path: p.yaml}]\n"
    written(tmp_path, {"job.yaml": job + spec, "p.yaml": f"{job}spec: {{{patch}}}\n", "kustomization.yaml": settings})
    run_command_line(["audit", "-o", "json", "."])
    rules = {each["rule"] for each in json.loads(capsys.readouterr().out)["findings"]}
    assert ("training-job/main-container" in rules) == is_reported


OLD_CLUSTER = """apiVersion: kubeadm.k8s.io/v1beta2
kind: ClusterConfiguration
kubernetesVersion: RELEASE
"""
OLD_CLUSTER_OF_KIND = """kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
nodes:
- role: control-plane
  image: kindest/node:RELEASE@sha256:6cc3
"""
OLD_BUDGET = """apiVersion: policy/v1beta1
kind: PodDisruptionBudget
metadata: {name: web, namespace: team}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
"""


@pytest.mark.parametrize(("release", "is_told"), [("v1.24.3", False), ("v1.25.0", True)])
@pytest.mark.parametrize("cluster", [OLD_CLUSTER, OLD_CLUSTER_OF_KIND])
def test_a_removed_version_is_compared_with_the_cluster_that_other_files_create(
    cluster, release, is_told, tmp_path, capsys
):
    written(tmp_path, {"nodes/cluster.yaml": cluster.replace("RELEASE", release), "apps/budget.yaml": OLD_BUDGET})
    run_command_line(["audit", str(tmp_path)])
    assert ("served-version/removed" in capsys.readouterr().out) is is_told
