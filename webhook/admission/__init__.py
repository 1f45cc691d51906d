"""Converts the bytes of an AdmissionReview to its verdict and back: decode, review (the core), enforce, respond."""
