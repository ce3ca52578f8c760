"""Blue/green of business projections: a new version is built, compared, and cut over to."""
