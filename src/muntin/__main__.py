"""`python -m muntin`: the command line, also where its script is not on the path."""

from muntin.cli import app

if __name__ == "__main__":
    app()
