//! What a server is doing, in one line, and what the user can do with it now. Every front shows these.

use super::snapshot::{ServerView, Trust};
use crate::config::Launch;
use crate::config::spec::Restriction;
use crate::model::{PendingReason, Scope, ServerName, Status};
use crate::policy::location;
use crate::text::{counted, one_line};

/// How many changed variables a warning names.
const MAX_VARIABLES: usize = 5;

/// The state of a server in a few words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    pub text: String,
    pub tone: Tone,
}

/// How good or bad a state is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Good,
    /// It will change by itself.
    Busy,
    /// The user has to do something.
    Attention,
    Bad,
    /// Off, as the user wanted.
    Muted,
}

/// Something that the user can do with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerAction {
    Trust,
    SignIn,
    Start,
    Stop,
    Restart,
    /// Asks for the lists again.
    Refresh,
    Enable,
    ShowTools,
    Test,
    ShowLog,
    HideTools,
    SignOut,
    RevokeTrust,
    Disable,
    Move(Scope),
    Remove,
}

impl ServerAction {
    pub fn title(self) -> String {
        match self {
            Self::Trust => "Trust…".to_owned(),
            Self::SignIn => "Sign in…".to_owned(),
            Self::Start => "Start".to_owned(),
            Self::Stop => "Stop".to_owned(),
            Self::Restart => "Restart".to_owned(),
            Self::Refresh => "Refresh".to_owned(),
            Self::Enable => "Enable".to_owned(),
            Self::ShowTools => "Show tools".to_owned(),
            Self::Test => "Test".to_owned(),
            Self::ShowLog => "Show log".to_owned(),
            Self::HideTools => "Hide tools".to_owned(),
            Self::SignOut => "Sign out".to_owned(),
            Self::RevokeTrust => "Revoke trust".to_owned(),
            Self::Disable => "Disable".to_owned(),
            Self::Move(to) => format!("Move to {}", config_of(to)),
            Self::Remove => "Remove".to_owned(),
        }
    }

    /// The title where it is not clear which server it is about.
    pub fn title_with(self, server: &ServerName) -> String {
        match self {
            Self::SignIn => format!("Sign in to `{server}`…"),
            Self::ShowTools => format!("Show the tools of `{server}`"),
            Self::HideTools => format!("Hide the tools of `{server}`"),
            Self::ShowLog => format!("Show the log of `{server}`"),
            Self::SignOut => format!("Sign out of `{server}`"),
            Self::RevokeTrust => format!("Revoke trust in `{server}`"),
            Self::Move(to) => format!("Move `{server}` to {}", config_of(to)),
            _ => match self.title().strip_suffix('…') {
                Some(verb) => format!("{verb} `{server}`…"),
                None => format!("{} `{server}`", self.title()),
            },
        }
    }

    /// Whether it loses something that no other action brings back.
    pub fn is_destructive(self) -> bool {
        matches!(self, Self::Remove | Self::SignOut)
    }
}

fn config_of(scope: Scope) -> &'static str {
    match scope {
        Scope::User => "your user config",
        Scope::Local => "your personal config for this project",
        Scope::Project | Scope::Session | Scope::Managed => "the project config",
    }
}

impl ServerView {
    pub fn summary(&self) -> Summary {
        let (text, tone) = match self.state.status {
            Status::Disabled => (self.disabled(), Tone::Muted),
            Status::Failed => (self.failure("failed"), Tone::Bad),
            Status::NeedsAuth => ("needs sign-in".to_owned(), Tone::Attention),
            Status::Pending(PendingReason::Retry(_)) => (self.failure("failed, retrying"), Tone::Bad),
            _ if self.trust != Trust::Given => (self.missing_trust().to_owned(), Tone::Attention),
            Status::Pending(PendingReason::Input) => ("waiting for input".to_owned(), Tone::Attention),
            Status::Pending(PendingReason::Starting | PendingReason::Trust) => ("starting".to_owned(), Tone::Busy),
            Status::Stopped if self.is_asleep() => ("asleep: starts when it is used".to_owned(), Tone::Muted),
            Status::Stopped => ("stopped".to_owned(), Tone::Muted),
            Status::Connected if !self.switched_on => ("tools hidden".to_owned(), Tone::Muted),
            Status::Connected if self.has_old_environment() => {
                (format!("{} · environment changed", self.offers()), Tone::Attention)
            }
            Status::Connected => (self.offers(), Tone::Good),
        };
        Summary { text, tone }
    }

    /// Whether a restart would use other values than those that it was started with.
    fn has_old_environment(&self) -> bool {
        !self.state.changed_variables.is_empty()
    }

    /// Says which variables have changed, by name.
    pub fn environment_warning(&self) -> Option<String> {
        let names = &self.state.changed_variables;
        let more = match names.len().saturating_sub(MAX_VARIABLES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let named = names.iter().take(MAX_VARIABLES).cloned().collect::<Vec<_>>().join(", ");
        let warning = format!("environment changed: restart the server to use the new value of {named}{more}");
        self.has_old_environment().then_some(warning)
    }

    fn disabled(&self) -> String {
        match self.definition.disabled_by() {
            Some(Restriction { scope, file, line, .. }) => {
                format!("disabled by {}", location(*scope, file.as_deref(), Some(*line)))
            }
            None => "disabled in its config file".to_owned(),
        }
    }

    /// Whether its next use starts it.
    pub fn is_asleep(&self) -> bool {
        self.state.status == Status::Stopped && self.server.as_ref().is_some_and(|server| server.is_asleep())
    }

    fn failure(&self, status: &str) -> String {
        match self.state.error.as_ref().and_then(|error| error.message.lines().next()) {
            Some(error) => format!("{status}: {}", one_line(error, 80)),
            None => status.to_owned(),
        }
    }

    fn missing_trust(&self) -> &'static str {
        match &self.trust {
            Trust::Needed { refused: true, .. } => "not trusted",
            Trust::Needed { difference: Some(_), .. } => "changed since you trusted it",
            _ => "waiting for trust",
        }
    }

