"""Facts about an object and the objects that it refers to, and checks of objects. Policies read facts as CEL variables.

Each API has a package, and packages.py lists the packages. A package declares its facts in `FACTS`, with CEL types
and look-ups, and its checks in `CHECKS`. Every fact is plain JSON. A fact that needs a missing object is computed
without the object, and lists the fields that needed the object. No module here denies anything.
"""
