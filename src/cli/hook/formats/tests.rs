use super::*;

fn asked(agent: HookAgent, input: &Value, named: Option<HookEvent>) -> Result<(HookEvent, HookQuestion), String> {
    Format { agent }.question(input.to_string().as_bytes(), named)
}

#[test]
fn the_question_of_every_agent_is_read() {
    let (claude, before) = (HookAgent::ClaudeCode, HookEvent::BeforeTool);
    let common = json!({ "session_id": "s", "cwd": "/home/you/shop", "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": { "command": "ls" }, "permission_mode": "default" });
    let copilot =
        json!({ "sessionId": "s", "cwd": "/home/you/shop", "toolName": "Bash", "toolArgs": { "command": "ls" } });
    let as_text =
        json!({ "sessionId": "s", "cwd": "/home/you/shop", "toolName": "Bash", "toolArgs": "{\"command\":\"ls\"}" });
    let gemini = json!({ "session_id": "s", "cwd": "/home/you/shop", "hook_event_name": "BeforeTool", "tool_name": "Bash",
        "tool_input": { "command": "ls" } });
    let expected = |agent| HookQuestion {
        agent,
        event: before,
        tool: "Bash".to_owned(),
        arguments: json!({ "command": "ls" }).as_object().unwrap().clone(),
        folder: "/home/you/shop".into(),
        session: Some("s".to_owned()),
    };
    assert_eq!(asked(claude, &common, None), Ok((before, expected(claude))));
    assert_eq!(asked(HookAgent::Codex, &common, None), Ok((before, expected(HookAgent::Codex))));
    assert_eq!(asked(HookAgent::Gemini, &gemini, None), Ok((before, expected(HookAgent::Gemini))));
    for input in [copilot, as_text] {
        assert_eq!(asked(HookAgent::Copilot, &input, Some(before)), Ok((before, expected(HookAgent::Copilot))));
    }
    let request = json!({ "hookName": "permissionRequest", "toolName": "edit", "toolInput": {} });
    let (event, _) = asked(HookAgent::Copilot, &request, Some(before)).unwrap();
    assert_eq!(event, HookEvent::PermissionRequest, "what the question says counts");
}

#[test]
fn what_is_not_a_question_has_a_reason() {
    let claude = Format { agent: HookAgent::ClaudeCode };
    for input in ["", "[]", "{", "null", "{}", r#"{"hook_event_name":"Stop"}"#, r#"{"hook_event_name":"PreToolUse"}"#] {
        assert!(claude.question(input.as_bytes(), None).is_err(), "{input}");
    }
}

#[test]
fn only_an_allowed_action_is_ever_answered_with_allow() {
    let mut table = String::new();
    for agent in HookAgent::ALL {
        for event in [HookEvent::BeforeTool, HookEvent::PermissionRequest] {
            let format = Format { agent };
            if format.event_name(event).is_none() {
                continue;
            }
            let outputs = [
                HookAnswer::Allow,
                HookAnswer::Deny("no".to_owned()),
                HookAnswer::Ask("nobody".to_owned()),
                HookAnswer::NoRule,
            ]
            .map(|answer| {
                let text = format.answer(event, &answer);
                assert!(!text.to_lowercase().contains("updatedinput") && !text.contains("tool_input"), "{text}");
                assert_eq!(text.contains("\"allow\""), answer == HookAnswer::Allow && !text.is_empty(), "{text}");
                if text.is_empty() { "silence".to_owned() } else { text.trim().to_owned() }
            });
            let name = format.event_name(event).unwrap();
            table.push_str(&format!("{agent} {name}\n  {}\n", outputs.join("\n  ")));
        }
    }
    insta::assert_snapshot!(table, @r#"
    claude-code PreToolUse
      {"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"allowed in mcp-sidecar"}}
      {"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"mcp-sidecar: no"}}
      {"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"mcp-sidecar: nobody"}}
      silence
    claude-code PermissionRequest
      {"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}
      {"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"mcp-sidecar: no"}}}
      silence
      silence
    codex PreToolUse
      silence
      {"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"mcp-sidecar: no"}}
      {"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"mcp-sidecar: nobody"}}
      silence
    codex PermissionRequest
      {"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}
      {"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"mcp-sidecar: no"}}}
      silence
      silence
    gemini BeforeTool
      {"decision":"allow"}
      {"decision":"deny","reason":"mcp-sidecar: no"}
      {"decision":"ask","reason":"mcp-sidecar: nobody","systemMessage":"mcp-sidecar: nobody"}
      silence
    copilot preToolUse
      {"permissionDecision":"allow","permissionDecisionReason":"allowed in mcp-sidecar"}
      {"permissionDecision":"deny","permissionDecisionReason":"mcp-sidecar: no"}
      {"permissionDecision":"ask","permissionDecisionReason":"mcp-sidecar: nobody"}
      silence
    copilot permissionRequest
      {"behavior":"allow"}
      {"behavior":"deny","message":"mcp-sidecar: no"}
      silence
      silence
    "#);
}
