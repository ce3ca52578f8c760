"""The projector: folds events into the tables that people query."""
