# Runs "$@" in a working directory of its own and hands out what it leaves there. First process of a container.
# stdin: one line "MARK HAS_FILES", then the program, or a tar with the input files and the program in it.
# stdout: the program's own; when it and everything it started is dead, "\nMARK STATUS\n" and a tar of the directory.
IFS=' ' read -r mark has_files || exit 125
mkdir /tmp/work && cd /tmp/work || exit 125
command -v "$1" >/dev/null || { printf '\n%s missing\n' "$mark"; exit 127; }
if [ "$has_files" = 1 ]; then
  tar -xf - && exec 0<.hatchway-program && rm -f .hatchway-program || exit 125
fi
"$@"
status=$?
kill -KILL -1 2>/dev/null # everybody but this process
printf '\n%s %d\n' "$mark" "$status"
for name in * .[!.]* ..?*; do
  if [ -e "$name" ] || [ -L "$name" ]; then exec tar -cf - . 2>/dev/null; fi
done
exit "$status"
