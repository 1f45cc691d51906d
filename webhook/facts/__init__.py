"""Facts about an object and about the objects that it refers to. Policies read the facts under CEL names.

Each API has a package, and packages.py lists the packages. A package declares its facts in `FACTS`, with CEL types
and look-ups, and its checks in `CHECKS`. Every fact is plain JSON. If a fact needs a missing object, it is computed
without the object, and lists the fields that needed the object. No module here denies anything.
"""
