"""Audits and simulations of files in which any JSON replaces a value of an object."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from tests import quick_yaml
from tests.fuzz.free_fields import with_any_value
from tests.workloads.every_kind import objects_around
from webhook.apimachinery.attributes import JSON
from webhook.cli import run_command_line, run_with_traceback
from webhook.errors import InputError
from webhook.input import shipped
from webhook.yamltext import yamlfile

_ROOT: Final = Path(__file__).parents[2]
_EXAMPLES: Final = ("examples", "deploy/samples", "tests/data/manifests", "tests/data/trainer", "tests/data/simulation")
_TEMPLATE: Final = {
    "spec": {"containers": [{"name": "a", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}
}


def objects() -> list[JSON]:
    suites = sorted(Path(shipped.policies_folder()).glob("*/suite.yaml"))
    listed = [case.get("input") for file in suites for case in quick_yaml.load(file.read_text())["cases"]]
    for file in yamlfile.discover(_ROOT / name for name in _EXAMPLES):
        try:
            listed += [each.value for each in yamlfile.read(file)]
        except InputError:
            continue  # a broken example, which cannot be read
    listed += [obj for _, obj in objects_around(_TEMPLATE)] * 5
    return [json.loads(json.dumps(each, default=str)) for each in listed if isinstance(each, dict) and each.get("kind")]


def faults(seed: int, files: int, folder: Path, printed: Callable[[], str]) -> Iterator[str]:
    """Audit and simulate files, and yield each output that shows a bug of claimgate.

    `printed` returns what was printed since its last call.
    """
    random, known = Random(seed), objects()
    for number in range(files):
        body = with_any_value({"request": {"object": random.choice(known)}}, random)
        file = folder / f"{number}.json"
        file.write_bytes(body.removeprefix(b'{"request": {"object": ').removesuffix(b"}}"))
        for verb in ("audit", "simulate"):
            code = run_with_traceback(partial(run_command_line, [verb, str(file)]))
            output = printed()
            if code > 3 or "bug of claimgate" in output or "Traceback" in output:
                yield f"{verb} exits with {code} for {file.read_bytes()[:2000]!r}\n{output}"
