"""From decisions to a verdict: what is denied and in which words, what is warned of, what goes to the audit log.

Evaluates nothing. Which decision denies follows from its binding's actions, as in k8s.io/apiserver v0.36
pkg/admission/plugin/policy/validating/dispatcher.go; the API server's own text is kept for `api_server_text`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from webhook.attributes import JSON, Attributes
from webhook.decisions import Decision, Status, ValidationAction, Verdict

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

_CUT = " … "
_LEAST = 64  # characters that still tell something
_MORE = 32  # room for "; and 1000000 more"

_CONTROL = dict.fromkeys((*range(32), *range(127, 160), 8232, 8233), " ")
_SURROGATES = dict.fromkeys(range(55296, 57344), "�")


def enforce(decisions: Sequence[Decision], attributes: Attributes, *, api_server_text: bool = False) -> Verdict:
    """The verdict of decisions, in their order; the first denial gives code and reason."""
    if not [each for each in decisions if each.action == "deny" or each.audit_annotations]:  # faster than any()
        return Verdict(allowed=True, decisions=tuple(decisions), patched_object=attributes.object)
    failed = [decision for decision in decisions if decision.action == "deny"]
    denied = [each for each in failed if each.kind == "mutating" or ValidationAction.DENY in each.actions]
    warned = [each for each in failed if ValidationAction.WARN in each.actions]
    status = None
    if denied:
        text = shortened(native_text(denied[0], attributes), MAX_MESSAGE) if api_server_text else own_text(denied)
        status = Status(code=denied[0].code, reason=denied[0].reason, message=text)
    texts = (native_warning(each) if api_server_text else _attributed(each) for each in warned)
    return Verdict(
        allowed=not denied,
        decisions=tuple(decisions),
        status=status,
        warnings=_passed_on(texts) if api_server_text else bounded(texts),
        audit_annotations=audit_annotations(decisions),
        patched_object=attributes.object,
    )


def _attributed(decision: Decision) -> str:
    return f"{decision.message} (policy {decision.policy})"


def own_text(denied: Sequence[Decision]) -> str:
    """Every denial's message with its policy, the first one first; of very many, how many more there are."""
    texts = list(dict.fromkeys(map(_attributed, denied)))
    whole = "; ".join(texts)
    if len(whole) <= MAX_MESSAGE:
        return whole
    kept = [shortened(texts[0], MAX_MESSAGE - _MORE)]
    room = MAX_MESSAGE - _MORE - len(kept[0])
    for text in texts[1:]:
        room -= len(text) + 2
        if room < 0:
            break
        kept.append(text)
    left = len(texts) - len(kept)
    return "; ".join((*kept, f"and {left} more")) if left else kept[0]


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
    room = MAX_WARNINGS
    for text in dict.fromkeys(texts):
        if room <= 0:
            break
        kept.append(shortened(text, MAX_MESSAGE))
        room -= min(len(text), MAX_WARNING)
    return tuple(kept)


def bounded(texts: Iterable[str]) -> tuple[str, ...]:
    """Warnings that an API server passes on: one line each, at most 256 characters, 4096 together, none twice."""
    kept: dict[str, None] = {}
    room = MAX_WARNINGS
    for text in texts:
        shown = shortened(one_line(text), min(MAX_WARNING, room))
        if shown and shown not in kept:
            kept[shown] = None
            room -= len(shown)
    return tuple(kept)


def shortened(text: str, limit: int) -> str:
    """Text of at most `limit` characters that keeps both ends: what a warning is about, and what to do by which policy.

    The API server itself cuts the end off, once all warnings of a request exceed 4096 characters. Messages say the fix
    after their last semicolon; it is kept whole where it leaves room for as much before it.
    """
    if len(text) <= limit:
        return text
    if limit < _LEAST:
        return ""
    half = (limit - len(_CUT)) // 2
    end = text[text.rfind("; ") + 2 :]
    if len(end) > half:
        end = _from_a_word(text[len(text) - half :])
    room = limit - len(_CUT) - len(end)
    start, space, _ = text[: room + 1].rpartition(" ")
    return f"{start.rstrip(' ,') if space else text[:room]}{_CUT}{end}"


def _from_a_word(text: str) -> str:
    return text[text.find(" ") + 1 :] if " " in text else text


def one_line(text: str) -> str:
    """Text without control characters, which would make an API server drop the whole warning."""
    return text.translate(_CONTROL).translate(_SURROGATES).strip()


def audit_annotations(decisions: Sequence[Decision]) -> Mapping[str, str]:
    """`policy/key` -> what the policies publish, and the first failure under an Audit action."""
    published: dict[str, dict[str, None]] = {}
    failure = ""
    for decision in decisions:
        for key, value in decision.audit_annotations.items() if decision.audit_annotations else ():
            published.setdefault(f"{decision.policy}/{key}", {})[value] = None
        if not failure and decision.action == "deny" and ValidationAction.AUDIT in decision.actions:
            failure = _failure(decision)
    found = {key: shortened(", ".join(values), MAX_ANNOTATION) for key, values in published.items()}
    return {**found, FAILURE_KEY: failure} if failure else found


def _failure(decision: Decision) -> str:
    value: JSON = {
        "message": shortened(decision.message, MAX_MESSAGE),
        "policy": decision.policy,
        "binding": decision.binding,
        "expressionIndex": decision.index or 0,
        "validationActions": list(decision.actions),
    }
    return _go_json([value])


def _go_json(value: JSON) -> str:
    """JSON as Go's encoding/json writes it: compact, with <, > and & escaped for HTML."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
