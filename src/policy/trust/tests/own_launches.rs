//! The launches in the user's own config, and where remote servers are.

use super::*;
use crate::config::Source;
use crate::config::spec::{Grant, OAuth};

const FILE: &str = "/home/me/.config/mcp.json";

fn source(scope: Scope) -> Source {
    Source { path: Path::new(FILE).into(), scope, folder: None }
}

fn servers(entry: serde_json::Value) -> String {
    json!({ "servers": { "a": entry } }).to_string()
}

/// The lines of the only launch in a file.
fn lines(entry: serde_json::Value) -> BTreeMap<String, String> {
    let found = own_launches(&source(Scope::User), &servers(entry));
    let (key, fingerprint) = found.into_iter().next().unwrap();
    assert!(key.is_in(Path::new(FILE)) && !key.is_in(Path::new("/home/me/other.json")));
    assert!(fingerprint.is_of_own_launch() && !fingerprint.is_of_folder());
    fingerprint.lines.clone()
}

#[test]
fn a_launch_of_the_user_is_everything_that_is_written_about_it() {
    let stdio = json!({
        "command": "npx", "args": ["-y", "x"], "cwd": "/srv", "envFile": "/srv/.env", "inheritEnv": true,
        "env": { "TOKEN": "secret", "NODE_OPTIONS": "--require=/x.js", "OFF": null },
        "sandbox": { "write": ["/srv"], "network": false },
    });
    let found = lines(stdio);
    let text = |key: &str| found.get(key).map(String::as_str);
    assert_eq!((text("file"), text("transport"), text("command")), (Some(FILE), Some("stdio"), Some("npx")));
    assert_eq!((text("args.0"), text("args.1"), text("cwd")), (Some("-y"), Some("x"), Some("/srv")));
    assert_eq!((text("envFile"), text("inheritEnv")), (Some("/srv/.env"), Some("true")));
    // A new token asks nothing. A variable that loads code does.
    assert_eq!((text("env.TOKEN"), text("env.OFF")), (Some("(set)"), Some("(unset)")));
    assert!(text("env.NODE_OPTIONS").unwrap().starts_with(MASK));
    assert!(found.keys().any(|key| key.starts_with("sandbox.")), "{found:?}");
    let remote = lines(json!({ "type": "http", "url": "https://x.test/mcp", "headers": { "X-Key": "secret" } }));
    assert_eq!(remote.get("url").map(String::as_str), Some("https://x.test/mcp"));
    assert_eq!(remote.get("headers.X-Key").map(String::as_str), Some("(set)"));
    assert_eq!(remote.get("oauth.grantType"), None);
}

#[test]
fn only_launches_that_changed_are_named_and_only_in_the_file_of_the_user() {
    let (before, after) = (servers(json!({ "command": "a" })), servers(json!({ "command": "b" })));
    assert_eq!(changed_launches(&source(Scope::User), &before, &after).len(), 1);
    assert!(changed_launches(&source(Scope::User), &before, &before).is_empty());
    assert!(changed_launches(&source(Scope::User), &before, "{}").is_empty());
    assert!(own_launches(&source(Scope::Project), &before).is_empty());
}

#[test]
fn a_fallback_and_a_proxy_are_part_of_a_launch() {
    let mut own = Definition { scope: Scope::User, ..definition(Path::new("/home/me")) };
    assert!(own_launch(&definition(Path::new("/home/me"))).is_none(), "not of a project");
    let (key, with) = own_launch(&own).unwrap();
    assert_eq!(with.lines.get("fallback.address").map(String::as_str), Some("127.0.0.1:3001"));
    let remote = Remote {
        url: "https://x.test/".to_owned(),
        oauth: Some(OAuth { grant: Grant::ClientCredentials, ..OAuth::default() }),
        ..Remote::default()
    };
    own.spec.launch = Launch::ClaudeAiProxy { id: "p".to_owned(), remote };
    let (_, proxy) = own_launch(&own).unwrap();
    assert_eq!(proxy.lines.get("id").map(String::as_str), Some("p"));
    assert!(proxy.lines.contains_key("url") && proxy.lines.contains_key("oauth.grantType"));
    let environment = Environment::of_this_process();
    let ask = |denied: Option<&str>| {
        let record = TrustRecord { trusted: Some(with.clone()), denied: denied.map(str::to_owned) };
        Question::about_own_launch(key.clone(), proxy.clone(), &record, &own, &environment)
    };
    let question = ask(None);
    assert!(question.is_about_own_launch() && !question.same_launch && !question.was_denied);
    assert!(!question.difference.unwrap().is_empty());
    assert!(ask(Some(&proxy.digest)).was_denied && !ask(Some(&with.digest)).was_denied);
}

#[test]
fn where_a_remote_server_is_and_how_it_is_signed_in_at_asks_again() {
    let fingerprint = |url: &str, oauth: Option<OAuth>| {
        let (_keep, folder) = project();
        let mut own = definition(&folder);
        own.spec.launch = Launch::Http(Remote { url: url.to_owned(), headers: BTreeMap::new(), oauth });
        fingerprint(&Definition { folder: None, ..own }, &Config::default())
    };
    let plain = || Some(OAuth::default());
    let known = fingerprint("https://x.test/mcp", plain()).digest;
    assert_eq!(known, fingerprint("https://x.test/mcp", plain()).digest);
    let others = [
        OAuth { client_id: Some("id".to_owned()), ..OAuth::default() },
        OAuth { client_secret: Some("secret".to_owned()), ..OAuth::default() },
        OAuth { scopes: vec!["read".to_owned()], ..OAuth::default() },
        OAuth { callback_port: Some(1), ..OAuth::default() },
        OAuth { grant: Grant::ClientCredentials, ..OAuth::default() },
    ];
    for other in others {
        assert_ne!(known, fingerprint("https://x.test/mcp", Some(other.clone())).digest, "{other:?}");
    }
    assert_ne!(known, fingerprint("https://y.test/mcp", plain()).digest);
    let shown = |url: &str| fingerprint(url, None).lines["url"].clone();
    assert_eq!(shown("https://x.test/?${KEY}"), "https://x.test/?${KEY}");
    assert!(shown("https://x.test/?key=${KEY}").starts_with(&format!("https://x.test/?{MASK}")));
    assert_ne!(fingerprint("https://x.test/?a=1", None).digest, fingerprint("https://x.test/?a=2", None).digest);
}

#[test]
fn rules_of_the_file_that_are_about_other_servers_are_no_exception_of_this_one() {
    let entry = |server: &str| Matcher { server: server.to_owned(), tool: "drop".to_owned(), line: 0 };
    let exceptions = |server: &str| {
        let (_keep, folder) = project();
        let mut config = policy(&folder);
        config.policies[0].denylist = vec![entry(server)];
        fingerprint(&definition(&folder), &config).exceptions.contains_key(&format!("policy.denylist {server}/drop"))
    };
    assert!(exceptions("fs") && exceptions("*") && !exceptions("git"));
}
