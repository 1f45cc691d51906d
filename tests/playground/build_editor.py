"""Builds `webhook/playground/page/editor.js` from the packages in THIRD_PARTY.md, in a temporary folder.

Needs node and npm. Fails if a checksum differs from the table, and reports whether the file is unchanged:
`python -m tests.playground.build_editor`, with `--write` to replace the file.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).parents[2] / "webhook" / "playground" / "page"
ROW = re.compile(r"^\| (\S+) \| (\S+) \| \S+ \| `(sha512-\S+)` \|$", re.MULTILINE)
BUILDER = re.compile(r"Made with esbuild (\S+) \(MIT, `(sha512-\S+)`\)")


def main() -> int:
    table = (PAGE / "THIRD_PARTY.md").read_text()
    wanted = {name: (version, digest) for name, version, digest in ROW.findall(table)}
    wanted["esbuild"] = BUILDER.search(table).groups()
    with tempfile.TemporaryDirectory() as folder:
        names = [f"{name}@{version}" for name, (version, _) in wanted.items()]
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", folder, *names], check=True)
        lock = json.loads(Path(folder, "node_modules", ".package-lock.json").read_text())["packages"]
        wrong = [name for name, (_, digest) in wanted.items() if lock[f"node_modules/{name}"]["integrity"] != digest]
        if wrong:
            sys.stderr.write(f"other checksums than in THIRD_PARTY.md: {', '.join(wrong)}\n")
            return 1
        shutil.copy(PAGE / "editor_entry.mjs", folder)
        switches = ["--bundle", "--format=esm", "--minify", "--legal-comments=none", "--target=es2022"]
        command = ["npx", "esbuild", "editor_entry.mjs", *switches, "--outfile=editor.js"]
        subprocess.run(command, cwd=folder, check=True)
        made = Path(folder, "editor.js").read_bytes()
    is_same = made == (PAGE / "editor.js").read_bytes()
    if "--write" in sys.argv:
        (PAGE / "editor.js").write_bytes(made)
    sys.stdout.write("editor.js is the same\n" if is_same else "editor.js differs\n")
    return 0 if is_same or "--write" in sys.argv else 1


if __name__ == "__main__":
    sys.exit(main())
