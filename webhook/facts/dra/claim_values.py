"""Notes on the objects of resource.k8s.io: what is wrong by their shape (claims.yaml) and between their parts.

`what` is wrongType, missing, tooMany, duplicate, badName, notOneOf, forbidden or unknownField, as Breach has them; and
unknownRequest for a constraint or a configuration of a request that the claim does not have, noAttribute for a
constraint that names none, tooLong for parameters, excluded for a toleration's value beside Exists, noCapacity for a
capacity that no device can have, noSource and twoSources for the claims of pod groups. Rules: k8s.io/kubernetes v1.36.1
pkg/apis/resource/validation/validation.go, and scheduling/v1alpha2/zz_generated.validations.go for pod groups.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.dra.notes import note, notes_of
from webhook.facts.dra.requests import version_of
from webhook.facts.pods.containers import items, text
from webhook.facts.view import View
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder
from webhook.schema.forms import FORMS
from webhook.schema.values import declared, values
from webhook.workloads.podsets import group_kind

FILE = Path(__file__).with_name("claims.yaml")
_LARGEST = 10 * 1024  # resource/v1 types.go OpaqueParametersMaxLength
_GROUPS = frozenset(("PodGroup", "Workload"))
_SOURCES = ("resourceClaimName", "resourceClaimTemplateName")


def notes(obj: JSON, at: FieldPath, asked: Sequence[JSON], view: View) -> list[JSON]:
    """What is wrong with an object; `at` is where the spec of its claim stands, `asked` are that spec's requests.

    Of the view it uses the deadline and the search for near names.
    """
    objects, kind, version = declared(FILE)["objects"], group_kind(obj)[1], version_of(obj)
    if kind not in _GROUPS and version not in objects["Devices"]["requests"]["list"]["object"]:
        return []  # nothing is known of its shape
    noted = [*notes_of(values(FILE, version).breaches(obj, kind, (), view.deadline))]
    if kind in _GROUPS:
        noted += _shared(obj, kind, view.deadline)
    elif kind == "DeviceClass":
        noted += _parameters(get(obj, ("spec", "config")), ("spec", "config"))
    elif kind != "DeviceTaintRule":
        noted += _claim(get(obj, at), (*at, "devices"), asked, view, flat=version in ("v1beta1", "v1alpha3"))
    return noted


def _shared(obj: JSON, kind: str, deadline: Deadline) -> Iterator[JSON]:
    """Claims of pod groups that name no source, or two."""
    templates = items(get(obj, ("spec", "podGroupTemplates")))
    groups: list[tuple[FieldPath, JSON]] = [(("spec",), get(obj, ("spec",)))]
    if kind == "Workload":
        groups = [(("spec", "podGroupTemplates", index), template) for index, template in enumerate(templates)]
    for at, group in deadline.paced(groups):
        for index, claim in enumerate(deadline.paced(items(get(group, ("resourceClaims",))))):
            if claim is None or isinstance(claim, dict):
                named = [claim[each] for each in _SOURCES if claim and claim.get(each) is not None]
                if len(named) != 1:
                    yield note("twoSources" if named else "noSource", (*at, "resourceClaims", index))


def _claim(spec: JSON, at: FieldPath, asked: Sequence[JSON], view: View, *, flat: bool) -> Iterator[JSON]:
    known, deadline = _Names(asked, view), view.deadline
    for index, request in enumerate(deadline.paced(items(get(spec, ("devices", "requests"))))):
        where = (*at, "requests", index)
        exact = (request, where) if flat else (get(request, ("exactly",)), (*where, "exactly"))
        yield from _tolerations(*exact, deadline)
        for place, choice in enumerate(items(get(request, ("firstAvailable",)))):
            yield from _tolerations(choice, (*where, "firstAvailable", place), deadline)
    for index, constraint in enumerate(deadline.paced(items(get(spec, ("devices", "constraints"))))):
        where = (*at, "constraints", index)
        if constraint is None or isinstance(constraint, dict):
            yield from _constraint(constraint or {}, where)
        yield from known.unknown(constraint, where)
    configs = get(spec, ("devices", "config"))
    for index, config in enumerate(deadline.paced(items(configs))):
        yield from known.unknown(config, (*at, "config", index))
    yield from _parameters(configs, (*at, "config"))


def _references(request: JSON) -> Iterator[str]:
    """The names by which a constraint or a configuration may refer to a request and to its alternatives."""
    yield request["name"]
    yield from (f"{request['name']}/{choice['name']}" for choice in request["choices"])


class _Names:
    """The names by which parts of a claim may refer to its requests."""

    def __init__(self, asked: Sequence[JSON], view: View) -> None:
        self._view = view
        self._known = dict.fromkeys(name for request in view.deadline.paced(asked) for name in _references(request))
        # an alternative by its name alone: what stands behind the request's name and a slash
        self._alone = {name.partition("/")[2]: name for name in reversed(self._known) if "/" in name}

    def unknown(self, holder: JSON, at: FieldPath) -> Iterator[JSON]:
        """The names of a constraint or a configuration that no request has."""
        for index, name in enumerate(self._view.deadline.paced(items(get(holder, ("requests",))))):
            given = "" if name is None else name
            if isinstance(given, str) and given not in self._known and not is_placeholder(given):
                near = self._alone.get(given, "") if given else ""
                where = (*at, "requests", index)
                yield note("unknownRequest", where, given, near=near or self._view.nearest(given, self._known))


def _constraint(constraint: JSON, at: FieldPath) -> Iterator[JSON]:
    if constraint.get("matchAttribute") is None and constraint.get("distinctAttribute") is None:
        yield note("noAttribute", at)


def _tolerations(holder: JSON, at: FieldPath, deadline: Deadline) -> Iterator[JSON]:
    for index, toleration in enumerate(deadline.paced(items(get(holder, ("tolerations",))))):
        value, operator = text(get(toleration, ("value",))), get(toleration, ("operator",))
        where = (*at, "tolerations", index, "value")
        is_good, expected = FORMS["labelValue"]
        if operator == "Exists" and value:
            yield note("excluded", where, "operator Exists", "operator Equal")
        elif operator in (None, "", "Equal") and not is_good(value) and not is_placeholder(value):
            yield note("badName", where, value, expected)


def _parameters(configs: JSON, at: FieldPath) -> Iterator[JSON]:
    """Parameters are an object, whatever is in it; the API server measures the JSON as it was sent."""
    for index, config in enumerate(items(configs)):
        opaque = get(config, ("opaque",))
        if not isinstance(opaque, dict):
            continue
        where, held = (*at, index, "opaque", "parameters"), opaque.get("parameters")
        length = len(json.dumps(held, ensure_ascii=False, separators=(",", ":")).encode())
        if held is None:
            yield note("missing", where, "", "an object that the driver understands")
        elif length > _LARGEST:
            yield note("tooLong", where, length, str(_LARGEST))
        elif not isinstance(held, dict):
            yield note("parameters", where, held)
