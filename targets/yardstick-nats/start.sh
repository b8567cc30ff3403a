# start.sh DIR PORT COMMAND…: one node; the first one starts the NATS server on PORT as well, which
# ends with it.
set -eu
PATH=$PATH:/usr/sbin:/sbin
dir=$1 port=$2
shift 2
secret="$dir/../secret"
if mkdir "$dir/../nats" 2>/dev/null; then
  umask 077
  password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  printf 'user: lab\npassword: %s\n' "$password" > "$secret"
  cat > "$dir/../nats.conf" <<END
listen: "127.0.0.1:$port"
authorization { user: lab, password: "$password" }
jetstream { store_dir: "$dir/../nats" }
END
  setpriv --pdeathsig KILL nats-server -c "$dir/../nats.conf" -l "$dir/nats.log" &
  tries=0
  until grep -q 'Server is ready' "$dir/nats.log" 2>/dev/null; do
    tries=$((tries + 1))
    [ "$tries" -lt 400 ] || { echo 'the NATS server does not start' >&2; exit 1; }
    sleep 0.02
  done
  echo "$port" > "$dir/../port"
fi
read -r port < "$dir/../port"
exec "$@" --data "$dir/data" --nats "nats://127.0.0.1:$port" --nats-credentials "$secret"
