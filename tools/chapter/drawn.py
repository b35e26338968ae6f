"""List calls of chapter NUMBER's figures, each with its cheapest arguments."""

from course.chapterNUMBER import figures

CALLS = {"figures.first_token": lambda: figures.first_token((2, 4, 8))}
WITHOUT: set[str] = set()
