"""An unrelated file of a repository does not change a finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from webhook.cli import run_command_line

FOUND = ("  ✖ fail", "  ⚠ warn")
KUBE_SYSTEM = "{apiVersion: v1, kind: Namespace, metadata: {name: kube-system}}"
DEFAULT = "{apiVersion: v1, kind: Namespace, metadata: {name: default}}"
QUEUE = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: team}, spec: {weight: 1}}"


def vcjob(queue: str = "team") -> str:
    pod = "{spec: {restartPolicy: Never, containers: [{name: a, image: x}]}}"
    tasks = f"[{{name: a, replicas: 1, template: {pod}, policies: [{{event: PodEvicted, action: RestartJob}}]}}]"
    spec = f"{{queue: {queue}, minAvailable: 1, schedulerName: volcano, tasks: {tasks}}}"
    return f"{{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {{name: j, namespace: team}}, spec: {spec}}}"


def template(**more: str) -> str:
    metadata = "".join(f", {key}: {value}" for key, value in more.items())
    request = "{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, allocationMode: All, adminAccess: true}}"
    return (
        f"{{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {{name: monitor{metadata}}}, "
        f"spec: {{spec: {{devices: {{requests: [{request}]}}}}}}}}"
    )


def local_queue(name: str = "main", namespace: str = "") -> str:
    where = f", namespace: {namespace}" if namespace else ""
    return (
        f"{{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {{name: '{name}'{where}}}, "
        "spec: {clusterQueue: all}}"
    )


def cluster_queue(gpus: int, name: str = "all", cohort: str = "") -> str:
    quota = f"[{{name: nvidia.com/gpu, nominalQuota: {gpus}}}, {{name: cpu, nominalQuota: 9}}]"
    groups = f"[{{coveredResources: [nvidia.com/gpu, cpu], flavors: [{{name: a100, resources: {quota}}}]}}]"
    member = f", cohortName: {cohort}" if cohort else ""
    return (
        f"{{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {{name: {name}}}, "
        f"spec: {{namespaceSelector: {{}}, resourceGroups: {groups}{member}}}}}"
    )


FLAVOR = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: a100}}"


def job(gpus: int = 8, queue: str = "main", namespace: str = "") -> str:
    where = f", namespace: {namespace}" if namespace else ""
    labels = f", labels: {{kueue.x-k8s.io/queue-name: {queue}}}" if queue else ""
    limits = f"{{nvidia.com/gpu: {gpus}, cpu: 1}}"
    container = f"{{name: a, image: train, command: [train], resources: {{limits: {limits}, requests: {limits}}}}}"
    rules = "[{action: Ignore, onPodConditions: [{type: DisruptionTarget, status: 'True'}]}]"
    spec = (
        f"{{backoffLimit: 1, podFailurePolicy: {{rules: {rules}}}, "
        f"template: {{spec: {{restartPolicy: Never, containers: [{container}]}}}}}}"
    )
    return f"{{apiVersion: batch/v1, kind: Job, metadata: {{name: train{where}{labels}}}, spec: {spec}}}"


def kustomization(resources: str, **more: str) -> str:
    kind = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    return "".join(f"{key}: {value}\n" for key, value in {**kind, "resources": resources, **more}.items())


def written(folder: Path, files: dict[str, str | tuple[str, ...]]) -> str:
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n---\n".join((content,) if isinstance(content, str) else content))
    return str(folder)


LAYOUTS = {
    "a home cluster": {
        "cluster/namespaces.yaml": (KUBE_SYSTEM, DEFAULT),
        "cluster/queues.yaml": QUEUE,
        "apps/train/job.yaml": vcjob(),
        "apps/train/other.yaml": vcjob("elsewhere"),
        "apps/train/job-kueue.yaml": job(queue="absent", namespace="team"),
    },
    "everything in one folder": {
        "namespaces.yaml": (KUBE_SYSTEM, DEFAULT),
        "queue.yaml": QUEUE,
        "job.yaml": (vcjob(), vcjob("elsewhere")),
        "template.yaml": template(),
        "pod.yaml": job(queue="", namespace=""),
    },
    "a base and overlays": {
        "namespaces/default.yaml": (DEFAULT, KUBE_SYSTEM),
        "base/kustomization.yaml": kustomization("[template.yaml, queue.yaml, job.yaml]"),
        "base/template.yaml": template(),
        "base/queue.yaml": local_queue(),
        "base/job.yaml": job(),
        "overlays/dev/kustomization.yaml": kustomization("[../../base]", namespace="dev"),
        "overlays/prod/kustomization.yaml": kustomization("[../../base, queues.yaml]", namespace="prod"),
        "overlays/prod/queues.yaml": (cluster_queue(4), FLAVOR, DEFAULT),
    },
}


@pytest.mark.parametrize("verb", ["audit", "replay"])
@pytest.mark.parametrize("files", LAYOUTS.values(), ids=list(LAYOUTS))
def test_common_repository_layouts_get_no_finding(
    files: dict[str, str | tuple[str, ...]], verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_command_line([verb, written(tmp_path, files)])
    out = capsys.readouterr().out
    said = [line for line in out.splitlines() if line.startswith(FOUND)]
    assert (code in (0, 3), said) == (True, [])
    assert verb == "audit" or "0 denied" in out
    assert "warning:" not in out


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[list[str], str]:
    run_command_line(["audit", *arguments])
    out, err = capsys.readouterr()
    lines = [line for line in out.splitlines() if line.startswith(FOUND)]
    return [line.rpartition("  ")[2] for line in lines], err


def test_absence_is_reported_if_the_files_are_the_whole_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = written(tmp_path, {"a/job.yaml": vcjob("elsewhere"), "b/queue.yaml": QUEUE})
    assert told(capsys, folder)[0] == []
    assert told(capsys, folder, "--context-is-whole")[0] == ["volcano-job/queue-exists"]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("c/broken.yaml", "apiVersion: v1\nkind: Queue\na: [\n"),
        ("c/Chart.yaml", "name: x"),
        ("c/later.yaml", "{{ if .x }}\na: {{ .b }}\n"),
    ],
)
def test_absence_is_never_reported_while_files_are_unread(
    file: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"a/job.yaml": vcjob("elsewhere"), "b/queue.yaml": QUEUE, file: text}
    if file.endswith("Chart.yaml"):
        files["c/templates/queue.yaml"] = "name: {{ .Release.Name }}\n"
    rules, err = told(capsys, written(tmp_path, files), "--context-is-whole")
    assert rules == []
    assert "note: --context-is-whole is ignored: a file cannot be read" in err


CHAIN = {"queues.yaml": (local_queue(), cluster_queue(4), FLAVOR), "job.yaml": job()}


@pytest.mark.parametrize(
    ("more", "rules"),
    [
        ({}, ["kueue-never/exceeds-max-quota"]),
        ({"other/queues.yaml": (local_queue(), cluster_queue(64), FLAVOR)}, ["kueue-never/exceeds-max-quota"]),
        ({"again.yaml": cluster_queue(64)}, []),  # two ClusterQueues have this name
        # another queue of the cohort may lend quota
        ({"queues.yaml": (local_queue(), cluster_queue(4, cohort="x"), FLAVOR)}, []),
        ({"job.yaml": job(namespace="team")}, []),  # the LocalQueue may be in another namespace
        ({"queues.yaml": local_queue(), "vendor/queues.yaml": (cluster_queue(4), FLAVOR)}, []),
    ],
    ids=[
        "one folder",
        "another folder",
        "two objects of one name",
        "a cohort",
        "another namespace",
        "a copy of other files",
    ],
)
def test_a_chain_of_objects_stays_in_one_source(
    more: dict[str, str], rules: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = written(tmp_path, {**CHAIN, **more})
    assert told(capsys, str(folder), "--exclude", "other")[0] == rules
    found, err = told(capsys, str(tmp_path))
    assert found == rules
    assert ("ClusterQueue all is defined differently in" in err) is ("again.yaml" in more)


def test_a_warning_names_its_assumptions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(tmp_path, CHAIN)
    run_command_line(["audit", folder])
    assert f"; see ClusterQueue `all` in {folder}/queues.yaml (Kueue: Exceeds" in capsys.readouterr().out
    unqueued = {"job.yaml": job(queue="", namespace="team"), "q.yaml": local_queue("x", "team")}
    run_command_line(["audit", "--advice", written(tmp_path, unqueued)])
    assert f"its namespace has LocalQueue x in {folder}/q.yaml, so" in capsys.readouterr().out


def test_a_file_is_listed_before_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = (local_queue(), cluster_queue(4), FLAVOR, job())
    folder = written(tmp_path, {"example.yaml": whole, "other.yaml": cluster_queue(64), "third.yaml": cluster_queue(1)})
    assert told(capsys, folder)[0] == ["kueue-never/exceeds-max-quota"]


def test_the_context_wins_over_the_audited_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(tmp_path / "tree", CHAIN)
    context = written(tmp_path / "context", {"queue.yaml": cluster_queue(64)})
    assert told(capsys, folder, "--context", context)[0] == []


def test_a_queue_of_another_example_does_not_belong_to_the_namespace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = {"e2e/queue.yaml": local_queue("user-queue-${TOPOLOGY}", "default"), "job.yaml": job(0, queue="")}
    assert told(capsys, written(tmp_path, elsewhere))[0] == []
    beside = {"queue.yaml": (local_queue("q-${TOPOLOGY}", "team"), local_queue("real", "team"))}
    run_command_line(
        ["audit", "--advice", written(tmp_path / "b", {**beside, "job.yaml": job(1, queue="", namespace="team")})]
    )
    out = capsys.readouterr().out
    assert "kueue-unmanaged/no-queue-name" in out
    assert "kueue.x-k8s.io/queue-name: real" in out
    assert "TOPOLOGY" not in out


@pytest.mark.parametrize(
    ("files", "rules"),
    [
        ({"t.yaml": template(), "n.yaml": DEFAULT}, []),
        ({"t.yaml": template(namespace="default"), "n.yaml": DEFAULT}, ["resource-claims/admin-access"]),
        (
            {
                "kustomization.yaml": kustomization("[t.yaml, n.yaml]", namespace="default"),
                "t.yaml": template(),
                "n.yaml": DEFAULT,
            },
            ["resource-claims/admin-access"],
        ),
        (
            {
                "kustomization.yaml": kustomization("[t.yaml, n.yaml]", namespace="team"),
                "t.yaml": template(namespace="default"),
                "n.yaml": (DEFAULT, "{apiVersion: v1, kind: Namespace, metadata: {name: x, labels: {a: b}}}"),
            },
            ["unknown"],
        ),
    ],
    ids=["no namespace is set", "the object sets it", "the kustomization sets it", "the kustomization sets another"],
)
def test_namespaces_are_compared_where_they_are_known(
    files: dict[str, str], rules: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, _ = told(capsys, written(tmp_path, files))
    assert found == ([] if rules == ["unknown"] else rules)


PYTORCH = (
    "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j, namespace: team, labels: "
    "{kueue.x-k8s.io/queue-name: main}}, spec: {pytorchReplicaSpecs: {Master: {replicas: 1, restartPolicy: OnFailure, "
    "template: {spec: {containers: [{name: pytorch, image: x, command: [train]}]}}}}}}"
)
OFF = ["kueue-unmanaged/integration-off"]


def configuration(*frameworks: str) -> str:
    listed = f"{{frameworks: [{', '.join(frameworks)}]}}"
    return f"{{apiVersion: config.kueue.x-k8s.io/v1beta1, kind: Configuration, integrations: {listed}}}"


def release(text: str) -> str:
    metadata = "{name: kueue, namespace: claimgate-system}"
    return f"{{apiVersion: v1, kind: ConfigMap, metadata: {metadata}, data: {{kueue: '{text}'}}}}"


@pytest.mark.parametrize(
    ("files", "context", "rules"),
    [
        ({}, "", []),
        ({}, release("0.18"), []),
        ({}, release("0.19"), OFF),
        ({"c.yaml": configuration("batch/job", "kubeflow.org/pytorchjob")}, "", []),
        ({"c.yaml": configuration("batch/job")}, "", OFF),
        ({"c.yaml": configuration("kubeflow.org/pytorchjob")}, release("0.19"), []),
        ({"setup/c.yaml": configuration("batch/job")}, "", []),
    ],
    ids=["unknown", "0.18", "0.19", "listed", "not listed", "listed in 0.19", "in another folder"],
)
def test_a_release_is_not_assumed_for_files(
    files: dict[str, str], context: str, rules: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = written(tmp_path / "tree", {"job.yaml": PYTORCH, **files})
    known = ["--context", written(tmp_path / "context", {"c.yaml": context})] if context else []
    assert told(capsys, folder, *known)[0] == rules
    run_command_line(["audit", folder, *known])
    is_unknown = not context and "c.yaml" not in files
    said = "the release of Kueue is not known: set releases.kueue in claimgate.yaml, or data.kueue of ConfigMap kueue"
    assert capsys.readouterr().out.count(said) == is_unknown


def test_findings_name_objects_as_kustomizations_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = kustomization("[q.yaml, job.yaml]", namespace="team", namePrefix="my-")
    files = {"kustomization.yaml": settings, "q.yaml": CHAIN["queues.yaml"], "job.yaml": job(queue="my-main")}
    run_command_line(["audit", written(tmp_path, files)])
    out = capsys.readouterr().out
    assert "Job team/my-train" in out


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"patches": "[{path: part.yaml}]"}, 0),
        ({"patchesStrategicMerge": "[part.yaml]"}, 0),
        ({"patchesJson6902": "[{path: part.yaml, target: {kind: Job, name: x}}]"}, 0),
        ({"patches": "[{path: part.yaml}]", "components": "[part.yaml]"}, 1),
        ({"patches": "[{path: other.yaml}, {patch: 'kind: Job'}, 1]"}, 1),
    ],
    ids=["patches", "strategic merge", "JSON patch", "the patch is also a component", "another file"],
)
def test_a_patch_of_a_kustomization_is_not_an_object(
    more: dict[str, str], told: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = job().replace("backoffLimit: 1", "backoffLimit: one")
    files = {"kustomization.yaml": kustomization("[whole.yaml]", **more), "whole.yaml": job(), "part.yaml": wrong}
    run_command_line(["audit", written(tmp_path, files)])
    assert capsys.readouterr().out.count("part.yaml") == told


@pytest.mark.parametrize("kustomization", ["namePrefix: dev-\nresources: [config.yaml, pod.yaml]\n", ""])
def test_an_object_of_unknown_namespace_configures_no_policy(kustomization: str, tmp_path: Path, capsys) -> None:
    name = "limits" if kustomization else "gpu-limits"
    kustomization = kustomization.replace("dev-", "gpu-")
    config = f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{a: b}}}}"
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: a, image: x, resources: "
    (tmp_path / "config.yaml").write_text(config)
    (tmp_path / "pod.yaml").write_text(pod + "{limits: {nvidia.com/gpu: 1}}}]}}")
    if kustomization:
        (tmp_path / "kustomization.yaml").write_text(kustomization)
    assert run_command_line(["audit", str(tmp_path), "-v"]) == 0
    assert "failed to configure" not in capsys.readouterr().out


def test_a_definition_of_another_folder_serves_its_version(tmp_path: Path, capsys) -> None:
    names = "{kind: MXJob, plural: mxjobs}"
    versions = "[{name: v1, served: true, storage: true}]"
    crd = f"{{group: kubeflow.org, names: {names}, scope: Namespaced, versions: {versions}}}"
    job = "{apiVersion: kubeflow.org/v1, kind: MXJob, metadata: {name: j}, spec: {mxReplicaSpecs: {}}}"
    for folder in ("manifests", "examples"):
        (tmp_path / folder).mkdir()
    (tmp_path / "examples" / "job.yaml").write_text(job)
    assert run_command_line(["audit", str(tmp_path)]) == 1
    assert "Training Operator 1.9 and later do not serve" in capsys.readouterr().out
    definition = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: m}, spec: "
    (tmp_path / "manifests" / "crd.yaml").write_text(f"{definition}{crd}}}")
    assert run_command_line(["audit", str(tmp_path)]) == 0


def test_a_message_about_a_runtime_names_its_file(tmp_path: Path, capsys) -> None:
    pod = "{spec: {containers: [{name: dataset-initializer, image: x}]}}"
    labels = "{trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}"
    jobs = f"[{{name: dataset-initializer, template: {{metadata: {{labels: {labels}}}, spec: {{template: {pod}}}}}}}]"
    runtime = f"{{mlPolicy: {{numNodes: 1}}, template: {{spec: {{replicatedJobs: {jobs}}}}}}}"
    head = "{apiVersion: trainer.kubeflow.org/v1alpha1, metadata: {name: torch, namespace: team}, kind: "
    (tmp_path / "runtime.yaml").write_text(f"{head}TrainingRuntime, spec: {runtime}}}")
    reference = "{apiGroup: trainer.kubeflow.org, kind: TrainingRuntime, name: torch}"
    spec = f"{{runtimeRef: {reference}, initializer: {{dataset: {{storageUri: 'hf://a/b'}}}}}}"
    (tmp_path / "job.yaml").write_text(f"{head}TrainJob, spec: {spec}}}")
    assert run_command_line(["audit", str(tmp_path)]) == 1
    assert f"TrainingRuntime `torch` in {tmp_path / 'runtime.yaml'}" in capsys.readouterr().out


def test_a_message_about_a_flavor_names_its_file(tmp_path: Path, capsys) -> None:
    flavor = FLAVOR.replace("metadata", "spec: {nodeTaints: [{key: a, value: b, effect: NoSchedule}]}, metadata")
    files = {"job": job(gpus=1, namespace="team"), "flavor": flavor}
    files |= {"queues": f"{cluster_queue(8)}\n---\n{local_queue(namespace='team')}"}
    for name, text in files.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    run_command_line(["audit", str(tmp_path)])
    assert f"flavor `a100` in {tmp_path / 'flavor.yaml'} does not fit" in capsys.readouterr().out
