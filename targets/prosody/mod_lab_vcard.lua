-- Counts vCard requests, and on a virtual host answers those to a bare address with one fixed
-- photo from memory: what the published experiment's server does. On a component of rooms it only
-- counts. The counts are at /lab/stats (JSON), and in the log when the server stops.

local st = require "util.stanza";
local json = require "util.json";
local base64 = require "util.encodings".base64.encode;

local counts = module:shared("/*/lab_vcard/counts");
local is_rooms = module:get_host_type() == "component";
local answers = module:get_option_boolean("lab_vcard_answers", true);
local photo_bytes = module:get_option_number("lab_vcard_photo_bytes", 6900);

counts.vcard_people = counts.vcard_people or 0; -- to a person's bare address, or to oneself
counts.vcard_rooms = counts.vcard_rooms or 0; -- to a room's bare address

-- Bytes that do not compress, the same in every run: a linear congruential generator
-- (Numerical Recipes), behind the first bytes of a JPEG file.
local function photo(length)
	local state, bytes = 1, { "\255\216\255\224" };
	for i = 2, length - 3 do
		state = (state * 1664525 + 1013904223) % 4294967296;
		bytes[i] = string.char(math.floor(state / 16777216));
	end
	return base64(table.concat(bytes));
end

local vcard = st.stanza("vCard", { xmlns = "vcard-temp" })
	:tag("PHOTO")
		:text_tag("TYPE", "image/jpeg")
		:text_tag("BINVAL", photo(photo_bytes));

local function total()
	return counts.vcard_people + counts.vcard_rooms;
end

module:hook("iq/bare/vcard-temp:vCard", function (event)
	if event.stanza.attr.type ~= "get" then return; end
	if is_rooms then
		counts.vcard_rooms = counts.vcard_rooms + 1;
		return;
	end
	counts.vcard_people = counts.vcard_people + 1;
	if answers then
		event.origin.send(st.reply(event.stanza):add_child(vcard));
		return true;
	end
end, 10);

if not is_rooms then
	module:add_feature("vcard-temp");
	module:depends("http");
	module:provides("http", {
		name = "lab";
		default_path = "/lab";
		route = {
			["GET /stats"] = function (event)
				event.response.headers.content_type = "application/json";
				return json.encode({
					vcard_people = counts.vcard_people;
					vcard_rooms = counts.vcard_rooms;
					vcard_requests = total();
					photo_bytes = photo_bytes;
					lua_kilobytes = collectgarbage("count");
				});
			end;
		};
	});
	module:hook_global("server-stopping", function ()
		-- At level warn, because that is what the log holds.
		module:log("warn", "vCard requests: %d to people, %d to rooms, %d in all",
			counts.vcard_people, counts.vcard_rooms, total());
	end);
end
