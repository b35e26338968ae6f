"""Make, mark and draw assignments (see `book.assignments`)."""

from book.assignments import main

if __name__ == "__main__":
    main()
