//! The table of who is there, by which `joined` and `left` are said exactly once.
