"""From decisions to a verdict: what is denied and in which words, what is warned of, what goes to the audit log.

Evaluates nothing. A text of several sentences ends between two of them; only what a foreign policy or a user made too
long ends early. Which decision denies follows from its binding's actions, as in k8s.io/apiserver v0.36
pkg/admission/plugin/policy/validating/dispatcher.go; the API server's own text is kept for `api_server_text`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from webhook.attributes import JSON, Attributes
from webhook.decisions import Decision, Status, ValidationAction, Verdict, rank
from webhook.problems import text
from webhook.wording import counted

FAILURE_KEY = "validation.policy.admission.k8s.io/validation_failure"
MAX_WARNING = 256
"""Characters of one warning once they are many (k8s.io/apiserver v0.36 pkg/endpoints/filters/warning.go)."""
MAX_WARNINGS = 4096
"""Characters of all warnings together (as above)."""
MAX_MESSAGE = 8192
"""Characters of a denial's text. The API server and kubectl pass on whatever comes; a controller copies the text into
conditions, whose message takes 32,768 (metav1.Condition), of four bytes each at worst. Some hundred lines: no reader
gets further, and the longest single message that Kubernetes lets a policy make, 5 KiB, fits."""
MAX_ANNOTATION = 10 * 1024
"""Characters of one audit annotation, all its values joined: what the API server leaves of one value
(maxAuditAnnotationValueLength, k8s.io/apiserver v0.36 pkg/admission/plugin/policy/validating/validator.go)."""

_BAD_REQUEST = 400
_SUFFIX = 512  # room for the rule, whose name has up to 253 characters, and for "; and 1000000 more"
_MORE = 32  # room for "and 1000000 more warnings"

_CONTROL = dict.fromkeys((*range(32), *range(127, 160), 8232, 8233), " ")
_SURROGATES = dict.fromkeys(range(55296, 57344), "�")


def enforce(decisions: Sequence[Decision], attributes: Attributes, *, api_server_text: bool = False) -> Verdict:
    """The verdict of decisions, in their order; the first denial gives code and reason.

    In our own text all denials are told, so a value that nobody can read (400) gives the code whatever else is wrong.
    """
    if not [each for each in decisions if each.action == "deny" or each.audit_annotations or each.is_told]:  # no any()
        return Verdict(allowed=True, decisions=tuple(decisions), patched_object=attributes.object)
    failed = [decision for decision in decisions if decision.action == "deny"]
    denied = [each for each in failed if each.is_enforced]
    warned = [each for each in failed if ValidationAction.WARN in each.actions]
    status = None
    if denied:
        said = text.ended(native_text(denied[0], attributes), MAX_MESSAGE) if api_server_text else own_text(denied)
        first = denied[0] if api_server_text else min(denied, key=lambda decision: decision.code != _BAD_REQUEST)
        status = Status(code=first.code, reason=first.reason, message=said)
    let_pass = [each for each in decisions if each.is_told and each.action == "admit"]
    texts = [*(map(native_warning, warned) if api_server_text else _sentences(warned)), *_sentences(let_pass)]
    return Verdict(
        allowed=not denied,
        decisions=tuple(decisions),
        status=status,
        warnings=_passed_on(texts) if api_server_text else bounded(texts),
        audit_annotations=audit_annotations(decisions),
        patched_object=attributes.object,
    )


def own_text(denied: Sequence[Decision]) -> str:
    """Every denial with its rule, the most severe first; of very many, how many more there are."""
    return text.listed(list(dict.fromkeys(_sentences(denied))), MAX_MESSAGE)


def _sentences(decisions: Iterable[Decision]) -> Iterator[str]:
    """What decisions say, each problem for itself, with the rule that says so."""
    for decision in sorted(decisions, key=lambda decision: rank(decision.severity)):
        for problem in decision.problems:
            yield f"{text.sentence(problem)} ({problem.code})"
        if not decision.problems:
            rule = decision.rule or decision.policy
            said = text.ended(decision.message, MAX_MESSAGE - _SUFFIX)
            yield f"{said} ({rule if '/' in rule else f'policy {rule}'})"


def native_text(decision: Decision, attributes: Attributes) -> str:
    """The first denial as the API server's own plugin words it."""
    if decision.code == 500:
        return f"Internal error occurred: {decision.message}"
    denied = f"denied request: {decision.message}"
    if decision.kind == "mutating" and not decision.binding:
        return f'policy "{decision.policy}" {denied}'
    said = f"'{decision.policy}' with binding '{decision.binding}' {denied}"
    if decision.kind == "mutating":
        return f"policy {said}"
    said = said if decision.binding else f"'{decision.policy}' {denied}"
    resource = attributes.request_resource
    full = f"{resource.resource}.{resource.group}" if resource.group else resource.resource
    return f"{full} {json.dumps(_name(attributes))} is forbidden: ValidatingAdmissionPolicy {said}"


