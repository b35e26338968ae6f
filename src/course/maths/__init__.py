"""Mathematics that several chapters share, under the names of the field."""
