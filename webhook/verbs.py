"""Which verbs the command line has, and what its exit codes mean."""

from __future__ import annotations

VERBS = {
    "serve": "Answer AdmissionReviews of an API server over HTTPS.",
    "replay": "Say what the webhook would answer to recorded reviews or plain objects.",
    "audit": "Report every finding about the objects of folders, files or stdin.",
    "simulate": "Say whether a job can ever start, and if not, why.",
    "backtest": "Say what policies would have done to the requests of an API server's audit log.",
    "test": "Run the suites of policies.",
    "explain": "Say of a rule what it demands and why, with a bad and a good example.",
    "policies": "List, check and export policies.",
    "config": "Show the configuration file that holds, check one, print its schema.",
    "certs": "Issue, show, rotate and inject certificates.",
    "webhook-config": "Print the webhook configurations for exactly what the policies match.",
    "queues": "Show the queues of Kueue and what each could ever admit.",
    "cel": "Evaluate CEL expressions.",
    "ui": "Try policies and objects in the browser, on this machine alone.",
    "version": "Print the version.",
    "demo": "Issue a certificate, serve, send sample reviews, audit sample manifests, stop.",
}
"""Every verb with its one-line summary; `webhook-config` lives in commands/webhook_config.py."""

EXIT_CODES = {
    0: "clean: everything allowed, nothing found, all tests passed",
    1: "findings, denials or mismatches",
    2: "bad usage, configuration, policy or input",
    3: "not decided: a rule that may deny could not be evaluated",
}
"""The one table of exit codes, printed by --help."""
