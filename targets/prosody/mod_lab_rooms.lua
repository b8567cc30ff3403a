-- Rooms show only their moderators to others (`presencebroadcast`, XEP-0045 section 15.5.5): that is
-- whoever came first and so made the room. All others come and go unseen.

module:hook("muc-room-pre-create", function (event)
	event.room:set_presence_broadcast({ moderator = true });
end, 1);
