//! An engine in this process, for the time of one subcommand.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::watch;

use super::super::terminal;
use super::Questions;
use crate::engine::Engine;
use crate::engine::editors::{Abilities, Attachment, Editor, Identity, SHELL, WebPage};
use crate::protocol::answers::ApprovalList;
use crate::protocol::events::ApprovalsChanged;

/// Forwards changes and questions of the engine until the receivers are dropped.
pub(super) fn follow(engine: &Engine, changes: watch::Sender<u64>, questions: watch::Sender<Questions>) {
    let (mut snapshots, mut approvals) = (engine.snapshot(), engine.approvals().subscribe());
    let engine = engine.clone();
    tokio::spawn(async move {
        approvals.mark_changed();
        loop {
            tokio::select! {
                Ok(()) = snapshots.changed() => changes.send_modify(|count| *count += 1),
                Ok(()) = approvals.changed() => {
                    let waiting = approvals.borrow_and_update().clone();
                    let ApprovalList { approvals, groups } = ApprovalList::new(&engine, &waiting);
                    questions.send_replace(Arc::new(ApprovalsChanged { approvals, groups, closed: Vec::new() }));
                }
                else => return,
            }
        }
    });
}

/// Asks questions of servers and of the policy in the terminal until the result is dropped.
pub(super) fn attach_terminal(engine: &Engine) -> Attachment {
    let abilities = Abilities { plugin: true, approvals: true, elicitation: true, ..Abilities::default() };
    engine.editors().attach(Arc::new(Terminal { abilities, identity: shell() }))
}

pub(super) fn shell() -> Identity {
    Identity { name: Some(SHELL.to_owned()), ..Identity::default() }.checked(Some(std::process::id()))
}

/// The terminal as an editor: its user can answer questions and open pages.
struct Terminal {
    abilities: Abilities,
    identity: Identity,
}

impl Editor for Terminal {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn open_url(&self, page: WebPage) -> BoxFuture<'static, bool> {
        std::future::ready(terminal::show_page(&page.url)).boxed()
    }
}
