"""The completion script of bash.

readline takes `:` and `=`, which occur in names of rows, for the ends of words. So the whole line
goes to the program, and what readline takes for earlier words is removed from its answers. In a
word that begins with a quote, names are left out that would end the quote or be expanded in it.
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
    for reply in $(COMP_WORDS=$line COMP_CWORD=-1 _EVALSTORE_COMPLETE=complete_bash "$1"); do
        if [[ $word != [\'\"]* ]]; then
            printf -v reply %q "$reply"
            reply=${reply//\\,/,}
            reply=${reply#"$prefix"}
        elif [[ $word == \'* && $reply == *\'* || $word == \"* && $reply == *[\"\$\`\\!]* ]]; then
            continue
        fi
        COMPREPLY+=("$reply")
    done
}

complete -o default -F _evalstore_completion evalstore"""
