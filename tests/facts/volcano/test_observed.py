"""The findings about 256 requests, compared with the answers of the real webhooks of Volcano and a real API server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from tests.literals import TABLE, shipped_policies
from webhook.admission.fixtures import attributes_of_object
from webhook.admission.review import answer_request
from webhook.apimachinery import quantity
from webhook.apimachinery.attributes import Attributes, Operation, Phase
from webhook.cluster import Cluster
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.facts.volcano_objects.defaults import object_with_defaults
from webhook.patch import jsonpatch
from webhook.rules.decisions import Verdict
from webhook.schema import decode_object

DATA = Path(__file__).parents[2] / "data" / "volcano" / "observed.jsonl"
ROWS = [json.loads(line) for line in DATA.read_text().splitlines()]
DENIED = ("denied", "denied-schema", "denied-apiserver")
DIFFERENT = {
    # id -> why the result differs from the real webhooks
    "volcano/cronjob/tmpl-gpu": "a resource `gpu` is denied in the pod templates of every kind: no pod can ever have it",
    "volcano/jobtemplate/gpu": "a resource `gpu` is denied in the pod templates of every kind: no pod can ever have it",
}
NAMED_OTHERWISE = {
    # id -> why the finding names another field than Volcano's message
    "volcano/job/duplicate-task-breaks-loop": "Volcano stops counting at the second task of a name; all tasks have enough replicas",
    "volcano/job/toleration-bad": "the value is what must go, not the operator",
}


def request(row: dict[str, Any]) -> tuple[Attributes, Cluster]:
    operation, old = Operation(row["operation"]), deepcopy(row.get("oldObject"))
    obj = deepcopy(row["object"] or old)
    attributes = attributes_of_object(obj, TABLE.row, operation=operation, old_object=old)
    return attributes, ClusterWithAssumedNamespaces(FilesCluster([*row["context"], *([old] if old else [])]))


@cache
def verdicts(number: int) -> tuple[Verdict, ...]:
    attributes, cluster = request(ROWS[number])
    return tuple(
        answer_request(attributes, shipped_policies(), cluster, phase=phase) for phase in (Phase.VALIDATE, Phase.MUTATE)
    )


def said(number: int) -> str:
    """Return claimgate's strictest answer to a request: `deny`, `warn` or `none`."""
    answers = verdicts(number)
    if not all(answer.allowed for answer in answers):
        return "deny"
    return "warn" if any(answer.warnings for answer in answers) else "none"


def expected(row: dict[str, Any]) -> str:
    if row["class"] in DENIED:
        return "deny"
    return "none" if row["class"] == "accepted" else "warn"


def test_every_verdict_is_that_of_volcano() -> None:
    """claimgate denies what Volcano denies, and warns of accepted jobs that never run. Correct objects have no
    finding.
    """
    answers = {row["id"]: (expected(row), said(number)) for number, row in enumerate(ROWS)}
    assert {name: pair for name, pair in answers.items() if pair[0] != pair[1] and name not in DIFFERENT} == {}
    assert {name for name in DIFFERENT if answers[name][0] == answers[name][1]} == set()


FIELDS = (
    # Volcano's message -> the end of the reported path; the API server names paths itself
    (r"No task specified", r"spec\.tasks"),
    (r"mpi master task", r"plugins\.mpi"),
    (r"'highestTierAllowed' and 'highestTierName'", r"networkTopology\.highestTierName"),
    (r"duplicated task name", r"tasks\[\d+\]\.name"),
    (r"event and exitCode|policy event|policy action|error code|exitCode|if there's \*", r"policies"),
    (r"unable to find job plugin", r"spec\.plugins"),
    (r"mountPath|VolumeClaim", r"spec\.volumes"),
    (r"unable to find (job )?queue|with state `Open`|leaf queue|root queue", r"spec\.queue"),
    (r"directed acyclic", r"dependsOn"),
    (r"job 'minAvailable'", r"spec\.minAvailable"),
    (r"create pod with name|create job with name|cronJob name", r"metadata\.name"),
    (r"cpu request isn't an integer", r"resources\.(requests|limits)\.cpu"),
    (r"'Replicas' are not equal", r"tasks\[\d+\]\.replicas"),
    (r"'minAvailable' (must be|is greater)|'MinAvailable' is not", r"tasks\[\d+\]\.minAvailable"),
    (r"add or remove tasks", r"spec\.tasks"),
    (r"may not change fields", r"spec\."),
    (r"schedule", r"spec\.schedule"),
    (r"timeZone", r"spec\.timeZone"),
    (r"regexMatch", r"regexMatch\.pattern"),
    (r"volcano\.sh/hierarchy|in the .* (is invalid|must be larger)", r"metadata\.annotations"),
    (r"itself as parent|parent queue .* not found|maximum allowed depth", r"spec\.parent"),
    (r"capability\[", r"spec\.capability"),
    (r"children's deserved", r"spec\.deserved"),
    (r"can not be deleted", r"metadata\.name"),
    (r"JobFlow|jobflow", r"spec\.flows"),
    (r"jdb-|<\[volcano", r"metadata\.annotations"),
    (r"invalid duration", r"timeout|runningEstimate"),
    (r"unmarshal .*JobSpec\.(spec\.\w+)", r""),
    (r"quantities must match", r"cpu|capability|minResources"),
    (r"missing path", r"spec"),
)


