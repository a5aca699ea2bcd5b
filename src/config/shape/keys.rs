//! All keys of a config file. `shape` checks files against these tables; the schema, completion and hover are
//! generated from them.

mod nested;
mod rules;

use crate::config::sections::{MCP_SERVERS, SERVERS};
pub use nested::{DEV, OAUTH, SANDBOX};
pub use rules::{AGENT_TOOLS, ANY_AGENT, CASE, CONDITION};

/// The keys of one kind of object.
#[derive(Debug)]
pub struct Table {
    /// The name of the object in messages.
    pub noun: &'static str,
    pub keys: &'static [Key],
}

#[derive(Debug)]
pub struct Key {
    pub name: &'static str,
    pub of: ValueType,
    pub role: Role,
    /// The server types that use this key; empty = all.
    pub types: &'static [&'static str],
    /// One or two sentences for hover, completion and the schema.
    pub docs: &'static str,
}

/// How we treat a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Own,
    /// Another program's spelling of an own key.
    Alias(&'static str),
    /// A key of another program that has no effect here. Not reported.
    Foreign,
    /// A key of another program that has no effect here. Reported, because the author may rely on it.
    Ignored,
}

/// The type of a key's value.
#[derive(Debug, Clone, Copy)]
pub enum ValueType {
    Text,
    Flag,
    Seconds,
    Port,
    Texts,
    /// A string, or a list of strings.
    TextOrTexts,
    /// Values that are strings, numbers, booleans or null.
    Environment,
    TextMap,
    Choice(&'static [&'static str]),
    Level,
    Tools,
    Conditions,
    Object(&'static Table),
    List(&'static Table),
    Map(&'static Table),
    Any,
}

impl Table {
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// The key that a synonym stands for. Only for servers, because elsewhere the same words have other meanings.
    pub fn synonym(&self, name: &str) -> Option<&'static str> {
        let server = matches!(self.noun, "server" | "fallback");
        let pair = SYNONYMS.iter().filter(|_| server).find(|(word, _)| word.eq_ignore_ascii_case(name));
        pair.map(|(_, key)| *key)
    }

    /// The own keys, which completion offers.
    pub fn own(&self) -> impl Iterator<Item = &'static Key> {
        self.keys.iter().filter(|key| key.role == Role::Own)
    }
}

