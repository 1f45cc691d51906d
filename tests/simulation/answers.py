"""Runs `claimgate simulate` for the tests of this folder, and reads its answers."""

import json
from pathlib import Path

from webhook.cli import run_command_line

HERE = Path(__file__).parents[1] / "data" / "simulation"
EXAMPLES = Path(__file__).parents[2] / "examples" / "research-team"
WHOLE = ("--context", str(EXAMPLES / "cluster"), "--context-is-whole")
NODES = ("--context", str(HERE / "nodes.yaml"))


def simulated(capsys, *arguments):
    code = run_command_line(["simulate", *map(str, arguments), "-o", "json"])
    return code, json.loads(capsys.readouterr().out)


def against(answer):
    return {aspect: [each["rule"] for each in listed] for aspect, listed in answer["aspects"].items() if listed}


NODE = """
apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {allocatable: {nvidia.com/gpu: "2", cpu: "8", memory: 64Gi, pods: "110"}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: x, resources: {limits: {nvidia.com/gpu: GPUS, cpu: "1", memory: 1Gi}}}]
"""


def problems_and_questions(capsys, file, job):
    """Return what `simulate` reports and asks about a job, if the files are the whole cluster."""
    _, told = simulated(capsys, file, "--context-is-whole")
    answer = next(each for each in told if each["object"] == job)
    problems = [each["message"] for listed in answer["aspects"].values() for each in listed]
    return problems, [each["what"] for each in answer["unknown"]]


NEEDING = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, namespace: team}
spec:
  replicas: 2
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      containers: [{name: a, image: a, command: [a]CONTAINER}]
SPEC---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: team}
data: {a: "1"}
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: kata}
handler: kata
overhead: {podFixed: {memory: 1Gi}}
---
apiVersion: v1
kind: Node
metadata: {name: a}
status: {allocatable: {cpu: "8", memory: 8Gi, pods: "10"}}
"""


def obstacles_and_questions(told, file):
    """Return the obstacles with their paths, and then the open questions."""
    obstacles = [f"{each['path']}: {each['message']}" for listed in told["aspects"].values() for each in listed]
    return [each.replace(str(file), "FILE") for each in (*obstacles, *(one["what"] for one in told["unknown"]))]
