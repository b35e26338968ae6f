"""Make the decks from the outputs that a build has stored (see `book.slides`)."""

import sys

from book.slides import main

if __name__ == "__main__":
    main(*sys.argv[1:2])
