#compdef millrace
# Completes millrace in zsh: source this file behind compinit, or keep it as _millrace in a folder of $fpath.
_millrace() {
  local line
  local -a found
  for line in "${(@f)$(${~words[1]} __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    if [[ "$line" == :files* ]]; then
      [[ "$PREFIX" == --*=* ]] && compset -P '*='
      _files
      return
    fi
    [[ -n "$line" ]] && found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  _describe millrace found
}
if [[ "${funcstack[1]}" == _millrace ]]; then _millrace "$@"; else compdef _millrace millrace; fi
