"""Writes the bill of materials of the image, CycloneDX 1.6, from requirements.lock: `make sbom`.

Each locked package has its version, package URL and hashes. The application depends on the packages that pyproject.toml
names. The same lock file gives the same text.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def bill_of_materials(lock: Path = ROOT / "requirements.lock") -> str:
    """Return the bill of materials as JSON, after a check by the schema of CycloneDX."""
    from cyclonedx.schema import SchemaVersion  # the import takes four seconds
    from cyclonedx.validation.json import JsonStrictValidator

    flags = ["--output-reproducible", "--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "application"]
    command = [sys.executable, "-W", "ignore", "-m", "cyclonedx_py", "requirements", *flags, "--sv", "1.6", str(lock)]
    made = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    references = {normalised(one["name"]): one["bom-ref"] for one in made["components"]}
    for one in made["components"]:
        del one["description"]  # the description repeats the lines of the lock file
    (root,) = (one for one in made["dependencies"] if one["ref"] == made["metadata"]["component"]["bom-ref"])
    root["dependsOn"] = sorted(references[name] for name in declared())
    text = json.dumps(made, indent=2) + "\n"
    if problem := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise SystemExit(f"the bill of materials breaks the schema of CycloneDX 1.6: {problem}")
    return text


def declared() -> set[str]:
    """Return the packages that pyproject.toml names, with the extras of `all`. Ray is not in the image."""
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    chosen = (each for extra in Requirement(everything).extras for each in extras[extra])
    return {normalised(Requirement(text).name) for text in (*PROJECT["dependencies"], *chosen)} - {PROJECT["name"]}


def locked(lock: Path = ROOT / "requirements.lock") -> dict[str, Any]:
    found = re.findall(r"(?m)^([A-Za-z0-9._-]+)==([^\s;]+)((?:.*\\\n)*.*)", lock.read_text())
    return {
        normalised(name): (version, set(re.findall(r"sha256:([0-9a-f]{64})", rest))) for name, version, rest in found
    }


def normalised(name: str) -> str:
    """Return the form of a name in which registries compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> None:
    path = ROOT / "dist" / f"{PROJECT['name']}-{PROJECT['version']}.cdx.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(bill_of_materials())
    sys.stdout.write(f"{path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
