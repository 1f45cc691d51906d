"""The changes of pods by the flux plugin of Trainer: an installer, the volumes that it fills, and its entrypoint.

Source: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/flux/flux.go EnforceMLPolicy and pkg/constants. It
needs a spec.trainer, and crashes without one.
"""

from __future__ import annotations

from typing import Any, Final

from webhook.attributes import JSON
from webhook.facts.train_job_pods.plugins import PluginInput
from webhook.facts.train_job_pods.upsert import upsert_mounts, upsert_volumes

_IMAGE: Final = "FLUX_VIEW_IMAGE"
_DEFAULT_IMAGE: Final = "ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy"
_SHELL: Final = "/bin/bash"
_CONFIG: Final = "/etc/flux-config"


def entrypoint_config_map_name(name: str) -> str:
    """Return the name of the ConfigMap with the scripts, which is also the name of its volume."""
    return f"{name}-flux-entrypoint"


def apply_flux_plugin(making: PluginInput) -> JSON:
    """Change the pods as EnforceMLPolicy does; the command becomes an argument of the entrypoint. Return
    spec.trainer.
    """
    trainer, config = making.trainer, entrypoint_config_map_name(making.name)
    if trainer is None:
        return trainer
    command, image = _original_command(making), _installer_image(making)
    for pod_set in making.pod_sets:
        if pod_set.name != "node":
            continue
        upsert_volumes(pod_set.pod, *_flux_volumes(making.name, config))
        install, scripts = _volume_mount("flux-install", "/mnt/flux"), _volume_mount(config, _CONFIG, readOnly=True)
        installer: dict[str, Any] = {
            "name": "flux-installer",
            "image": image,
            "command": [_SHELL, f"{_CONFIG}/init.sh"],
            "volumeMounts": [install, scripts],
        }
        pod_set.init_containers.append(installer)
        for node in pod_set.node_containers:
            upsert_mounts(
                node,
                install,
                _volume_mount("spack-install", "/opt/software"),
                scripts,
                _volume_mount("flux-curve", "/curve", readOnly=True),
                _volume_mount("shared-memory", "/dev/shm", readOnly=True),  # noqa: S108 - a path in a pod
            )
    others = {name: value for name, value in trainer.items() if name != "args"}
    return {**others, "command": [_SHELL, f"{_CONFIG}/entrypoint.sh", command]}


def _volume_mount(name: str, path: str, **others: bool) -> JSON:
    return {"name": name, "mountPath": path, **others}


def _flux_volumes(name: str, config: str) -> tuple[JSON, ...]:
    return (
        {"name": "spack-install", "emptyDir": {}},
        {"name": "flux-install", "emptyDir": {}},
        {"name": config, "configMap": {"name": config, "defaultMode": 0o755}},
        {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
        {"name": "flux-curve", "secret": {"secretName": f"{name}-flux-curve", "defaultMode": 0o400}},
    )


def _original_command(making: PluginInput) -> str:
    """Return the original command as a text (getOriginalCommand)."""
    asked, node = making.trainer.get("command"), making.node_container
    own = node.get("command", []) if node else []
    words = [*(own if asked is None else asked), *(making.trainer.get("args") or [])]
    return " ".join(words).strip()


def _installer_image(making: PluginInput) -> str:
    """Return the image of the installer, which a variable may name."""
    own = making.node_container.get("env", []) if making.node_container else []
    images = [each.get("value", "") for each in (*own, *making.trainer.get("env", [])) if each.get("name") == _IMAGE]
    return str(images[-1]) if images else _DEFAULT_IMAGE
