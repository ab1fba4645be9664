//! A store as an object of its own, for anything that speaks HTTP, and a typed stub for it.
//!
//! Values are the bodies as they are, and all else is in the line and the headers of the request: so the face can be used
//! with curl, and a value is never encoded.

mod address;
mod condition;
mod frames;
mod many;
mod object;
mod settings;
mod stub;
mod stub_many;
mod ttl_text;
mod wire;

pub use object::TtlCache;
pub use settings::CacheSettings;
pub use stub::TtlCacheStub;
