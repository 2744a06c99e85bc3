#!/usr/bin/env bash
# Reads alk.events from its beginning with kcat and checks the chains while it reads. Needs bash 4,
# kcat with zstd and sha256sum; starts a few processes an event, so it checks about a hundred events a
# second.
#
#   ./consume.sh [--until-end] [--partial] [topic]
#
# --until-end stops where the topic ends now. With --partial a tenant may begin at any number: the
# topic has lost its beginning to ALK_EVENTS_RETENTION. Exit code 1: a break, each of which has a line.
set -euo pipefail
# Bytes, not characters: what is hashed are the bytes of the record.
export LC_ALL=C

topic=alk.events at_end=() partial=false
for argument in "$@"; do
  case $argument in
    --until-end) at_end=(-e) ;;
    --partial) partial=true ;;
    -*) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    *) topic=$argument ;;
  esac
done

protocol=PLAINTEXT connection=()
[[ ${KAFKA_TLS:-} == true ]] && protocol=SSL
[[ -n ${KAFKA_TLS_CA_FILE:-} ]] && connection+=(-X "ssl.ca.location=$KAFKA_TLS_CA_FILE")
if [[ -n ${KAFKA_SASL_USERNAME:-} ]]; then
  protocol=SASL_$protocol
  mechanism=${KAFKA_SASL_MECHANISM:-plain}
  # kcat expands no variables, and arguments can be seen by others: the password goes into a file.
  secrets=$(mktemp)
  trap 'rm -f "$secrets"' EXIT
  printf 'sasl.mechanism=%s\nsasl.username=%s\nsasl.password=%s\n' \
    "${mechanism^^}" "$KAFKA_SASL_USERNAME" "$KAFKA_SASL_PASSWORD" > "$secrets"
  connection+=(-F "$secrets")
fi

read_topic() {
  kcat -C -q -b "${KAFKA_BROKERS:-127.0.0.1:9092}" -t "$topic" -o beginning "${at_end[@]}" \
    -X "security.protocol=$protocol" -X isolation.level=read_committed "${connection[@]}" \
    -f '%p %o %k %s\n'
}

# The hashes of three texts, from one process.
sha256() {
  mapfile -t sums < <(sha256sum <(printf '%s' "$1") <(printf '%s' "$2") <(printf '%s' "$3"))
  sums=("${sums[@]%% *}")
}

# The one form in which events are stored. Its parts are canonical JSON (RFC 8785) already, so hashes
# are taken of the text as it is. Each text counts as two groups of the pattern.
text='"([^"\\]*(\\.[^"\\]*)*)"'
form='^\{"id":T,"timestamp":T,"actor":\{"id":T,"type":T(,"email":T)?\},"action":T'
form+=',"resource":\{"id":T,"type":T(,"name":T)?\},"outcome":T(,"metadata":(\{.*\}))?'
form+=',"tenant_id":T,"sequence_number":([1-9][0-9]*),"created_at":T,"prev_hash":T'
form+='(,"details_salt":T,"details_hash":T)?,"content_hash":T,"hash":T\}$'
form=${form//T/"$text"}

declare -A last_sequence last_hash
first_prev_hash=$(printf '0%.0s' {1..64})
events=0 breaks=0 newline=$'\n'

report() { breaks=$((breaks + 1)); echo "broken: $1"; }

# member is-now expected: fails, and reports it, if the two differ.
expect() {
  [[ $2 == "$3" ]] && return
  report "tenant $tenant sequence $sequence ($place): $1 is ${2:-absent}, expected ${3:-none}"
  return 1
}

check() {
  local parts=("${BASH_REMATCH[@]}") id=${BASH_REMATCH[1]} details='' details_hash='' core
  local prev_hash=${parts[30]} content_hash=${parts[37]} hash=${parts[39]}
  tenant=${parts[25]} sequence=${parts[27]}
  [[ -n ${parts[9]} ]] && details+=",\"actor_email\":\"${parts[10]}\""
  [[ -n ${parts[23]} ]] && details+=",\"metadata\":${parts[24]}"
  [[ -n ${parts[18]} ]] && details+=",\"resource_name\":\"${parts[19]}\""
  core="{\"action\":\"${parts[12]}\",\"actor\":{\"id\":\"${parts[5]}\",\"type\":\"${parts[7]}\"}"
  [[ -n ${parts[32]} ]] && core+=",\"details_hash\":\"${parts[35]}\""
  core+=",\"id\":\"$id\",\"outcome\":\"${parts[21]}\",\"resource\":{\"id\":\"${parts[14]}\""
  core+=",\"type\":\"${parts[16]}\"},\"timestamp\":\"${parts[3]}\"}"
  local link=alk-chain-v1$newline$tenant$newline$sequence$newline${parts[28]}
  link+=$newline$content_hash$newline$prev_hash
  sha256 "${parts[33]}$newline{${details:1}}" "$core" "$link"
  [[ -n $details ]] && details_hash=${sums[0]}
  if [[ -z ${last_hash[$tenant]:-} ]]; then
    last_sequence[$tenant]=0 last_hash[$tenant]=$first_prev_hash
    if $partial && ((sequence > 1)); then
      last_sequence[$tenant]=$((sequence - 1)) last_hash[$tenant]=$prev_hash
    fi
  fi
  expect details_hash "${parts[35]}" "$details_hash" \
    && expect content_hash "$content_hash" "${sums[1]}" \
    && expect sequence_number "$sequence" $((last_sequence[$tenant] + 1)) \
    && expect prev_hash "$prev_hash" "${last_hash[$tenant]}" \
    && expect hash "$hash" "${sums[2]}" \
    && if [[ ${parts[12]} == alk.event.erased && ${parts[24]} =~ \"sequence_number\":([0-9]+) ]]; then
      # The topic keeps the details; whoever has copied them has to delete them.
      echo "erased: tenant $tenant sequence ${BASH_REMATCH[1]}: delete its details from your copies"
    fi
  last_sequence[$tenant]=$sequence last_hash[$tenant]=$hash
}

finish() {
  local seen="$events events of ${#last_hash[@]} tenants"
  ((breaks == 0)) && echo "intact: $seen" && exit 0
  echo "broken: $breaks breaks in $seen"
  exit 1
}
trap finish INT

while read -r partition offset key value; do
  events=$((events + 1)) place="partition $partition offset $offset"
  if [[ $value =~ $form ]]; then
    check || true
  else
    report "tenant $key sequence ? ($place): record is '${value:0:80}', expected a stored event"
  fi
done < <(read_topic)
wait $! || { echo "kcat failed" >&2; exit 2; }
finish