def _name(attributes: Attributes) -> str:
    """The name in a denial (k8s.io/apiserver v0.36 pkg/admission/errors.go, extractResourceName)."""
    metadata = (attributes.object or {}).get("metadata") or {}
    return attributes.name or metadata.get("name") or metadata.get("generateName") or "Unknown"


def native_warning(decision: Decision) -> str:
    """A warning as the API server's own plugin words it."""
    return (
        f"Validation failed for ValidatingAdmissionPolicy '{decision.policy}' with binding '{decision.binding}': "
        f"{decision.message}"
    )


def _passed_on(texts: Iterable[str]) -> tuple[str, ...]:
    """Warnings in the API server's own words, none twice, as many as it passes on: it shortens them itself."""
    kept: list[str] = []
    remaining = MAX_WARNINGS
    for said in dict.fromkeys(texts):
        if remaining <= 0:
            break
        kept.append(text.ended(said, MAX_MESSAGE))
        remaining -= min(len(said), MAX_WARNING)
    return tuple(kept)


def bounded(texts: Iterable[str]) -> tuple[str, ...]:
    """Warnings that an API server passes on as they are: one line each, 4096 characters together, none twice.

    The last one says how many more there are. Beyond 4096 characters the API server would cut each at 256.
    """
    lines = [line for line in dict.fromkeys(map(one_line, texts)) if line]
    if sum(map(len, lines)) <= MAX_WARNINGS:
        return tuple(lines)
    kept: list[str] = []
    remaining = MAX_WARNINGS - _MORE
    for line in lines:
        shown = line if kept else text.ended(line, remaining)
        if len(shown) > remaining:
            break
        kept.append(shown)
        remaining -= len(shown)
    left = len(lines) - len(kept)
    return (*kept, f"and {counted(left, 'more warning')}") if left else tuple(kept)


def one_line(line: str) -> str:
    """Text without control characters, which would make an API server drop the whole warning."""
    return line.translate(_CONTROL).translate(_SURROGATES).strip()


def audit_annotations(decisions: Sequence[Decision]) -> Mapping[str, str]:
    """`policy/key` -> what the policies publish, and the first failure under an Audit action."""
    published: dict[str, dict[str, None]] = {}
    failure = ""
    for decision in decisions:
        for key, value in decision.audit_annotations.items() if decision.audit_annotations else ():
            published.setdefault(f"{decision.policy}/{key}", {})[value] = None
        if not failure and decision.action == "deny" and ValidationAction.AUDIT in decision.actions:
            failure = _failure(decision)
    annotations = {key: text.ended(", ".join(values), MAX_ANNOTATION) for key, values in published.items()}
    return {**annotations, FAILURE_KEY: failure} if failure else annotations


def _failure(decision: Decision) -> str:
    value: JSON = {
        "message": text.ended(decision.message, MAX_MESSAGE),
        "policy": decision.policy,
        "binding": decision.binding,
        "expressionIndex": decision.index or 0,
        "validationActions": list(decision.actions),
    }
    return _go_json([value])


def _go_json(value: JSON) -> str:
    """JSON as Go's encoding/json writes it: compact, with <, > and & escaped for HTML."""
    encoded = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        encoded = encoded.replace(character, f"\\u{ord(character):04x}")
    return encoded
