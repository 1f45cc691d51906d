"""Rules as data: the catalogue of what can be wrong, and how problems show in CEL. Knows no object and no check."""
