"""Write the reference pages: python -m acceptance.reference FOLDER."""

import sys
from pathlib import Path

from acceptance.reference.pages import pages
from acceptance.reference.writing import write

if __name__ == "__main__":
    write(pages(), Path(sys.argv[1]))
