"""Checks read typed objects. They do not check the shape of values, and do not charge deadlines (docs/decisions/0002)."""

import ast
from functools import cache
from pathlib import Path

import pytest

FACTS = Path(__file__).parents[2] / "webhook" / "facts"
READS_JSON = {
    "model_servers/parts_of_pods.py": "joins parts of pods that a controller merges, in kinds without typed classes",
    "model_servers/configuration_files.py": "reads the YAML of a server's own configuration in a text",
    "removed_versions.py": "reads one field of each kind that creates clusters, by its path",
    "sandbox/shards.py": "merges patches of shards as Go does, and compares shards with their template; null included",
    "serving_kinds/llm_inference_service.py": "merges the configurations that an LLMInferenceService names",
    "train_job_pods/train_job_and_runtime_fields.py": "leaves out of a TrainJob what a release of Trainer has not",
    "train_job_pods/train_job_patches.py": "lays patches over the runtime",
    "train_job_pods/plugins.py": "builds the JobSet that Trainer would",
    "train_job_pods/nodes_and_processes.py": "builds the JobSet that Trainer would",
    "train_job_pods/merged_train_job.py": "merges a TrainJob with its runtime, and builds its JobSet",
    "volcano_objects/defaults.py": "writes the defaults of Volcano's webhook into an object",
    "other_schedulers/kai_gangs.py": "reads counts of the kinds of many groups",
}
"""Modules that convert JSON to JSON, with the reason"""
MOST_GUARDS = 80
"""check.py and shapes/manifest_shape.py look for fields that an object of any kind lacks. 10 of these calls are in serving_kinds/knative.py, which reads a kind without typed classes. 8 are in
ray/serve_config.py, which reads YAML in a text. 4 are in model_servers/clients.py, which reads templates of any kind.
"""
CHARGES_BY_HAND = {
    "check.py": "charges each group of checks, however little it walks",
    "gpu/device_pods.py": "compares names with patterns of all known resources",
    "dra/resource_slices.py": "tries the selectors on each device of all slices",
    "kueue/never_claims.py": "evaluates selectors on published devices",
    "kueue/never_pod_groups.py": "asks a table of pods that outlives the request",
    "kueue/queue_workloads.py": "compares whole objects",
    "launch/processes_and_slots.py": "parses the hosts of a command",
    "model_servers/checks.py": "reads the words of each command",
    "model_servers/words.py": "compares each word of a command with patterns",
    "namespace_quota/limit_ranges.py": "compares names with patterns of all known resources",
    "nodes/device_plugin.py": "parses YAML, which nothing interrupts",
    "nodes/shared_cards.py": "compares the cards of all nodes with each container",
    "other_schedulers/yunikorn.py": "parses JSON, which nothing interrupts",
    "pod_prerequisites.py": "writes objects of kinds without typed classes as a text",
    "pods/pod_sets.py": "walks the TrainJobs inside an object",
    "ray/gpus_of_groups.py": "walks what a text with YAML holds",
    "ray/serve_config.py": "parses YAML, which nothing interrupts, and walks it",
    "serving_kinds/knative.py": "walks volumes of a kind without a typed class",
    "shapes/selectors.py": "asks an index about each label",
    "subject.py": "charges each result that is computed once",
    "volcano/job_dependencies_and_deadlocks.py": "walks a graph of names",
    "volcano/pod_group.py": "asks a table of pods that outlives the request",
    "volcano/queue_tree.py": "walks the parents of a queue",
    "volcano/scheduler.py": "parses YAML, which nothing interrupts",
}
GUARDS = {"items", "text", "mapping", "whole", "names", "get"}
SHAPES = {"dict", "list"}
CHARGES = {
    "charge_for_items",
    "items_with_clock_checks",
    "spend",
    "spend_text",
    "check_clock",
    "require_time_for_call",
    "check_clock_before_slow_call",
    "pieces",
}


@cache
def modules():
    return {str(path.relative_to(FACTS)): ast.parse(path.read_text()) for path in sorted(FACTS.rglob("*.py"))}


def guards(tree):
    """Return the lines of calls that check the shape of a value: GUARDS, and `isinstance` with a list or a map."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    return [call.lineno for call in calls if call.func.id in GUARDS or asks_for_a_shape(call)]


def asks_for_a_shape(call):
    names = {name.id for argument in call.args[1:2] for name in ast.walk(argument) if isinstance(name, ast.Name)}
    return call.func.id == "isinstance" and not SHAPES.isdisjoint(names)


def charges(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHARGES:
            yield node.lineno


def checks(parsed):
    return {name: tree for name, tree in parsed.items() if "Problem" in {getattr(n, "id", "") for n in ast.walk(tree)}}


def test_only_a_few_guards_against_wrong_shapes_remain():
    found = {name: len(list(guards(tree))) for name, tree in modules().items() if name not in READS_JSON}
    assert sum(found.values()) <= MOST_GUARDS, sorted(((n, m) for m, n in found.items() if n), reverse=True)[:30]


def test_modules_listed_as_readers_of_json_exist():
    assert [name for name in READS_JSON if not (FACTS / name).is_file()] == []


def test_no_other_check_charges_a_deadline():
    found = {name: list(charges(tree)) for name, tree in checks(modules()).items() if name not in READS_JSON}
    assert {name for name, lines in found.items() if lines} == set(CHARGES_BY_HAND)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("items(x)", 1),
        ("isinstance(x, dict | str)", 1),
        ("isinstance(x, str)", 0),
        ("get(x, ('a',))", 1),
        ("x.get(1)", 0),
    ],
)
def test_a_guarded_expression_is_recognized(text, count):
    assert len(list(guards(ast.parse(text)))) == count
