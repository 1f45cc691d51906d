"""A package of checks and a fact that fail on what they are given, as a fault of ours would."""
