//! A failed subcommand as JSON, for `--json`.

use serde_json::{Value, json};

use super::UsageError;
use super::engine_client::Cancelled;
use crate::lsp_client::CommandError;
use crate::model::Error;
use crate::protocol::errors::{ErrorData, ErrorKind};
use crate::text::mask;

/// `{ error: { message, kind, … } }`, with the same fields as an error of the editor protocol.
pub(super) fn report(error: &anyhow::Error) -> Value {
    let mut fields = match data(error) {
        Some(data) => json!(data),
        None => json!({ "kind": kind(error) }),
    };
    if let Some(fields) = fields.as_object_mut() {
        fields.insert("message".to_owned(), json!(mask(&format!("{error:#}"))));
    }
    json!({ "error": fields })
}

fn data(error: &anyhow::Error) -> Option<ErrorData> {
    match (error.downcast_ref::<CommandError>(), error.downcast_ref::<Error>()) {
        (Some(error), _) => error.data.as_deref().cloned(),
        (None, Some(error)) => Some(error.into()),
        (None, None) => None,
    }
}

fn kind(error: &anyhow::Error) -> ErrorKind {
    match error {
        error if error.is::<UsageError>() => ErrorKind::InvalidParams,
        error if error.is::<Cancelled>() => ErrorKind::Cancelled,
        _ => ErrorKind::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_a_kind_and_a_message() {
        let errors = [
            super::super::usage("what is meant?".to_owned()),
            CommandError::from(&Error::NoServer("dmeo".to_owned())).into(),
            Error::Conflict("it exists".to_owned()).into(),
            Cancelled.into(),
            anyhow::anyhow!("the disk is full"),
        ];
        let kinds: Vec<Value> = errors.iter().map(|error| report(error)["error"]["kind"].clone()).collect();
        assert_eq!(kinds, ["invalid-params", "not-found", "conflict", "cancelled", "io"]);
        assert_eq!(report(&errors[4])["error"]["message"], "the disk is full");
    }
}
