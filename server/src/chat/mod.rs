//! What people do in it: rooms, messages, rights, what they tell each other, and coming back.

pub(crate) mod amend;
pub(crate) mod avatar;
pub(crate) mod marks;
pub(crate) mod message;
pub(crate) mod moderation;
pub(crate) mod owned;
pub(crate) mod people;
pub(crate) mod request;
pub(crate) mod resume;
pub(crate) mod rights;
pub(crate) mod room;
pub(crate) mod tell;
