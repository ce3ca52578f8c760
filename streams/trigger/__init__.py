"""What starts an execution."""
