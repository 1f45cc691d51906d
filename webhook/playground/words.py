"""Makes the words that the editors complete: functions of CEL, variables, facts, and fields of a kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cel.library import overloads_of_version
from webhook.cel.library.declaration import Version
from webhook.facts.subject import FactRegistry
from webhook.schema.kinds import type_of
from webhook.schema.types import Fields, Items, Type

Tree: TypeAlias = Mapping[str, "Tree | None"]
"""Field names with the fields below each. A list has the fields of its items."""

_VARIABLES: Final = {
    "object": "the object; null for a deletion",
    "oldObject": "the object before; null for a creation",
    "request": "the request, such as request.userInfo.username",
    "namespaceObject": "the Namespace of the object",
    "params": "the parameter that the binding names",
    "variables": "the variables of the policy",
    "authorizer": "asks what the user may do",
    "problems": "what the checks of the policy found",
}
_MACROS: Final = {
    "has": "has(object.spec.field): whether a field is set",
    "all": "list.all(x, condition)",
    "exists": "list.exists(x, condition)",
    "exists_one": "list.exists_one(x, condition)",
    "map": "list.map(x, value)",
    "filter": "list.filter(x, condition)",
    "orValue": "optional.orValue(value): for object.?field",
}
_DEEPEST: Final = 10
"""The maximum depth of completed fields. In a CronJob, a field of a container is on the ninth level."""
_MOST_FIELDS: Final = 20_000
"""The maximum number of fields of one kind. A CronJob has about 5,000 fields."""


def words_of_expressions(registry: FactRegistry, version: Version) -> dict[str, Any]:
    """Return `variables`, `functions` and `methods` with a line about each, `facts` with their types, and `structures`
    with the fields of these types.
    """
    functions: dict[str, str] = {}
    methods: dict[str, str] = dict(_MACROS)
    has = methods.pop("has")
    for each in overloads_of_version(version):
        if each.hidden or not each.name.isidentifier():
            continue
        target, *parameters = map(str, each.parameters) if each.member else ("", *map(str, each.parameters))
        signature = f"{each.name}({', '.join(parameters)}): {each.result}"
        (methods if each.member else functions).setdefault(each.name, f"{target}.{signature}" if target else signature)
    facts = [registry.fact(name) for name in registry.fact_names]
    return {
        "variables": _VARIABLES,
        "functions": {"has": has, **functions},
        "methods": methods,
        "facts": {each.name: {"about": each.about.partition(". ")[0], "type": str(each.type)} for each in facts},
        "structures": {
            structure.structure.name: {
                name: {"type": str(field_type), "about": structure.texts[name]}
                for name, field_type in structure.structure.fields.items()
            }
            for each in facts
            for structure in each.structures
        },
    }


def fields_of_kind(api_version: str, kind: str) -> Tree:
    """Return the fields of a kind; {} for an unknown kind."""
    group, _, version = api_version.rpartition("/")
    left = [_MOST_FIELDS]
    return _tree(type_of(GroupVersionKind(group, version, kind)), _DEEPEST, left) or {}


def _tree(value_type: Type | None, levels: int, left: list[int]) -> Tree | None:
    while isinstance(value_type, Items):
        value_type = value_type.item
    if not isinstance(value_type, Fields) or not levels:
        return None
    left[0] -= len(value_type.fields)
    if left[0] < 0:
        return None
    return {name: _tree(field_type, levels - 1, left) for name, field_type in value_type.fields.items()} or None
