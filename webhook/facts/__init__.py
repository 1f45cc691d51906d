"""Facts about an object and the objects that it refers to, for policies under CEL names; never verdicts.

Each API has a package, and packages.py lists the packages. A package declares its facts in `FACTS`, with CEL types and
look-ups, and its checks in `CHECKS`. Every fact is plain JSON. A fact that needs a missing object is computed without
it, and names the fields that needed it. No module here denies anything.
"""
