"""Guesses the resource name of an unknown kind by the rules of English plurals."""

from __future__ import annotations


def plural_of_kind(kind: str) -> str:
    """Return the resource name that a kind most likely has: its English plural in lower case.

    The rule is apimachinery's UnsafeGuessKindToResource (pkg/api/meta/restmapper.go, v0.36).

    Examples:
        Pod -> pods, NetworkPolicy -> networkpolicies, Ingress -> ingresses, Endpoints -> endpoints
    """
    singular = kind.lower()
    if singular == "endpoints":
        return singular
    if singular.endswith("s"):
        return f"{singular}es"
    if singular.endswith("y"):
        return f"{singular[:-1]}ies"
    return f"{singular}s"
