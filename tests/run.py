"""Run pytest and leave at once.

Python 3.11 now and then aborts at interpreter exit when the Temporal SDK is loaded (exit code 134, after all tests
have passed). Leaving with os._exit after a flush keeps the exit code that pytest gave.
"""

import os
import sys

import pytest


def main() -> None:
    code = int(pytest.main(sys.argv[1:]))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
