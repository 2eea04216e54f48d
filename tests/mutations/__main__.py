"""Spoil the product where it carries out a rule, and see whether the tests that the rule book names notice.

`python -m tests.mutations [ID …]` plays the mutations of tests/mutations/rules.toml, or those of some rules (`BEH`: all
with that prefix). Tests that need servers run only with `--servers temporal` or `--servers all`, those of the soak with
`all`; where no other test is named, the mutation is said to be not played. The exit code is 1 where one goes unnoticed
or no longer fits the code.
"""

import argparse
import sys

from tests.mutations.playing import CHOSEN, GOOD, play
from tests.mutations.rules import read_mutations, select


def main() -> int:
    """Play what was asked for, one line for each."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("ids", nargs="*", metavar="ID", help="rules or prefixes; default: all")
    parser.add_argument("--servers", choices=CHOSEN, default="none", help="what the tests may start (default: none)")
    given = parser.parse_args()
    verdicts = []
    for mutation, verdict in play(select(read_mutations(), given.ids), given.servers):
        verdicts.append(verdict)
        print(f"{verdict:<12} {mutation.rule:<8} {mutation.at}: {mutation.what}", flush=True)
    print(
        f"{verdicts.count('noticed')} of {len(verdicts)} mutations noticed, {verdicts.count('not played')} not played"
    )
    return 0 if set(verdicts) <= GOOD else 1


if __name__ == "__main__":
    sys.exit(main())
