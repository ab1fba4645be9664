use serde_json::value::RawValue;

/// A member who is there.
#[derive(Debug, Clone, serde::Serialize)]
#[non_exhaustive]
pub struct Present {
    /// The id.
    pub id: String,
    /// What others may see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}
