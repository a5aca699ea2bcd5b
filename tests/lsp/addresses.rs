//! The URLs of a project: addresses that give out credentials of a cloud machine are refused, private ones are flagged.

use mcp_sidecar::protocol::commands::Servers;
use mcp_sidecar::protocol::types::{ApprovalKind, Status};
use serde_json::{Value, json};

use crate::support::{Harness, Home, attach};

#[tokio::test]
async fn metadata_addresses_in_a_project_are_errors_in_every_spelling() {
    let urls = [
        "http://169.254.169.254/latest/meta-data/",
        "http://169.254.169.254./",
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://0xA9.0xFE.0xA9.0xFE/",
        "http://0251.0376.0251.0376/",
        "http://169.254.43518/",
        "http://[::ffff:169.254.169.254]/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://[::169.254.169.254]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[fd00:ec2::254]/",
        "http://[FD00:0EC2:0::0254]/",
        "http://169.254.170.2/v2/credentials",
        "http://169.254.170.23/",
        "http://[fd00:ec2::23]/",
        "http://169.254.0.23/",
        "http://[fe80::a9fe:a9fe]/",
        "http://100.100.100.200/latest/meta-data/",
        "http://192.0.0.192/",
        "http://168.63.129.16/",
        "http://metadata.google.internal/computeMetadata/v1/",
        "http://METADATA.google.internal./",
        "http://metadata/",
        "http://instance-data.ec2.internal/",
        "http://metadata.azure.internal/",
        "http://user:pw@169.254.169.254/",
        "http://１６９.254.169.254/",
        "https://169。254。169。254/",
    ];
    let servers: serde_json::Map<String, Value> =
        urls.iter().enumerate().map(|(index, url)| (format!("m{index}"), json!({ "url": url }))).collect();
    let text = serde_json::to_string_pretty(&json!({ "servers": servers })).unwrap();
    let home = Home::new();
    let path = home.write("mcp.json", &text);
    let (mut editor, _end) = attach(&home);
    editor.handle("window/showMessageRequest", |_| Ok(Value::Null));
    editor.initialize(&[&home.project()], json!({})).await;
    editor.open(&path, &text);
    let found = editor.diagnostics(&path).await["diagnostics"].clone();
    let errors: Vec<&Value> = found.as_array().unwrap().iter().filter(|one| one["code"] == "blocked-address").collect();
    for (index, url) in urls.iter().enumerate() {
        let line = text.lines().position(|line| line.contains(&format!("\"m{index}\":"))).unwrap() as u64 + 1;
        assert!(errors.iter().any(|one| one["range"]["start"]["line"] == line), "{url} is not refused: {found:#}");
    }
    assert!(editor.call(Servers { server: None }).await.unwrap().servers.is_empty(), "none of them may connect");
}

#[tokio::test]
async fn private_addresses_are_flagged_and_loopback_is_fine() {
    let warned =
        |detail: &str| detail.lines().any(|line| line.starts_with("warning") && line.contains("private network"));
    for (url, private) in [
        ("http://10.0.0.8/mcp", true),
        ("http://192.168.1.1/", true),
        ("http://172.20.0.2/", true),
        ("http://3232235777/", true),
        ("http://[fd12::1]/", true),
        ("http://169.254.1.1/", true),
        ("http://100.64.0.1/", true),
        ("https://build.internal/mcp", true),
        ("https://printer.local/mcp", true),
        ("https://intranet/mcp", true),
        ("http://0.0.0.0:9/", true),
        ("http://127.0.0.1:9/", false),
        ("http://localhost:9/", false),
        ("http://[::1]:9/", false),
        ("https://example.test/mcp", false),
    ] {
        let mut harness = Harness::new(json!({}), json!({ "servers": { "web": { "url": url } } })).await;
        let question = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
        assert_eq!(warned(&question.detail), private, "{url}: {}", question.detail);
    }
}

#[tokio::test]
async fn a_user_name_in_a_url_is_flagged_and_its_password_is_masked() {
    for (url, host) in [
        ("https://api.good.test:s3cr3t-pw@evil.test/mcp", "evil.test"),
        ("https://user:s3cr3t-pw@evil@good.test/mcp", "good.test"),
        ("https://user:s3cr3t-pw@evil.test\\@good.test/mcp", "evil.test"),
        ("https:/\\good.test:s3cr3t-pw@evil.test/", "evil.test"),
        ("https://user@evil.test/", "evil.test"),
    ] {
        let mut harness = Harness::new(json!({}), json!({ "servers": { "web": { "url": url } } })).await;
        let question = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
        let detail = &question.detail;
        assert!(!detail.contains("s3cr3t-pw"), "{detail}");
        assert!(detail.contains(&format!("it connects to `{host}`")), "{url}: {detail}");
    }
}

#[tokio::test]
async fn a_variable_cannot_smuggle_a_metadata_address_into_a_url() {
    let url = "http://169.254.${NOT_SET_HERE:-169}.254/";
    let mut harness = Harness::new(json!({}), json!({ "servers": { "web": { "url": url } } })).await;
    let question = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
    harness.resolve(&question, "allow-project").await;
    let failed = harness.until("web", Status::Failed).await;
    assert!(failed.error.as_deref().unwrap().contains("metadata"), "{:?}", failed.error);
}
