"""The completion scripts of shells.

In bash, readline takes `:` and `=`, which occur in names of rows, for the ends of words. So the
whole line goes to the program, and what readline takes for earlier words is removed from its
answers. After `::` a row is typed, so that no files are offered there; the scripts of typer let zsh
and fish offer files whenever the program has nothing to offer.
A name from the workspace is data: it is escaped, never expanded, and left out inside of quotes that
would not protect it.
"""

from __future__ import annotations

import re

BASH = r"""_evalstore_completion() {
    local IFS=$'\n' line=${COMP_LINE:0:COMP_POINT} word=${COMP_WORDS[COMP_CWORD]}
    local known breaks= prefix= reply
    known=${line//\\ /$'\1'}
    known=${known##*[[:space:]]}
    known=${known//$'\1'/\\ }
    [[ $COMP_WORDBREAKS == *:* ]] && breaks+=:
    [[ $COMP_WORDBREAKS == *=* ]] && breaks+==
    [[ -n $breaks ]] && prefix=${known%"${known##*[$breaks]}"}
    [[ $word != [\'\"]* && -z $known ]] && line+="''"
    COMPREPLY=()
    [[ $known == *::* ]] && compopt +o default 2>/dev/null
    while read -r reply || [[ -n $reply ]]; do
        if [[ $word == \'* ]]; then
            [[ $reply == *\'* ]] && continue
        elif [[ $word == \"* ]]; then
            [[ $reply == *[\"\$\`\\!]* ]] && continue
        else
            printf -v reply %q "$reply"
            reply=${reply//\\,/,}
            reply=${reply#"$prefix"}
        fi
        COMPREPLY+=("$reply")
    done < <(COMP_WORDS=$line COMP_CWORD=-1 _EVALSTORE_COMPLETE=complete_bash "$1")
}

complete -o default -F _evalstore_completion evalstore"""
_ZSH = re.compile(r"^ +eval (?P<call>\$\(.*\))$", re.MULTILINE)
"""Matches the line of the script for zsh that asks the program and carries out its answer."""
_FISH = '--condition "'
"""How the script for fish begins to say when no files are offered."""


def completion_script(shell: str, variable: str) -> str:
    """Return the script of bash, zsh or fish, which asks the program by an environment variable."""
    if shell == "bash":
        return BASH
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    script = str(get_completion_script(prog_name="evalstore", complete_var=variable, shell=shell))
    fish = f"{_FISH}string match -q '*::*' -- (commandline -ct); or "
    return _ZSH.sub(_guarded, script).replace(_FISH, fish)


def _guarded(match: re.Match[str]) -> str:
    return (
        f'  local answer="{match["call"]}"\n'
        "  [[ ${words[CURRENT]} == *::* && $answer == _files ]] && return\n"
        "  eval ${answer//$'\\n'/ }"
    )
