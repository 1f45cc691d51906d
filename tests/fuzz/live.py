"""An API server with random policies. Each is created with its binding, and then one object.

An object has its policy's name as a label, so only this policy selects it. A sentinel is a policy that denies everything
with its own label. It is created last, and the API server loads policies in order. An active sentinel therefore means
that all policies are active.
"""

from __future__ import annotations

import itertools
import re
import ssl
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx

from tests import quick_yaml
from tests.e2e import apiserver

GROUP: Final = "fuzz.claimgate.dev"
LABEL: Final = "fuzz"
ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
BATCH: Final = 100
_CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_FAILS: Final = "Object{spec: Object.spec{nope: object.spec.nope}}"
_SENTINELS: Final[Mapping[str, Any]] = {
    "Validating": {"validations": [{"expression": "false"}]},
    "Mutating": {
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": _FAILS}}],
        "reinvocationPolicy": "Never",
    },
}
"""Rules that deny everything, by the kind of policy"""


@dataclass(frozen=True, slots=True)
class Told:
    """What happened to an object, or to its policy: `refused`, `crashed`, `denied` or `allowed`.

    `spec` is that of an allowed object.
    """

    phase: str
    code: int = 0
    reason: str = ""
    message: str = ""
    warnings: tuple[str, ...] = ()
    spec: Any = None


@dataclass(frozen=True, slots=True)
class Question:
    """A policy, its binding and an object, each only as its spec. The policy and the binding have no selectors."""

    policy: Mapping[str, Any]
    binding: Mapping[str, Any]
    spec: Any = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """Return `Mutating` or `Validating`."""
        return "Mutating" if "mutations" in self.policy else "Validating"

    def manifests(self, name: str, plural: str) -> list[dict[str, Any]]:
        rule = {"apiGroups": [GROUP], "apiVersions": ["*"], "operations": ["CREATE"], "resources": [plural]}
        match = {"objectSelector": {"matchLabels": {LABEL: name}}, "resourceRules": [rule]}
        head = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
        return [
            {**head, "kind": f"{self.kind}AdmissionPolicy", "spec": {**self.policy, "matchConstraints": match}},
            {**head, "kind": f"{self.kind}AdmissionPolicyBinding", "spec": {**self.binding, "policyName": name}},
        ]


def definition(kind: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": f"{kind.lower()}s"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def custom(kind: str, name: str, spec: Any) -> dict[str, Any]:
    metadata = {"name": "fuzzed", "namespace": "default", "labels": {LABEL: name}}
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, "spec": spec}


class Server:
    """A client of an API server. Its kubeconfig has a token or a client certificate."""

    def __init__(self, kubeconfig: Path) -> None:
        written = quick_yaml.load(kubeconfig.read_text(encoding="utf-8"))
        cluster, user = written["clusters"][0]["cluster"], written["users"][0]["user"]
        context = ssl.create_default_context(cafile=cluster["certificate-authority"])
        if "client-certificate" in user:
            context.load_cert_chain(user["client-certificate"], user["client-key"])
        headers = {"authorization": f"Bearer {user['token']}"} if "token" in user else {}
        self._client = httpx.Client(base_url=cluster["server"], verify=context, headers=headers, timeout=60)
        self._names = (f"fuzz-{time.time_ns()}-{number}" for number in itertools.count())

    def close(self) -> None:
        self._client.close()

    def make(self, path: str, body: Mapping[str, Any]) -> None:
        """Create an object, unless it exists already."""
        made = self._client.post(path, json=body)
        assert made.status_code in {httpx.codes.CREATED, httpx.codes.CONFLICT}, made.text

    def serve(self, kind: str, schema: Mapping[str, Any]) -> None:
        """Wait until policies that change the kind know its schema."""
        self.make(_CRDS, definition(kind, schema))
        expression = "Object{metadata: Object.metadata{labels: {'a': 'b'}}}"
        labels = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
        changes = Question({"mutations": [labels], "reinvocationPolicy": "Never"}, {})
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if self._create(kind, "none", {}).status_code != httpx.codes.NOT_FOUND:
                (told,) = self.answers(kind, [changes])
                if told.phase == "allowed":
                    return
            time.sleep(0.2)
        raise TimeoutError(f"the API server does not know {kind}")

    def answers(self, kind: str, batch: Sequence[Question]) -> list[Told]:
        made: list[str] = []
        try:
            named = [(next(self._names), each) for each in batch]
            refusals = [self._made(kind, name, each, made) for name, each in named]
            for sort in {each.kind for each in batch}:
                self._wait(kind, sort, made)
            return [
                refusal or self._told(kind, name, each.spec)
                for (name, each), refusal in zip(named, refusals, strict=True)
            ]
        finally:
            for path in made:
                self._client.delete(path).raise_for_status()

    def _made(self, kind: str, name: str, each: Question, made: list[str]) -> Told | None:
        """Return the message if the server does not accept the policy."""
        path = f"{ADMISSION}/{each.kind.lower()}admissionpolic"
        policy, binding = each.manifests(name, f"{kind.lower()}s")
        try:
            answer = self._client.post(f"{path}ies", json=policy)
        except httpx.RemoteProtocolError:
            return Told("crashed")
        if answer.status_code != httpx.codes.CREATED:
            return Told("refused", message=answer.json()["message"])
        made.append(f"{path}ies/{name}")
        answer = self._client.post(f"{path}ybindings", json=binding)
        if answer.status_code != httpx.codes.CREATED:
            return Told("refused", message=answer.json()["message"])
        made.append(f"{path}ybindings/{name}")
        return None

    def _wait(self, kind: str, sort: str, made: list[str]) -> None:
        """Wait until all created policies are active. They are active if a policy that is created now denies."""
        name = next(self._names)
        binding = {"validationActions": ["Deny"]} if sort == "Validating" else {}
        assert self._made(kind, name, Question(_SENTINELS[sort], binding), made) is None
        while self._create(kind, name, {}).status_code == httpx.codes.CREATED:
            time.sleep(0.1)

    def _told(self, kind: str, name: str, spec: Any) -> Told:
        try:
            answer = self._create(kind, name, spec)
        except httpx.RemoteProtocolError:
            return Told("crashed")
        body, warnings = answer.json(), tuple(map(warning_of_header, answer.headers.get_list("warning")))
        if answer.status_code == httpx.codes.CREATED:
            return Told("allowed", warnings=warnings, spec=body.get("spec"))
        return Told("denied", body["code"], body.get("reason", ""), body["message"], warnings)

    def _create(self, kind: str, name: str, spec: Any) -> httpx.Response:
        path = f"/apis/{GROUP}/v1/namespaces/default/{kind.lower()}s?dryRun=All"
        return self._client.post(path, json=custom(kind, name, spec))


def warning_of_header(header: str) -> str:
    """Return the text of a Warning header: 299 - "text"."""
    return re.sub(r"\\(.)", r"\1", header.partition('"')[2].removesuffix('"'))


@contextmanager
def server(kubeconfig: str) -> Iterator[Server]:
    """Use the server of a kubeconfig, or start one if the kubeconfig is empty."""
    if kubeconfig:
        with closing(Server(Path(kubeconfig))) as remote:
            yield remote
        return
    if reason := apiserver.missing():
        raise SystemExit(reason)
    with (
        tempfile.TemporaryDirectory(prefix="fuzz-") as folder,
        apiserver.running(Path(folder)) as running,
        closing(Server(running.kubeconfig)) as remote,
    ):
        yield remote
