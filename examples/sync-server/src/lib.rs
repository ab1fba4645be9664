//! Sync server.
