"""What runs next."""
