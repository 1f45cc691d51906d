"""`claimgate simulate` compares jobs with queues, admission checks, quota and limits."""

import pytest

from tests.simulation.answers import EXAMPLES, NEEDING, NODE, NODES, WHOLE, against, problems_and_questions, simulated
from webhook.cli import run_command_line


def test_the_queue_and_the_counted_requests_are_reported(capsys):
    _, [told] = simulated(capsys, EXAMPLES / "broken" / "pytorchjob-too-many-gpus.yaml", *WHOLE)
    assert told["queue"] == {
        "localQueue": "training",
        "clusterQueue": "research",
        "cohort": "science",
        "volcanoQueue": "",
    }
    assert [(each["podSet"], each["pods"], each["devices"]) for each in told["asks"]] == [
        ("master", 1, 4),
        ("worker", 7, 4),
    ]
    assert told["asks"][1]["requests"]["nvidia.com/gpu"] == "28"
    assert "LocalQueue research/training" in told["lookedAt"]


WAITS = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: other, namespace: research}
spec: {queueName: training, podSets: [{name: main, count: 1, template: {spec: {containers: []}}}]}
status:
  conditions: [{type: QuotaReserved, status: "True", reason: x, message: x, lastTransitionTime: "2026-01-01T00:00:00Z"}]
  admission:
    clusterQueue: research
    podSetAssignments:
    - {name: main, count: 1, flavors: {nvidia.com/gpu: a100}, resourceUsage: {nvidia.com/gpu: "15"}}
