"""The layout of ARCHITECTURE: imports go down a floor, third-party packages stay in their rooms, files stay small."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FLOORS = (
    {"errors", "attributes", "decisions", "paths", "quantity", "logs", "jsontext", "yamlscalar"},
    {"yamlfile", "config", "shipped"},
    {"cel", "patch", "workloads", "cluster"},
    {"facts"},
    {"policy"},
    {"admission"},
    {"server", "report"},
    {"commands"},
    {"cli"},
    {"__main__"},
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
GROUND = 0
"""On the ground floor modules may use one another: they are the vocabulary itself."""
ROOMS = {
    "celpy": {"cel"},
    "lark": {"cel"},
    "re2": {"cel"},
    "kubernetes": {"cluster", "certs", "commands"},
    "fastapi": {"server"},
    "starlette": {"server"},
    "uvicorn": {"server", "commands"},
    "uvloop": {"server", "commands"},
    "httptools": {"server"},
    "httpx": {"commands"},
    "yaml": {"yamlfile", "yamlscalar"},
    "typer": {"cli", "commands"},
    "rich": {"cli", "commands", "report"},
    "msgspec": {"admission", "server", "commands"},
    "pydantic": {"admission", "policy", "workloads", "config", "commands", "server"},
    "prometheus_client": {"server"},
    "cryptography": {"certs"},
}
FORBIDDEN_NAMES = {"utils", "helpers", "common", "base", "manager", "engine", "core"}
MODULES = sorted((ROOT / "webhook").rglob("*.py"))
CERTS = sorted((ROOT / "certs").rglob("*.py"))


def room_of(module):
    """The first step below the package: a room, or a module that is a room of its own."""
    return module.relative_to(ROOT / "webhook").with_suffix("").parts[0]


def imported(module):
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def name(module):
    return str(module.relative_to(ROOT))


def test_every_room_has_its_floor():
    rooms = {room_of(module) for module in MODULES} - {"__init__"}
    assert rooms - FLOOR.keys() == set(), "a new room: give it a floor here, and say in ARCHITECTURE why"


@pytest.mark.parametrize("module", MODULES, ids=name)
def test_imports_go_down(module):
    room = room_of(module)
    if room == "__init__":
        return
    for target in imported(module):
        top, *rest = target.split(".")
        if top != "webhook" or not rest or rest[0] in {room, "__version__"}:
            continue
        is_below = FLOOR[rest[0]] < FLOOR[room] or FLOOR[rest[0]] == FLOOR[room] == GROUND
        assert is_below, f"{name(module)} imports {target}: floor {FLOOR[rest[0]]} from floor {FLOOR[room]}"


@pytest.mark.parametrize("module", [*MODULES, *CERTS], ids=name)
def test_third_party_packages_stay_in_their_rooms(module):
    room = "certs" if module in CERTS else room_of(module)
    for target in imported(module):
        rooms = ROOMS.get(target.split(".")[0])
        assert rooms is None or room in rooms, f"{name(module)} imports {target}, which belongs to {sorted(rooms)}"


@pytest.mark.parametrize("module", CERTS, ids=name)
def test_certs_is_a_package_of_its_own(module):
    assert not [target for target in imported(module) if target.split(".")[0] == "webhook"]


def test_only_commands_use_certs():
    users = {room_of(module) for module in MODULES for target in imported(module) if target.split(".")[0] == "certs"}
    assert users <= {"commands"}


@pytest.mark.parametrize("module", [*MODULES, *CERTS], ids=name)
def test_files_and_functions_stay_small(module):
    text = module.read_text()
    assert len(text.splitlines()) <= 500
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.body[0].lineno + 1  # flags of a command are a table, not code
            assert length <= 80, f"{name(module)}: {node.name} has {length} lines"


@pytest.mark.parametrize("module", [*MODULES, *CERTS], ids=name)
def test_names_say_what_is_inside(module):
    assert module.stem not in FORBIDDEN_NAMES


@pytest.mark.parametrize("module", [*MODULES, *CERTS], ids=name)
def test_every_module_says_what_it_knows(module):
    assert ast.get_docstring(ast.parse(module.read_text()))


def test_folders_are_two_deep_at_most():
    assert max(len(module.relative_to(ROOT / "webhook").parts) for module in MODULES) <= 3
