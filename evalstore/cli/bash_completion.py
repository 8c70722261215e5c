"""The completion script of bash.

readline takes `:` and `=`, which occur in names of rows, for the ends of words. So the whole line
goes to the program, and what readline takes for earlier words is removed from its answers.
After `::` a row is typed, so that no files are offered there.
A name from the workspace is data: it is escaped, never expanded, and left out inside of quotes that
would not protect it.
"""

SCRIPT = r"""_evalstore_completion() {
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
