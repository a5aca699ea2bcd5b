//! A server with definitions that do not conform: agents get what they can parse, and the server's status says what they do not get.

use mcp_sidecar::protocol::commands::Servers;
use serde_json::{Value, json};

use crate::raw_agent::Host;
use crate::support::Home;
use crate::support::commands::{name, start};
use crate::support::harness::{open_editor, scripted};

#[tokio::test]
async fn a_call_by_a_shortened_name_reaches_its_tool() {
    let place = Home::new();
    let long = "list_all_the_open_pull_requests_of_a_repository";
    let tools = json!([{ "name": long, "inputSchema": { "type": "object" } }]);
    let mut server = scripted(&place.path("state"), "github", json!({ "tools": tools }));
    server["tools"] = json!({ "*": "allow-always" });
    let host = Host::new(json!({ "github": server }));
    let mut agent = host.agent().await;
    let tools = agent.ask(1, "tools/list", json!({})).await["result"]["tools"].clone();
    let name = tools[0]["name"].as_str().unwrap();
    assert!(name.len() <= 41 && name.starts_with("github_") && name.contains("__list_all"), "{name}");
    let result = agent.call(2, name, json!({ "a": 1 })).await;
    assert_eq!(result["content"][0]["text"], r#"{"arguments": {"a": 1}, "value": ""}"#, "{result:#}");
}

#[tokio::test]
async fn the_status_says_what_agents_do_not_get_and_calls_are_checked_as_the_server_says() {
    let place = Home::new();
    let script: Value = serde_json::from_str(include_str!("../fixtures/nonconforming-lists.json")).unwrap();
    let prompts = json!({ "prompts": script["prompts"] });
    let prompts = scripted(&place.path("state"), "prompts", prompts);
    let mut server = scripted(&place.path("state"), "odd", script);
    server["tools"] = json!({ "*": "allow-always" });
    let host = Host::new(json!({ "odd": server, "prompts": prompts }));
    let mut editor = open_editor(&host.home, &host.engine).await;
    editor.ignore("mcp/serverChanged");
    let mut warnings = Vec::new();
    for server in ["odd", "prompts"] {
        editor.call(start(server)).await.unwrap();
        let status = editor.call(Servers { server: Some(name(server)) }).await.unwrap().servers.remove(0);
        warnings.extend(status.warnings);
    }
    for warning in [
        "agents do not see tool `string_type`: invalid `inputSchema`: expected the type `object`, found `string`",
        "tool `unknown_property_type`: agents get `inputSchema` without `properties.v.type`: not all of them accept it",
        "tool `title_number`: agents do not get `title`: expected a string",
        "tool `output_array`: agents do not get `outputSchema`: expected the type `object`, found `array`",
        "prompt `arguments_object`: agents do not get `arguments`: expected a list",
        "resource `test://size-text`: agents do not get `size`: expected a number of bytes",
        "ignored 7 tools without `name`",
    ] {
        assert!(warnings.iter().any(|found| found == warning), "{warning}\n{warnings:#?}");
    }
    assert!(!warnings.iter().any(|warning| warning.contains("healthy")), "{warnings:#?}");

    let mut agent = host.agent().await;
    let tools = agent.ask(1, "tools/list", json!({})).await["result"]["tools"].clone();
    let find = |name: &str| tools.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
    assert_eq!(find("odd__healthy_first")["own"], json!({ "kept": true }));
    assert_eq!(find("odd__boolean_property")["inputSchema"]["properties"], json!({ "v": {}, "w": { "not": {} } }));

    let result = agent.call(2, "odd__boolean_property", json!({ "v": 1 })).await;
    assert_ne!(result["isError"], true, "{result:#}");
    let result = agent.call(3, "odd__boolean_property", json!({ "w": 1 })).await;
    assert_eq!(result["isError"], true, "{result:#}");

    let resources = agent.ask(4, "resources/list", json!({})).await["result"]["resources"].clone();
    let spaces = resources.as_array().unwrap().iter().find(|resource| resource["name"] == "spaces").unwrap();
    assert_eq!(spaces["uri"], "mcp+odd://not+a+URI");
}
