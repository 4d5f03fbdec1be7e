"""Short strings that imitate long ones."""
