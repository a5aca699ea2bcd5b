//! The keys of objects inside of a server.

use crate::config::spec::Grant;

use super::{ALL, Table, ValueType, alias, foreign, own};

pub static OAUTH: Table = Table {
    noun: "oauth",
    keys: &[
        own(
            "clientId",
            ValueType::Text,
            ALL,
            "The client id registered for you, or the URL of your client metadata document.",
        ),
        alias("client_id", ValueType::Text, "clientId", "The same as `clientId`."),
        own(
            "clientSecret",
            ValueType::Text,
            ALL,
            "The secret of the client, as a reference such as `${keyring:NAME}`.",
        ),
        alias("client_secret", ValueType::Text, "clientSecret", "The same as `clientSecret`."),
        own(
            "privateKey",
            ValueType::Text,
            ALL,
            "The private key of a client that signs in without a user (`grantType`), instead of `clientSecret`: a reference such as `${keyring:NAME}` to a key in PEM format. It is used to sign and is never sent.",
        ),
        own("scopes", ValueType::TextOrTexts, ALL, "The scopes to request: a list, or a string separated by spaces."),
        own("callbackPort", ValueType::Port, ALL, "The loopback port for the response. Default: any free port."),
        alias("callback_port", ValueType::Port, "callbackPort", "The same as `callbackPort`."),
        own(
            "grantType",
            ValueType::Choice(Grant::NAMES),
            ALL,
            "`client_credentials` signs in with `clientId` and `clientSecret` or `privateKey`, without a user, for machines. Default: `authorization_code`: you sign in with a browser.",
        ),
        alias("grant_type", ValueType::Choice(Grant::NAMES), "grantType", "The same as `grantType`."),
        foreign("enterpriseManaged", "VS Code: managed sign-in."),
        foreign("authServerMetadataUrl", "Claude Code: the URL of the metadata."),
    ],
};

pub static SANDBOX: Table = Table {
    noun: "sandbox",
    keys: &[
        own(
            "read",
            ValueType::Texts,
            ALL,
            "The only folders and files that it may read, in addition to system folders. Default: all.",
        ),
        own(
            "write",
            ValueType::Texts,
            ALL,
            "The folders and files that it may change, in addition to its temporary folder. Default: none.",
        ),
        own("network", ValueType::Flag, ALL, "`true` allows network connections. Default: `false`."),
        own(
            "required",
            ValueType::Flag,
            ALL,
            "`false` starts the server even if this machine cannot enforce the sandbox. Default: `true`.",
        ),
    ],
};

pub static DEV: Table = Table {
    noun: "dev",
    keys: &[
        own(
            "watch",
            ValueType::TextOrTexts,
            ALL,
            "One or more globs, relative to the workspace folder. A change to a matching file restarts the server.",
        ),
        foreign("debug", "VS Code: attach a debugger."),
        foreign("enabled", "mcphub: whether to watch."),
        foreign("cwd", "mcphub: the base folder of the globs."),
    ],
};
