"""How many planted errors of flights are found, and named right."""
