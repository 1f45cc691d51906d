"""A mistake in copies of an object is one finding with several places. Different mistakes are different findings."""

import json
from collections import Counter

import pytest

from webhook.cli import run_command_line
from webhook.report import copies
from webhook.report.formats import FORMATS

GPU = "{limits: {nvidia.com/gpu: 0.5}}"
POD = """apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  containers:
  - name: a
    image: x
    resources: {resources}
"""
REFUSED = """apiVersion: v1
kind: Namespace
metadata: {{name: {namespace}, labels: {{pod-security.kubernetes.io/enforce: baseline}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: {namespace}}}
spec:
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{hostNetwork: true, containers: [{{name: a, image: x}}]}}
"""
TRANSFORMER = """apiVersion: builtin
kind: LabelTransformer
metadata: {name: labels}
labels: {app: train}
fieldSpecs: [{path: metadata/labels, create: true}]
"""
JOINED = tuple(each.name for each in FORMATS if each.joins_copies)
FRACTION = "pod-resources/whole-number"


def pod(name="train", namespace="team", resources=GPU):
    return POD.format(name=name, namespace=namespace, resources=resources)


def replicas_of_job(**resources):
    roles = "".join(
        f"""    {role}:
      replicas: 1
      template:
        spec: {{containers: [{{name: pytorch, image: x,
          resources: {each}}}]}}
"""
        for role, each in resources.items()
    )
    return f"""apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: ddp}}
spec:
  pytorchReplicaSpecs:
{roles}"""


def write(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


def audit(capsys, *arguments):
    code = run_command_line(["audit", "--rule", FRACTION, *map(str, arguments)])
    return code, capsys.readouterr()


def read(capsys, folder, *arguments):
    _, told = audit(capsys, folder, "-o", "json", *arguments)
    return json.loads(told.out)


@pytest.fixture
def overlays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = {name: "---\n" * number + pod(namespace=name) for number, name in enumerate(("dev", "prod", "stage"))}
    return write(tmp_path, **texts)


def test_copies_in_three_files_are_one_finding_and_three_objects(overlays, capsys):
    report = read(capsys, ".")
    (finding,) = report["findings"]
    assert (finding["file"], finding["object"]["namespace"]) == ("dev.yaml", "dev")
    places = [(each["file"], each["line"], each["column"]) for each in finding["alsoIn"]]
    assert places == [("prod.yaml", 9, finding["column"]), ("stage.yaml", 10, finding["column"])]
    assert [each["object"]["namespace"] for each in finding["alsoIn"]] == ["prod", "stage"]
    assert report["summary"]["findings"] == {"fail": 1, "warn": 0, "error": 0}
    assert (report["summary"]["objects"], report["summary"]["withFindings"]) == (3, 3)


@pytest.mark.parametrize(
    ("second", "more"),
    [
        pytest.param(pod(name="serve"), 1, id="an object with another name is not a copy"),
        pytest.param(
            pod(resources="{limits: {nvidia.com/gpu: 0.25}}"), 1, id="an object with another value is not a copy"
        ),
        pytest.param(
            pod(resources="{requests: {}, limits: {nvidia.com/gpu: 0.5}}"),
            1,
            id="a mistake on another line is not a copy",
        ),
        pytest.param(pod() + "---\n" + pod(namespace="other"), 1, id="an equal object in one file is not a copy"),
        pytest.param(pod(namespace="other"), 0, id="the namespace may differ"),
        pytest.param(pod().replace("image: x", "image: x:2"), 0, id="other parts of the object may differ"),
    ],
)
def test_what_is_a_copy(second, more, tmp_path, capsys):
    report = read(capsys, write(tmp_path, a=pod(), b=second))
    assert len(report["findings"]) == 1 + more
    assert sum(len(each["alsoIn"]) for each in report["findings"]) == (1 if "---" in second or not more else 0)


def test_a_field_that_does_not_exist_is_one_finding_of_all_objects_of_its_kind(tmp_path, capsys):
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {ports: [{port: 80}], %s: x}\n"
    texts = {name: service % (name, "serviceNme") for name in ("a", "b", "c")}
    write(tmp_path, **texts, d=service % ("d", "clusterIPP"))
    run_command_line(["audit", "-o", "json", str(tmp_path)])
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [(each["object"]["name"], len(each["alsoIn"])) for each in findings] == [("a", 2), ("d", 0)]


def test_a_field_that_does_not_exist_in_pods_is_one_finding_of_all_kinds(tmp_path, capsys):
    pod = "{restartPolicy: Never, containers: [{name: a, image: x, resources: {request: {cpu: 1}}}]}"
    job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: %s}\nspec: {template: {spec: %s}}\n"
    train = pod.replace("[{", "[{name: b, image: x}, {", 1)
    write(
        tmp_path,
        a=f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec: {pod}\n",
        b=job % ("b", pod),
        c=job % ("c", train),
        d="apiVersion: v1\nkind: Service\nmetadata: {name: d}\nspec: {ports: [{port: 80}], request: x}\n",
    )
    run_command_line(["audit", "-o", "json", "--rule", "manifest-shape", str(tmp_path)])
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [(each["object"]["name"], len(each["alsoIn"])) for each in findings] == [("a", 2), ("d", 0)]