    fn offers(&self) -> String {
        let counts = [
            (self.shown_tools().count(), "tool"),
            (self.resources().len(), "resource"),
            (self.prompts().len(), "prompt"),
        ];
        let parts: Vec<String> =
            counts.iter().filter(|(count, _)| *count > 0).map(|(count, noun)| counted(*count, noun)).collect();
        if parts.is_empty() { "connected".to_owned() } else { format!("connected · {}", parts.join(" · ")) }
    }

    /// What the user can do now. What the state asks for comes first.
    pub fn actions(&self) -> Vec<ServerAction> {
        use ServerAction as Action;
        let definition = &self.definition;
        let scope = definition.scope;
        let mut actions = Vec::new();
        if definition.spec.enabled {
            self.enabled_actions(&mut actions);
        }
        // An entry of another file that disables it can be changed, even if the definition cannot.
        let can_enable = match definition.disabled_by() {
            Some(restriction) => {
                restriction.scope != Scope::Managed && (has_file(scope) || !definition.disables_itself())
            }
            None => has_file(scope),
        };
        match definition.spec.enabled {
            true if has_file(scope) => actions.push(Action::Disable),
            false if can_enable => actions.push(Action::Enable),
            _ => {}
        }
        if !has_file(scope) {
            return actions;
        }
        let others = [Scope::User, Scope::Project, Scope::Local].into_iter().filter(|to| *to != scope);
        actions.extend(others.map(Action::Move));
        actions.push(Action::Remove);
        actions
    }

    fn enabled_actions(&self, actions: &mut Vec<ServerAction>) {
        use ServerAction as Action;
        let trusted = self.trust == Trust::Given;
        if !trusted && !self.forbidden {
            actions.push(Action::Trust);
        }
        if self.state.status == Status::NeedsAuth {
            actions.push(Action::SignIn);
        }
        if !self.switched_on {
            actions.push(Action::ShowTools);
        }
        if self.may_run() {
            match self.state.status {
                Status::Stopped | Status::Failed => actions.push(Action::Start),
                _ => actions.extend([Action::Stop, Action::Restart]),
            }
            if self.state.status == Status::Connected {
                actions.push(Action::Refresh);
            }
            actions.extend([Action::Test, Action::ShowLog]);
        }
        if self.switched_on && self.state.status == Status::Connected {
            actions.push(Action::HideTools);
        }
        let remote =
            matches!(self.definition.spec.launch, Launch::Http(_) | Launch::Sse(_) | Launch::ClaudeAiProxy { .. });
        if remote && trusted && self.state.status != Status::NeedsAuth {
            actions.push(Action::SignOut);
        }
        if trusted && self.definition.scope.needs_trust() {
            actions.push(Action::RevokeTrust);
        }
    }

    /// Whether it may be started: it is enabled, and neither its trust nor a rule is in the way.
    fn may_run(&self) -> bool {
        let pending_trust = self.state.status == Status::Pending(PendingReason::Trust);
        self.definition.spec.enabled && !self.forbidden && !pending_trust
    }

    /// Where the levels of its tools can be set. The first one is the file that defines it, if it can be edited.
    pub fn level_scopes(&self) -> Vec<Scope> {
        level_scopes(self.definition.scope)
    }

    /// What makes the server usable again.
    pub fn remedy(&self) -> Option<ServerAction> {
        use ServerAction as Action;
        let wanted: &[Action] = match self.state.status {
            Status::Disabled => &[Action::Enable],
            Status::Stopped => &[Action::Trust, Action::Start],
            Status::Failed => &[Action::Trust, Action::Start],
            Status::NeedsAuth => &[Action::SignIn],
            Status::Pending(PendingReason::Retry(_)) => &[Action::Restart],
            Status::Pending(_) => &[Action::Trust],
            Status::Connected if self.has_old_environment() => &[Action::Trust, Action::Restart],
            Status::Connected => &[Action::Trust, Action::ShowTools],
        };
        let actions = self.actions();
        wanted.iter().copied().find(|action| actions.contains(action))
    }
}

/// Where the levels of a server of this scope are set unless the user names another file, which can only restrict it.
pub fn level_scopes(scope: Scope) -> Vec<Scope> {
    [scope].into_iter().filter(|scope| has_file(*scope)).chain([Scope::Session]).collect()
}

/// Where a level is set, as a choice of the user.
pub fn level_scope_title(scope: Scope) -> String {
    match scope {
        Scope::Session => "until mcp-sidecar stops".to_owned(),
        _ => format!("in {}", config_of(scope)),
    }
}

/// Whether the user can edit the definition. Nobody edits managed files, and the session has no file.
pub fn has_file(scope: Scope) -> bool {
    matches!(scope, Scope::User | Scope::Project | Scope::Local)
}
