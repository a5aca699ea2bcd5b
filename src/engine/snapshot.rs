//! The published state of all servers and tools. Always complete: a reader that misses an update is correct again after
//! the next one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use serde_json::value::RawValue;

use super::arguments::Checker;
use super::usage::ToolUsage;
use crate::config::{Config, Definition};
use crate::model::{
    Error, Level, PendingReason, Prompt, Resource, ResourceTemplate, Result, ServerName, ServerState, Status, Tool,
    ToolId, tokens,
};
use crate::policy::trust::Fingerprint;
use crate::policy::{Pin, Rules, Ruling, SessionLevels, TrustState};
use crate::server::transport::remote;
use crate::server::{Action, Server};

/// All servers of the workspace and what they offer.
#[derive(Clone)]
pub struct Snapshot {
    pub servers: BTreeMap<ServerName, Arc<ServerView>>,
    pub rules: Arc<Rules>,
    /// How often tools were called lately.
    pub usage: Arc<ToolUsage>,
}

/// A server: its definition, its state, and what it may do.
#[derive(Clone)]
pub struct ServerView {
    pub definition: Arc<Definition>,
    pub state: Arc<ServerState>,
    pub trust: Trust,
    /// `false` while `trust` is being checked against a new config.
    pub trust_checked: bool,
    /// Of the running definition, once it may run.
    pub fingerprint: Option<Arc<Fingerprint>>,
    /// Of the definition as it was last checked, trusted or not. `None` for a definition that needs no trust.
    pub checked: Option<Arc<Fingerprint>>,
    /// It cannot run even if the user trusts it; the error says why.
    pub forbidden: bool,
    /// `false` after `mcp.server.toggle`: the server stays connected, but its tools are hidden.
    pub switched_on: bool,
    /// All tools of the server by name, including hidden ones.
    pub tools: Arc<BTreeMap<Arc<str>, Arc<OfferedTool>>>,
    /// `None` until the definition may start.
    pub server: Option<Server>,
    /// How often the user has started, stopped or restarted it.
    pub actions: u64,
    /// Warnings of the engine about this server.
    pub remarks: Vec<String>,
}

/// Whether the definition may be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    Given,
    Needed {
        /// What changed since it was last trusted.
        difference: Option<String>,
        /// The user denied exactly this definition.
        refused: bool,
    },
}

impl Trust {
    pub fn trust_state(&self) -> TrustState {
        match self {
            Self::Given => TrustState::Trusted,
            Self::Needed { .. } => TrustState::Untrusted,
        }
    }
}

/// A tool with its level, regardless of arguments, and its compiled schema.
pub struct OfferedTool {
    pub id: ToolId,
    pub tool: Arc<Tool>,
    pub ruling: Ruling,
    checker: OnceLock<Checker>,
    /// Validating its arguments takes too long.
    is_unchecked: AtomicBool,
    pin: OnceLock<Pin>,
    /// How it is listed, which is the same until the tool or its level changes.
    listed: OnceLock<Box<RawValue>>,
    tokens: OnceLock<usize>,
}

impl OfferedTool {
    pub fn new(id: ToolId, tool: Arc<Tool>, ruling: Ruling) -> Self {
        let (checker, is_unchecked, pin, listed, tokens) = Default::default();
        Self { id, tool, ruling, checker, is_unchecked, pin, listed, tokens }
    }

    /// How a front lists this tool, rendered on first use.
    pub fn listed(&self, render: impl FnOnce() -> Option<Box<RawValue>>) -> Option<&RawValue> {
        match self.listed.get() {
            Some(listed) => Some(listed),
            None => {
                let rendered = render()?;
                Some(self.listed.get_or_init(|| rendered))
            }
        }
    }

    /// The tool as it is now, to compare with what the user allowed.
    pub fn pin(&self) -> &Pin {
        self.pin.get_or_init(|| Pin::of(&self.tool))
    }

    /// The estimated tokens of its definition.
    pub fn tokens(&self) -> usize {
        *self.tokens.get_or_init(|| tokens::of_tool(&self.tool))
    }

    /// Compiled on first use.
    pub fn checker(&self) -> &Checker {
        self.checker.get_or_init(|| Checker::compile(&self.tool.input_schema))
    }

    pub fn is_unchecked(&self) -> bool {
        self.is_unchecked.load(Ordering::Acquire)
    }