def test_mistakes_that_an_author_copies_from_job_to_job_are_one_finding_each(tmp_path, capsys):
    job = """apiVersion: batch/v1
kind: Job
metadata: {name: %s}
spec:
  backoffLimit: 0
  parallelism: 2
  template:
    spec:
      affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}},
        nodeAffinity: {}}
      restartPolicy: Never
      containers: [{name: a, image: x, command: [python, train.py], resources: {limits: {nvidia.com/gpu: 1}}}]
"""
    write(tmp_path, **{name: job % f"train-{name}" for name in ("a", "b", "c")})
    run_command_line(["audit", "-o", "json", str(tmp_path)])
    findings = json.loads(capsys.readouterr().out)["findings"]
    told = {each["rule"]: (each["object"]["name"], len(each["alsoIn"])) for each in findings}
    assert told["manifest/repeated-key"] == told["device-failures/pod-failure-policy"] == ("train-a", 2)


def test_containers_of_other_names_have_one_mistake(tmp_path, capsys):
    job = """apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: %s}
spec: {pytorchReplicaSpecs: {%s: {replicas: 1, template: {spec: {containers: [{name: %s, image: x}]}}}}}
"""
    write(tmp_path, a=job % ("a", "Worker", "train"), b=job % ("b", "Master", "learn"))
    run_command_line(["audit", "-o", "json", "--rule", "training-job", str(tmp_path)])
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["object"]["name"], [each["object"]["name"] for each in finding["alsoIn"]]) == ("a", ["b"])


VALUES = {
    "device-failures/readiness-probe": """apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  selector: {matchLabels: {app: server}}
  template:
    metadata: {labels: {app: server}}
    spec:
      containers:
      - {name: NAME, image: "vllm/vllm-openai:v0.11.0", ports: [{containerPort: 8000}],
         resources: {limits: {nvidia.com/gpu: 1}}}
""",
    "gpu-requests/every-gpu-visible": """apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  containers: [{name: NAME, image: "example.org/NAME_cuda", ports: [{containerPort: 80}]}]
""",
    "manifest-shape/image-name": """apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  containers: [{name: a, image: "ghcr.io/TeamOne/NAME"}]
""",
    "gpu-requests/cuda-image": """apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec: {containers: [{name: NAME, image: nvidia/cuda, resources: {limits: {nvidia.com/gpu: 1}}}]}
""",
    "gpu-requests/removed-resource": """apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec: {containers: [{name: NAME, image: x, resources: {limits: {alpha.kubernetes.io/nvidia-gpu: 1}}}]}
""",
    "manifest-shape/ambiguous-port": """apiVersion: v1
kind: Service
metadata: {name: NAME}
spec: {selector: {app: NAME}, ports: [{port: 80}, {port: 81}]}
""",
    "manifest-shape/completion-index": """apiVersion: batch/v1
kind: Job
metadata: {name: NAME}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: NAME, image: x, command: [run, $(JOB_COMPLETION_INDEX)]}]}
""",
    "manifest-shape/home-folder": """apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  volumes: [{name: NAME, emptyDir: {}}]
  containers: [{name: a, image: x, volumeMounts: [{name: NAME, mountPath: ~/data}]}]
""",
    "manifest-shape/secret-data": """apiVersion: v1
kind: Secret
metadata: {name: NAME}
data: {password: "hunter2!"}
""",
    "ray/cluster-required": """apiVersion: ray.io/v1
kind: RayJob
metadata: {name: NAME}
spec: {entrypoint: python NAME.py}
""",
    "training-job/pod-restart-policy": """apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: NAME}
spec:
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: a, image: x}]}}}
    Worker: {replicas: 2, template: {spec: {restartPolicy: OnFailure, containers: [{name: NAME, image: x}]}}}
""",
}
"""Rules with one mistake in objects that differ in the names of containers and images."""


@pytest.mark.parametrize("rule", VALUES)
def test_a_mistake_with_other_names_in_several_files_is_one_finding(rule, tmp_path, capsys):
    write(tmp_path, **{name: VALUES[rule].replace("NAME", name) for name in ("one", "two")})
    run_command_line(["audit", "-o", "json", "--rule", rule, str(tmp_path)])
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert [copy["object"]["name"] for copy in finding["alsoIn"]] == ["two"]


