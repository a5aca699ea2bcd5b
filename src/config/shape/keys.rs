//! Every key that a config file may hold, in one table: shape checks against it, the schema and completion are made
//! from it, hover reads its words.

/// The keys of one kind of object.
#[derive(Debug)]
pub struct Table {
    /// What the object is, as messages call it.
    pub noun: &'static str,
    pub keys: &'static [Key],
}

#[derive(Debug)]
pub struct Key {
    pub name: &'static str,
    pub of: Of,
    pub role: Role,
    /// The types of server that it counts for; empty = all.
    pub types: &'static [&'static str],
    /// A sentence or two, for hover, completion and the schema.
    pub docs: &'static str,
}

/// What a key is to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Own,
    /// Another spelling of an own key, from another host's files.
    Alias(&'static str),
    /// Another host's key: kept, without effect here, not worth a word.
    Foreign,
    /// Another host's key that its author may rely on: without effect here, and told so.
    Ignored,
}

/// What kind of value a key takes.
#[derive(Debug, Clone, Copy)]
pub enum Of {
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

    /// The key that another word for it means. Of a server only: elsewhere the same words mean other things.
    pub fn synonym(&self, name: &str) -> Option<&'static str> {
        let server = matches!(self.noun, "server" | "fallback");
        let pair = SYNONYMS.iter().filter(|_| server).find(|(word, _)| word.eq_ignore_ascii_case(name));
        pair.map(|(_, key)| *key)
    }

    /// The own keys: what completion offers.
    pub fn own(&self) -> impl Iterator<Item = &'static Key> {
        self.keys.iter().filter(|key| key.role == Role::Own)
    }
}

const fn own(name: &'static str, of: Of, types: &'static [&'static str], docs: &'static str) -> Key {
    Key { name, of, role: Role::Own, types, docs }
}

const fn alias(name: &'static str, of: Of, target: &'static str, docs: &'static str) -> Key {
    Key { name, of, role: Role::Alias(target), types: &[], docs }
}

const fn foreign(name: &'static str, docs: &'static str) -> Key {
    Key { name, of: Of::Any, role: Role::Foreign, types: &[], docs }
}

const fn ignored(name: &'static str, docs: &'static str) -> Key {
    Key { name, of: Of::Any, role: Role::Ignored, types: &[], docs }
}

const ALL: &[&str] = &[];
const STDIO: &[&str] = &["stdio"];
const TCP: &[&str] = &["tcp"];
const REMOTE: &[&str] = &["http", "sse", "claudeai-proxy"];

/// The types of server, as we write them.
pub const TYPES: &[&str] = &["stdio", "http", "sse", "tcp", "sdk", "claudeai-proxy"];
/// What other hosts write for them.
pub const TYPE_ALIASES: &[(&str, &str)] =
    &[("local", "stdio"), ("streamable-http", "http"), ("streamableHttp", "http"), ("streamable_http", "http")];
/// Words that people and programs have for keys of a server. None is read as such: it is only understood what was meant.
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
        own("servers", Of::Map(&SERVER), ALL, "The MCP servers, by name: letters, digits, `-` and `_`, at most 64."),
        alias(
            "mcpServers",
            Of::Map(&SERVER),
            "servers",
            "The same as `servers`, as Claude Code and Cursor write it. Both are merged; a name in both is an error.",
        ),
        own(
            "inputs",
            Of::List(&INPUT),
            ALL,
            "Values asked of the user when `${input:id}` is first needed, then kept in the OS keyring.",
        ),
        own(
            "policy",
            Of::Object(&POLICY),
            ALL,
            "Which tools may run, for all servers. A project's policy narrows at once and widens only what was trusted.",
        ),
        own("actions", Of::List(&ACTION), ALL, "Tools offered as code actions in ordinary files."),
        own("$schema", Of::Text, ALL, "The JSON Schema of this file, for editors that know nothing of MCP."),
        foreign("sandbox", "VS Code's sandbox rules; not used here."),
        foreign("nativeMCPServers", "mcphub's Lua servers; not used here."),
    ],
};

