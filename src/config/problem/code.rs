//! Every diagnostic code: what it means, its usual severity, and whether editors offer a quick fix. The tables in the
//! docs and the types of the editors are generated from this list.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Severity;

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal, $severity:ident $(, $fix:ident)?;)+) => {
        /// The stable name of a kind of diagnostic.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[schemars(rename = "DiagnosticCode")]
        pub enum Code {
            $($(#[doc = $doc])+ #[serde(rename = $text)] $name,)+
        }

        impl Code {
            pub const ALL: &[Self] = &[$(Self::$name),+];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),+ }
            }

            /// What it means, in one or a few sentences.
            pub fn description(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),+).trim_start()),+ }
            }

            /// The usual severity. A few problems deviate from it, as their descriptions say.
            pub fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity),+ }
            }

            /// Whether editors offer a quick fix, at least in some cases.
            pub fn has_quick_fix(self) -> bool {
                match self { $(Self::$name => codes!(@ $($fix)?)),+ }
            }
        }
    };
    (@ QuickFix) => { true };
    (@) => { false };
}

codes! {
    /// The file is not valid JSON with comments: check commas, quotes and brackets. “unexpected end of file” means
    /// that the file is cut off.
    Syntax = "syntax", Error, QuickFix;
    /// The file is outside of the workspace folders of the editor, so its servers do not run.
    OutsideWorkspace = "outside-workspace", Warning;
    /// A mistake in `config.toml`. All other settings apply.
    Settings = "settings", Warning;
    /// The nesting exceeds the limit.
    TooDeep = "too-deep", Error;
    /// The file cannot be used: it is too large, not UTF-8, not readable, or not a regular file.
    Unreadable = "unreadable", Error;
    /// The value has the wrong JSON type, such as a string instead of a list.
    WrongType = "wrong-type", Error, QuickFix;
    /// A required key is missing, such as `port` for `tcp`.
    MissingKey = "missing-key", Error, QuickFix;
    /// The key is unknown, perhaps misspelled. An error if it replaces a required key.
    UnknownKey = "unknown-key", Warning, QuickFix;
    /// The same key appears twice; the last one applies. An error for an input.
    DuplicateKey = "duplicate-key", Warning, QuickFix;
    /// Two spellings of the same key.
    SameKey = "same-key", Warning, QuickFix;
    /// Both `command` and `url`, without a `type` to choose one. A warning for `enabled` together with `disabled`.
    ConflictingKeys = "conflicting-keys", Error, QuickFix;
    /// The keys do not match the `type`.
    TypeMismatch = "type-mismatch", Error, QuickFix;
    /// The `type`, or the `grantType` of a sign-in, does not exist.
    UnknownType = "unknown-type", Error, QuickFix;
    /// The key belongs to another type of server.
    UnusedKey = "unused-key", Warning, QuickFix;
    /// A key of another program that has no effect here, although the author may rely on it. A warning if it would
    /// have run a command.
    IgnoredKey = "ignored-key", Information, QuickFix;
    /// The server name is not valid.
    BadName = "bad-name", Error, QuickFix;
    /// The same name appears twice in one file, in one section or in both `servers` and `mcpServers`; or two names
    /// such as `a_` and `a` would give their tools the same names.
    NameClash = "name-clash", Error, QuickFix;
    /// Another file, or this session, defines the same server and takes precedence.
    Hidden = "hidden", Information;
    /// An entry without `command`, `url` or `port` restricts a server that another file defines, but no file defines a
    /// server with this name.
    UnknownServer = "unknown-server", Warning, QuickFix;
    /// An entry that only restricts a server tries to enable it, or to allow more than the definition does; or a
    /// project allows an agent's own tool. This has no effect.
    OnlyRestricts = "only-restricts", Warning;
    /// There are more servers than the limit allows. Servers of your user file and of the managed file always count
    /// first; project files share the rest.
    TooManyServers = "too-many-servers", Error;
    /// Not a whole number from 1 to 65535.
    BadPort = "bad-port", Error, QuickFix;
    /// Zero, negative, or more than one day.
    BadDuration = "bad-duration", Error;
    /// The timeout was read as milliseconds; it can be written in seconds.
    Milliseconds = "milliseconds", Information, QuickFix;
    /// Not an `https://` or `http://` URL, such as `localhost:3000` without a scheme.
    BadUrl = "bad-url", Error, QuickFix;
    /// Not a valid HTTP header name or value.
    BadHeader = "bad-header", Error;
    /// Not a valid variable name.
    BadVariable = "bad-variable", Error;
    /// The level does not exist, or a list of rules does not end with a level.
    BadLevel = "bad-level", Error, QuickFix;
    /// The condition is unknown or missing.
    BadCondition = "bad-condition", Error, QuickFix;
    /// Not a valid regular expression.
    BadRegex = "bad-regex", Error;
    /// Not a valid glob.
    BadGlob = "bad-glob", Error;
    /// Not of the form `mcp__server__tool`.
    BadTool = "bad-tool", Error;
    /// The `result` of an action does not exist.
    UnknownResult = "unknown-result", Error, QuickFix;
    /// The value contains a NUL character.
    Nul = "nul", Error;
    /// A launch in a project file contains a control character, one that reorders text, or an invisible one. In `args`,
    /// line breaks and tabs are fine.
    InvisibleText = "invisible-text", Error;
    /// A project file contains an address that hands out the credentials of a cloud machine.
    BlockedAddress = "blocked-address", Error;
    /// The arguments exceed 128 KiB.
    ArgumentsTooLong = "arguments-too-long", Error;
    /// The program is not on the PATH or not at its path, or `command` also contains arguments, which belong in
    /// `args`. When you install the program, the server starts.
    CommandNotFound = "command-not-found", Warning, QuickFix;
    /// A relative path of a server in your own file. Your servers run in a private folder, not in the workspace; the
    /// quick fix writes `${workspaceFolder}`.
    RelativePath = "relative-path", Warning, QuickFix;
    /// The program is a shell that runs its argument as a script.
    Shell = "shell", Warning;
    /// A variable in a project file that can make the program load other code.
    RiskyVariable = "risky-variable", Warning;
    /// The variable is not set, so the server will not start.
    UnsetVariable = "unset-variable", Warning, QuickFix;
    /// An unknown `${…}`. A warning in the arguments of an action.
    UnknownExpansion = "unknown-expansion", Error, QuickFix;
    /// `${input:id}` has no entry in `inputs`.
    UnknownInput = "unknown-input", Warning, QuickFix;
    /// A secret in plain text. The quick fix moves it into an environment variable that no other value in the file
    /// uses.
    RawSecret = "raw-secret", Warning, QuickFix;
    /// A client that signs in without a user (`grantType`) needs a secret from the keyring, an environment variable or
    /// an input, not one that is part of the file.
    SecretNotReferenced = "secret-not-referenced", Error;
    /// `http://` to another machine.
    PlainHttp = "plain-http", Warning, QuickFix;
    /// The transport `sse` is deprecated.
    DeprecatedSse = "deprecated-sse", Warning, QuickFix;
    /// The host must be allowed in the settings first.
    TcpHost = "tcp-host", Information;
    /// The entry starts `mcp-sidecar connect`. It is meant for an agent and is ignored here.
    Ourselves = "ourselves", Information;
    /// A permission that a project file gives itself; it applies after you have trusted it.
    NeedsTrust = "needs-trust", Information;
    /// Another program's spelling of a key or type; it works.
    DeprecatedSpelling = "deprecated-spelling", Hint, QuickFix;
    /// A project file sends an environment variable or a keyring value to another machine, in a header or in the URL.
    SecretToHost = "secret-to-host", Information;
    /// The program that owns this file does not read this spelling.
    OtherSpelling = "other-spelling", Hint, QuickFix;
    /// A setting in `config.toml` is not valid. Only `mcp-sidecar check` reports this and the following code.
    Setting = "setting", Error;
    /// The file does not exist.
    NoFile = "no-file", Error;
    /// There are too many diagnostics to show all of them.
    More = "more", Information;
    /// The server could not be started or reached. A warning during retries. The editor shows this and the following
    /// codes while servers run.
    ConnectionFailed = "connection-failed", Error;
    /// Nothing listens on the `port`. A warning during retries.
    PortClosed = "port-closed", Error;
    /// The server requires you to sign in.
    NeedsSignIn = "needs-sign-in", Warning;
    /// The server starts, or its levels apply, after you trust the definition.
    AwaitingTrust = "awaiting-trust", Information;
    /// You declined to trust this definition.
    NotTrusted = "not-trusted", Information;
    /// The server waits for an input.
    AwaitingInput = "awaiting-input", Information;
    /// The server runs without its `sandbox`, because this machine cannot enforce it and `required` is `false`.
    SandboxNotEnforced = "sandbox-not-enforced", Warning;
    /// A rule or an action names a tool that the connected server does not have.
    UnknownTool = "unknown-tool", Warning, QuickFix;
    /// Many tools of a server are never called, but their definitions use part of every agent's context.
    UnusedTools = "unused-tools", Information, QuickFix;
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