    pub fn set_unchecked(&self) {
        self.is_unchecked.store(true, Ordering::Release);
    }
}

impl Snapshot {
    pub fn server(&self, name: &ServerName) -> Result<&Arc<ServerView>> {
        self.servers.get(name).ok_or_else(|| Error::NoServer(name.to_string()))
    }

    /// Resolves a full name that can be read in two ways: prefers the reading whose server exists.
    pub fn resolve_tool(&self, id: ToolId) -> ToolId {
        match id.other() {
            Some(other) if !self.servers.contains_key(&id.server) && self.servers.contains_key(&other.server) => other,
            _ => id,
        }
    }

    /// All servers, or the named one.
    pub fn select(&self, name: Option<&ServerName>) -> Result<Vec<&Arc<ServerView>>> {
        match name {
            Some(name) => Ok(vec![self.server(name)?]),
            None => Ok(self.servers.values().collect()),
        }
    }
}

impl Default for Snapshot {
    fn default() -> Self {
        let rules = Rules::new(&Config::default(), &SessionLevels::default(), &[]);
        Self { servers: BTreeMap::new(), rules: Arc::new(rules), usage: Arc::default() }
    }
}

impl ServerView {
    /// Whether the definition's own allow-levels apply.
    pub fn trust_state(&self) -> TrustState {
        if self.trust_checked { self.trust.trust_state() } else { TrustState::Untrusted }
    }

    /// The tools to list: none if the server is turned off, and none with the level `disable`.
    pub fn shown_tools(&self) -> impl Iterator<Item = &Arc<OfferedTool>> {
        let on = self.switched_on;
        self.tools.values().filter(move |offered| on && offered.ruling.level != Level::Disable)
    }

    /// The estimated tokens of the definitions of these tools.
    pub fn tokens(&self) -> usize {
        self.shown_tools().map(|offered| offered.tokens()).sum()
    }

    pub fn resources(&self) -> &[Resource] {
        if self.switched_on { &self.state.resources } else { &[] }
    }

    pub fn templates(&self) -> &[ResourceTemplate] {
        if self.switched_on { &self.state.templates } else { &[] }
    }

    pub fn prompts(&self) -> &[Prompt] {
        if self.switched_on { &self.state.prompts } else { &[] }
    }

    pub fn has_prompt(&self, name: &str) -> bool {
        self.prompts().iter().any(|prompt| prompt.name == name)
    }

    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = remote::launch_warnings(&self.definition.spec.launch);
        let changed = self.environment_warning();
        for warning in changed.iter().chain(&self.state.warnings).chain(&self.remarks) {
            // A connected server repeats the warnings about its URL.
            if !warnings.contains(warning) {
                warnings.push(warning.clone());
            }
        }
        warnings
    }

    /// Whether an action is possible. A disabled server does not start, and only a running one has lists.
    pub fn accepts(&self, action: Action) -> Result<()> {
        let name = &self.definition.name;
        if action != Action::Stop && !self.definition.spec.enabled {
            return Err(Error::Disabled { server: name.clone(), in_file: true });
        }
        match self.state.status {
            _ if action != Action::Refresh => Ok(()),
            Status::Connected | Status::Pending(PendingReason::Starting) => Ok(()),
            Status::Stopped => Err(Error::NotRunning(name.clone())),
            _ => Err(self.usable()?.unavailable().unwrap_or_else(|| Error::NotRunning(name.clone()))),
        }
    }

    /// The handle for requests to this server, or why it cannot be used.
    pub fn usable(&self) -> Result<&Server> {
        let name = &self.definition.name;
        if !self.switched_on {
            return Err(Error::Disabled { server: name.clone(), in_file: false });
        }
        if self.state.status == Status::Disabled {
            return Err(Error::Disabled { server: name.clone(), in_file: true });
        }
        if self.server.is_none() && self.trust != Trust::Given {
            return Err(Error::NeedsTrust(name.clone()));
        }
        if self.state.status == Status::NeedsAuth {
            return Err(Error::NeedsAuth(name.clone()));
        }
        self.server.as_ref().ok_or_else(|| match &self.state.error {
            // Why it may not start.
            Some(error) => Error::Connection { server: name.clone(), message: error.to_string() },
            None => Error::NotRunning(name.clone()),
        })
    }
}
