# Runs the broker (the command given) and ends it when standard input closes. That is a pipe whose
# other end only alk holds, so the kernel closes it with alk, however alk ends; nothing is polled
# and no process number can be mistaken. alk closes it itself to stop the broker.
# $1: seconds that the broker has for a clean end. Prints the broker's process number.
grace_seconds=$1
shift
exec 3<&0 </dev/null

"$@" 3<&- >&2 &
broker=$!
trap 'passed_on=yes; kill -TERM "$broker"' HUP INT TERM
echo "$broker"

{
  while read -r _ <&3; do :; done
  kill -TERM "$broker"
  while [ "$grace_seconds" -gt 0 ] && kill -0 "$broker"; do
    sleep 1
    grace_seconds=$((grace_seconds - 1))
  done
  kill -KILL "$broker"
} >/dev/null 2>&1 &
watch=$!
exec 3<&-

# A signal that is passed on ends the wait early: then wait again for the broker's real end.
while :; do
  passed_on=
  wait "$broker"
  status=$?
  if [ -z "$passed_on" ] || ! kill -0 "$broker" 2>/dev/null; then break; fi
done
kill -KILL "$watch" 2>/dev/null
exit "$status"
