"""Fill the tables of `data/`, with one module per subject, and continue where a run was stopped."""
