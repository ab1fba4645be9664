//! The Worker: the same object and the same route as the native server.

do_core::export!(Invites = crate::Invites<_>);
do_core::export!(fetch = crate::route);
