"""Count the examination questions, or print a paper (see `book.questions`)."""

from book.questions import main

if __name__ == "__main__":
    main()
