"""python -m attncli"""

from attncli.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
