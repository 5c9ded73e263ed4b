"""Room 4, numbers: protocols, metrics and their significance."""