def test_jobs_that_get_a_sidecar_are_one_finding(tmp_path, capsys):
    job = """---
apiVersion: batch/v1
kind: CronJob
metadata: {name: %s, namespace: team}
spec: {schedule: "* * * * *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: %s, image: x}]}}}}}
"""
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team, labels: {istio-injection: enabled}}\n"
    write(tmp_path, jobs=namespace + job % ("order", "a") + job % ("sync", "b"))
    run_command_line(["audit", "-o", "json", "--rule", "mesh/sidecar", str(tmp_path)])
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert [copy["object"]["name"] for copy in finding["alsoIn"]] == ["sync"]


def test_an_unknown_kind_in_several_files_is_one_finding(tmp_path, capsys):
    template = "apiVersion: v1\nkind: WorkflowTemplate\nmetadata: {name: %s}\n"
    write(tmp_path, one=template % "one", two=template % "two")
    run_command_line(["audit", "-o", "json", str(tmp_path)])
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert [copy["object"]["name"] for copy in finding["alsoIn"]] == ["two"]


def test_unknown_kinds_of_a_version_are_one_finding_if_they_have_one_fix(tmp_path, capsys):
    """Files for another program have many kinds that Kubernetes does not know."""
    text = "apiVersion: v1\nkind: %s\nmetadata: {name: a}\n"
    write(tmp_path, one=text % "HPA", two=text % "Function", zero=text % "Deployment")
    run_command_line(["audit", "-o", "json", str(tmp_path)])
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [(each["object"]["kind"], len(each.get("alsoIn", []))) for each in findings] == [
        ("HPA", 1),
        ("Deployment", 0),
    ]


def test_jobs_of_kinds_that_one_configuration_leaves_out_are_a_finding_for_each_kind(tmp_path, capsys):
    text = (
        "apiVersion: kubeflow.org/v1\nkind: %s\nmetadata: {name: %s, labels: {kueue.x-k8s.io/queue-name: q}}\n"
        "spec: {%s: {Worker: {template: {spec: {containers: [{name: %s, image: x}]}}}}}\n"
    )
    write(
        tmp_path,
        a=text % ("JAXJob", "jax", "jaxReplicaSpecs", "jax"),
        b=text % ("XGBoostJob", "boost", "xgbReplicaSpecs", "xgboost"),
        kueue="apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: kueue-controller-manager, namespace: kueue-system}\n"
        "spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: manager, "
        "image: 'registry.k8s.io/kueue/kueue:v0.19.0'}]}}}\n",
    )
    run_command_line(["audit", "-o", "json", "--rule", "kueue-unmanaged/integration-off", str(tmp_path)])
    kinds = [each["object"]["kind"] for each in json.loads(capsys.readouterr().out)["findings"]]
    assert kinds == ["JAXJob", "XGBoostJob"], "the Configuration needs an entry for each kind, so both must be named"


def test_a_wrong_indentation_that_moves_different_fields_is_one_finding(tmp_path, capsys):
    deployment = """apiVersion: apps/v1
kind: Deployment
metadata: {name: %s}
spec:
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      containers: [{name: a, image: x}]
      imagePullSecrets: [{name: r, %s resources: {requests: {cpu: 1}}}]
"""
    write(tmp_path, a=deployment % ("a", "command: [b], args: [c],"), b=deployment % ("b", "args: [c],"))
    run_command_line(["audit", "-o", "json", "--rule", "manifest-shape/unknown-field", str(tmp_path)])
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert [copy["object"]["name"] for copy in finding["alsoIn"]] == ["b"]


@pytest.mark.parametrize(
    ("rule", "right", "wrong"),
    [
        ("object-shape/template-labels", "selector: {matchLabels: {app: a}}", "replicas: 1"),
        ("storage/shared-memory-limit", "memory: 9Gi", "memory: 1Gi"),
        ("manifest-shape/volume-only-read", "mountPath: /dev/shm", "mountPath: /dev/shm, readOnly: true"),
        ("manifest-shape/pod-value", "privileged: false", "privileged: true"),
    ],
)
def test_a_mistake_in_two_deployments_of_a_file_is_one_finding(rule, right, wrong, tmp_path, capsys):
    deployment = """apiVersion: apps/v1
kind: Deployment
metadata: {name: %s}
spec:
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      containers:
      - name: a
        image: x
        resources: {limits: {memory: 9Gi, nvidia.com/gpu: 1}}
        securityContext: {privileged: false, allowPrivilegeEscalation: false}
        volumeMounts: [{name: v, mountPath: /dev/shm}]
      volumes: [{name: v, emptyDir: {medium: Memory, sizeLimit: 2Gi}}]
"""
    write(tmp_path, all="---\n".join(deployment.replace(right, wrong) % name for name in ("web", "api")))
    run_command_line(["audit", "-o", "json", "--rule", rule, str(tmp_path)])
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert [copy["object"]["name"] for copy in finding["alsoIn"]] == ["api"]