pub static SERVER: Table = Table {
    noun: "server",
    keys: &[
        own(
            "type",
            Of::Choice(TYPES),
            ALL,
            "How to reach the server. Inferred when absent: `command` → stdio, `url` → http, `port` → tcp.",
        ),
        alias("transport", Of::Any, "type", "The same as `type`."),
        alias("transportType", Of::Any, "type", "The same as `type`, as older Cline files have it."),
        own(
            "command",
            Of::TextOrTexts,
            STDIO,
            "The program to start, or a list of the program and its arguments. No shell is between.",
        ),
        own("args", Of::Texts, STDIO, "The program's arguments, each one string."),
        own(
            "env",
            Of::Environment,
            STDIO,
            "Variables for the program. `null` unsets one. Write secrets as `${env:NAME}`.",
        ),
        own("envFile", Of::Text, STDIO, "A file of `NAME=value` lines, read before `env`."),
        own(
            "cwd",
            Of::Text,
            STDIO,
            "The folder that the program runs in. Without it, a server of a project runs in the workspace folder, and your own servers each run in a private folder.",
        ),
        own(
            "inheritEnv",
            Of::Flag,
            STDIO,
            "Give the program the whole environment of the editor, not the safe list only.",
        ),
        own(
            "host",
            Of::Text,
            TCP,
            "The host of a server that already runs; 127.0.0.1 when absent. Only loopback, unless the settings allow more.",
        ),
        own("port", Of::Port, TCP, "The port of a server that already runs."),
        own("url", Of::Text, REMOTE, "The address of the server: `https://…`."),
        alias("serverUrl", Of::Text, "url", "The same as `url`, as Windsurf writes it."),
        alias("httpUrl", Of::Text, "url", "The same as `url`, as Gemini writes it."),
        own("headers", Of::TextMap, REMOTE, "HTTP headers sent with each request. Write secrets as `${env:NAME}`."),
        own("oauth", Of::Object(&OAUTH), REMOTE, "What to sign in with, where the server does not say it itself."),
        own("id", Of::Text, &["claudeai-proxy"], "The connector's id; takes the place of `{id}` in `url`."),
        own("name", Of::Text, &["sdk"], "The name that the editor gave its server; the entry's own name when absent."),
        own("enabled", Of::Flag, ALL, "`false` keeps the server from starting."),
        own("disabled", Of::Flag, ALL, "`true` keeps the server from starting."),
        own("autoStart", Of::Flag, ALL, "`false`: lazy, starts at its first use."),
        own("description", Of::Text, ALL, "What the server is for, in your words."),
        own("startupTimeout", Of::Seconds, ALL, "Seconds for start, handshake and lists together; 30 when absent."),
        own("timeout", Of::Seconds, ALL, "Seconds for one call; 60 when absent."),
        own(
            "fallback",
            Of::Object(&FALLBACK),
            ALL,
            "Tried when the first transport fails: an entry with its own `type`.",
        ),
        own(
            "tools",
            Of::Tools,
            ALL,
            "Tool name or glob → level, or a list of `{ when, level }` that ends in a plain level.",
        ),
        own("dev", Of::Object(&DEV), ALL, "For work on the server itself: restart when its sources change."),
        own("disabled_tools", Of::Texts, ALL, "Tools to hide, as mcphub and Codex write it: level `disable` for each."),
        alias("disabledTools", Of::Texts, "disabled_tools", "The same as `disabled_tools`."),
        alias("excludeTools", Of::Texts, "disabled_tools", "The same as `disabled_tools`."),
        own(
            "enabled_tools",
            Of::Texts,
            ALL,
            "The only tools to show, as Codex writes it: all others get level `disable`.",
        ),
        alias("includeTools", Of::Texts, "enabled_tools", "The same as `enabled_tools`."),
        own("request_timeout_ms", Of::Seconds, ALL, "Milliseconds for one call, as Claude Code writes it."),
        ignored("autoApprove", "a file cannot approve its own tools; set levels in `tools`"),
        ignored("alwaysAllow", "a file cannot approve its own tools; set levels in `tools`"),
        ignored("trust", "a file cannot trust itself; set levels in `tools`"),
        ignored("headersHelper", "no command is run for headers; use `${env:NAME}`, `${input:id}` or `oauth`"),
        foreign("sandboxEnabled", "VS Code's sandbox; not used here, and no reason to ask less."),
        foreign("gallery", "Where VS Code's gallery installed it from."),
        foreign("version", "The version that VS Code's gallery installed."),
        foreign("alwaysLoad", "Claude Code: load the tools without a search."),
        foreign("deferTools", "Copilot: when tools are loaded."),
        foreign("disableToolCache", "Copilot: whether tool lists are cached."),
        foreign("oauthClientId", "Copilot: OAuth client."),
        foreign("oauthPublicClient", "Copilot: OAuth client."),
        foreign("oauthGrantType", "Copilot: OAuth grant."),
        foreign("auth", "Cursor and Copilot: static OAuth client."),
        foreign("oidc", "Copilot: OpenID Connect."),
        foreign("filterMapping", "Copilot: filtering of results."),
        foreign("metadata", "Cline: its own notes."),
        foreign("remoteConfigured", "Cline: its own notes."),
        foreign("watchPaths", "Roo: files that restart the server."),
        foreign("disabled_resources", "mcphub: resources to hide."),
        foreign("disabled_resourceTemplates", "mcphub: resource templates to hide."),
        foreign("disabled_prompts", "mcphub: prompts to hide."),
        foreign("custom_instructions", "mcphub: words for the model."),
        foreign("settings", "Zed: settings of an extension."),
        foreign("remote", "Zed: run on the remote host."),
        foreign("source", "Zed: who wrote the entry."),
        foreign("required", "Codex: whether it must start."),
        foreign("displayName", "A name to show."),
        foreign("title", "A name to show."),
        foreign("icon", "A picture to show."),
    ],
};

