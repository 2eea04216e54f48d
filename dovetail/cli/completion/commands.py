"""`dovetail completion SHELL` prints what a shell needs; the shell then asks `dovetail __complete WORDS…`.

If the program knows no word, the shell offers files: `plan -f`, `--snapshot` and `--kubeconfig` take one.
"""

import argparse
from typing import TYPE_CHECKING, Final

from dovetail.answers.failures import CommandFailed
from dovetail.cli.output import say

if TYPE_CHECKING:
    from dovetail.settings.settings import Settings

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

ASKED: Final = "__complete"

_BASH: Final = """\
_dovetail() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("${line%%$'\\t'*}")
    done < <(dovetail __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
complete -o default -F _dovetail dovetail
"""
_ZSH: Final = """\
#compdef dovetail
_dovetail() {
    local -a found
    local line
    while IFS= read -r line; do
        found+=("${${line//:/\\\\:}/$'\\t'/:}")
    done < <(dovetail __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
    if (( $#found )); then _describe dovetail found; else _files; fi
}
compdef _dovetail dovetail
"""
_FISH: Final = """\
function __dovetail
    set -l words (commandline -opc)
    set -l found (dovetail __complete $words[2..] (commandline -ct) 2>/dev/null)
    if set -q found[1]
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c dovetail -f -a '(__dovetail)'
"""
SCRIPTS: Final = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def add_completion(commands: "Commands", shared: argparse.ArgumentParser) -> None:
    printed = commands.add_parser(
        "completion", help="print the completion of a shell: source <(dovetail completion bash)"
    )
    printed.add_argument("shell", choices=sorted(SCRIPTS))
    printed.set_defaults(act=_never, print=_print)


def _print(given: argparse.Namespace) -> int:
    say(SCRIPTS[given.shell].rstrip())
    return 0


async def _never(given: argparse.Namespace, settings: "Settings") -> int:
    raise CommandFailed("completion needs no cluster")
