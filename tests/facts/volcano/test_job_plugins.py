"""Arguments of plugins as Go's package flag reads them, and the tasks that plugins look for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.facts.subjects import subject
from webhook.facts.volcano.job_plugins import (
    check_plugins_exist,
    validate_mpi_master,
    warn_of_plugin_arguments_and_tasks,
)
from webhook.facts.volcano.sent_job import read_job
from webhook.facts.volcano_objects.plugins import read_flags

KNOWN: dict[str, Any] = {"master": "text", "port": "number", "wait": "truth"}


@pytest.mark.parametrize(
    ("arguments", "values", "error"),
    [
        ([], {}, ""),
        (["--master=a", "-port=1"], {"master": "a", "port": "1"}, ""),
        (["--master", "a"], {"master": "a"}, ""),
        (["--wait", "--master=a"], {"wait": "true", "master": "a"}, ""),
        (["--wait=false"], {"wait": "false"}, ""),
        (["--master=a --port=1"], {"master": "a --port=1"}, ""),
        (["--slots=2", "--master=a"], {}, "`slots` is not an option"),
        (["--master"], {}, "`master` has no value"),
        (["--port=x", "--master=a"], {}, "`x`, the value of --port, is not a whole number"),
        (["--wait=maybe"], {}, "`maybe`, the value of --wait, is not true or false"),
        (["master=a"], {}, "`master=a` is not an option"),
        (["--", "--master=a"], {}, ""),
        (["-"], {}, "`-` is not an option"),
    ],
)
def test_arguments_of_a_plugin_are_read_as_flags(arguments: list[str], values: dict[str, str], error: str) -> None:
    flags = read_flags(arguments, KNOWN)
    assert (flags.values, flags.error) == (values, error)


def told(plugins: dict[str, list[str]], *tasks: str) -> list[str]:
    listed = [{"name": name, "replicas": 1} for name in tasks]
    spec = {"tasks": listed, "plugins": plugins}
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}
    read = subject(job).once(read_job)
    return [
        problem.code.removeprefix("volcano-job/")
        for look in (check_plugins_exist, validate_mpi_master, warn_of_plugin_arguments_and_tasks)
        for problem in look(read)
    ]


@pytest.mark.parametrize(
    ("plugins", "tasks", "codes"),
    [
        ({"pytorch": []}, ["master", "worker"], []),
        ({"pytorch": ["--master=chief"]}, ["chief", "worker"], []),
        ({"pytorch": ["--master=chief"]}, ["master", "worker"], ["plugin-task"]),
        ({"pytorch": ["--worker=node"]}, ["master", "worker"], ["plugin-role"]),
        ({"pytorch": []}, ["master", "node"], ["plugin-role"]),
        ({"pytorch": []}, ["master"], []),
        ({"ray": []}, ["worker"], ["plugin-task"]),
        ({"mpi": []}, ["worker"], ["mpi-master"]),
        ({"mpi": ["--master=launcher"]}, ["launcher", "worker"], []),
        ({"tensorflow": []}, ["worker"], []),
        ({"tensorflow": []}, ["ps", "worker", "chief", "evaluator"], []),
        ({"tensorflow": ["--ps=server"]}, ["server", "worker"], []),
        ({"tensorflow": ["--ps=server"]}, ["ps", "worker"], ["plugin-role"]),
        ({"ssh": ["--ssh-port=22"], "svc": ["--disable-network-policy"], "env": ["x"]}, ["a"], []),
        ({"svc": ["--publish"]}, ["a"], ["plugin-argument"]),
        ({"horovod": []}, ["a"], ["plugin"]),
        ({"${PLUGIN}": []}, ["a"], []),
        ({"pytorch": ["--master=${MASTER}"]}, ["a", "b"], []),
    ],
)
def test_a_plugin_finds_its_tasks(plugins: dict[str, list[str]], tasks: list[str], codes: list[str]) -> None:
    assert told(plugins, *tasks) == codes
