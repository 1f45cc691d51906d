"""A package of checks, as a site might add one, to test the extension point."""
