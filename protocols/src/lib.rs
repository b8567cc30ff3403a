//! One folder per chat protocol: codec and session, without sockets or clock.
