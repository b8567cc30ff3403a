#!/bin/sh
# Writes the configuration and becomes the virtual machine: without distribution there is no epmd,
# no cookie and no further port. What can be set comes from the environment (LAB_…).
set -eu
dir=$1
cd "$dir"
export HOME="$dir"

# when TEXT VALUE WANTED: the text if the value is wanted.
when() { if [ "$2" = "$3" ]; then printf '%s\n' "$1"; fi; }

# The letters of the further virtual hosts.
letters=$(printf '%s' abcdefghijklmnopqrstuvwxyz | cut -c "1-$LAB_VHOSTS" 2>/dev/null || :)
case $LAB_VHOSTS in
  0) letters= ;;
  *[!0-9]* | "" | ??[0-9]* | 2[7-9] | [3-9][0-9]) echo "vhosts=$LAB_VHOSTS: it must be 0 to 26" >&2; exit 1 ;;
esac
hosts=$(printf '%s' "$letters" | sed 's/./, &.localhost/g')
names=$(printf '%s' "$letters" | sed 's/./,DNS:&.localhost/g')

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 \
  -subj /CN=localhost -keyout key.pem -out certificate.pem \
  -addext "subjectAltName=DNS:localhost,DNS:*.localhost,DNS:*.anon.localhost,IP:127.0.0.1$names" 2>openssl.log ||
  { cat openssl.log >&2; exit 1; }
cat certificate.pem key.pem >both.pem

case $LAB_STARTTLS in
  off) starttls='starttls: false' ;;
  offered) starttls='starttls: true' ;;
  *) starttls='starttls_required: true' ;;
esac
case $LAB_MAM in
  rooms) archive=never ;;
  *) archive=always ;;
esac

cat >ejabberd.yml <<CONFIG
loglevel: warning
log_rotate_count: 0
hosts: [localhost, anon.localhost$hosts]
certfiles: ["$dir/both.pem"]
ca_file: "$dir/both.pem"
auth_method: [mnesia]
auth_password_format: $LAB_PASSWORDS
host_config:
  anon.localhost:
    auth_method: [anonymous]
    anonymous_protocol: sasl_anon
listen:
  - {port: $LAB_C2S, ip: 127.0.0.1, module: ejabberd_c2s, $starttls, shaper: none, access: all, max_stanza_size: 10485760, backlog: 1024, send_timeout: 60s}
  - {port: $LAB_TLS, ip: 127.0.0.1, module: ejabberd_c2s, tls: true, shaper: none, access: all, max_stanza_size: 10485760, backlog: 1024, send_timeout: 60s}
  - port: $LAB_HTTP
    ip: 127.0.0.1
    module: ejabberd_http
    backlog: 1024
    request_handlers: {/ws: ejabberd_http_ws, /api: mod_http_api}
websocket_origin: []                 # any
websocket_timeout: 600s
websocket_ping_interval: 3600s       # 0 is refused
api_permissions:
  lab: {from: [mod_http_api], who: all, what: "*"} # it listens on loopback only
# Debian's own is 3000 B/s: a message with 901 addresses would hold up the next for seven seconds.
shaper_rules:
  max_user_sessions: 1000
  max_user_offline_messages: {1000000: all}
registration_timeout: infinity
acme: {auto: false}
max_fsm_queue: 1000000               # who reads slowly is not killed
cache_size: 1000000                  # a roster of everybody has (accounts)² entries
modules:
  mod_adhoc: {}
  mod_admin_extra: {}
  mod_caps: {}
  mod_carboncopy: {}
  mod_disco: {}
  mod_http_api: {}
$([ "$LAB_MAM" = off ] || echo "  mod_mam: {default: $archive, assume_mam_usage: true, request_activates_archiving: false}")
  mod_muc:
    host: "room.@HOST@"
    access: all
    access_create: all
    access_persistent: all
    access_mam: all
    history_size: 20
    max_users: 5000
    max_users_presence: 5000
    max_user_conferences: 1000
    min_message_interval: 0
    min_presence_interval: 0
    default_room_options: {mam: $([ "$LAB_MAM" = off ] && echo false || echo true), persistent: true, max_users: 5000, anonymous: true, public: true}
$(when '  mod_multicast: {access: all, limits: {local: {message: 100000, presence: 100000}, remote: {message: 100000, presence: 100000}}}' "$LAB_MULTICAST" on)
$(when '  mod_offline: {access_max_user_messages: max_user_offline_messages}' "$LAB_OFFLINE" store)
  mod_ping: {send_pings: false}
  mod_private: {}
  mod_register: {ip_access: all, access: all}
  mod_roster: {versioning: true}
$(when '  mod_shared_roster: {}' "$LAB_ROSTER" shared)
  mod_stream_mgmt: {resume_timeout: 60s}
  mod_vcard: {search: false}
  mod_version: {}
CONFIG

export EJABBERD_CONFIG_PATH="$dir/ejabberd.yml" EJABBERD_LOG_PATH="$dir/ejabberd.log" \
  EJABBERD_PID_PATH="$dir/ejabberd.pid" ERL_CRASH_DUMP_BYTES=0 ERL_MAX_PORTS=250000 \
  ERL_MAX_ETS_TABLES=20000
# Debian keeps it apart from Erlang's own libraries.
for folder in /usr/lib/*/ejabberd-[0-9]*/ebin; do
  if [ -e "$folder/ejabberd.app" ]; then ERL_LIBS=${folder%/ejabberd-*}; export ERL_LIBS; fi
done
processors=
if [ "$LAB_SCHEDULERS" != all ]; then processors="+S $LAB_SCHEDULERS:$LAB_SCHEDULERS"; fi
# shellcheck disable=SC2086 # two words or none
exec erl +K true +P 1000000 $processors \
  +sbwt "$LAB_BUSY_WAIT" +sbwtdcpu "$LAB_BUSY_WAIT" +sbwtdio "$LAB_BUSY_WAIT" \
  -mnesia dir "\"$dir/mnesia\"" -s ejabberd -noinput
