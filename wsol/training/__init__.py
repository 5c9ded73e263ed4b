"""Training: runs that survive a kill and can be resumed."""
