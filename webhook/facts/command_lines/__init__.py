"""How the command of a container starts processes: launchers, wrappers and shell scripts."""