"""


def test_a_job_waits_for_quota_in_use(tmp_path, capsys):
    (tmp_path / "workload.yaml").write_text(WAITS)
    code, [told] = simulated(capsys, EXAMPLES / "good" / "pytorchjob.yaml", *WHOLE, *NODES, "--context", tmp_path)
    assert (code, told["answer"], told["starts"]) == (0, "waits", True)
    assert against(told) == {"quota": ["kueue-not-now/waiting-for-quota"]}


def test_a_queue_that_was_not_looked_up_is_not_marked_as_fine(tmp_path, capsys):
    job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, labels: {kueue.x-k8s.io/queue-name: training}}\n"
    job += "spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: x}]}}}\n"
    (tmp_path / "job.yaml").write_text(job)
    assert run_command_line(["simulate", str(tmp_path / "job.yaml"), "--context", str(EXAMPLES / "cluster")]) == 3
    said = capsys.readouterr().out
    assert "○ queue      LocalQueue training; its ClusterQueue is not known" in said
    assert "in namespace research, and the reviewed object has none: set metadata.namespace" in said
    assert "fix: add the files" not in said


@pytest.mark.parametrize(
    ("of_queue", "given", "found"),
    [
        pytest.param("default", (), True, id="a queue in default"),
        pytest.param("default", ("-n", "default"), True, id="a queue in default, and the flag"),
        pytest.param("default", ("-n", "team"), False, id="a queue in default, and another namespace"),
        pytest.param("", (), True, id="a queue without a namespace"),
        pytest.param("", ("-n", "team"), True, id="a queue without a namespace, and the flag"),
        pytest.param("team", (), False, id="a queue in another namespace"),
        pytest.param("team", ("-n", "team"), True, id="a queue in the given namespace"),
    ],
)
def test_a_job_without_a_namespace_finds_the_queue_of_its_file(of_queue, given, found, tmp_path, capsys):
    place = f", namespace: {of_queue}" if of_queue else ""
    queue = f"apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {{name: q{place}}}\nspec: {{clusterQueue: c}}\n"
    job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, labels: {kueue.x-k8s.io/queue-name: q}}\n"
    job += "spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: x}]}}}\n"
    (tmp_path / "job.yaml").write_text(f"{queue}---\n{job}")
    _, [told] = simulated(capsys, tmp_path / "job.yaml", *given)
    assert any(each.startswith("LocalQueue") for each in told["lookedAt"]) == found, "see _documents_in_namespace"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{schedulerName: own-scheduler, CONTAINERS}", "scheduler own-scheduler is not known to claimgate"),
        ("{schedulerName: default-scheduler, CONTAINERS}", ""),
        (
            "{schedulerName: vocalno, CONTAINERS}",
            "scheduler vocalno is not known to claimgate; did you mean `volcano`?",
        ),
        ("{schedulerName: kai-scheduler, CONTAINERS}", "scheduler kai-scheduler is not known to claimgate"),
    ],
)
def test_an_unknown_scheduler_makes_queue_and_quota_unknown(text, said, tmp_path, capsys):
    containers = "containers: [{name: main, image: x}]"
    pod = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec: {text.replace('CONTAINERS', containers)}\n"
    (tmp_path / "pod.yaml").write_text(pod)
    code, [told] = simulated(capsys, tmp_path / "pod.yaml", *NODES, "--context-is-whole")
    assert [each["what"] for each in told["unknown"] if each["aspects"] == ["queue", "quota"]] == (
        [said] if said else []
    )
    assert (code, told["answer"]) == ((3, "unknown") if said else (0, "can-start"))


@pytest.mark.parametrize(
    ("kind", "field", "labels", "said"),
    [
        ("batch/v1 Job", "suspend: true", "{}", "spec.suspend is true, so no pod starts before someone changes it"),
        ("batch/v1 Job", "suspend: false", "{}", ""),
        ("batch/v1 Job", "suspend: true", "{kueue.x-k8s.io/queue-name: a}", ""),
        ("apps/v1 Deployment", "paused: true", "{}", "spec.paused is true, so no pod starts before someone changes it"),
    ],
)
def test_suspended_jobs_without_a_queue_are_not_reported_as_starting(kind, field, labels, said, tmp_path, capsys):
    version, _, name = kind.partition(" ")
    template = "{metadata: {labels: {a: b}}, spec: {restartPolicy: Never, containers: [{name: main, image: x}]}}"
    if name == "Deployment":
        template = f"{template.replace('restartPolicy: Never, ', '')}, selector: {{matchLabels: {{a: b}}}}"
    metadata = f"{{name: a, namespace: team, labels: {labels}}}"
    text = f"{{apiVersion: {version}, kind: {name}, metadata: {metadata}, spec: {{{field}, template: {template}}}}}"
    (tmp_path / "job.yaml").write_text(text)
    _, [told] = simulated(capsys, tmp_path / "job.yaml", *NODES, "--context-is-whole")
    assert [each["what"] for each in told["unknown"] if each["aspects"] == ["queue"]] == ([said] if said else [])
    assert (told["answer"] == "unknown") is bool(said)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ("kind: ResourceQuota, spec: {hard: {pods: 9}}", ""),
        ("kind: ResourceQuota, spec: {hard: {pods: 9}, scopes: [NotTerminating]}", "ResourceQuota `o` has scopes"),
        (
            "kind: LimitRange, spec: {limits: [{type: Container, maxLimitRequestRatio: {cpu: 2}}]}",
            "maxLimitRequestRatio",
        ),
    ],
)
def test_limits_of_a_namespace_that_no_rule_compares_make_the_answer_unknown(other, said, tmp_path, capsys):
    text = NEEDING.replace("CONTAINER", "").replace("SPEC", "")
    text += f"---\n{{apiVersion: v1, metadata: {{name: o, namespace: team}}, {other}}}\n"
    (tmp_path / "job.yaml").write_text(text)
    _, questions = problems_and_questions(capsys, tmp_path / "job.yaml", "Deployment team/a")
    assert said in " ".join(questions) if said else questions == []


VOLCANO = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research}
spec: {weight: 1}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, namespace: team}
spec:
  queue: research
  tasks: [{name: worker, replicas: 2, template: {spec: {containers: [{name: main, image: "x:1"}]}}}]
"""
CHECK = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: budget}
spec:
  controllerName: CONTROLLER
  parameters: {apiGroup: kueue.x-k8s.io, kind: ProvisioningRequestConfig, name: all}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ProvisioningRequestConfig
