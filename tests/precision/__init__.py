"""How often rules report public manifests, and how often the findings were judged useful."""
