use super::*;
use serde_json::json;

fn object(value: Value) -> Object {
    value.as_object().cloned().unwrap()
}

fn shown_form(schema: Value) -> String {
    fn lines(fields: &[Field], indent: usize, out: &mut Vec<String>) {
        for field in fields {
            let choices: Vec<String> = field.choices.iter().map(|c| format!("{}={}", c.title, c.value)).collect();
            let default = field.default.as_ref().map(|default| format!(" default {default}")).unwrap_or_default();
            out.push(format!(
                "{}{}{} [{:?}] {}{default} {}",
                "  ".repeat(indent),
                if field.name.is_empty() { "-" } else { &field.title },
                if field.required { "*" } else { "" },
                field.kind,
                field.rule,
                choices.join(" "),
            ));
            lines(&field.fields, indent + 1, out);
            if let Some(item) = &field.item {
                lines(std::slice::from_ref(item), indent + 1, out);
            }
        }
    }
    let mut out = Vec::new();
    lines(&Form::of_schema(&object(schema)).fields, 0, &mut out);
    out.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_kind_of_schema_has_its_field() {
    let schema = json!({
        "required": ["path", "people"],
        "properties": {
            "depth": { "type": "integer", "minimum": 1, "maximum": 9, "default": 3 },
            "path": { "type": "string", "title": "Path", "pattern": "^/" },
            "content": { "type": "string" },
            "token": { "type": "string", "format": "password" },
            "mode": { "enum": ["r", "w"], "enumNames": ["read", "write"] },
            "color": { "oneOf": [{ "const": 1, "title": "red" }, { "const": 2 }] },
            "tags": { "type": "array", "items": { "enum": ["a", "b"] } },
            "verbose": { "type": ["boolean", "null"] },
            "limit": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
            "people": { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/person" } },
            "any": {},
        },
        "$defs": { "person": { "type": "object", "required": ["name"], "properties": {
            "name": { "type": "string" }, "boss": { "$ref": "#/$defs/person" } } } },
    });
    let shown = shown_form(schema);
    insta::assert_snapshot!(shown.lines().filter(|line| !line.starts_with(' ')).collect::<Vec<_>>().join("\n"), @r#"
    Path* [Text] text, must match `^/`
    people* [List] a list, at least 1 item
    depth [Integer] a whole number, at least 1, at most 9 default 3
    content [Multiline] text
    token [Secret] text
    mode [Choice] one of the choices read="r" write="w"
    color [Choice] one of the choices red=1 2=2
    tags [Choices] any of the choices a="a" b="b"
    verbose [Boolean] yes or no
    limit [Integer] a whole number
    any [Json] JSON
    "#);
    let person: Vec<&str> = shown.lines().skip_while(|line| !line.contains("people")).skip(1).take(3).collect();
    assert_eq!(person.join("\n"), "  -* [Object] an object\n    name* [Text] text\n    boss [Object] an object");
}

#[test]
fn a_schema_that_refers_to_itself_many_times_stays_small() {
    let child = json!({ "$ref": "#/$defs/node" });
    let children: Object = (0..40).map(|n| (format!("child{n}"), child.clone())).collect();
    let schema =
        json!({ "properties": { "root": child }, "$defs": { "node": { "type": "object", "properties": children } } });
    let fields = shown_form(schema).lines().count();
    assert!(fields < 2_000, "{fields}");
}

#[test]
fn a_form_of_an_input_is_a_secret() {
    let schema = json!({ "password": true, "required": ["value"], "properties": { "value": { "type": "string" } } });
    assert_eq!(shown_form(schema), "value* [Secret] text");
}

#[test]
fn what_is_entered_becomes_values_of_the_schema() {
    let schema = json!({ "required": ["n"], "properties": {
        "n": { "type": "integer" }, "b": { "type": "boolean" }, "t": { "type": "string" }, "o": { "type": "string" },
        "c": { "oneOf": [{ "const": 7, "title": "seven" }] }, "l": { "type": "array", "items": { "type": "number" } },
        "p": { "type": "object", "properties": { "x": { "type": "number" } } },
        "s": { "type": "array", "items": { "enum": ["a", "b"] } },
    } });
    let entered = json!({ "n": " 5 ", "b": "yes", "t": "5", "o": "", "c": "seven", "l": "1\n2.5", "p": { "x": "1e3" },
        "s": "a, b", "extra": 1 });
    let (values, problems) = check(&object(schema.clone()), &object(entered));
    assert_eq!(
        Value::Object(values),
        json!({ "n": 5, "b": true, "t": "5", "c": 7, "l": [1, 2.5], "p": { "x": 1000.0 }, "s": ["a", "b"], "extra": 1 })
    );
    assert_eq!(problems, []);
    let (_, problems) = check(&object(schema), &object(json!({ "n": "five", "s": "a, z" })));
    let paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(paths, ["/n", "/s"]);
}

#[test]
fn bounds_and_formats_are_checked() {
    let schema = json!({ "properties": {
        "mail": { "type": "string", "format": "email" }, "n": { "type": "integer", "maximum": 3 } } });
    let (_, problems) = check(&object(schema), &object(json!({ "mail": "nobody", "n": "4" })));
    insta::assert_snapshot!(problems.iter().map(|p| format!("{}: {}", p.path, p.message)).collect::<Vec<_>>().join("\n"), @r#"
    /mail: "nobody" is not a "email"
    /n: 4 is greater than the maximum of 3
    "#);
}
