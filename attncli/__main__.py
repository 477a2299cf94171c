"""python -m attncli"""

from attncli.cli.main import entry

if __name__ == "__main__":
    entry()
