//! The commands that sign in and out.

use super::{Answer, answer, one};
use crate::engine::Engine;
use crate::engine::editors::Identity;
use crate::engine::turns::Turn;
use crate::model::Result;
use crate::protocol::answers::Done;
use crate::protocol::commands::{ServerAuth, ServerAuthPaste};

pub(super) async fn run(engine: &Engine, identity: &Identity, params: ServerAuth, turn: Turn) -> Result<Answer> {
    one::<ServerAuth>(match params.sign_out {
        true => engine.sign_out(params.server, turn).await?,
        false => engine.sign_in(params.server, identity, turn).await?,
    })
}

pub(super) fn paste(engine: &Engine, params: &ServerAuthPaste) -> Result<Answer> {
    engine.paste_address(&params.server, &params.address)?;
    answer::<ServerAuthPaste>(Done {})
}
