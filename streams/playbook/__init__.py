"""What the author asked for: model, parse, check, expressions."""
