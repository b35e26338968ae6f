"""Build the book from its chapters: run notebooks, make editions, decks and assignments.

The Sphinx extensions and the scripts in `tools` import this package; it imports `course` and
`helpers`. Colab installs it not.
"""
