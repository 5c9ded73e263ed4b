"""Training: a run that can be trusted, killed and resumed."""
