"""Finds where a CustomResourceDefinition embeds pods: the paths of PodSpecs, and integers that may count them.

`python -m tests.workloads.crds ORIGIN FILE...` prints the lines of tests/data/crds/templates.json for these files.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from webhook.yamltext import yamlfile

_COUNTS = re.compile(r"(replicas|instances|size|parallelism|completions|numOfHosts|slices|poolMax)$", re.IGNORECASE)
_AROUND = {"apiVersion", "kind", "metadata", "spec"}  # fields that may be next to the PodSpec of a template
_OWN = {"containers", "initContainers", "ephemeralContainers", "volumes"}  # of a PodSpec, which has no pods inside


def embedded(manifest: dict[str, Any], origin: str) -> Iterator[dict[str, Any]]:
    """Yield a line for each served version of a CRD, with these keys:

    templates: paths of objects with a PodSpec as `spec`
    podSpecs: paths of other PodSpecs
    free: objects of any shape
    counts: integers outside of pods by path, with the schema's default
    """
    spec = manifest["spec"]
    for version in spec["versions"]:
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if not version.get("served") or not schema:
            continue
        found: dict[str, Any] = {"templates": [], "podSpecs": [], "free": [], "counts": {}}
        for name, value in schema.get("properties", {}).items():
            if name not in ("metadata", "status"):
                _walk(value, name, found)
        yield {
            "origin": origin,
            "group": spec["group"],
            "kind": spec["names"]["kind"],
            "plural": spec["names"]["plural"],
            "namespaced": spec["scope"] == "Namespaced",
            "version": version["name"],
            **{key: paths for key, paths in found.items() if paths},
        }


def _walk(schema: dict[str, Any], path: str, found: dict[str, Any]) -> None:
    properties = schema.get("properties") or {}
    spec = properties.get("spec") or {}
    if _is_pod_spec(spec) and set(properties) <= _AROUND:
        found["templates"].append(path)
        return
    if _is_pod_spec(schema):
        found["podSpecs"].append(path)
        properties = {name: value for name, value in properties.items() if name not in _OWN}
    elif not properties and schema.get("x-kubernetes-preserve-unknown-fields"):
        found["free"].append(path)
    elif _COUNTS.search(path) and (schema.get("type") == "integer" or schema.get("x-kubernetes-int-or-string")):
        found["counts"][path] = schema.get("default")
    for name, value in properties.items():
        _walk(value, f"{path}.{name}", found)
    for key, step in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(key), dict):
            _walk(schema[key], f"{path}{step}", found)


def _is_pod_spec(schema: dict[str, Any]) -> bool:
    properties = schema.get("properties") or {}
    containers = properties.get("containers") or {}
    container = (containers.get("items") or {}).get("properties") or {}
    return containers.get("type") == "array" and {"name", "env"} <= set(container) and "volumes" in properties


def main(origin: str, *files: str) -> None:
    for file in files:
        for document in yamlfile.load(Path(file).read_text(), file):
            if isinstance(document.value, dict) and document.value.get("kind") == "CustomResourceDefinition":
                for line in embedded(document.value, origin):
                    if {"templates", "podSpecs", "free"} & set(line):
                        print(json.dumps(line))


if __name__ == "__main__":
    main(*sys.argv[1:])
