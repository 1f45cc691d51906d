"""ApplyConfigurations of custom kinds do what kube-apiserver 1.36.2 did: data/configuration/custom_kinds.jsonl.

The first line has the schemas of `spec` of both kinds; each other one an expression, the object before, and the object
after a dry-run create or the error of the mutation.
"""

import json
from pathlib import Path

from webhook.attributes import GroupVersionKind
from webhook.cel import Environment, Meter, compiled_engine
from webhook.cel.types import DYN
from webhook.deadline import Deadline
from webhook.errors import PatchError
from webhook.evaluation import patch_values
from webhook.evaluation.mutations import check_names
from webhook.patch import configuration

DATA = Path(__file__).parents[1] / "data" / "configuration" / "custom_kinds.jsonl"
ENVIRONMENT = Environment(version=(1, 36), variables={"object": DYN}, mutation=True)
OPEN = ("''.split(',')", "[['b']]")
"""Lists that cel-go holds as values of its own: here they are lists like any other, and are not refused."""
WORDS = "set elements must be scalars"
"""What is said of an object in a set, for which structured-merge-diff has other words."""


def _outcome(row, schema):
    obj = {"apiVersion": "ex.io/v1", "kind": row["kind"], "metadata": {"name": "x"}, "spec": row["before"]}
    properties = {"spec": schema}
    versions = [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}}}]
    value = compiled_engine().compile(row["expression"], ENVIRONMENT).evaluate({"object": obj}, Meter())
    kind, given = GroupVersionKind("ex.io", "v1", row["kind"]), patch_values.Given([obj])
    try:
        check_names(value)
        wanted = patch_values.configuration(value, given)
        made = configuration.apply(obj, wanted, kind, crd={"spec": {"versions": versions}})
    except PatchError as error:
        return {"error": str(error)}
    return {"after": patch_values.written(made, Deadline())["spec"]}


def _without_nulls(value):
    """What the API server prunes from fields that a schema declares and that may not be null."""
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def test_custom_kinds_are_changed_as_the_api_server_changes_them():
    first, *rows = map(json.loads, DATA.read_text(encoding="utf-8").splitlines())
    missed, left_out = [], 0
    for row in rows:
        found = _outcome(row, first["schemas"][row["kind"]])
        expected = {key: row[key] for key in ("after", "error") if key in row}
        if row["kind"] == "Strict":
            found, expected = _without_nulls(found), _without_nulls(expected)
        if any(f": {each}}}" in row["expression"] for each in OPEN) or WORDS in found.get("error", ""):
            left_out += 1
        elif found != expected:
            missed.append((row["kind"], row["expression"], row["before"], expected, found))
    assert missed == []
    assert len(rows) - left_out > 300
