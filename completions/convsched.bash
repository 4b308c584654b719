# bash completion of convsched. What there is to offer, convsched itself says (`convsched --complete`): commands,
# options, their values, files by ending, nodes of the model on the line.

_convsched() {
  local line=${COMP_LINE:0:COMP_POINT} words=() said=() kind word prefix
  read -a words <<<"$line" # a backslash keeps the space behind it
  [[ $line == *[[:space:]] && $line != *\\[[:space:]] ]] && words+=("")
  word=${words[-1]}
  mapfile -t said < <("$1" --complete "${words[@]:1}" 2>/dev/null)
  kind=${said[0]}
  # What bash completes begins behind the last = or : of the word, since it cuts words there.
  prefix=${word%"${word##*[=:]}"}
  [[ $COMP_WORDBREAKS == *=*:* || $COMP_WORDBREAKS == *:*=* ]] || prefix=
  COMPREPLY=()
  for word in "${said[@]:1}"; do
    word=${word%%$'\t'*}
    word=${word#"$prefix"}
    if [[ $kind == files ]]; then
      COMPREPLY+=("${word%/}") # bash adds the slash of a folder, and quotes
    else
      COMPREPLY+=("$word")
    fi
  done
  [[ $kind == files ]] && compopt -o filenames 2>/dev/null
  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=:] ]] && compopt -o nospace 2>/dev/null
  return 0
}
complete -F _convsched convsched
