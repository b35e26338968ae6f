"""Compute the mathematics that several chapters share, under the names of the field."""
