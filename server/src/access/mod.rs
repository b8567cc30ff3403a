//! Who may come, and as whom: logins, passwords, tokens, limits at the door.

pub(crate) mod auth;
pub(crate) mod door;
pub(crate) mod login;
pub(crate) mod password;
pub(crate) mod token;
