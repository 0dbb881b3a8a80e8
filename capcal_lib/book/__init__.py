"""The book: notebooks executed, pages built."""
