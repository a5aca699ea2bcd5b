//! The published picture of all servers and tools. Complete each time: whoever missed one is right after the next.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::arguments::Checker;
use crate::config::{Config, Definition};
use crate::model::{
    Error, Level, Prompt, Resource, ResourceTemplate, Result, ServerName, ServerState, Status, Tool, ToolId,
};
use crate::policy::trust::Fingerprint;
use crate::policy::{Pin, Rules, Ruling, SessionLevels, Standing};
use crate::server::Server;
use crate::server::transport::remote;

/// All servers of the workspace and what they offer.
#[derive(Clone)]
pub struct Snapshot {
    pub servers: BTreeMap<ServerName, Arc<ServerView>>,
    pub rules: Arc<Rules>,
}

/// One server: what was asked for, what it is doing, what may be done with it.
#[derive(Clone)]
pub struct ServerView {
    pub definition: Arc<Definition>,
    pub state: Arc<ServerState>,
    pub trust: Trust,
    /// `false` while it is found out whether `trust` still holds for what the files say now.
    pub judged: bool,
    /// Of the definition that runs, once it may run.
    pub fingerprint: Option<Arc<Fingerprint>>,
    /// `false` after `mcp.server.toggle`: the connection stays, its tools are not shown.
    pub switched_on: bool,
    /// Every tool of the server by its name, hidden ones included.
    pub tools: Arc<BTreeMap<Arc<str>, Arc<Offered>>>,
    /// Absent until the definition may be started.
    pub server: Option<Server>,
    /// How many times the user has started, stopped or restarted it.
    pub actions: u64,
    /// What the engine itself has to remark about it.
    pub remarks: Vec<String>,
}

/// Whether the definition may be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    Given,
    Needed {
        /// What changed since it was last trusted.
        difference: Option<String>,
        /// The user said no to exactly this definition.
        refused: bool,
    },
}

impl Trust {
    pub fn standing(&self) -> Standing {
        match self {
            Self::Given => Standing::Trusted,
            Self::Needed { .. } => Standing::Untrusted,
        }
    }
}

/// A tool with the level that holds for it whatever its arguments, and its schema ready to check them.
pub struct Offered {
    pub id: ToolId,
    pub tool: Arc<Tool>,
    pub ruling: Ruling,
    checker: OnceLock<Checker>,
    pin: OnceLock<Pin>,
}

impl Offered {
    pub fn new(id: ToolId, tool: Arc<Tool>, ruling: Ruling) -> Self {
        Self { id, tool, ruling, checker: OnceLock::new(), pin: OnceLock::new() }
    }

    /// The tool as it is now, for comparison with what the user agreed to.
    pub fn pin(&self) -> &Pin {
        self.pin.get_or_init(|| Pin::of(&self.tool))
    }

    /// Compiled at the first use and kept as long as the definition stays the same.
    pub fn checker(&self) -> &Checker {
        self.checker.get_or_init(|| Checker::compile(&self.tool.input_schema))
    }
}

impl Snapshot {
    pub fn server(&self, name: &ServerName) -> Result<&Arc<ServerView>> {
        self.servers.get(name).ok_or_else(|| Error::NoServer(name.to_string()))
    }

    /// The tool that a whole name means here, of its two readings the one whose server there is.
    pub fn meant(&self, id: ToolId) -> ToolId {
        match id.other() {
            Some(other) if !self.servers.contains_key(&id.server) && self.servers.contains_key(&other.server) => other,
            _ => id,
        }
    }

    /// All servers, or the one asked for.
    pub fn select(&self, name: Option<&ServerName>) -> Result<Vec<&Arc<ServerView>>> {
        match name {
            Some(name) => Ok(vec![self.server(name)?]),
            None => Ok(self.servers.values().collect()),
        }
    }
}

impl Default for Snapshot {
    fn default() -> Self {
        let rules = Rules::new(&Config::default(), &SessionLevels::default(), None);
        Self { servers: BTreeMap::new(), rules: Arc::new(rules) }
    }
}

impl ServerView {
    /// Whether what its file widens counts.
    pub fn standing(&self) -> Standing {
        if self.judged { self.trust.standing() } else { Standing::Untrusted }
    }

    /// The tools that lists show: none of a server that is switched off, and none whose level is `disable`.
    pub fn shown_tools(&self) -> impl Iterator<Item = &Arc<Offered>> {
        let on = self.switched_on;
        self.tools.values().filter(move |offered| on && offered.ruling.level != Level::Disable)
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
        for warning in self.state.warnings.iter().chain(&self.remarks) {
            // What its address gives rise to is said again by a server that has connected.
            if !warnings.contains(warning) {
                warnings.push(warning.clone());
            }
        }
        warnings
    }

    /// The handle through which something may be asked of this server now, or why not.
    pub fn usable(&self) -> Result<&Server> {
        let name = &self.definition.name;
        if !self.switched_on {
            return Err(Error::Disabled { server: name.clone(), hint: "`mcp.server.toggle` switches it on again" });
        }
        if self.state.status == Status::Disabled {
            return Err(Error::Disabled { server: name.clone(), hint: "`mcp.server.enable` enables it in its file" });
        }
        if self.server.is_none() && self.trust != Trust::Given {
            return Err(Error::NeedsTrust(name.clone()));
        }
        if self.state.status == Status::NeedsAuth {
            return Err(Error::NeedsAuth(name.clone()));
        }
        self.server.as_ref().ok_or_else(|| Error::Connection {
            server: name.clone(),
            // One that may not start says why.
            message: match &self.state.error {
                Some(error) => error.clone(),
                None => "not started yet; `mcp.server.start` starts it".to_owned(),
            },
        })
    }
}
