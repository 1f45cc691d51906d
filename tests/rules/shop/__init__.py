"""A package of checks, as a site might add it, to test the extension point."""