/// The launch of a server, and nothing else of it.
pub static FALLBACK: Table = Table {
    noun: "fallback",
    keys: &[
        own("type", Of::Choice(TYPES), ALL, "How to reach the server."),
        alias("transport", Of::Any, "type", "The same as `type`."),
        own("command", Of::TextOrTexts, STDIO, "The program to start."),
        own("args", Of::Texts, STDIO, "The program's arguments."),
        own("env", Of::Environment, STDIO, "Variables for the program."),
        own("envFile", Of::Text, STDIO, "A file of `NAME=value` lines."),
        own("cwd", Of::Text, STDIO, "The folder that the program runs in."),
        own("inheritEnv", Of::Flag, STDIO, "Give the program the whole environment."),
        own("host", Of::Text, TCP, "The host; 127.0.0.1 when absent."),
        own("port", Of::Port, TCP, "The port of a server that already runs."),
        own("url", Of::Text, REMOTE, "The address of the server."),
        own("headers", Of::TextMap, REMOTE, "HTTP headers sent with each request."),
        own("oauth", Of::Object(&OAUTH), REMOTE, "What to sign in with."),
        own("id", Of::Text, &["claudeai-proxy"], "The connector's id."),
        own("name", Of::Text, &["sdk"], "The name that the editor gave its server."),
    ],
};

pub static OAUTH: Table = Table {
    noun: "oauth",
    keys: &[
        own(
            "clientId",
            Of::Text,
            ALL,
            "The client id registered for you, or the address of your client metadata document.",
        ),
        alias("client_id", Of::Text, "clientId", "The same as `clientId`."),
        own("clientSecret", Of::Text, ALL, "The secret that was given with it: a reference such as `${keyring:NAME}`."),
        alias("client_secret", Of::Text, "clientSecret", "The same as `clientSecret`."),
        own("scopes", Of::TextOrTexts, ALL, "The scopes to ask for: a list, or one string with blanks between."),
        own("callbackPort", Of::Port, ALL, "The loopback port for the answer; a free one when absent."),
        alias("callback_port", Of::Port, "callbackPort", "The same as `callbackPort`."),
        foreign("enterpriseManaged", "VS Code: managed sign-in."),
        foreign("authServerMetadataUrl", "Claude Code: where the metadata is."),
    ],
};

