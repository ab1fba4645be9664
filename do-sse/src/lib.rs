//! Server-sent events with one bounded writer per connection.