metadata: {name: all}
spec: {provisioningClassName: check-capacity.autoscaling.x-k8s.io}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: all}
spec:
  namespaceSelector: {}
  admissionChecksStrategy: {admissionChecks: [{name: budget}]}
  resourceGroups:
  - coveredResources: [cpu, memory, nvidia.com/gpu]
    flavors:
    - name: a
      resources: [{name: cpu, nominalQuota: 9}, {name: memory, nominalQuota: 9Gi}, {name: nvidia.com/gpu, nominalQuota: 9}]
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: a}, spec: {}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: main, namespace: team}, spec: {clusterQueue: all}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: team}}
---
"""


def test_a_queue_of_a_file_has_no_state(tmp_path, capsys):
    (tmp_path / "job.yaml").write_text(VOLCANO)
    code, [told] = simulated(capsys, tmp_path / "job.yaml", "--context-is-whole")
    assert (code, told["answer"], against(told)) == (0, "nothing-found", {})


@pytest.mark.parametrize(
    ("controller", "code", "whats"),
    [
        ("kueue.x-k8s.io/provisioning-request", 0, []),
        ("example.com/budget", 3, ["AdmissionCheck budget has no condition Active in its file"]),
    ],
)
def test_an_admission_check_in_a_file_has_no_conditions(controller, code, whats, tmp_path, capsys):
    job = NODE.replace("GPUS", '"1"').replace("{name: job}", "{name: job, namespace: team, labels: {LABEL: main}}")
    job = job.replace("LABEL", "kueue.x-k8s.io/queue-name").replace(
        "spec:\n  template", "spec:\n  suspend: true\n  template"
    )
    (tmp_path / "job.yaml").write_text(CHECK.replace("CONTROLLER", controller) + job)
    got, [told] = simulated(capsys, tmp_path / "job.yaml", "--context-is-whole")
    assert (got, [each["what"] for each in told["unknown"] if each["rules"]], against(told)) == (code, whats, {})
    check = f"AdmissionCheck `budget` of {controller} must let the job pass before its pods start"
    assert check in [each["what"] for each in told["unknown"]]


def test_a_job_whose_queue_has_an_admission_check_waits(tmp_path, capsys):
    job = NODE.replace("GPUS", '"1"').replace("{name: job}", "{name: job, namespace: team, labels: {LABEL: main}}")
    job = job.replace("LABEL", "kueue.x-k8s.io/queue-name")
    check = CHECK.replace("CONTROLLER", "example.com/budget").replace("budget}]}", "budget, onFlavors: [a, b]}]}")
    active = "status: {conditions: [{type: Active, status: 'True'}]}"
    text = check.replace("controllerName: example.com/budget", "controllerName: x.io/b")
    text = text.replace("name: all}\n---", f"name: all}}\n{active}\n---", 1)
    (tmp_path / "job.yaml").write_text(text + job)
    got, [told] = simulated(capsys, tmp_path / "job.yaml", "--context-is-whole")
    assert (got, told["answer"], told["starts"]) == (0, "waits", None)
    what = "AdmissionCheck `budget` of x.io/b must let the job pass in flavor a or b before its pods start"
    assert [each["what"] for each in told["unknown"] if each["aspects"] == ["queue"]] == [what]
    run_command_line(["simulate", str(tmp_path / "job.yaml"), "--context-is-whole"])
    assert f"Job team/job waits; {what}" in " ".join(capsys.readouterr().out.split())


def test_a_queue_of_kai_is_no_job(tmp_path, capsys):
    queue = (
        "apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: q}\nspec: {resources: {gpu: {quota: -1}}}\n"
    )
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {kai.scheduler/queue: q}}\n"
    pod += "spec: {schedulerName: kai-scheduler, containers: [{name: main, image: x}]}\n"
    (tmp_path / "pod.yaml").write_text(f"{queue}---\n{pod}")
    _, told = simulated(capsys, tmp_path / "pod.yaml")
    assert [each["object"] for each in told] == ["Pod default/p"]
