-- Prosody as a target: everything on loopback, memory storage, no TLS, no limits.
-- Values come from the environment (ENV_LAB_…), so that the file itself never changes.
-- The sandbox of this file has no `string` and no `table`.

data_path = ENV_LAB_DATA
pidfile = ENV_LAB_DATA .. "/prosody.pid"
certificates = ENV_LAB_DATA -- a directory must be named; there are none
plugin_paths = { ENV_LAB_DATA }
run_as_root = ENV_LAB_ROOT == "1" -- without it Prosody neither runs nor exits as root
log = { { levels = { min = "warn" }, to = "file", filename = ENV_LAB_DATA .. "/prosody.log" } }

network_backend = ENV_LAB_BACKEND or "epoll"
-- nagle: stalls of 40 ms with delayed acknowledgments; tcp_backlog: 128 is too few for storms.
network_settings = { nagle = false, tcp_backlog = 1024 }
use_ipv6 = false
interfaces = { "127.0.0.1" }
c2s_ports = { tonumber(ENV_LAB_C2S) }
http_ports = { tonumber(ENV_LAB_HTTP) }
https_ports = {}
c2s_direct_tls_ports = {}
legacy_ssl_ports = {}
s2s_ports = {}
s2s_direct_tls_ports = {}
component_ports = {}
http_host = "localhost"
http_default_host = "localhost"

-- "limits" is not listed: with Debian's 10 kB/s two hundred messages take ten seconds.
modules_enabled = { "roster", "saslauth", "disco", "carbons", "ping", "websocket", "posix" }
modules_disabled = { "s2s", "tls", "offline" }
c2s_require_encryption = false
allow_unencrypted_plain_auth = true
consider_websocket_secure = true

default_storage = "memory"
storage_archive_item_limit = 100000

-- The settings of the published suite 33. As shipped, 0.12.3 is incremental with a pause of 105 and
-- a speed of 500; the suite took its default for 105 and 250.
if ENV_LAB_GC == "generational" then
	gc = { mode = "generational", minor_threshold = 5, major_threshold = 50 }
elseif ENV_LAB_GC == "generational-20-50" then
	gc = { mode = "generational", minor_threshold = 20, major_threshold = 50 }
elseif ENV_LAB_GC == "incremental-200" then
	gc = { mode = "incremental", threshold = 200, speed = 150 }
elseif ENV_LAB_GC == "incremental-105-250" then
	gc = { mode = "incremental", threshold = 105, speed = 250 }
end

-- Accounts with passwords (option `domain: localhost`) are files: accounts/NAME.dat with
-- `return { ["password"] = "…"; }`. Everything else of these people is in memory.
VirtualHost "localhost"
	authentication = "internal_plain"
	storage = { accounts = "internal" }

VirtualHost "anon.localhost"
	authentication = "anonymous"
	allow_anonymous_storage = true
	modules_enabled = { "lab_vcard", ENV_LAB_VCARD == "stock" and "vcard" or nil }
	modules_disabled = { ENV_LAB_CARBONS == "off" and "carbons" or nil }
	lab_vcard_photo_bytes = tonumber(ENV_LAB_PHOTO_BYTES or "6900")
	lab_vcard_answers = ENV_LAB_VCARD ~= "stock"

Component "room.localhost" "muc"
	modules_enabled = { "muc_mam", "lab_vcard", ENV_LAB_PARTICIPANTS == "hidden" and "lab_rooms" or nil }
	muc_room_locking = false -- else nobody gets in until the creator has sent a form
	muc_room_default_public = true
	muc_room_default_persistent = true -- the archive outlives an empty room
	muc_room_default_history_length = tonumber(ENV_LAB_HISTORY or "20")
	max_history_messages = 1000
	muc_log_by_default = true
	muc_log_presences = false
	muc_log_expires_after = "never"
	max_archive_query_results = 50
	muc_tombstones = false
	restrict_room_creation = false
