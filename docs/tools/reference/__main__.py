"""Write the reference pages: python -m docs.tools.reference FOLDER."""

import sys
from pathlib import Path

from docs.tools.reference.pages import pages
from docs.tools.reference.writing import write

if __name__ == "__main__":
    write(pages(), Path(sys.argv[1]))
