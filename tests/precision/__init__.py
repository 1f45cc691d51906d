"""How often rules speak of public manifests, and how often what they said was found useful."""
