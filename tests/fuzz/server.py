"""Ask a live API server for the values of random expressions, and compare them with ours.

Each expression becomes a ValidatingAdmissionPolicy that always denies: its validation fails for every value, and its
messageExpression shows the value. A dry-run create of an object with the policy's label tells value or error. What the
server refuses, or drops the connection over, it says when the policy is created.
"""

from __future__ import annotations

import re
import ssl
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.e2e import apiserver
from tests.fuzz.expressions import BINDINGS, Expressions
from webhook.cel import Environment, Meter, compiled_engine
from webhook.cel.types import DYN
from webhook.errors import CompileError, EvaluationError

GROUP = "fuzz.claimgate.dev"
API = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS_API = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
BATCH = 100
OBJECT = {name: value for name, value in BINDINGS.items() if name not in {"u", "t"}}
_NAME = re.compile(r"(?<![\w.'%\\])(self|n|s|xs|m|u|t)\b(?!')")
_WRITTEN = {"u": "dyn(3u)", "t": "dyn(duration('90s'))"}
_RESULT = re.compile("denied request: (.*)", re.DOTALL)
_REFUSAL = re.compile(r"compilation failed: (.*?)(?:, spec\.|\]$|$)", re.DOTALL)
ENVIRONMENT = Environment(version=(1, 36), variables={"object": DYN})


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of an expression: `refused`, `crashed`, `failed` or `value`, and the text that says more."""

    phase: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """An expression as it is sent: the validation, and the message that shows the value."""

    source: str
    validation: str
    message: str
    own: Answer


def asked(text: str) -> Asked:
    """A random expression over variables as one over an object, with our answer."""
    source = _NAME.sub(lambda match: _WRITTEN.get(match[1], f"object.spec.{match[1]}"), text)
    validation = f"[({source})].size() == 0"
    shown = f"'<' + '%s'.format([({source})]) + '>'"
    engine = compiled_engine()
    try:
        program = engine.compile(validation, ENVIRONMENT)
    except CompileError as error:
        return Asked(source, validation, "'<>'", Answer("refused", str(error)))
    if program.crashes():
        return Asked(source, validation, "'<>'", Answer("crashed", program.crashes()[0]))
    activation = {"object": {"spec": OBJECT, "metadata": {}}}
    try:
        program.evaluate(activation, Meter())
    except EvaluationError as error:
        return Asked(source, validation, "'<>'", Answer("failed", str(error)))
    try:
        value = engine.compile(shown, ENVIRONMENT).evaluate(activation, Meter())
    except (CompileError, EvaluationError):  # an opaque value, which nothing shows
        return Asked(source, validation, "'<>'", Answer("value", "<>"))
    return Asked(source, validation, shown, Answer("value", value))


class Server:
    """A running API server as an HTTP client, by a kubeconfig with a token or a client certificate."""

    def __init__(self, kubeconfig: Path) -> None:
        written = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        cluster, user = written["clusters"][0]["cluster"], written["users"][0]["user"]
        context = ssl.create_default_context(cafile=cluster["certificate-authority"])
        if "client-certificate" in user:
            context.load_cert_chain(user["client-certificate"], user["client-key"])
        headers = {"authorization": f"Bearer {user['token']}"} if "token" in user else {}
        self._client = httpx.Client(base_url=cluster["server"], verify=context, headers=headers, timeout=60)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def prepare(self) -> None:
        """Make the kind of the objects."""
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        names = {"kind": "Fuzzed", "plural": "fuzzeds"}
        spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]}
        kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        made = self._client.post(path, json={**kind, "metadata": {"name": f"fuzzeds.{GROUP}"}})
        assert made.status_code in {201, 409}, made.text
        for _ in range(300):
            if self._create("").status_code == httpx.codes.CREATED:
                return
            time.sleep(0.1)
        raise TimeoutError("the API server does not serve the new kind")

    def answers(self, batch: Sequence[Asked]) -> list[Answer]:
        """What the server says to each."""
        made = [self._made(f"fuzz-{number}", each) for number, each in enumerate(batch)]
        try:
            return [answer or self._evaluated(f"fuzz-{number}") for number, answer in enumerate(made)]
        finally:
            for number, answer in enumerate(made):
                if answer is None:
                    self._client.delete(f"{BINDINGS_API}/fuzz-{number}").raise_for_status()
                    self._client.delete(f"{API}/fuzz-{number}").raise_for_status()
            self._wait_until_gone(made)

    def _made(self, name: str, each: Asked) -> Answer | None:
        """Make a policy; the answer where the server does not take it."""
        rule = {"apiGroups": [GROUP], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["fuzzeds"]}
        match = {"objectSelector": {"matchLabels": {"fuzz": name}}, "resourceRules": [rule]}
        validations = [{"expression": each.validation, "messageExpression": each.message}]
        spec: dict[str, Any] = {"matchConstraints": match, "validations": validations}
        head = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
        try:
            made = self._client.post(API, json={**head, "kind": "ValidatingAdmissionPolicy", "spec": spec})
        except httpx.RemoteProtocolError:
            return Answer("crashed")
        if made.status_code != httpx.codes.CREATED:
            message = made.json()["message"]
            found = _REFUSAL.search(message)
            return Answer("refused", found[1] if found else message)
        spec = {"policyName": name, "validationActions": ["Deny"]}
        bound = self._client.post(BINDINGS_API, json={**head, "kind": "ValidatingAdmissionPolicyBinding", "spec": spec})
        bound.raise_for_status()
        return None

    def _evaluated(self, name: str) -> Answer:
        """What the policy says of an object; it may take a second until it is asked."""
        for _ in range(200):
            answer = self._create(name)
            if answer.status_code != httpx.codes.CREATED:
                found = _RESULT.search(answer.json()["message"])
                text = found[1] if found else answer.text
                _, error, reason = text.partition("resulted in error: ")
                return Answer("failed", reason) if error else Answer("value", text)
            time.sleep(0.1)
        raise TimeoutError(f"policy {name} is not asked")

    def _wait_until_gone(self, made: Sequence[Answer | None]) -> None:
        for number, answer in enumerate(made):
            while answer is None and self._create(f"fuzz-{number}").status_code != httpx.codes.CREATED:
                time.sleep(0.1)

    def _create(self, label: str) -> httpx.Response:
        metadata = {"name": "fuzzed", "labels": {"fuzz": label}}
        body = {"apiVersion": f"{GROUP}/v1", "kind": "Fuzzed", "metadata": metadata, "spec": OBJECT}
        path = f"/apis/{GROUP}/v1/namespaces/default/fuzzeds?dryRun=All"
        return self._client.post(path, json=body)


@contextmanager
def server(kubeconfig: str) -> Iterator[Server]:
    """The server of a kubeconfig; "" starts one."""
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


def difference(own: Answer, theirs: Answer) -> str:
    """How two answers compare: `same …`, `text of …` where only words differ, else what differs."""
    if own.phase != theirs.phase:
        return f"{theirs.phase} there, {own.phase} here"
    if own.phase == "crashed" or own.text == theirs.text:
        return f"same {own.phase}"
    if theirs.text.startswith("failed expression: "):  # a value with a line break or a blank, which no message can have
        return "value not shown"
    return "other value" if own.phase == "value" else f"text of {own.phase}"


def compare(count: int, seed: int, kubeconfig: str, shown: int = 3) -> Counter[str]:
    """Draw expressions, ask both, print what differs; how many compared how."""
    expressions, outcomes = Expressions(seed), Counter[str]()
    with server(kubeconfig) as remote:
        remote.prepare()
        for start in range(0, count, BATCH):
            batch = [asked(expressions.draw()) for _ in range(min(BATCH, count - start))]
            for each, theirs in zip(batch, remote.answers(batch), strict=True):
                kind = difference(each.own, theirs)
                outcomes[kind] += 1
                if not kind.startswith(("same", "value not")) and outcomes[kind] <= shown:
                    print(f"{kind}: {each.source}\n  there: {theirs.text}\n  here:  {each.own.text}")
    return outcomes
