//! Commands that sign in to a server and out again.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::absent_when_null;
use crate::model::ServerName;

/// Signs in to a server, or out.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerAuth {
    pub server: ServerName,
    #[serde(default, deserialize_with = "absent_when_null", skip_serializing_if = "std::ops::Not::not")]
    pub sign_out: bool,
}

/// Ends a sign-in whose browser is on another machine: passes on the address of the page that it cannot load.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct ServerAuthPaste {
    pub server: ServerName,
    /// It contains a code that works like a token: do not show, log or store it.
    pub address: String,
}

impl fmt::Debug for ServerAuthPaste {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerAuthPaste").field("server", &self.server).finish_non_exhaustive()
    }
}
