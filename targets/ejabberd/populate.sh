#!/bin/sh
# Makes accounts over the HTTP API, and each other's contacts of all of them.
set -eu
api="http://127.0.0.1:$LAB_HTTP/api"
letters=$(printf '%s' abcdefghijklmnopqrstuvwxyz | cut -c "1-$LAB_VHOSTS" 2>/dev/null || :)
[ "$LAB_VHOSTS" != 0 ] || letters=
hosts="localhost $(printf '%s' "$letters" | sed 's/./&.localhost /g')"

# One request of the many that a single curl makes over one connection.
# post COMMAND JSON
post() {
  printf 'next\nurl = "%s/%s"\nsilent\nshow-error\nfail\ndata = "%s"\n' \
    "$api" "$1" "$(printf '%s' "$2" | sed 's/"/\\"/g')"
}

{
  echo fail-early
  for host in $hosts; do
    awk -v n="$LAB_ACCOUNTS" -v host="$host" -v api="$api" 'BEGIN {
      for (i = 0; i < n; i++)
        printf "next\nurl = \"%s/register\"\nsilent\nshow-error\nfail\n" \
               "data = \"{\\\"user\\\":\\\"u%d\\\",\\\"host\\\":\\\"%s\\\",\\\"password\\\":\\\"secret\\\"}\"\n", api, i, host
    }'
    if [ "$LAB_ROSTER" = shared ]; then
      post srg_create "{\"group\":\"all\",\"host\":\"$host\",\"label\":\"all\",\"description\":\"all\",\"display\":\"all\"}"
      post srg_user_add "{\"user\":\"@all@\",\"host\":\"$host\",\"group\":\"all\",\"grouphost\":\"$host\"}"
    fi
  done
} | sed '2{/^next$/d}' >requests
if [ "$(wc -l <requests)" -gt 1 ]; then curl --config requests; fi
