"""Stories on one runtime; a package, so that the runtime ends with the last of them."""
