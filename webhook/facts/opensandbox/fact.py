"""The fact `sandbox`: what the objects of OpenSandbox and agent-sandbox refer to, and what their shard patches do."""

from __future__ import annotations

from typing import Final

from webhook.cel.types import BOOL, DYN, STRING, list_of
from webhook.facts.fact import Fact, Result, structure
from webhook.facts.opensandbox.references import LOOKUPS, sandbox
from webhook.facts.subject import Subject

REFERENCE: Final = structure(
    "SandboxReference",
    path=(STRING, "where it stands"),
    kind=(STRING, "Pool, SandboxTemplate or SandboxWarmPool"),
    name=(STRING, "name of the object"),
    found=(BOOL, "whether it is there"),
    absent=(BOOL, "whether it is known not to be there"),
    nearest=(STRING, "the name that was probably meant"),
    most=(DYN, "poolMax of a Pool; null where it does not say"),
)
POOL: Final = structure(
    "SandboxPool",
    name=(STRING, "name of the Pool"),
    lacks=(list_of(STRING), "what it lacks of images, requests and node selector of the template"),
)
NOTE: Final = structure(
    "SandboxNote",
    what=(
        STRING,
        (
            "kind of note: of a patch: `type`, `unknown`, `key`, `merge`, `keeps`, `directive`; of the pod that "
            "the controller makes: `image`, `added`, `inherits`, `resources`, `sources`, `claim`"
        ),
    ),
    path=(STRING, "where the patch stands"),
    text=(STRING, "what it is about"),
    certain=(BOOL, "whether it also holds of the patched template itself"),
)
SANDBOX: Final = structure(
    "Sandbox",
    references=(list_of(REFERENCE.type), "objects that the object names"),
    pools=(
        list_of(POOL.type),
        "with poolRef `*`, the Pools of the namespace as the controller's default profile compares them",
    ),
    poolsKnown=(BOOL, "whether all Pools of the namespace are known"),
    notes=(list_of(NOTE.type), "what becomes of the shardPatches of a BatchSandbox"),
)


def _compute(subject: Subject) -> Result:
    view = subject.view()
    return Result(sandbox(subject.object, view), view.missing())


FACTS: Final = (
    Fact(
        name="sandbox",
        about=(
            "What objects of OpenSandbox and agent-sandbox refer to, and what becomes of the shardPatches of a "
            "BatchSandbox: its controller decodes the patched pod over the one without the patch, so that what is "
            "taken away stays, and what moves in a list takes over what its new place had."
        ),
        examples=(
            "sandbox.references.all(r, !r.absent && (r.most == null || r.most > 0))",
            "sandbox.pools.exists(p, p.lacks.size() == 0)",
            'sandbox.notes.all(n, n.what != "image" || !n.certain)',
        ),
        type=SANDBOX.type,
        structures=(SANDBOX, REFERENCE, POOL, NOTE),
        compute=_compute,
        lookups=LOOKUPS,
    ),
)
