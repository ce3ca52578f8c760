"""One attempt at a frame or a command: claim, run, store, commit."""
