"""What a container gets of a claim: all of it, or the requests that it names."""

from __future__ import annotations

from collections.abc import Collection

from webhook.attributes import JSON


def selected(claim: JSON, named: Collection[str]) -> JSON:
    """A claim of the fact `dra` with those of its requests alone that a container names.

    k8s.io/api resource/v1 types.go: a reference without a request, "" here, takes them all.
    """
    if not named or "" in named or not claim["found"]:
        return claim
    asked = [each for each in claim["requests"] if each["name"] in named]
    counts = [each["devices"] for each in asked]
    return claim | {
        "requests": asked,
        "devices": None if None in counts else sum(counts),
        "atLeast": sum(each["atLeast"] for each in asked),
        "gpu": any(each["gpu"] for each in asked),
    }
