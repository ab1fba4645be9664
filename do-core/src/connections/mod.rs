//! Who may connect to an object, and who is.

mod origin;
mod refusal;

pub use origin::Origins;
pub use refusal::Refusal;