def named(row: dict[str, Any]) -> Iterator[str]:
    answer = row["observed"]
    text = answer.get("webhookMessage") or answer["message"]
    own = re.findall(r"(?:requestBody\.|^|[ \[;])(?:spec|metadata)\.[^ :]*(?=: )", text)
    if own and answer.get("by") == "schema":
        yield from (re.escape(path.strip(" [;").removeprefix("requestBody.")) for path in own[:1])
    elif template := re.search(r"spec\.task\[(\d+)\]\.(template\.[\w.\[\]]+)", text):
        yield rf"spec\.tasks\[{template[1]}\]\.{re.escape(template[2].rstrip('.').partition('[cpu]')[0])}"
    elif own and "requestBody" in text:
        yield re.escape(own[0].strip(" [;").removeprefix("requestBody."))
    else:
        found = [path for words, path in FIELDS if re.search(words, text)]
        yield from found or (f"no pattern for: {text}",)


def test_a_denial_names_the_same_field() -> None:
    wrong = {}
    for number, row in enumerate(ROWS):
        if row["class"] in DENIED:
            paths = re.sub(r'\["([^"]+)"\]', r".\1", "; ".join(_texts(number)))
            for pattern in named(row):
                if not re.search(pattern, paths):
                    wrong[row["id"]] = (pattern, paths)
    assert set(wrong) == set(NAMED_OTHERWISE)


def _texts(number: int) -> Iterator[str]:
    for answer in verdicts(number):
        yield from (decision.message for decision in answer.decisions if decision.action == "deny")


def test_the_defaults_are_those_of_volcano() -> None:
    """Volcano's mutating webhooks and the defaults of the schema change the object first."""
    wrong = {}
    for row in ROWS:
        if row["observed"]["allowed"] and row["object"] and "volcano.sh/" in row["object"]["apiVersion"]:
            attributes, cluster = request(row)
            obj = decode_object(attributes.object, attributes.kind).value
            view = ClusterView(cluster, attributes.namespace)
            subject = Subject(object=obj, old_object=None, attributes=attributes, cluster=view, table=TABLE)
            ours, theirs = normal(subject.once(object_with_defaults)), normal(_mutated(row))
            if ours != theirs:
                wrong[row["id"]] = (ours, theirs)
    assert wrong == {}


UNDECLARED = {"minAvailible", "state"}
"""Fields of the rows without a schema, which the API server drops. A Queue's status is also removed."""


def _mutated(row: dict[str, Any]) -> Any:
    return jsonpatch.apply_operations(deepcopy(row["object"]), row["observed"]["mutation"])


def normal(value: Any) -> Any:
    """Return a value without empty values, which Go omits, and with amounts as numbers."""
    if isinstance(value, dict):
        made = {name: normal(held) for name, held in value.items() if name not in (*UNDECLARED, "status")}
        made = {name: held for name, held in made.items() if held not in ({}, None) and (name, held) != ("replicas", 0)}
        return {name: _amount(held) if name in ("cpu", "memory") else held for name, held in made.items()}
    return [normal(each) for each in value] if isinstance(value, list) else value


def _amount(value: Any) -> Any:
    read = quantity.read_quantity_or_none(value)
    return value if read is None else read.milli_value()
