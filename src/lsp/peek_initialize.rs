//! Reads the workspace folders from an editor's first message, and whether it has our plugin, before the session starts.

use std::path::PathBuf;

use serde_json::Value;
use tokio_util::bytes::BytesMut;
use tokio_util::codec::Decoder;

use super::frames::{Frame, Frames};
use super::initialize_info::InitializeInfo;

/// In bytes. A longer `initialize` is not waited for.
const MAX_SIZE: usize = 1 << 20;

#[derive(Debug, PartialEq, Eq)]
pub enum Peek {
    /// The message is not complete yet.
    Incomplete,
    /// What the message says; nothing if it is not a valid `initialize`.
    Complete {
        folders: Vec<PathBuf>,
        /// The editor has our plugin, or another one that implements our extension.
        has_plugin: bool,
    },
}

/// Parses the first bytes from an editor without consuming them.
pub fn peek_initialize(bytes: &[u8]) -> Peek {
    let mut source = BytesMut::from(bytes);
    match Frames::default().decode(&mut source) {
        Ok(None) if bytes.len() < MAX_SIZE => Peek::Incomplete,
        Ok(Some(Frame::Body(body))) => {
            let message: Value = serde_json::from_slice(&body).unwrap_or_default();
            let params =
                message.get("params").filter(|_| message.get("method").is_some_and(|method| method == "initialize"));
            let info = params.map(InitializeInfo::read).unwrap_or_default();
            Peek::Complete { folders: info.folders, has_plugin: info.abilities.is_some() }
        }
        _ => Peek::Complete { folders: Vec::new(), has_plugin: false },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(folders: &[&str]) -> Peek {
        Peek::Complete { folders: folders.iter().map(PathBuf::from).collect(), has_plugin: false }
    }

    #[test]
    fn the_folders_are_known_as_soon_as_the_message_is_complete() {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"rootUri":"file:///project"}}"#;
        let text = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        assert_eq!(peek_initialize(&text.as_bytes()[..text.len() - 1]), Peek::Incomplete);
        assert_eq!(peek_initialize(text.as_bytes()), folders(&["/project"]));
        assert_eq!(peek_initialize(b""), Peek::Incomplete);
    }

    #[test]
    fn an_unreadable_message_has_no_folders() {
        assert_eq!(peek_initialize(b"Content-Length: many\r\n\r\n{}"), folders(&[]));
        assert_eq!(peek_initialize(b"Content-Length: 4\r\n\r\n{{{{"), folders(&[]));
        assert_eq!(peek_initialize(&b"x".repeat(10_000)), folders(&[]));
    }
}
