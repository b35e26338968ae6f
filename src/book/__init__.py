"""Build the book from its chapters.

The package runs the notebooks, and makes editions, decks and assignments. The Sphinx extensions and
the scripts in `tools` import this package, and it imports `course` and `helpers`. Colab does not
install it.
"""
