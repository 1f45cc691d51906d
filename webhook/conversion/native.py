"""The native objects that conversions make: policies, bindings, matchConditions, and the fields of a policy that are
known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath, get
from webhook.errors import NotConverted
from webhook.manifests.models import GROUP, ShapeError, parse_manifest
from webhook.rules.decisions import SEVERITIES

_LONGEST: Final = 50
NAMESPACE_IN_CEL: Final = (
    "request.kind.group == '' && request.kind.kind == 'Namespace' ? (has(request.name) ? request.name : '') : "
    "(has(request.namespace) ? request.namespace : '')"
)
"""The namespace of an object, which for a Namespace is its own name; "" for an object of the cluster."""
_API_VERSION: Final = f"{GROUP}/v1"
_OF_KUBECTL: Final = "kubectl.kubernetes.io/"
_SEVERITY: Final = "policies.kyverno.io/severity"


def native_policy(kind: str, name: str, source: JSON, spec: Mapping[str, JSON]) -> dict[str, Any]:
    """Return a policy with the labels and annotations of its source."""
    metadata: dict[str, JSON] = {"name": name}
    for key in ("labels", "annotations"):
        kept = {each: text for each, text in _texts(source, key).items() if not each.startswith(_OF_KUBECTL)}
        if key == "annotations" and (severity := kept.get(_SEVERITY, "").lower()) in SEVERITIES:
            kept["claimgate.dev/severity"] = severity
        if kept:
            metadata[key] = kept
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata, "spec": _with_messages_of_one_line(spec)}


def _with_messages_of_one_line(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec with messages without line breaks, which an API server refuses."""
    listed = spec.get("validations")
    if not isinstance(listed, list):
        return dict(spec)
    made = [{**each, "message": " ".join(each["message"].split())} if _has_lines(each) else each for each in listed]
    return {**spec, "validations": made}


def _has_lines(validation: JSON) -> bool:
    message = get(validation, ("message",))
    return isinstance(message, str) and "\n" in message


def binding_of_policy(policy: Mapping[str, Any], spec: Mapping[str, JSON], name: str = "") -> dict[str, Any]:
    """Return a binding of a policy, which has the name of the policy unless another one is given."""
    return {
        "apiVersion": _API_VERSION,
        "kind": f"{policy['kind']}Binding",
        "metadata": {"name": name or policy["metadata"]["name"]},
        "spec": {"policyName": policy["metadata"]["name"], **spec},
    }


def check_known_fields(value: JSON, known: Iterable[str], path: FieldPath) -> Mapping[str, Any]:
    """Return a map, after checking that it has no field with an unknown meaning.

    Raises:
        NotConverted: it is not a map, or has another field.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise NotConverted(path, "expected a map")
    for key in value:
        if key not in known:
            raise NotConverted((*path, key), f"field `{key}` is not known here")
    return value


def list_at(value: JSON, path: FieldPath) -> Sequence[Any]:
    """Return the list at a path; () if there is none.

    Raises:
        NotConverted: the value is not a list.
    """
    listed = get(value, path)
    if listed is None:
        return ()
    if not isinstance(listed, list):
        raise NotConverted(path, "expected a list")
    return listed


def maps_at(value: JSON, path: FieldPath) -> Sequence[dict[str, Any]]:
    """Return the list of maps at a path; () if there is none.

    Raises:
        NotConverted: the value is not a list, or an entry is not a map.
    """
    listed = list_at(value, path)
    for index, each in enumerate(listed):
        if not isinstance(each, dict):
            raise NotConverted((*path, index), "expected a map")
    return listed


def check_shape(manifest: JSON) -> None:
    """Check that a native manifest has fields of the right types.

    Raises:
        NotConverted: it has not.
    """
    try:
        parse_manifest(manifest)
    except ShapeError as error:
        path, text = error.problems[0]
        raise NotConverted(path, text) from None


def name_of(value: JSON) -> str:
    """Return `metadata.name`.

    Raises:
        NotConverted: the list does not exist.
    """
    name = get(value, ("metadata", "name"))
    if not isinstance(name, str) or not name:
        raise NotConverted(("metadata", "name"), "expected a name")
    return name


def _texts(value: JSON, key: str) -> Mapping[str, str]:
    texts = get(value, ("metadata", key))
    return {str(each): str(text) for each, text in texts.items()} if isinstance(texts, dict) else {}


def conditions_with_valid_names(conditions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the conditions, each with a unique name; a valid name stays. Names decide nothing."""
    made: dict[str, dict[str, Any]] = {}
    for index, each in enumerate(conditions):
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", str(each.get("name", "")))[:_LONGEST].strip("-_.")
        name = name if name and name not in made else f"condition-{index}"
        made[name] = {**each, "name": name}
    return list(made.values())
