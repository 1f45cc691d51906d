"""Records the verdicts of a real kube-apiserver on the variants of tests/dra_variants.py.

`python -m tests.e2e.dra_verdicts` creates each object with a server-side dry run, and writes
tests/data/dra/verdicts.tsv: description, fingerprint of the object, HTTP code, unknown fields, first error.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.dra_variants import variants
from tests.e2e import apiserver
from tests.e2e.apiserver import ApiServer

FILE = Path(__file__).parents[1] / "data" / "dra" / "verdicts.tsv"
FLAGS = (
    "--runtime-config=api/all=true",
    # off by default in 1.36: without them there are no PodGroups with claims, and no taint rules
    "--feature-gates=GenericWorkload=true,DRAWorkloadResourceClaims=true,DRADeviceTaintRules=true",
)
_ENOUGH = 140


def fingerprint(obj: Any) -> str:
    return hashlib.sha256(json.dumps(obj, sort_keys=True).encode()).hexdigest()[:10]


def asked(server: ApiServer) -> Iterator[tuple[str, str, int, int, str]]:
    config = yaml.safe_load(server.kubeconfig.read_text())
    headers = {"authorization": f"Bearer {config['users'][0]['user']['token']}"}
    with httpx.Client(
        base_url=server.url, verify=apiserver.trust(server), headers=headers, params={"dryRun": "All"}
    ) as client:
        for name, obj in variants():
            answer = client.post(_url(obj), json=obj)
            unknown = sum("unknown field" in warning for warning in answer.headers.get_list("warning"))
            yield name, fingerprint(obj), answer.status_code, unknown, _complaint(answer)


def _url(obj: Any) -> str:
    namespace = obj["metadata"].get("namespace")
    inside = f"namespaces/{namespace}/" if namespace else ""
    plural = obj["kind"].lower() + ("es" if obj["kind"].endswith("s") else "s")
    return f"/apis/{obj['apiVersion']}/{inside}{plural}"


def _complaint(answer: httpx.Response) -> str:
    if answer.is_success:
        return ""
    text = " ".join(answer.json()["message"].split())
    text = re.sub(r'^\S+ "[^"]*" is invalid: |^.* cannot be handled as a \w+: ', "", text)
    return text if len(text) <= _ENOUGH else f"{text[: _ENOUGH - 3]}..."


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="verdicts-") as folder, apiserver.running(Path(folder), *FLAGS) as server:
        rows = ["\t".join(map(str, row)) for row in asked(server)]
    FILE.write_text("".join(f"{row}\n" for row in rows))


if __name__ == "__main__":
    main()
