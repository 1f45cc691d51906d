"""Whether the fields of objects and pod templates have the types of their schema (webhook/schema)."""
