use super::*;

fn base(config: Value, placeholder: Option<(&str, &str)>) -> Base {
    let placeholder = placeholder.map(|(field, value)| Placeholder {
        field: field.to_owned(),
        title: field.to_owned(),
        value: value.to_owned(),
    });
    let config = config.as_object().cloned().unwrap();
    Base {
        edited: None,
        name: "x".to_owned(),
        config,
        inputs: Vec::new(),
        placeholder,
        notes: Vec::new(),
        bundle: None,
    }
}

fn object(value: Value) -> Object {
    value.as_object().cloned().unwrap()
}

#[test]
fn a_placeholder_is_replaced_where_the_template_has_it() {
    let npx = base(json!({ "command": "npx", "args": ["-y", "package"] }), Some(("package", "package")));
    let entered = json!({ "command": "npx", "args": ["-y", "--verbose"], "package": "mine" });
    assert_eq!(
        Value::Object(npx.config(&object(entered))),
        json!({ "command": "npx", "args": ["-y", "mine", "--verbose"] })
    );
}

#[test]
fn what_the_form_does_not_show_stays_and_what_is_emptied_goes() {
    let config =
        json!({ "command": "a", "args": ["1"], "env": { "A": "•••", "N": 5, "U": null }, "tools": { "x": "deny" } });
    let same = json!({ "command": "b", "args": [], "env": [
        { "name": "A", "value": "•••" }, { "name": "N", "value": "5" }, { "name": "U" }, { "name": "new", "value": "v" }] });
    assert_eq!(
        Value::Object(base(config, None).config(&object(same))),
        json!({ "command": "b", "env": { "A": "•••", "N": 5, "U": null, "new": "v" }, "tools": { "x": "deny" } })
    );
}

#[test]
fn a_program_that_is_written_as_a_list_stays_one() {
    let listed = base(json!({ "command": ["a", "b"] }), None);
    let entered = json!({ "command": "a", "args": ["c", "d"] });
    assert_eq!(Value::Object(listed.config(&object(entered))), json!({ "command": ["a", "c", "d"] }));
}

#[test]
fn a_typed_line_suggests_a_name() {
    let names = [
        "npx -y @modelcontextprotocol/server-filesystem@1.2 .",
        "https://mcp.example.com/mcp",
        "/opt/tools/my_server --port 1",
        "uvx mcp-server-git",
        "--",
    ];
    assert_eq!(names.map(name_of), ["server-filesystem", "mcp-example-com", "my-server", "mcp-server-git", "server"]);
}
