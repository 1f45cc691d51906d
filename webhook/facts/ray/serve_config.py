"""The fields of serveConfigV2 that Ray Serve refuses, and the fields that Ray drops.

KubeRay passes the text to Ray when the cluster runs. If Ray refuses the text, the RayService never becomes ready. Ray
silently drops unknown fields. user_config and args belong to the application, so they are not checked.

Source: PyPI ray 2.60.0 ray/serve/schema.py and ray/serve/config.py; ray-project/kuberay@feeaf72f
ray-operator/controllers/ray/rayservice_controller.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from webhook.apimachinery.releases import Release, release_as_text
from webhook.errors import InputError
from webhook.facts.ray.releases import RAY, release_of_ray
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.typed.ray import RayService
from webhook.yamltext import yamlfile
from webhook.yamltext.placeholders import is_placeholder

SERVE_CONFIG: Final = RAY.rule(
    "ray/serve-config",
    title="serveConfigV2 is not a valid configuration of Ray Serve",
    why="KubeRay passes the text to Ray when the cluster runs. Ray refuses the text and deploys no application.",
    refused_by="Ray, when the cluster runs",
    source="PyPI ray 2.60.0 ray/serve/schema.py",
    function="ServeDeploySchema",
    issues=(
        "https://github.com/ray-project/ray/issues/61439",
        "https://github.com/ray-project/ray/issues/46308",
        "https://github.com/ray-project/kuberay/pull/1221",
    ),
)
SERVE_FIELD: Final = RAY.rule(
    "ray/serve-field",
    title="Ray drops a field of serveConfigV2 that it does not know",
    why="Ray ignores unknown fields of serveConfigV2, so the setting has no effect.",
    refused_by="",
    source="PyPI ray 2.60.0 ray/serve/schema.py",
    function="ServeDeploySchema",
    fails="silent",
    issues=("https://github.com/ray-project/ray/issues/33577", "https://github.com/ray-project/ray/issues/33579"),
)
LONGEST: Final = 64 * 1024
"""The maximum length of serveConfigV2 in characters. A longer text is not read."""
_PARSE_S: Final = 4e-5
_AT: Final = ("spec", "serveConfigV2")
_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "serveConfigV2": frozenset(
        (
            *("applications", "proxy_location", "http_options", "grpc_options", "logging_config", "target_capacity"),
            *("controller_options", "tracing_config"),
        )
    ),
    "an application": frozenset(
        (
            *("name", "route_prefix", "import_path", "runtime_env", "host", "port", "deployments", "args"),
            *("logging_config", "external_scaler_enabled", "autoscaling_policy"),
        )
    ),
    "a deployment": frozenset(
        (
            *("name", "num_replicas", "route_prefix", "max_ongoing_requests", "max_queued_requests", "user_config"),
            *("autoscaling_config", "graceful_shutdown_wait_loop_s", "graceful_shutdown_timeout_s"),
            *("health_check_period_s", "health_check_timeout_s", "ray_actor_options", "placement_group_bundles"),
            *("placement_group_strategy", "max_replicas_per_node", "logging_config", "request_router_config"),
            *("placement_group_bundle_label_selector", "placement_group_fallback_strategy"),
            *("max_constructor_retry_count", "backpressure_config", "gang_scheduling_config", "deployment_actors"),
            *("rolling_update_percentage", "max_surge_percent", "is_driver_deployment"),
        )
    ),
    "ray_actor_options": frozenset(
        (
            *("runtime_env", "num_cpus", "num_gpus", "memory", "object_store_memory", "resources"),
            *("accelerator_type", "label_selector", "fallback_strategy"),
        )
    ),
    "autoscaling_config": frozenset(
        (
            *("min_replicas", "initial_replicas", "max_replicas", "target_ongoing_requests", "metrics_interval_s"),
            *("look_back_period_s", "upscaling_factor", "downscaling_factor", "upscale_delay_s", "downscale_delay_s"),
            *("smoothing_factor", "upscale_smoothing_factor", "downscale_smoothing_factor", "policy"),
            *("downscale_to_zero_delay_s", "aggregation_function", "target_num_ongoing_requests_per_replica"),
        )
    ),
}
_OLD_NAME: Final = "max_concurrent_queries"
_RENAMED: Final[Mapping[str, str]] = {_OLD_NAME: "max_ongoing_requests", "deployment": "deployments"}
_WITHOUT_OLD_NAME: Final = (2, 34)
"""The first release of Ray that certainly has no max_concurrent_queries (ray-project/ray#46427, July 2024)."""
_MOST_OF_AUTO: Final = 100
"""The default of max_replicas if num_replicas is auto (handle_num_replicas_auto)."""
_READ_RELEASE: Final = (2, 60)
"""The release of Ray with the fields above. A later release may have more."""
_IMPORT_PATH: Final = re.compile(r"[^.:]+([.:][^.:]+)+")


def _refusal(message: str, fix: str) -> Problem:
    """Return the problem of a text that Ray refuses."""
    return SERVE_CONFIG.problem(_AT, message, fix)


def read_serve_config(subject: Subject) -> Mapping[str, Any] | None:
    """Return serveConfigV2 as an object; None if it is too long, a template, or not YAML with an object.

    Call this function through `Subject.once`.
    """
    try:
        return _parsed_config(subject)
    except InputError:
        return None


def _parsed_config(subject: Subject) -> Mapping[str, Any] | None:
    text = subject.typed(RayService).spec.serve_config_v2
    if not text.strip() or len(text) > LONGEST or "{{" in text:
        return None
    subject.deadline.require_time_for_call(len(text) * _PARSE_S)
    documents = yamlfile.load(text)
    value = documents[0].value if len(documents) == 1 else None
    return value if isinstance(value, dict) else None


def check_serve_config(subject: Subject) -> Iterator[Problem]:
    """Report what Ray refuses or drops in serveConfigV2."""
    written = subject.typed(RayService).spec.json.get("serveConfigV2")
    if written is not None and not isinstance(written, str):
        message = "is an object, but the API server accepts only a text with YAML"
        yield _refusal(message, "write `serveConfigV2: |` and indent the YAML below it")
        return
    try:
        config = _parsed_config(subject)
    except InputError as error:
        if isinstance(written, str) and is_placeholder(written):
            return  # a template: the final text may be YAML
        line = error.problems[0].line or 1
        message = f"is not YAML (line {line}), but KubeRay reports this only when the cluster runs"
        yield _refusal(message, "correct the text")
        return
    if config is not None:
        yield from _check_text(config, subject)
    elif isinstance(written, str) and written.lstrip().startswith("- "):
        yield _refusal("is a list, but Ray needs a mapping with `applications`", "put the list under `applications:`")


def _check_text(config: Mapping[str, Any], subject: Subject) -> Iterator[Problem]:
    yield from _check_fields(config, "serveConfigV2", subject)
    applications = config.get("applications")
    if not isinstance(applications, list):
        message = "has no list `applications`, which Ray requires"
        yield _refusal(message, "put the application into a list `applications`")
        return
    names: dict[str, None] = {}
    routes: dict[str, str] = {}
    for index, application in enumerate(subject.deadline.charge_for_items(applications)):
        if not isinstance(application, dict):
            continue
        name = str(application.get("name", "default"))
        if name in names:
            message = f"names two applications `{name}`, which Ray refuses"
            yield _refusal(message, "give each application its own name")
        names[name] = None
        route = application.get("route_prefix", "/")
        if isinstance(route, str):
            if route in routes:
                message = (
                    f"applications `{routes[route]}` and `{name}` have the same route_prefix {route}, which Ray refuses"
                )
                yield _refusal(message, "set another route_prefix for each application")
            routes.setdefault(route, name)
        yield from _check_application(application, f"application `{name or index}`", subject)


def _check_application(application: Mapping[str, Any], who: str, subject: Subject) -> Iterator[Problem]:
    yield from _check_fields(application, "an application", subject)
    path = application.get("import_path")
    if not isinstance(path, str) or not path:
        yield _refusal(f"{who} has no import_path, which Ray requires", "set import_path")
    elif not _IMPORT_PATH.fullmatch(path[:1000]) and not is_placeholder(path):
        message = f"{who} has the import_path `{path[:80]}`, but Ray requires module:attribute"
        yield _refusal(message, "write import_path as module:attribute")
    for field in ("host", "port"):
        if field in application:
            message = f"{who} sets {field}, which Ray refuses in a list of applications"
            yield _refusal(message, f"move {field} to http_options")
    environment = application.get("runtime_env")
    folder = environment.get("working_dir") if isinstance(environment, dict) else None
    if isinstance(folder, str) and folder and "://" not in folder and not is_placeholder(folder):
        message = f"{who} has the local working_dir `{folder[:80]}`, but Ray accepts only remote addresses"
        yield _refusal(message, "upload the folder, and write its address")
    deployments = application.get("deployments")
    for deployment in subject.deadline.charge_for_items(deployments if isinstance(deployments, list) else ()):
        if isinstance(deployment, dict):
            yield from _check_fields(_without_fields_of_old_ray(deployment, subject), "a deployment", subject)
            yield from _check_deployment(deployment, f"deployment `{deployment.get('name', '')}`", subject)


def _without_fields_of_old_ray(deployment: Mapping[str, Any], subject: Subject) -> Mapping[str, Any]:
    """Return a deployment without max_concurrent_queries if the cluster's release of Ray still reads this field."""
    release = _release_of_ray(subject)
    if release is None or release >= _WITHOUT_OLD_NAME:
        return deployment
    return {name: value for name, value in deployment.items() if name != _OLD_NAME}


def _check_deployment(deployment: Mapping[str, Any], who: str, subject: Subject) -> Iterator[Problem]:
    options, scaling = deployment.get("ray_actor_options"), deployment.get("autoscaling_config")
    number = deployment.get("num_replicas")
    if isinstance(options, dict):
        yield from _check_fields(options, "ray_actor_options", subject)
    if number == 0:
        yield _refusal(f"{who} sets num_replicas 0, which Ray refuses", "set num_replicas 1 or more")
    if isinstance(scaling, dict):
        yield from _check_fields(scaling, "autoscaling_config", subject)
        if isinstance(number, int):
            message = f"{who} sets num_replicas and autoscaling_config, which Ray refuses together"
            fix = f"remove num_replicas to let Ray scale, or autoscaling_config to keep {number}"
            yield _refusal(message, fix)
        least = scaling.get("min_replicas", 1)
        most = scaling.get("max_replicas", _MOST_OF_AUTO if number == "auto" else 1)
        if isinstance(least, int) and isinstance(most, int) and least > most:
            message = f"{who} has min_replicas {least} above max_replicas {most}, which Ray refuses"
            yield _refusal(message, f"set max_replicas to at least {least}")
    if "max_replicas_per_node" in deployment and deployment.get("placement_group_bundles"):
        message = f"{who} sets max_replicas_per_node and placement_group_bundles, which Ray refuses together"
        yield _refusal(message, "remove one of these")


def _check_fields(value: Mapping[str, Any], what: str, subject: Subject) -> Iterator[Problem]:
    """Report fields that Ray drops. For releases of Ray after _READ_RELEASE, which may have new fields, a field is
    reported only if its right spelling or its right place is known.
    """
    for name in [each for each in list(value)[:100] if _is_unknown(each, what)]:
        meant = _RENAMED.get(name) or next(iter(get_close_matches(name[:80], _FIELDS[what], n=1, cutoff=0.85)), "")
        home = next((other for other, names in _FIELDS.items() if name in names), "")
        message = f"`{name[:80]}` is not a field of {what}, so Ray drops the field"
        if name == _OLD_NAME and _release_of_ray(subject) is None:
            since = release_as_text(_WITHOUT_OLD_NAME)
            message = f"`{name}` is not a field of {what} in Ray {since} and later, which drop the field"
        if meant in _FIELDS[what]:
            yield SERVE_FIELD.problem(_AT, message, f"write {meant}")
        elif home:
            yield SERVE_FIELD.problem(_AT, message, f"move the field to {home}")
        elif (release := _release_of_ray(subject)) is None or release <= _READ_RELEASE:
            yield SERVE_FIELD.problem(_AT, message, "remove the field")


def _release_of_ray(subject: Subject) -> Release | None:
    return release_of_ray(subject.typed(RayService).spec.ray_cluster_config)


def _is_unknown(name: object, what: str) -> bool:
    """Return whether Ray does not know a field. A field such as `x-defaults`, which only has an anchor, counts as
    known.
    """
    return isinstance(name, str) and name not in _FIELDS[what] and not name.startswith(("x-", "_", "."))
