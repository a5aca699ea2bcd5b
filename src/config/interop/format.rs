//! What the files of one program look like. Each program has a file in `dialects` that names its differences.

use std::ops::Range;
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::Homes;
use super::file::ForeignFile;
use crate::config::expand::Reference;
use crate::config::sections::MCP_SERVERS;

/// References in a text, in order.
pub type FoundReferences = Vec<(Range<usize>, Reference)>;

pub struct Format {
    /// The name on the wire and on the command line.
    pub name: &'static str,
    /// The display name.
    pub title: &'static str,
    /// The key that contains the servers in a new file.
    pub section: &'static str,
    pub syntax: Syntax,
    pub has_comments: bool,
    /// The beginning of a new file, if the program requires one.
    pub preamble: &'static str,
    /// The config files of a project, if the program supports any. New entries go into the first one. A folder stands for
    /// the files in it.
    pub project_files: &'static [&'static str],
    /// The program also loads the `.mcp.json` of a project, which is not its own file.
    pub loads_mcp_json: bool,
    /// The user's own config files. New entries go into the first one that exists.
    pub user_files: fn(&Homes) -> Vec<PathBuf>,
    /// Other files and folders of the user that the program reads. They are only imported.
    pub other_files: fn(&Homes) -> Vec<PathBuf>,
    /// Reads the servers of a file.
    pub read: fn(&Value) -> ForeignFile,
    /// Finds the references that are not written as `${…}`. The program expands all of them.
    pub own_references: fn(&str) -> FoundReferences,
    /// Whether the program expands a reference that is written this way.
    pub expands: fn(&Reference, &str) -> bool,
    /// What a variable that is written this way means.
    pub variable: fn(&str, &str) -> Variable,
    /// How the program writes a reference that it does not expand in our spelling.
    pub spelling: fn(&Reference) -> Option<String>,
    pub import: ImportRules,
    pub export: ExportKeys,
    pub setup: SetupRules,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    Json,
    Toml,
    /// The section is a list of entries with a `name`, or an object.
    Yaml {
        is_list: bool,
    },
}

/// What our entry needs in order to work in this program.
pub struct SetupRules {
    /// Adds keys to our entry that no other server has.
    pub entry: fn(&mut Map<String, Value>),
    /// Each file of the user belongs to a separate program.
    pub every_user_file: bool,
    /// Not every program of the family reads the file of a project, so it is only written on request.
    pub prefers_user: bool,
    /// What else the user has to know.
    pub note: Option<&'static str>,
    /// The command of the program itself that was seen to accept our entry.
    pub tried_with: Option<&'static str>,
}

/// What a variable in a foreign file means.
pub enum Variable {
    Environment,
    Reference(Reference),
    /// Only the other program can expand it.
    OnlyThere,
}

/// How entries differ from those of most programs.
pub struct ImportRules {
    /// A `url` without a `type` means `sse`.
    pub url_is_sse: bool,
    /// The program itself requires a `type` with `url`.
    pub requires_type: bool,
    /// An entry without a command belongs to an extension.
    pub has_extensions: bool,
    /// Variables refer to the entry's own `env`, and an empty value of `env` is inherited.
    pub own_env: bool,
}

/// The keys for ours. Without one, a value cannot be exported.
pub struct ExportKeys {
    pub remote: RemoteSupport,
    pub kinds: Option<TypeNames>,
    pub command: &'static str,
    /// The program and its arguments are one list.
    pub command_is_list: bool,
    /// `args` is written even if it is empty.
    pub always_args: bool,
    pub env: &'static str,
    /// `null` in `env` unsets a variable.
    pub unsets_env: bool,
    /// A value that is a variable is written as the name of that variable, because nothing is expanded.
    pub by_name: Option<ByName>,
    pub env_file: Option<&'static str>,
    pub cwd: Option<&'static str>,
    pub url: &'static str,
    /// The key of a URL that is not `sse`, if it has another one.
    pub http_url: Option<&'static str>,
    pub headers: &'static str,
    /// The object that contains the headers.
    pub headers_in: Option<&'static str>,
    pub oauth: OAuthKeys,
    /// The key and the value of a disabled server.
    pub disabled: Disabled,
    pub startup_timeout: Option<(&'static str, Unit)>,
    pub timeout: Option<(&'static str, Unit)>,
    pub description: Option<&'static str>,
    pub dev: Option<&'static str>,
    pub hidden_tools: Option<&'static str>,
    /// The list of the only tools that are shown.
    pub shown_tools: Option<&'static str>,
    pub inputs: bool,
    /// Adds the keys that the program requires to the entry of the server with this name.
    pub required: fn(&str, &mut Map<String, Value>),
}

/// How a server is disabled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Disabled {
    /// Not in this file.
    Nowhere,
    /// The key and the value of a disabled server.
    Key(&'static str, bool),
    /// A list of names in this place of the file.
    List([&'static str; 2]),
}

/// The keys for variables that are passed on by name.
#[derive(Clone, Copy)]
pub struct ByName {
    pub env: &'static str,
    pub headers: Option<HeadersByName>,
}

#[derive(Clone, Copy)]
pub struct HeadersByName {
    pub headers: &'static str,
    pub bearer: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RemoteSupport {
    None,
    Http,
    HttpAndSse,
}

/// The words of `type`.
pub struct TypeNames {
    pub stdio: Option<&'static str>,
    pub http: &'static str,
    pub sse: &'static str,
}

pub struct OAuthKeys {
    pub holder: &'static str,
    pub client_id: Option<&'static str>,
    pub client_secret: Option<&'static str>,
    pub callback_port: Option<&'static str>,
    pub scopes: Scopes,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scopes {
    None,
    List,
    /// Separated by blanks, under this key.
    Text(&'static str),
    /// A list next to the other keys of the entry.
    InEntry,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Seconds,
    Milliseconds,
}

impl Format {
    /// What most programs have in common.
    pub const COMMON: Self = Self {
        name: "",
        title: "",
        section: MCP_SERVERS,
        syntax: Syntax::Json,
        has_comments: false,
        preamble: "",
        project_files: &[],
        loads_mcp_json: false,
        user_files: |_| Vec::new(),
        other_files: |_| Vec::new(),
        read: ForeignFile::of_sections,
        own_references: |_| Vec::new(),
        expands: |_, _| false,
        variable: |_, _| Variable::Environment,
        spelling: |_| None,
        import: ImportRules { url_is_sse: false, requires_type: false, has_extensions: false, own_env: false },
        export: ExportKeys::COMMON,
        setup: SetupRules { entry: |_| {}, every_user_file: false, prefers_user: false, note: None, tried_with: None },
    };
}

impl ExportKeys {
    pub const COMMON: Self = Self {
        remote: RemoteSupport::HttpAndSse,
        kinds: None,
        command: "command",
        command_is_list: false,
        always_args: false,
        env: "env",
        unsets_env: false,
        by_name: None,
        env_file: None,
        cwd: None,
        url: "url",
        http_url: None,
        headers: "headers",
        headers_in: None,
        oauth: OAuthKeys::NONE,
        disabled: Disabled::Nowhere,
        startup_timeout: None,
        timeout: None,
        description: None,
        dev: None,
        hidden_tools: None,
        shown_tools: None,
        inputs: false,
        required: |_, _| {},
    };
}

impl OAuthKeys {
    pub const NONE: Self =
        Self { holder: "oauth", client_id: None, client_secret: None, callback_port: None, scopes: Scopes::None };
}
