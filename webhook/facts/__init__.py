"""What is true of an object and of what it refers to, offered to policies under CEL names: facts, never verdicts.

Each API has a package; `fact.py` in it declares facts, with their CEL types and what they look up in the cluster, and
packages.py lists the packages. Every fact is plain JSON. One that needs an object that is not there goes on without it,
and says which of its fields needed it. No module here denies anything.
"""