def test_a_mistake_in_items_of_a_list_whose_fix_names_the_item_is_one_finding(tmp_path, capsys):
    policy = """\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: a}
spec:
  podSelector: {}
  egress:
  - to:
    - ipBlock:
      cidr: 10.0.0.0/24
    - ipBlock:
      cidr: 10.0.1.0/24
"""
    write(tmp_path, a=policy)
    run_command_line(["audit", "-o", "json", "--rule", "manifest-shape/unknown-field", str(tmp_path)])
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["fix"] == "move `cidr` to spec.egress[0].to[0].ipBlock"
    assert [copy["line"] for copy in finding["alsoIn"]] == [11]


def test_a_key_that_occurs_twice_in_copies_of_a_kustomization_is_one_finding(tmp_path, capsys):
    text = "kind: Kustomization\napiVersion: kustomize.config.k8s.io/v1beta1\nnamePrefix: a-\n{0}: {{a: b}}\n{0}: {{c: d}}\n"
    for folder, key in (("v1", "commonLabels"), ("v2", "commonLabels"), ("other", "commonAnnotations")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "kustomization.yaml").write_text(text.format(key))
    run_command_line(["audit", "-o", "json", str(tmp_path)])
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [len(each["alsoIn"]) for each in findings if each["rule"] == "manifest/repeated-key"] == [0, 1]


def test_a_key_that_occurs_twice_in_objects_without_a_name_is_one_finding(tmp_path, capsys):
    text = "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nspec:\n  {0}: {{a: b}}\n  {0}: {{c: d}}\n"
    write(tmp_path, a=text.format("values"), b=text.format("values"), other=text.format("components"))
    run_command_line(["audit", "-o", "json", str(tmp_path)])
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [len(each["alsoIn"]) for each in findings if each["rule"] == "manifest/repeated-key"] == [1, 0]


def test_objects_of_one_file_are_never_copies_of_each_other(tmp_path, capsys):
    many = "---\n".join(pod(namespace=f"n{number}") for number in range(3))
    report = read(capsys, write(tmp_path, a=many, b=many))
    assert [each["object"]["namespace"] for each in report["findings"]] == ["n0", "n1", "n2"]
    assert [[copy["object"]["namespace"] for copy in each["alsoIn"]] for each in report["findings"]] == [
        ["n0"],
        ["n1"],
        ["n2"],
    ]


def test_a_series_in_one_file_is_one_finding_also_if_another_file_repeats_it(tmp_path, capsys):
    series = "---\n".join(pod(name=name) for name in ("worker-0", "worker-1", "worker-10", "master-0"))
    report = read(capsys, write(tmp_path, a=series, b=series))
    assert [each["object"]["name"] for each in report["findings"]] == ["worker-0", "master-0"]
    assert [[copy["object"]["name"] for copy in each["alsoIn"]] for each in report["findings"]] == [
        ["worker-1", "worker-10", "worker-0", "worker-1", "worker-10"],
        ["master-0"],
    ]


def test_an_object_of_a_series_with_another_mistake_is_a_separate_finding(tmp_path, capsys):
    report = read(
        capsys, write(tmp_path, a=f"{pod(name='worker-0')}---\n{pod(name='worker-1', resources=GPU.replace('5', '7'))}")
    )
    assert [each["object"]["name"] for each in report["findings"]] == ["worker-0", "worker-1"]


def test_a_mistake_in_the_templates_of_one_job_is_one_finding(tmp_path, capsys):
    job = replicas_of_job(Master=GPU, Worker=GPU)
    report = read(capsys, write(tmp_path, a=f"{job}---\n{job.replace('ddp', 'other')}", b=job))
    assert [each["object"]["name"] for each in report["findings"]] == ["ddp", "other"]
    first = report["findings"][0]
    assert "Master" in first["path"]
    assert [(copy["file"][-6:], copy["line"]) for copy in first["alsoIn"]] == [
        ("a.yaml", 15),
        ("b.yaml", 10),
        ("b.yaml", 15),
    ]


def test_two_mistakes_in_the_templates_of_one_job_are_two_findings(tmp_path, capsys):
    job = replicas_of_job(Master=GPU, Worker=GPU.replace("5", "7"))
    assert len(read(capsys, write(tmp_path, a=job))["findings"]) == 2


def test_objects_of_two_files_that_differ_in_a_number_are_two_findings(tmp_path, capsys):
    report = read(capsys, write(tmp_path, a=pod(name="worker-0"), b=pod(name="worker-1")))
    assert [each["object"]["name"] for each in report["findings"]] == ["worker-0", "worker-1"]


def test_denied_objects_without_a_name_are_not_joined(tmp_path, capsys):
    nameless = pod(name="").replace("name: , ", "")
    assert len(read(capsys, write(tmp_path, a=nameless, b=nameless))["findings"]) == 2


