"""Settings of a server in known ConfigMaps: a file that `--config` names, and variables.

In vLLM and SGLang the command line overrides the file; in trtllm-serve the file overrides the command line. If the
file is in an image or in an unknown ConfigMap, the settings are not known.

Source: vllm-project/vllm vllm/utils/argparse_utils.py@00da11e3; PyPI sglang 0.5.23 sglang/srt/server_args.py;
NVIDIA/TensorRT-LLM@00209af1 tensorrt_llm/commands/serve.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from webhook.apimachinery.paths import get
from webhook.errors import InputError
from webhook.facts.model_servers.arguments import is_variable
from webhook.facts.model_servers.server_candidates import text_of_mounted_file
from webhook.facts.model_servers.started_servers import (
    NIM,
    SGLANG,
    TENSORRT_LLM,
    TGI,
    VLLM,
    StartedServer,
    read_server_catalogue,
)
from webhook.facts.subject import Subject
from webhook.typed.objects import ConfigMap
from webhook.typed.pods import Container, PodSpec
from webhook.yamltext import yamlfile

_REFERENCE: Final = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
_READ_VARIABLES: Final = frozenset((TGI, NIM))
"""The servers that read their parallel sizes from variables."""
_SERVERS: Final = frozenset((VLLM, SGLANG, TENSORRT_LLM))
_SECONDS_A_CHARACTER: Final = 4e-5
"""Seconds to parse a character of YAML."""


def with_configuration_file(
    server: StartedServer, container: Container, spec: PodSpec, subject: Subject
) -> StartedServer:
    """Return a server with the settings of its configuration file, or unchanged if the file is not known."""
    arguments = server.arguments
    path = arguments.values.get("config", "")
    if server.name not in _SERVERS or not path.startswith("/") or is_variable(path) or arguments.is_open:
        return server
    settings = _settings_of_file(path, container, spec, subject)
    if settings is None:
        return server
    table, values = read_server_catalogue().flags[server.name], dict(arguments.values)
    del values["config"]
    for name, value in subject.deadline.charge_for_items(list(settings.items())):
        spellings = (f"--{name}", f"--{str(name).replace('_', '-')}")
        meaning = next((table.meanings[each] for each in spellings if each in table.meanings), "")
        if not meaning or (meaning in values and server.name != TENSORRT_LLM) or value is False:
            continue
        values[meaning] = "" if value is True else str(value)
    return replace(server, arguments=replace(arguments, values=values))


def with_variables_of_config_maps(server: StartedServer, container: Container, subject: Subject) -> StartedServer:
    """Return a server with the variables that the container gets from known ConfigMaps. An argument `$(NAME)` gets
    the value of the variable. An argument `$NAME` stays unchanged, because a script may set another value.

    Variables in `env` override variables in `envFrom`; a later ConfigMap overrides an earlier ConfigMap.
    """
    named = {each: match for each, text in server.arguments.values.items() if (match := _REFERENCE.fullmatch(text))}
    if server.name not in _READ_VARIABLES and not named:
        return server
    variables = dict[str, str]()
    for source in container.env_from:
        data, prefix = _data_of_config_map(get(source, ("configMapRef", "name")), subject), get(source, ("prefix",))
        variables |= {f"{prefix or ''}{key}": value for key, value in data.items()}
    for variable in container.env:
        reference = variable.value_from.config_map_key_ref
        data = _data_of_config_map(reference.name, subject)
        if reference.key in data:
            variables[variable.name] = data[reference.key]
    if not variables:
        return server
    server = replace(server, variables={**variables, **server.variables})
    read = {each: server.variables.get(match[1]) for each, match in named.items()}
    values = {each: value for each, value in read.items() if value is not None and not is_variable(value)}
    if not values:
        return server
    return replace(server, arguments=replace(server.arguments, values={**server.arguments.values, **values}))


def _data_of_config_map(name: Any, subject: Subject) -> Mapping[str, str]:
    """Return the texts of a ConfigMap; an empty map if the ConfigMap is not known."""
    if not isinstance(name, str) or not name:
        return {}
    config_map = subject.cluster_view().get_without_noting(ConfigMap.gvk, subject.namespace, name)
    data = ConfigMap.of(config_map).data
    return dict(subject.deadline.charge_for_items(list(data.items())))


def _settings_of_file(path: str, container: Container, spec: PodSpec, subject: Subject) -> Mapping[Any, Any] | None:
    """Return the content of a mounted file; None if the file is not known."""
    text = text_of_mounted_file(path, container, spec, subject)
    if not text or "{{" in text:
        return None
    subject.deadline.require_time_for_call(len(text) * _SECONDS_A_CHARACTER)
    try:
        documents = yamlfile.load(text)
    except InputError:
        return None
    value = documents[0].value if len(documents) == 1 else None
    return value if isinstance(value, dict) else None
