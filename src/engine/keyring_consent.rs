//! Entries of the user's keyring, and outputs of `[secret-commands]`, for servers of a project. The trust question names them, and each one goes to a new
//! server only after its own question.

use super::approvals::{Answer, Approval, Kind};
use super::host::{EngineHost, question};
use super::secret_commands;
use super::vault::Vault;
use crate::config::spec::{Definition, Launch, Remote};
use crate::model::{Decision, ToolId};
use crate::paths::in_main_checkout;
use crate::policy::trust::TrustKey;
use crate::policy::{Grant, GrantMatch, GrantQuery, Pin};
use crate::secrets::keyring_name;
use crate::server::oauth::stored_name;
use crate::store::Saved;
use crate::text::{Secret, exact};

/// The pin of a grant that is not about a tool. No digest looks like this.
const NO_TOOL: &str = "keyring";

impl EngineHost {
    /// The entry with this name, if there is one and the server may have it. The error is for the user.
    pub(super) async fn give_entry(&self, definition: Definition, name: &str) -> Result<Option<Secret>, String> {
        let command = self.settings.borrow().secret_commands.get(name).cloned();
        let stored = match &command {
            Some(_) => None,
            None => match self.vault.get(&keyring_name(name)).await {
                Some(secret) => Some(secret),
                None => return Ok(None),
            },
        };
        let source = match command.as_deref().and_then(<[String]>::first) {
            Some(program) => format!("`{}` from your program `{}`", exact(name), exact(program)),
            None => format!("`{}` from your keyring", exact(name)),
        };
        if let Some(key) = TrustKey::of(&definition)
            && !self.may_have(definition, key, name, &source).await
        {
            return Err(format!("you did not give it {source}; restart the server to be asked again"));
        }
        // The program runs only after the answer: it may ask the user, too.
        match command {
            Some(command) => {
                let environment = self.environments.borrow().in_folder(None).clone();
                let folder = secret_commands::folder(&self.paths);
                let output = self.vault.commands.output(command, &environment, &folder).await;
                output.map(Some).map_err(|why| format!("cannot get {source}: {why}"))
            }
            None => Ok(stored),
        }
    }

    /// Whether the user has agreed that a server of a project gets the entry, for exactly this launch.
    async fn may_have(&self, definition: Definition, key: TrustKey, name: &str, source: &str) -> bool {
        let server = definition.name.clone();
        let Ok(fingerprint) = self.trust_checker.fingerprint(definition.clone().into()).await else { return false };
        let tool = ToolId::new(key.server, &format!("${{keyring:{name}}}"));
        let launch = Some(fingerprint.launch.as_str());
        let project = in_main_checkout(&key.project);
        let query = GrantQuery { tool: &tool, project: &project, fingerprint: launch, pin: NO_TOOL };
        if matches!(self.store.find_grant(&query).await, GrantMatch::Active(_)) {
            return true;
        }
        let title = format!("Give {source} to the server `{server}`?");
        let file = definition.file.as_deref().map(|file| exact(&file.display().to_string())).unwrap_or_default();
        let detail =
            format!("The server is defined in {file}. It can do anything with the value, such as send it to others.");
        let approval = Approval { detail, ..question(&server, Kind::Elicitation, title, &["accept", "decline"]) };
        let limit = self.settings.borrow().approvals.timeout;
        let answered = tokio::time::timeout(limit, self.ask_when_possible(approval)).await;
        if !matches!(answered, Ok(Some(Answer::Accept(_)))) {
            return false;
        }
        let pin = Pin { digest: NO_TOOL.to_owned(), text: String::new() };
        if let Some(grant) = Grant::new(&query, Decision::AllowProject, pin)
            && let Saved::InMemory(why) = self.store.add_grant(grant).await
        {
            tracing::warn!(%server, %why, "cannot save the answer; it is lost when the engine exits");
        }
        true
    }
}

/// The stored sign-ins that a definition would use, as lines for the trust question.
pub async fn stored_sign_ins(definition: &Definition, vault: &Vault) -> Vec<String> {
    let launches = [Some(&definition.spec.launch), definition.spec.fallback.as_ref()];
    let mut lines = Vec::new();
    for remote in launches.into_iter().flatten().filter_map(Launch::remote) {
        let Remote { url, headers, oauth: _ } = remote;
        // An own header is sent instead of the stored sign-in.
        let is_own = headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        // What comes after the host may depend on variables.
        let Some(fixed) = url.split("${").next().filter(|_| !is_own) else { continue };
        let Ok(parsed) = url::Url::parse(fixed) else { continue };
        let host = parsed.host_str().unwrap_or_default();
        let is_used = match fixed.len() == url.len() {
            true => vault.holds(|name| name == stored_name(&parsed)).await,
            false => vault.holds(|name| name.starts_with(&stored_name(&parsed))).await,
        };
        if is_used {
            lines.push(format!("your stored sign-in, sent to `{}`", exact(host)));
        }
    }
    lines
}
