"""Endpoints of claimgate's replicas, for an API server without controllers that would write them."""

from __future__ import annotations

from typing import Any

from tests.e2e.conftest import NAMESPACE


def endpoints(*nodes: str, namespace: str = NAMESPACE) -> dict[str, Any]:
    """Return an EndpointSlice with a ready replica on each node. No program listens at the addresses."""
    metadata = {"name": "claimgate", "namespace": namespace, "labels": {"kubernetes.io/service-name": "claimgate"}}
    endpoints = [
        {"addresses": [f"192.0.2.{number}"], "nodeName": node, "conditions": {"ready": True}}
        for number, node in enumerate(nodes, 1)
    ]
    kind = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4"}
    return {**kind, "metadata": metadata, "endpoints": endpoints, "ports": [{"name": "https", "port": 8443}]}
