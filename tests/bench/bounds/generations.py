"""Numbered policies and objects, to check that every answer comes from one complete set.

Each generation is written beside the previous one, and activated by moving one link, as a kubelet does with a
ConfigMap. Two policies report the number of their files, and two bindings the number of their param. All numbers of an
answer must be equal.
"""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.bench.bounds.own_policies import document, validating
from tests.bench.bounds.pods import POD_LISTS
from tests.bench.bounds.reviews import JSON, Maker, count_for, pod, review
from tests.bench.bounds.victims import Question, mixed_generations

LABELS = {"generation": "asked"}
_MATCH = {
    "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
    "objectSelector": {"matchLabels": LABELS},
}
_NAMESPACE = "claimgate-system"


@dataclass
class Generations:
    """Writes generations, with the two links and the time at which each generation was activated."""

    folder: Path
    number: int = 0
    written: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.write()

    @property
    def policies(self) -> Path:
        return self.folder / "policies"

    @property
    def context(self) -> Path:
        return self.folder / "context"

    def write(self) -> None:
        self.number += 1
        self._move(
            "policies",
            {"one.yaml": _policy("one", self.number), "two.yaml": _policy("two", self.number) + _asks_params()},
        )
        self._move("context", {f"{name}.yaml": [_param(name, self.number)] for name in ("one", "two")})
        self.written[self.number] = time.monotonic()

    def _move(self, what: str, files: dict[str, list[JSON]]) -> None:
        made = self.folder / f"{what}-{self.number}"
        made.mkdir()
        for name, documents in files.items():
            (made / name).write_text(yaml.safe_dump_all(documents))
        link = self.folder / f"{what}.new"
        link.symlink_to(made)
        os.replace(link, self.folder / what)  # noqa: PTH105 - a link, not what it points to
        shutil.rmtree(self.folder / f"{what}-{self.number - 2}", ignore_errors=True)


def _policy(name: str, number: int) -> list[JSON]:
    return validating(f"generation-{name}", _MATCH, [{"expression": "false", "message": f"policy-generation {number}"}])


def _asks_params() -> list[JSON]:
    made = validating(
        "generation-params",
        _MATCH,
        [{"expression": "false", "messageExpression": "'params-generation ' + params.data.generation"}],
    )[0]
    made["spec"]["paramKind"] = {"apiVersion": "v1", "kind": "ConfigMap"}
    bindings = [
        document(
            "ValidatingAdmissionPolicyBinding",
            f"generation-params-{name}",
            {
                "policyName": "generation-params",
                "validationActions": ["Deny"],
                "paramRef": {"name": f"generation-{name}", "namespace": _NAMESPACE, "parameterNotFoundAction": "Deny"},
            },
        )
        for name in ("one", "two")
    ]
    return [made, *bindings]


def _param(name: str, number: int) -> JSON:
    metadata = {"name": f"generation-{name}", "namespace": _NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"generation": str(number)}}


def question() -> Question:
    """Return the question of a victim that checks the generations in the answer."""
    return Question("generation", "/validate", review(pod(metadata={"labels": LABELS}), namespace="victims"), _fault)


def heavy() -> bytes:
    """Return the review of a Pod of 3 MB to which the same policies apply."""
    make: Maker = POD_LISTS["containers"]
    made = make(count_for(make, 3_000_000))
    return review({**made, "metadata": {**made["metadata"], "labels": LABELS}})


def _fault(response: dict) -> str:
    text = str(response.get("status", {}).get("message", ""))
    if response["allowed"] or text.count("policy-generation ") != 2:
        return f"the generation is missing: {text[:200]}"
    return mixed_generations(text)