pub static DEV: Table = Table {
    noun: "dev",
    keys: &[
        own(
            "watch",
            Of::TextOrTexts,
            ALL,
            "Glob or globs of files, seen from the workspace folder; a change restarts the server.",
        ),
        foreign("debug", "VS Code: attach a debugger."),
        foreign("enabled", "mcphub: whether to watch."),
        foreign("cwd", "mcphub: where the globs start."),
    ],
};

pub static INPUT: Table = Table {
    noun: "input",
    keys: &[
        own("id", Of::Text, ALL, "The name in `${input:id}`."),
        own("type", Of::Choice(INPUT_TYPES), ALL, "`promptString` asks for a text, `pickString` offers `options`."),
        own("description", Of::Text, ALL, "What to ask."),
        own("default", Of::Text, ALL, "Offered as the answer."),
        own("password", Of::Flag, ALL, "Do not show what is typed."),
        own("options", Of::Any, ALL, "For `pickString`: strings, or `{ label, value }`."),
        foreign("command", "VS Code: a command that gives the value; not run here."),
        foreign("args", "VS Code: arguments of that command."),
    ],
};

pub static POLICY: Table = Table {
    noun: "policy",
    keys: &[
        own(
            "default",
            Of::Choice(DEFAULTS),
            ALL,
            "For tools that nothing else speaks about: `allow`, `confirm` (ask each time) or `deny`.",
        ),
        own("allowlist", Of::List(&MATCHER), ALL, "Tools that run without asking."),
        own("denylist", Of::List(&MATCHER), ALL, "Tools that never run, whatever else says."),
        own("readOnly", Of::Level, ALL, "Level of tools that say of themselves that they only read."),
        own("destructive", Of::Level, ALL, "Level of tools that say of themselves that they destroy."),
        own("commands", Of::Texts, ALL, "The only programs that may be started."),
    ],
};

pub static MATCHER: Table = Table {
    noun: "entry",
    keys: &[
        own("server", Of::Text, ALL, "Name or glob of servers."),
        own("tool", Of::Text, ALL, "Name or glob of tools."),
    ],
};

pub static ACTION: Table = Table {
    noun: "action",
    keys: &[
        own("title", Of::Text, ALL, "What the code action is secret_name."),
        own("tool", Of::Text, ALL, "The tool, as `mcp__server__tool`."),
        own(
            "arguments",
            Of::Any,
            ALL,
            "Its arguments, with `${selection}`, `${word}`, `${line}`, `${file}`, `${relativeFile}`, `${filetype}`, `${workspaceFolder}`.",
        ),
        own("filetypes", Of::Texts, ALL, "Where it is offered; everywhere when absent."),
        own("result", Of::Choice(RESULTS), ALL, "What becomes of the result; `show` when absent."),
    ],
};

pub static CASE: Table = Table {
    noun: "rule",
    keys: &[
        own(
            "when",
            Of::Conditions,
            ALL,
            "Argument (dotted path) → condition: a glob, `{ in }`, `{ matches }`, `{ inside }` or `{ max }`. All must hold.",
        ),
        own("level", Of::Level, ALL, "The level when all conditions hold."),
    ],
};

pub static CONDITION: Table = Table {
    noun: "condition",
    keys: &[
        own("in", Of::Any, ALL, "The argument is one of these values."),
        own("matches", Of::Text, ALL, "The argument matches this regular expression."),
        own("inside", Of::Text, ALL, "The argument is a path inside this folder, after resolving `..` and symlinks."),
        own("max", Of::Any, ALL, "The argument is a number, at most this."),
    ],
};
