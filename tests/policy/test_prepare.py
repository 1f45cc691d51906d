"""The work of a server before its first review. Otherwise each worker would repeat the work."""

from __future__ import annotations

import subprocess
import sys

ASK = """
import sys
from pathlib import Path
from webhook.input import shipped
from webhook.admission.decode import decode_review_bytes
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Phase
from webhook.cluster.files import FilesCluster
from webhook.policy.load import Options, load_policy_set
from webhook.workloads import table
policies = load_policy_set([Path(shipped.policies_folder())], Options(table=table.load_table()))
policies.compile_ahead_of_requests()
known = set(sys.modules)
for path in sorted(Path("deploy/samples/reviews").glob("*.json")):
    for phase in Phase:
        answer_request(decode_review_bytes(path.read_bytes()), policies, FilesCluster(), phase=phase)
print(*sorted(name for name in set(sys.modules) - known if name.startswith("webhook.")))
"""


def test_no_review_imports_what_checks_and_facts_need() -> None:
    asked = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True)
    assert asked.stdout.split() == []
