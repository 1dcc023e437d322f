# Completes millrace in bash: source this file, or keep it as share/bash-completion/completions/millrace.
_millrace() {
  local i word typed
  local -a words=() # bash takes --flag=value apart
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word="${COMP_WORDS[i]}"
    if ((${#words[@]})) && [[ "${words[-1]}" == --* && ("$word" == = || "${words[-1]}" == *=) ]]; then
      words[-1]+="$word"
    else
      words+=("$word")
    fi
  done
  typed="${words[-1]}"
  COMPREPLY=()
  while IFS=$'\t' read -r word _; do
    if [[ "$word" == :files ]]; then
      compopt -o default
      return
    fi
    if [[ "$typed" == --*=* ]]; then word="${word#*=}"; fi
    COMPREPLY+=("$word")
  done < <("${COMP_WORDS[0]/#\~/$HOME}" __complete "${words[@]}" 2>/dev/null)
}
complete -F _millrace millrace
