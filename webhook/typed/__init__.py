"""Objects with typed fields, which checks read instead of JSON.

A class declares the fields of one type of an API; an instance wraps the JSON of one object, has the path of the object,
and reads a field on first access. A field that is absent, null or of another type has its default, so a check needs no
guard. Lists and maps charge the request for each walk, so a check needs no deadline. Expressions and patches never read
typed objects, because null and absent differ in expressions and patches.
"""
