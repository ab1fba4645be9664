//! What workerd says on its control descriptor: a line of JSON for each socket that it listens on.

use serde_json::Value;

/// The port of the socket with this name, if the line says that it is listened on. Other lines mean nothing to us.
pub(crate) fn port(line: &str, socket: &str) -> Option<u16> {
    let message: Value = serde_json::from_str(line).ok()?;
    let is = |key: &str, value: &str| message.get(key).and_then(Value::as_str) == Some(value);
    if !is("event", "listen") || !is("socket", socket) {
        return None;
    }
    message.get("port").and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_of_our_socket_is_read() {
        assert_eq!(port(r#"{"event":"listen","socket":"http","port":38949}"#, "http"), Some(38949));
        assert_eq!(port("{\"event\":\"listen\",\"socket\":\"http\",\"port\":1}\n", "http"), Some(1));
    }

    #[test]
    fn other_lines_are_passed_over() {
        for line in [
            r#"{"event":"listen","socket":"debug","port":1}"#,
            r#"{"event":"listen-inspector","socket":"http","port":1}"#,
            r#"{"event":"listen","socket":"http","port":65536}"#,
            r#"{"event":"listen","socket":"http"}"#,
            r#"{"event":"#,
            "listening",
            "",
        ] {
            assert_eq!(port(line, "http"), None, "{line}");
        }
    }
}
