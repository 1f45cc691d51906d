"""A package of checks as a site might add one: it tests the promises of the extension point."""