@pytest.mark.parametrize("format_", JOINED)
def test_each_format_names_the_other_places(format_, overlays, capsys):
    code, told = audit(capsys, ".", "-o", format_)
    assert code == 1
    assert "prod.yaml" in told.out
    assert "stage.yaml" in told.out
    assert told.out.count("must be a whole number") == (2 if format_ == "json" else 1)  # message and problem


def test_text_says_how_many_files_there_are(overlays, capsys):
    _, told = audit(capsys, ".")
    assert "    also in 2 places: prod.yaml:9:26, stage.yaml:10:26\n" in told.out
    assert (
        "3 objects in 3 files: 0 without findings, 3 with findings (1 fail; a repeated mistake counts once)" in told.out
    )


def test_a_result_of_sarif_has_its_copies_as_related_locations(overlays, capsys):
    _, told = audit(capsys, ".", "-o", "sarif")
    (result,) = json.loads(told.out)["runs"][0]["results"]
    related = [each["physicalLocation"] for each in result["relatedLocations"]]
    assert [each["artifactLocation"]["uri"] for each in related] == ["prod.yaml", "stage.yaml"]
    assert [each["region"]["startLine"] for each in related] == [9, 10]


@pytest.mark.parametrize("format_", ["ndjson", "junit", "github", "gitlab", "policyreport", "openreports"])
def test_a_format_about_places_has_an_entry_for_each_file(format_, overlays, capsys):
    _, told = audit(capsys, ".", "-o", format_)
    assert told.out.count(FRACTION) >= 3


def test_a_baseline_knows_every_copy(overlays, capsys):
    audit(capsys, ".", "--write-baseline", "known")
    assert len(json.loads((overlays / "known").read_text())["findings"]) == 3
    code, told = audit(capsys, ".", "--baseline", "known", "-o", "json", "--exclude", "known")
    assert (code, json.loads(told.out)["findings"]) == (0, [])
    write(overlays, fourth=pod(namespace="fourth"))
    report = read(capsys, ".", "--baseline", "known", "--exclude", "known")
    assert [(each["file"], each["alsoIn"]) for each in report["findings"]] == [("fourth.yaml", [])]


def test_several_processes_join_copies_like_one_process(overlays, capsys):
    assert audit(capsys, ".", "-o", "json") == audit(capsys, ".", "-o", "json", "--jobs", "2")


