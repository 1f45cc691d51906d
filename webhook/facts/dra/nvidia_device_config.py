"""Configurations for drivers in claims and classes: `opaque.parameters`, judged where nvidia.yaml knows the driver.

Notes are those of webhook/schema/values.py, and unknownKind for an object that no release of the driver knows,
otherDriver for one that another driver of the vendor applies, otherDevice for a request whose class has devices of
another type, alternatives for a request whose alternatives the driver does not take to be meant by the request's name,
and gated for what waits for a feature gate of the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.dra.field_problems import problems
from webhook.facts.dra.notes import note, notes_of
from webhook.facts.dra.pod_claims import SPECS
from webhook.facts.dra.requests import requests, version_of
from webhook.facts.pods.containers import items, text
from webhook.facts.subject import Subject
from webhook.paths import FieldPath, get, render
from webhook.problem import Problem
from webhook.schema.values import declared, values
from webhook.similar_names import nearest
from webhook.wording import either

FILE = Path(__file__).with_name("nvidia.yaml")


GROUP = "nvidia-device-config"
_ADVISED = ("unknownField", "unknownKind", "otherDriver", "otherDevice", "alternatives", "gated")
_YOUNG = "VfioDeviceConfig"
"""A kind that later releases may well change."""


def validate_device_configs(subject: Subject) -> Iterator[Problem]:
    """What the driver refuses of the parameters in a claim, a template or a class, and what it does not apply."""
    at = SPECS.get(subject.group_kind[1], ())
    asked = requests(get(subject.object, at), at, version_of(subject.object), subject.deadline) if at else []
    where = (*at, "devices") if at else ("spec",)
    for config in configs(get(subject.object, where), where, asked, subject.deadline):
        for each in subject.deadline.each(config["notes"]):
            if each["what"] != "gated" or each["expected"] not in subject.assumptions.feature_gates:
                yield from _problem(each, config["kind"])


def _problem(written: JSON, kind: str) -> Iterator[Problem]:
    for problem in problems(GROUP, [written]):
        if written["what"] == "unknownField":
            message = "must not be set because the driver, as of 0.5, has no such field and refuses the configuration"
            yield replace(problem, message=message)
        elif written["what"] in _ADVISED:
            yield problem
        elif kind != _YOUNG:
            yield replace(problem, message=_refused(problem.message))
        elif written["what"] in ("wrongType", "notOneOf"):
            yield replace(problem, code=f"{GROUP}/passthrough")


def _refused(message: str) -> str:
    reason = "because NVIDIA's driver otherwise refuses the configuration, and the pods stay in ContainerCreating"
    return message if " because " in message else f"{message} {reason}"


def configs(holder: JSON, at: FieldPath, asked: Sequence[JSON] = (), deadline: Deadline | None = None) -> list[JSON]:
    """Every `config[]` of a claim's `devices`, or of a class's spec, at a path; `asked` are the claim's requests."""
    until = deadline or Deadline()
    first = {request["name"]: request for request in reversed(asked)}
    return [
        _config(config["opaque"], (*at, "config", index), items(config.get("requests")), first, until)
        for index, config in enumerate(until.paced(items(get(holder, ("config",)))))
        if isinstance(config, dict) and isinstance(config.get("opaque"), dict)
    ]


def _config(opaque: JSON, at: FieldPath, wanted: Sequence[JSON], asked: Mapping[str, JSON], deadline: Deadline) -> JSON:
    driver, parameters = text(opaque.get("driver")), opaque.get("parameters")
    names = [name for name in wanted if isinstance(name, str)]
    table, where = declared(FILE), (*at, "opaque", "parameters")
    entries: list[JSON] = []
    if driver in table["drivers"] and isinstance(parameters, dict):
        entries = [*_driven(driver, parameters, where, table, deadline)]
        kind = table["kinds"].get(text(parameters.get("kind")), {})
        entries += _applied(kind.get("class", ""), deadline.paced(names), (*at, "requests"), asked)
    return {
        "path": render(at),
        "driver": driver,
        "kind": text(get(parameters, ("kind",))),
        "requests": names,
        "notes": entries,
    }


def _driven(
    driver: str, parameters: JSON, at: FieldPath, table: Mapping[str, Any], deadline: Deadline
) -> Iterator[JSON]:
    """What the driver's plugin will say of its parameters."""
    kind, version = text(parameters.get("kind")), text(parameters.get("apiVersion"))
    if version != table["apiVersion"]:
        yield note("unknownKind", (*at, "apiVersion"), version, table["apiVersion"])
    elif kind not in table["kinds"]:
        yield note("unknownKind", (*at, "kind"), kind, either(table["drivers"][driver]), nearest(kind, table["kinds"]))
    else:
        if kind not in table["drivers"][driver]:
            other = next(each for each, kinds in table["drivers"].items() if kind in kinds)
            yield note("otherDriver", (*at, "kind"), kind, other)
        yield from notes_of(values(FILE).breaches(parameters, kind, at, deadline))
        for path, gates in table["kinds"][kind].get("gates", {}).items():
            steps = tuple(path.split("."))
            if (chosen := text(get(parameters, steps))) in gates:
                yield note("gated", (*at, *steps), chosen, gates[chosen])


def _applied(device_class: str, names: Iterable[str], at: FieldPath, asked: Mapping[str, JSON]) -> Iterator[JSON]:
    """Requests for which the plugin does not take a configuration that names them."""
    classes = {kind["class"] for kind in declared(FILE)["kinds"].values()}
    choices: dict[str, Mapping[str, list[JSON]]] = {}
    for index, name in enumerate(names):
        main, _, sub = name.partition("/")
        request = asked.get(main)
        if request is None:
            continue
        if request["choices"] and not sub:
            yield note("alternatives", (*at, index), name, f"{name}/{request['choices'][0]['name']}")
        if main not in choices:
            choices[main] = _by_name(request["choices"])
        for each in choices[main].get(sub, ()) if request["choices"] else [request]:
            if device_class and each["deviceClass"] in classes - {device_class}:
                yield note("otherDevice", (*at, index), each["deviceClass"], device_class)


def _by_name(choices: Sequence[JSON]) -> Mapping[str, list[JSON]]:
    named: dict[str, list[JSON]] = {}
    for each in choices:
        named.setdefault(each["name"], []).append(each)
    return named
