"""A package of checks as a site might add one: what the extension point promises is tested with it."""
