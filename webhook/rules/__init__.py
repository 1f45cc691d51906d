"""Rules as data: the catalogue of possible mistakes, and the form of problems in CEL."""