def test_rendered_overlays_of_a_base_are_one_finding(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("base", "dev", "prod"):
        (tmp_path / name).mkdir()
    write(tmp_path / "base", pod=pod(), kustomization="resources: [pod.yaml]\n")
    for name in ("dev", "prod"):
        write(tmp_path / name, kustomization=f"namespace: {name}\nresources: [../base]\n")
    (finding,) = read(capsys, ".", "--render")["findings"]
    assert [finding["file"], *(each["file"] for each in finding["alsoIn"])] == ["dev", "prod"]


@pytest.mark.parametrize("affix", ["namePrefix: {}-", "nameSuffix: -{}", "namePrefix: a-{}-\nnameSuffix: -{}"])
def test_an_overlay_that_renames_its_base_has_copies_of_the_base(affix, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("base", "dev", "prod", "serve"):
        (tmp_path / name).mkdir()
    write(tmp_path / "base", pod=pod(), kustomization="resources: [pod.yaml]\n")
    for name in ("dev", "prod"):
        text = f"resources: [../base]\n{affix.format(name, name)}\ntransformers: [labels.yaml]\n"
        write(tmp_path / name, kustomization=text, labels=TRANSFORMER)
    write(tmp_path / "serve", pod=pod(name="serve"), kustomization="resources: [pod.yaml]\nnamePrefix: prod-\n")
    first, other = read(capsys, ".", "--render")["findings"]
    assert [first["file"], *(each["file"] for each in first["alsoIn"])] == ["dev", "prod"]
    assert "prod" in first["alsoIn"][0]["object"]["name"]
    assert (other["object"]["name"], other["alsoIn"]) == ("prod-serve", [])


def test_objects_that_a_loop_of_a_chart_makes_are_one_finding(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    templates = tmp_path / "chart" / "templates"
    templates.mkdir(parents=True)
    (tmp_path / "chart" / "Chart.yaml").write_text("apiVersion: v2\nname: c\nversion: 0.1.0\n")
    loop = "{{ range $i := until 3 }}\n---\n" + pod(name="train-{{ $i }}") + "{{ end }}\n"
    write(templates, loop=loop, other=pod(name="train-9"))
    first, other = read(capsys, ".", "--render")["findings"]
    assert [first["object"]["name"], *(each["object"]["name"] for each in first["alsoIn"])] == [
        "train-0",
        "train-1",
        "train-2",
    ]
    assert len({each["line"] for each in (first, *first["alsoIn"])}) == 3
    assert (other["object"]["name"], other["alsoIn"]) == ("train-9", [])


def test_the_namespace_in_a_message_does_not_matter(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("dev", "prod"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, deployment=REFUSED.format(namespace=name))
    run_command_line(["audit", ".", "--rule", "pod-prerequisites", "-o", "json"])
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert "namespace dev refuses" in finding["message"]
    assert [each["file"] for each in finding["alsoIn"]] == ["prod/deployment.yaml"]


def test_beyond_a_bound_each_finding_is_reported_on_its_own(overlays, monkeypatch, capsys):
    monkeypatch.setattr(copies, "_MOST_REMEMBERED", 2)
    report = read(capsys, ".")
    assert [len(each["alsoIn"]) for each in report["findings"]] == [1, 0]
    assert report["summary"]["findings"]["fail"] == 2


def test_an_unserved_version_is_one_finding_for_each_kind(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    old = "apiVersion: {}\nkind: {}\nmetadata: {{name: {}}}\nspec: {{}}\n"
    hpas = [old.format("autoscaling/v2beta1", "HorizontalPodAutoscaler", name) for name in ("a", "b", "c")]
    budget = old.format("policy/v1beta1", "PodDisruptionBudget", "d")
    newer = old.format("autoscaling/v2beta2", "HorizontalPodAutoscaler", "e")
    workloads = [
        old.format("extensions/v1beta1", "Deployment", "f"),
        old.format("apps/v1beta1", "StatefulSet", "g"),
        old.format("apps/v1beta2", "DaemonSet", "h"),
    ]
    write(tmp_path, first="---\n".join(hpas[:2]), second="---\n".join((hpas[2], budget, newer, *workloads)))
    run_command_line(["audit", "--rule", "served-version/removed", "-o", "json", "."])
    report = json.loads(capsys.readouterr().out)
    told = [
        (each["object"]["name"], [other["object"]["name"] for other in each["alsoIn"]]) for each in report["findings"]
    ]
    assert told == [("a", ["b", "c"]), ("d", []), ("e", []), ("f", ["g", "h"])], "one fix of one release is one finding"
    assert (report["summary"]["objects"], report["summary"]["withFindings"]) == (8, 8)


def test_a_runtime_without_the_mount_of_its_job_is_in_also_in_of_the_denial(tmp_path, capsys):
    step = """      - name: {name}
        template:
          metadata: {{labels: {{trainer.kubeflow.org/trainjob-ancestor-step: {step}}}}}
          spec: {{template: {{spec: {{containers: [{{name: {name}, image: x}}]}}}}}}
"""
    runtime = (
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainingRuntime\nmetadata: {name: r, namespace: team}\n"
        "spec:\n  mlPolicy: {numNodes: 1, torch: {}}\n  template:\n    spec:\n      replicatedJobs:\n"
    )
    runtime += step.format(name="dataset-initializer", step="dataset-initializer")
    runtime += step.format(name="node", step="trainer")
    job = (
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: j, namespace: team}\nspec:\n"
        "  runtimeRef: {apiGroup: trainer.kubeflow.org, kind: TrainingRuntime, name: r}\n"
        "  initializer: {dataset: {storageUri: hf://a/b}}\n"
    )
    write(tmp_path, a=f"{runtime}---\n{job}", b=runtime)
    told = findings_in(capsys, str(tmp_path))["findings"]
    assert [(each["rule"], [other["object"]["name"] for other in each["alsoIn"]]) for each in told] == [
        ("train-job/initializer-step", ["r", "r"])
    ], "the runtime has the mistake that the denial of the TrainJob names"


def test_pods_with_claims_of_an_old_release_are_places_of_one_finding(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    claim = "apiVersion: resource.k8s.io/{}\nkind: ResourceClaim\nmetadata: {{name: {}}}\nspec: {{}}\n"
    pod_ = "apiVersion: v1\nkind: Pod\nmetadata: {{name: {}}}\nspec:\n  containers: [{{name: a, image: x}}]\n"
    pod_ += "  resourceClaims: [{{name: gpu, source: {{resourceClaimName: c}}}}]\n"
    old = claim.format("v1alpha2", "c")
    template = old.replace("ResourceClaim", "ResourceClaimTemplate").replace("name: c", "name: t")
    write(tmp_path, first="---\n".join((pod_.format("p"), old, template)), second=pod_.format("q"))
    rules = ("--rule", "resource-claims/served-version", "--rule", "claims-exactly-one/source-required")
    run_command_line(["audit", *rules, "-o", "json", "."])
    report = json.loads(capsys.readouterr().out)
    told = [
        (each["object"]["name"], [other["object"]["name"] for other in each["alsoIn"]]) for each in report["findings"]
    ]
    assert told == [("c", ["t", "p"]), ("q", [])], "q is in a file that names no release"
    assert report["summary"]["findings"] == {"fail": 2, "warn": 0, "error": 0}
    assert report["summary"]["withFindings"] == 4


JOB = """apiVersion: batch/v1
kind: Job
metadata: {{name: {name}}}
spec: {{template: {{spec: {{restartPolicy: Never, {field}: a, containers: [{{name: a, image: x}}]}}}}}}
"""
OLD = "apiVersion: batch/v1beta1\nkind: CronJob\nmetadata: {name: %s}\n"
KFDEF = "apiVersion: kfdef.apps.kubeflow.org/v1\nkind: KfDef\nmetadata: {name: kubeflow}\n"


def findings_in(capsys, *arguments):
    run_command_line(["audit", "-o", "json", *map(str, arguments)])
    return json.loads(capsys.readouterr().out)


@pytest.fixture(
    params=[
        *("platform/upstream", "platform/vendor", "third_party", "platform/kustomize", "kubespray"),
        *("common", "platform/contrib", "platform/docs"),
    ]
)
def copied(request, tmp_path, monkeypatch):
    """Write a copy of another project with two mistakes, and a file of the user with one of these mistakes."""
    folder = tmp_path / request.param / "jobs"
    folder.mkdir(parents=True)
    write(folder, a=JOB.format(name="a", field="initializer"), b=OLD % "b")
    write(tmp_path, a=OLD % "own")
    if request.param == "kubespray":
        (tmp_path / "kubespray" / "SECURITY_CONTACTS").touch()
    if request.param.endswith("kustomize"):
        write(tmp_path / "platform", kfctl=KFDEF)
    if request.param.endswith(("common", "contrib", "docs")):
        roles = tmp_path / request.param / ".." / "common" / "kubeflow-roles"
        roles.mkdir(parents=True)
        write(roles, roles="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: roles}\n")
    monkeypatch.chdir(tmp_path)
    return request.param


def project_of(folder):
    """Return the project of a copy, and the command that shows its mistakes."""
    if folder == "common":
        return "kubeflow/manifests; `claimgate audit common`"
    if folder in ("platform/contrib", "platform/docs"):
        return f"kubeflow/manifests; `claimgate audit platform/common {folder}`"
    return f"the project that `{folder}` copies; `claimgate audit {folder}`"


def test_the_mistakes_of_a_copied_project_are_one_finding_with_the_fix_of_the_copy(copied, capsys):
    told = findings_in(capsys, ".")
    assert [(each["file"], each["rule"]) for each in told["findings"]] == [
        ("a.yaml", "served-version/removed"),
        (f"{copied}/jobs/b.yaml", "served-version/removed"),
    ], "a mistake of the owner must not be hidden by a copy, and the copy has one finding"
    assert (
        told["findings"][1]["fix"] == f"take a newer release of {project_of(copied)} shows 1 other mistake of this copy"
    )
    assert told["summary"]["findings"]["warn"] == 2, "the mistakes that are not listed must not be counted as findings"


def test_a_user_who_names_the_copy_gets_each_mistake(copied, capsys):
    told = findings_in(capsys, copied)
    assert sorted(each["rule"] for each in told["findings"]) == [
        "manifest-shape/unknown-field",
        "served-version/removed",
    ]
    assert not any("newer release" in each["fix"] for each in told["findings"])


def test_the_fix_of_a_single_mistake_of_a_copy_is_named(copied, capsys):
    told = findings_in(capsys, ".", "--rule", "served-version/removed")
    project = project_of(copied).partition("; ")[0]
    assert told["findings"][1]["fix"] == (
        f"take a newer release of {project}, or write batch/v1, with the fields of this version"
    )


def test_copies_of_projects_that_are_too_old_are_one_finding(tmp_path, monkeypatch, capsys):
    for name in ("a/upstream", "b/upstream", "c/vendor", "d/upstream"):
        (tmp_path / name).mkdir(parents=True)
    write(tmp_path / "a/upstream", job=JOB.format(name="j", field="initializer"), old=OLD % "a")
    write(tmp_path / "b/upstream", old=OLD % "b")
    write(tmp_path / "c/vendor", old="apiVersion: policy/v1beta1\nkind: PodSecurityPolicy\nmetadata: {name: c}\n")
    write(tmp_path / "d/upstream", job=JOB.format(name="d", field="initializer"))
    monkeypatch.chdir(tmp_path)
    told = findings_in(capsys, ".")
    assert [(each["file"], [other["file"] for other in each["alsoIn"]]) for each in told["findings"]] == [
        ("a/upstream/old.yaml", ["b/upstream/old.yaml", "c/vendor/old.yaml"]),
        ("d/upstream/job.yaml", []),
    ]
    assert told["findings"][0]["fix"] == (
        "take newer releases of the projects that are copied in `a/upstream` and 2 other places"
    )
    assert told["summary"]["findings"]["warn"] == 2


TWO_OLD = OLD % "b" + "---\napiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: b}\nspec: {}\n"


@pytest.mark.parametrize(
    ("folder", "file", "fix"),
    [
        (
            "lab/mesh-1.2.2",
            "a",
            "take a newer release of mesh; `claimgate audit lab/mesh-1.2.2` shows 1 other mistake of this copy",
        ),
        (
            "lab",
            "certs-v0.7.2",
            "take a newer release of certs; `claimgate audit lab/certs-v0.7.2.yaml` shows 1 other mistake of this copy",
        ),
        (
            "lab/named-1.2.2",
            "a",
            "take a newer release of named; `claimgate audit lab/named-1.2.2` shows 1 other mistake of this copy",
        ),
        ("lab/1.2.2", "a", ""),
        ("lab/mesh-1.2", "a", ""),
        ("lab/mesh", "job-1.2", ""),
    ],
)
def test_an_unpacked_release_and_a_name_of_a_release_are_copies(folder, file, fix, tmp_path, monkeypatch, capsys):
    (tmp_path / folder).mkdir(parents=True)
    write(tmp_path / folder, **{file: TWO_OLD})
    if "mesh" in folder:
        (tmp_path / folder / "LICENSE").touch()
    monkeypatch.chdir(tmp_path)
    told = findings_in(capsys, ".")["findings"]
    assert [each["fix"] for each in told][:1] == [fix] if fix else len(told) == 2
    assert len(findings_in(capsys, f"{folder}/{file}.yaml")["findings"]) == 2, "its user wants each mistake"


def test_a_file_of_a_release_of_today_has_its_own_mistakes(tmp_path, monkeypatch, capsys):
    for name in ("train-1.2.3", "train-1.2.4"):
        write(tmp_path, **{name: JOB.format(name="a", field="initializer")})
    monkeypatch.chdir(tmp_path)
    (told,) = findings_in(capsys, ".")["findings"]
    assert (told["file"], [each["file"] for each in told["alsoIn"]]) == ("train-1.2.3.yaml", ["train-1.2.4.yaml"])
    assert "newer release" not in told["fix"]


def test_a_generator_may_change_the_line_of_a_container_without_a_port(tmp_path, monkeypatch, capsys):
    service = "apiVersion: v1\nkind: Service\nmetadata: {{name: {}}}\nspec: {{selector: {{app: a}}, ports: [{{port: 1, targetPort: {}}}]}}\n"
    web = (
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  selector: {matchLabels: {app: a}}\n"
    )
    pods = "  template: {metadata: {labels: {app: a}}, spec: {containers: [{%s}]}}\n"
    first, second = "name: c, image: x", "image: x, name: c"
    for folder, text in (("config", first), ("dist", second), ("other", second)):
        (tmp_path / folder).mkdir()
        named = service.format("s", "http" if folder == "other" else "https")
        write(tmp_path / folder, all=named + web + pods % text)
    monkeypatch.chdir(tmp_path)
    told = findings_in(capsys, ".", "--rule", "manifest-shape/target-port")
    assert [(each["file"], [other["file"] for other in each["alsoIn"]]) for each in told["findings"]] == [
        ("config/all.yaml", ["dist/all.yaml"]),
        ("other/all.yaml", []),
    ]


def test_a_folder_of_a_copy_is_never_an_option_of_the_printed_command():
    project = copies.CopiedFolders(["."]).copy_of("--config=a/vendor/b.yaml")
    assert "`claimgate audit ./--config=a/vendor` shows" in project.fix("", 2)


def test_copies_of_repositories_are_known_without_a_look_at_files():
    """The folder does not exist: the listing of the audited files has already found its file."""
    copied = copies.CopiedFolders(["."])
    copied.add_project_files(["./kubespray/SECURITY_CONTACTS"])
    assert copied.copy_of("kubespray/jobs/b.yaml").folders == ("kubespray",)


def test_each_of_many_distributions_is_a_copy():
    files = [f"{number}/common/kubeflow-roles/a.yaml" for number in range(20_000)]
    copied = copies.CopiedFolders(["."])
    copied.add_distributions(files)
    assert copied.copy_of("19999/common/b.yaml").folders == ("19999/common",)


def test_a_denial_in_a_copied_project_is_a_separate_finding(copied, tmp_path, capsys):
    write(tmp_path / copied, pod=pod(namespace="default"))
    told = findings_in(capsys, ".")
    assert [each["rule"] for each in told["findings"] if each["result"] == "fail"] == [FRACTION]


def test_passes_are_not_joined(overlays, capsys):
    run_command_line(["audit", ".", "-o", "json", "--show", "pass"])
    rows = json.loads(capsys.readouterr().out)["findings"]
    passed = Counter(each["policy"] for each in rows if each["result"] == "pass")
    assert passed
    assert {*passed.values()} == {3}
