"""What people want to see."""
