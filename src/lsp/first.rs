//! A look at an editor's first message, before anybody serves it: which folders it is about.

use std::path::PathBuf;

use serde_json::Value;
use tokio_util::bytes::BytesMut;
use tokio_util::codec::Decoder;

use super::frames::{Frame, Frames};
use super::greeting::Greeting;

/// An `initialize` that is longer than this says nothing that could be worth waiting for.
const LONGEST: usize = 1 << 20;

/// What the beginning of an editor's bytes tells.
#[derive(Debug, PartialEq, Eq)]
pub enum First {
    /// The message is not complete yet.
    Unfinished,
    /// The workspace folders; none when the message was another one, or could not be read.
    Folders(Vec<PathBuf>),
}

/// Looks at the bytes without taking any.
pub fn first(bytes: &[u8]) -> First {
    let mut source = BytesMut::from(bytes);
    match Frames::default().decode(&mut source) {
        Ok(None) if bytes.len() < LONGEST => First::Unfinished,
        Ok(Some(Frame::Body(body))) => {
            let message: Value = serde_json::from_slice(&body).unwrap_or_default();
            let params =
                message.get("params").filter(|_| message.get("method").is_some_and(|method| method == "initialize"));
            First::Folders(params.map(|params| Greeting::read(params).folders).unwrap_or_default())
        }
        _ => First::Folders(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folders_are_known_as_soon_as_the_message_is_complete() {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"rootUri":"file:///project"}}"#;
        let text = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        assert_eq!(first(&text.as_bytes()[..text.len() - 1]), First::Unfinished);
        assert_eq!(first(text.as_bytes()), First::Folders(vec![PathBuf::from("/project")]));
        assert_eq!(first(b""), First::Unfinished);
    }

    #[test]
    fn what_cannot_be_read_is_nothing_to_wait_for() {
        assert_eq!(first(b"Content-Length: many\r\n\r\n{}"), First::Folders(Vec::new()));
        assert_eq!(first(b"Content-Length: 4\r\n\r\n{{{{"), First::Folders(Vec::new()));
        assert_eq!(first(&b"x".repeat(10_000)), First::Folders(Vec::new()));
    }
}
