"""The worker: claims frames and commands, runs their tasks, commits the outcome."""
