"""One file, `claimgate.yaml`, for the server and every verb: which policies hold, what rules do, exceptions."""