const fn own(name: &'static str, of: ValueType, types: &'static [&'static str], docs: &'static str) -> Key {
    Key { name, of, role: Role::Own, types, docs }
}

const fn alias(name: &'static str, of: ValueType, target: &'static str, docs: &'static str) -> Key {
    Key { name, of, role: Role::Alias(target), types: &[], docs }
}

const fn foreign(name: &'static str, docs: &'static str) -> Key {
    Key { name, of: ValueType::Any, role: Role::Foreign, types: &[], docs }
}

const fn ignored(name: &'static str, docs: &'static str) -> Key {
    Key { name, of: ValueType::Any, role: Role::Ignored, types: &[], docs }
}

const ALL: &[&str] = &[];
const STDIO: &[&str] = &["stdio"];
const TCP: &[&str] = &["tcp"];
const REMOTE: &[&str] = &["http", "sse", "claudeai-proxy"];

/// The server types.
pub const TYPES: &[&str] = &["stdio", "http", "sse", "tcp", "sdk", "claudeai-proxy"];
/// Other programs' names for server types.
pub const TYPE_ALIASES: &[(&str, &str)] =
    &[("local", "stdio"), ("streamable-http", "http"), ("streamableHttp", "http"), ("streamable_http", "http")];
/// Other words for the keys of a server. They are not accepted, but a fix suggests the right key.
const SYNONYMS: &[(&str, &str)] = &[
    ("cmd", "command"),
    ("exec", "command"),
    ("executable", "command"),
    ("program", "command"),
    ("arguments", "args"),
    ("argv", "args"),
    ("environment", "env"),
    ("envs", "env"),
    ("uri", "url"),
    ("endpoint", "url"),
    ("address", "url"),
    ("workingDirectory", "cwd"),
    ("workdir", "cwd"),
];
pub const DEFAULTS: &[&str] = &["allow", "confirm", "deny"];
pub const RESULTS: &[&str] = &["show", "insert", "replace", "append"];
pub const INPUT_TYPES: &[&str] = &["promptString", "pickString"];

pub static ROOT: Table = Table {
    noun: "config",
    keys: &[
        own(
            SERVERS,
            ValueType::Map(&SERVER),
            ALL,
            "The MCP servers by name (at most 64 letters, digits, `-` and `_`).",
        ),
        alias(
            MCP_SERVERS,
            ValueType::Map(&SERVER),
            SERVERS,
            "The same as `servers`, as in Claude Code and Cursor. Both are merged; a name in both is an error.",
        ),
        own(
            "inputs",
            ValueType::List(&INPUT),
            ALL,
            "Values that you enter when `${input:id}` is first needed. They are saved in the OS keyring.",
        ),
        own(
            "policy",
            ValueType::Object(&POLICY),
            ALL,
            "Which tools may run, for all servers. In a project, restrictions take effect immediately, and permissions after you trust them.",
        ),
        own(
            "agentTools",
            ValueType::Object(&AGENT_TOOLS),
            ALL,
            "What agents may do with their own tools, such as their shell, by agent and tool; for agents with `mcp-sidecar setup AGENT --hooks`. In a project, rules can only restrict.",
        ),
        own("actions", ValueType::List(&ACTION), ALL, "Tools offered as code actions in ordinary files."),
        own("$schema", ValueType::Text, ALL, "The JSON Schema of this file, for editors without MCP support."),
        foreign("sandbox", "VS Code: sandbox rules. Not used here."),
        foreign("nativeMCPServers", "mcphub: Lua servers. Not used here."),
    ],
};

pub static SERVER: Table = Table {
    noun: "server",
    keys: &[
        own(
            "type",
            ValueType::Choice(TYPES),
            ALL,
            "The type of the server. If omitted, it is inferred: `command` → stdio, `url` → http, `port` → tcp.",
        ),
        alias("transport", ValueType::Any, "type", "The same as `type`."),
        alias("transportType", ValueType::Any, "type", "The same as `type`, as in older Cline files."),
        own(
            "command",
            ValueType::TextOrTexts,
            STDIO,
            "The program to start, or a list of the program and its arguments. It is not run in a shell.",
        ),
        own("args", ValueType::Texts, STDIO, "The arguments of the program, each as a separate string."),
        own(
            "env",
            ValueType::Environment,
            STDIO,
            "Environment variables for the program. `null` unsets a variable. Write secrets as `${env:NAME}`.",
        ),
        own("envFile", ValueType::Text, STDIO, "A file with `NAME=value` lines. `env` overrides it."),
        own(
            "cwd",
            ValueType::Text,
            STDIO,
            "The working folder of the program. By default, a server of a project runs in the workspace folder, and each of your own servers runs in a private folder.",
        ),
        own("inheritEnv", ValueType::Flag, STDIO, "Pass on the whole environment instead of a safe subset."),
        own(
            "sandbox",
            ValueType::Object(&SANDBOX),
            STDIO,
            "What the program and its child processes can reach. Everything else is blocked.",
        ),
        own(
            "host",
            ValueType::Text,
            TCP,
            "The host of a server that is already running. Default: 127.0.0.1. Other machines must be allowed in the settings.",
        ),
        own("port", ValueType::Port, TCP, "The port of a server that is already running."),
        own("url", ValueType::Text, REMOTE, "The URL of the server: `https://…`."),
        alias("serverUrl", ValueType::Text, "url", "The same as `url`, as in Windsurf."),
        alias("httpUrl", ValueType::Text, "url", "The same as `url`, as in Gemini."),
        own(
            "headers",
            ValueType::TextMap,
            REMOTE,
            "HTTP headers to send with each request. Write secrets as `${env:NAME}`.",
        ),
        own("oauth", ValueType::Object(&OAUTH), REMOTE, "How to sign in, if the server does not provide this itself."),
        own("id", ValueType::Text, &["claudeai-proxy"], "The id of the connector. Replaces `{id}` in `url`."),
        own("name", ValueType::Text, &["sdk"], "The name of the server in the editor. Default: the name of the entry."),
        own("enabled", ValueType::Flag, ALL, "`false` prevents the server from starting."),
        own("disabled", ValueType::Flag, ALL, "`true` prevents the server from starting."),
        own("autoStart", ValueType::Flag, ALL, "`false` starts the server when it is first used."),
        own("description", ValueType::Text, ALL, "What the server is for."),
        own(
            "startupTimeout",
            ValueType::Seconds,
            ALL,
            "Time limit for starting and listing tools, in seconds. Default: 30.",
        ),
        own(
            "timeout",
            ValueType::Seconds,
            ALL,
            "How many seconds a call may take without progress or a log message. Default: 30.",
        ),
        own("idleTimeout", ValueType::Seconds, ALL, "Stop after this many seconds without a call. Default: never."),
        own(
            "fallback",
            ValueType::Object(&FALLBACK),
            ALL,
            "An alternative with its own `type`, used if the server cannot be reached.",
        ),
        own(
            "tools",
            ValueType::Tools,
            ALL,
            "Maps tool names or globs to a level, or to a list of `{ when, level }` rules that ends with a plain level.",
        ),
        own("dev", ValueType::Object(&DEV), ALL, "For developing the server: restart it when its source files change."),
        own("disabled_tools", ValueType::Texts, ALL, "Tools to hide (level `disable`), as in mcphub and Codex."),
        alias("disabledTools", ValueType::Texts, "disabled_tools", "The same as `disabled_tools`."),
        alias("excludeTools", ValueType::Texts, "disabled_tools", "The same as `disabled_tools`."),
        own(
            "enabled_tools",
            ValueType::Texts,
            ALL,
            "The only tools to show, as in Codex. All others get level `disable`.",
        ),
        alias("includeTools", ValueType::Texts, "enabled_tools", "The same as `enabled_tools`."),
        own(
            "request_timeout_ms",
            ValueType::Seconds,
            ALL,
            "Time limit for one call, in milliseconds, as in Claude Code.",
        ),
        ignored("autoApprove", "a file cannot approve its own tools; set levels in `tools`"),
        ignored("alwaysAllow", "a file cannot approve its own tools; set levels in `tools`"),
        ignored("trust", "a file cannot trust itself; set levels in `tools`"),
        ignored("headersHelper", "commands for headers are never run; use `${env:NAME}`, `${input:id}` or `oauth`"),
        foreign("sandboxEnabled", "VS Code: run in a sandbox. Not used here."),
        foreign("gallery", "VS Code: where it was installed from."),
        foreign("version", "VS Code: the installed version."),
        foreign("alwaysLoad", "Claude Code: load the tools without searching for them."),
        foreign("deferTools", "Copilot: when to load tools."),
        foreign("disableToolCache", "Copilot: whether to cache tool lists."),
        foreign("oauthClientId", "Copilot: OAuth client."),
        foreign("oauthPublicClient", "Copilot: OAuth client."),
        foreign("oauthGrantType", "Copilot: OAuth grant."),
        foreign("auth", "Cursor and Copilot: static OAuth client."),
        foreign("oidc", "Copilot: OpenID Connect."),
        foreign("filterMapping", "Copilot: filtering of results."),
        foreign("metadata", "Cline: internal data."),
        foreign("remoteConfigured", "Cline: internal data."),
        foreign("watchPaths", "Roo: files whose changes restart the server."),
        foreign("disabled_resources", "mcphub: resources to hide."),
        foreign("disabled_resourceTemplates", "mcphub: resource templates to hide."),
        foreign("disabled_prompts", "mcphub: prompts to hide."),
        foreign("custom_instructions", "mcphub: instructions for the model."),
        foreign("settings", "Zed: settings of an extension."),
        foreign("remote", "Zed: whether to run it on the remote host."),
        foreign("source", "Zed: the origin of the entry."),
        foreign("required", "Codex: whether the server must start."),
        foreign("displayName", "The display name."),
        foreign("title", "The display name."),
        foreign("icon", "The icon."),
    ],
};

/// The keys of a server that define its launch.
pub static FALLBACK: Table = Table {
    noun: "fallback",
    keys: &[
        own("type", ValueType::Choice(TYPES), ALL, "The type of the server."),
        alias("transport", ValueType::Any, "type", "The same as `type`."),
        own("command", ValueType::TextOrTexts, STDIO, "The program to start."),
        own("args", ValueType::Texts, STDIO, "The arguments of the program."),
        own("env", ValueType::Environment, STDIO, "Environment variables for the program."),
        own("envFile", ValueType::Text, STDIO, "A file with `NAME=value` lines."),
        own("cwd", ValueType::Text, STDIO, "The working folder of the program."),
        own("inheritEnv", ValueType::Flag, STDIO, "Pass on the whole environment instead of a safe subset."),
        own(
            "sandbox",
            ValueType::Object(&SANDBOX),
            STDIO,
            "What the program and its child processes can reach. Everything else is blocked.",
        ),
        own("host", ValueType::Text, TCP, "The host. Default: 127.0.0.1."),
        own("port", ValueType::Port, TCP, "The port of a server that is already running."),
        own("url", ValueType::Text, REMOTE, "The URL of the server."),
        own("headers", ValueType::TextMap, REMOTE, "HTTP headers to send with each request."),
        own("oauth", ValueType::Object(&OAUTH), REMOTE, "How to sign in."),
        own("id", ValueType::Text, &["claudeai-proxy"], "The id of the connector."),
        own("name", ValueType::Text, &["sdk"], "The name of the server in the editor."),
    ],
};

pub static INPUT: Table = Table {
    noun: "input",
    keys: &[
        own("id", ValueType::Text, ALL, "The name in `${input:id}`."),
        own(
            "type",
            ValueType::Choice(INPUT_TYPES),
            ALL,
            "`promptString` asks for a text, `pickString` shows the `options`.",
        ),
        own("description", ValueType::Text, ALL, "The text to show when asking for the value."),
        own("default", ValueType::Text, ALL, "The default value."),
        own("password", ValueType::Flag, ALL, "Hide the text while it is typed."),
        own("options", ValueType::Any, ALL, "For `pickString`: strings, or `{ label, value }`."),
        foreign("command", "VS Code: a command that returns the value. Never run here."),
        foreign("args", "VS Code: the arguments of the command."),
    ],
};

pub static POLICY: Table = Table {
    noun: "policy",
    keys: &[
        own(
            "default",
            ValueType::Choice(DEFAULTS),
            ALL,
            "For tools without any other rule: `allow`, `confirm` (ask each time) or `deny`.",
        ),
        own(
            "allowlist",
            ValueType::List(&MATCHER),
            ALL,
            "Tools, resources (`resource:URI`) and prompts (`prompt:NAME`) that are allowed without asking.",
        ),
        own(
            "denylist",
            ValueType::List(&MATCHER),
            ALL,
            "Tools, resources (`resource:URI`) and prompts (`prompt:NAME`) that are always denied, regardless of other rules.",
        ),
        own("readOnly", ValueType::Level, ALL, "Level of tools that the server describes as read-only."),
        own("destructive", ValueType::Level, ALL, "Level of tools that the server describes as destructive."),
        own("commands", ValueType::Texts, ALL, "The only programs that may be started."),
    ],
};

pub static MATCHER: Table = Table {
    noun: "entry",
    keys: &[
        own("server", ValueType::Text, ALL, "A server name or glob."),
        own("tool", ValueType::Text, ALL, "A tool name or glob."),
    ],
};

pub static ACTION: Table = Table {
    noun: "action",
    keys: &[
        own("title", ValueType::Text, ALL, "The title of the code action."),
        own("tool", ValueType::Text, ALL, "The tool, in the form `mcp__server__tool`."),
        own(
            "arguments",
            ValueType::Any,
            ALL,
            "The arguments of the tool. They may contain `${selection}`, `${word}`, `${line}`, `${file}`, `${relativeFile}`, `${filetype}` and `${workspaceFolder}`.",
        ),
        own("filetypes", ValueType::Texts, ALL, "The file types to offer it for. Default: all."),
        own("result", ValueType::Choice(RESULTS), ALL, "What to do with the result. Default: `show`."),
    ],
};
