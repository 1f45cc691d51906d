"""Builds and checks the files of a release in dist/: `make release`. It publishes nothing.

The files are the wheel and the source distribution, a lock file of the wheel and its dependencies, the Helm chart, the
context of the container image, the bill of materials, the manifest of the kubectl plug-in with its checksum, and
SHA256SUMS. `version`, `explain`, `audit` and `demo` run in a new environment with the wheel and its locked dependencies.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path

from tests import sbom

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
IMAGE = ("Dockerfile", "requirements.lock", "requirements-build.lock", "pyproject.toml", "README.md", "LICENSE")
IMAGE_FOLDERS = ("policies", "docs/rules", "deploy/samples", "deploy/claimgate.1", "certs", "webhook", "claimgate")


def main() -> int:
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    _python()
    _archive(DIST / f"claimgate-chart-{VERSION}.tgz", _tracked("deploy/chart"), "deploy/chart", "claimgate")
    _archive(DIST / f"claimgate-image-{VERSION}.tar.gz", _tracked(*IMAGE, *IMAGE_FOLDERS), "", "")
    plugin = DIST / f"kubectl-claimgate-{VERSION}.tar.gz"
    _archive(plugin, [*_tracked("deploy/kubectl/kubectl-claimgate"), "LICENSE"], "deploy/kubectl", "")
    manifest = (ROOT / "deploy" / "kubectl" / "claimgate.yaml").read_text()
    (DIST / "krew-claimgate.yaml").write_text(manifest.replace("VERSION", VERSION).replace("SHA256", _sha256(plugin)))
    sbom.main()
    wheel = next(DIST.glob("*.whl"))
    lock = DIST / f"claimgate-{VERSION}.lock"
    lock.write_text(lock_of_release(wheel))
    check(lock)
    made = sorted(path for path in DIST.iterdir() if path.is_file())
    (DIST / "SHA256SUMS").write_text("".join(f"{_sha256(path)}  {path.name}\n" for path in made))
    sys.stdout.write("".join(f"{path.stat().st_size:>9,}  dist/{path.name}\n" for path in [*made, DIST / "SHA256SUMS"]))
    return 0


def _python() -> None:
    code = "import sys; from hatchling.build import build_sdist, build_wheel; build_wheel(sys.argv[1]); build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(DIST)], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def lock_of_release(wheel: Path) -> str:
    """Return the lock file for `pip install --no-deps --require-hashes -r`, with all dependencies.

    It names the file of the wheel, because public indexes have another package with the name claimgate.
    """
    dependencies = (ROOT / "requirements.lock").read_text()
    return f"./{wheel.name} \\\n    --hash=sha256:{_sha256(wheel)}\n{dependencies}"


def check(lock: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [f"{folder}/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--no-deps", "--require-hashes", "-r", str(lock)], cwd=lock.parent, check=True)
        for arguments in (["version"], ["explain", "gpu-portable/all"], ["policies", "check"], ["demo"]):
            done = subprocess.run(
                [f"{folder}/bin/claimgate", *arguments], cwd=folder, capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise SystemExit(f"claimgate {' '.join(arguments)} ended with {done.returncode}: {done.stderr}")


def _tracked(*names: str) -> list[str]:
    listed = subprocess.run(["git", "ls-files", *names], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return listed.splitlines()


def _archive(place: Path, names: Iterable[str], below: str, folder: str) -> None:
    """Write an archive. The same files always give the same bytes."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(names):
            data, inside = (ROOT / name).read_bytes(), name.removeprefix(f"{below}/")
            entry = tarfile.TarInfo(f"{folder}/{inside}" if folder else inside)
            entry.size, entry.mode = len(data), (ROOT / name).stat().st_mode & 0o755
            archive.addfile(entry, io.BytesIO(data))
    place.write_bytes(gzip.compress(raw.getvalue(), mtime=0))


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
