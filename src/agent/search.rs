//! Two tools in place of a thousand: an agent that would drown in a list looks for what it needs, and calls it by name.
//!
//! Pure. What is found is what would have been listed, and a call by name takes the way of every call.

use serde_json::{Map, Value, json};

use crate::config::shape::did_you_mean;
use crate::text::one_line;

pub const FIND: &str = "find_tools";
pub const CALL: &str = "call_tool";

/// Tools in one answer, unless the agent says otherwise; and whatever it says.
const USUAL: usize = 10;
const MOST: usize = 50;
/// One answer holds about this much, and one tool at least.
const BYTES: usize = 64 << 10;
/// How many names are proposed in place of one that there is not.
const NEAR: usize = 5;

/// What such an agent is shown in place of the tools.
pub fn tools(servers: &[&str]) -> Vec<Value> {
    let behind = match servers {
        [] => "There is no server now.".to_owned(),
        servers => format!("Servers: {}.", servers.join(", ")),
    };
    let query = json!({ "type": "string", "description": "What the tool should do, in a few words, or part of its name. Empty: all tools" });
    let limit = json!({ "type": "integer", "minimum": 1, "maximum": MOST, "description": "Most tools to tell about" });
    let name = json!({ "type": "string", "description": "The tool's name, as find_tools tells it" });
    let arguments = json!({ "type": "object", "description": "Arguments that fit the tool's inputSchema" });
    vec![
        json!({
            "name": FIND,
            "title": "Find tools",
            "description": format!(
                "Looks for tools of this workspace by words and tells their names, descriptions and schemas. Call one with {CALL}. {behind}"
            ),
            "inputSchema": { "type": "object", "properties": { "query": query, "limit": limit }, "required": ["query"] },
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        }),
        json!({
            "name": CALL,
            "title": "Call a tool",
            "description": format!("Calls a tool that {FIND} told about. The answer is the tool's own."),
            "inputSchema": {
                "type": "object", "properties": { "name": name, "arguments": arguments }, "required": ["name"],
            },
        }),
    ]
}

/// The answer of `find_tools`; or what is wrong with the question.
pub fn find(tools: &[Value], arguments: &Map<String, Value>) -> Result<Value, String> {
    let query = match arguments.get("query") {
        None | Some(Value::Null) => "",
        Some(Value::String(query)) => query,
        Some(_) => return Err("`query` has to be a text".to_owned()),
    };
    let limit = match arguments.get("limit") {
        None | Some(Value::Null) => USUAL,
        Some(limit) => match limit.as_u64().and_then(|limit| usize::try_from(limit).ok()) {
            Some(limit @ 1..) => limit.min(MOST),
            _ => return Err(format!("`limit` has to be a whole number from 1 to {MOST}")),
        },
    };
    let words = words(query);
    let mut found: Vec<(usize, &Value)> = tools.iter().map(|tool| (score(tool, &words), tool)).collect();
    found.retain(|(score, _)| *score > 0 || words.is_empty());
    // The sort is stable: what fits equally well stays in the order of the list.
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    let total = found.len();
    let mut told: Vec<Value> = Vec::new();
    let mut bytes = 0;
    for (_, tool) in found.into_iter().take(limit) {
        let tool = shortened(tool);
        bytes += tool.to_string().len();
        if bytes > BYTES && !told.is_empty() {
            break;
        }
        told.push(tool);
    }
    let left_out = total - told.len();
    let mut answer = json!({ "tools": told });
    if let Some(fields) = answer.as_object_mut().filter(|_| left_out > 0) {
        fields.insert("more".to_owned(), json!(left_out));
    }
    Ok(answer)
}

/// What `call_tool` asks for: a name and arguments.
pub fn wanted(arguments: Map<String, Value>) -> Result<(String, Map<String, Value>), String> {
    let mut arguments = arguments;
    let name = match arguments.remove("name") {
        Some(Value::String(name)) => name,
        _ => return Err(format!("`name` has to be the name of a tool; {FIND} tells which there are")),
    };
    match arguments.remove("arguments") {
        None | Some(Value::Null) => Ok((name, Map::new())),
        Some(Value::Object(inner)) => Ok((name, inner)),
        Some(_) => Err("`arguments` has to be an object".to_owned()),
    }
}

/// Why there is no such tool, with those that may have been meant.
pub fn unknown<'a>(name: &str, names: impl Iterator<Item = &'a String>, where_to_look: &str) -> String {
    let names: Vec<&str> = names.map(String::as_str).collect();
    let mut text = format!("unknown tool: {}", one_line(name, 200));
    let near = near(name, &names);
    if !near.is_empty() {
        text.push_str(&format!("; similar are {}", near.join(", ")));
    }
    text.push_str(&format!("; {where_to_look} tells which there are"));
    text
}

/// The names that are nearest to this one: by spelling, then by the words they share.
fn near<'a>(name: &str, names: &[&'a str]) -> Vec<&'a str> {
    let words = words(name);
    let mut near: Vec<&str> = did_you_mean::closest(name, names).into_iter().collect();
    let mut sharing: Vec<(usize, &str)> = names
        .iter()
        .map(|known| {
            let own = self::words(known);
            (words.iter().filter(|word| own.contains(word)).count(), *known)
        })
        .filter(|(shared, _)| *shared > 0)
        .collect();
    sharing.sort_by_key(|(shared, _)| std::cmp::Reverse(*shared));
    for (_, known) in sharing {
        if near.len() < NEAR && !near.contains(&known) {
            near.push(known);
        }
    }
    near
}

/// How well a tool fits: its name counts most, then its title and description, then its parameters. A tool that fits
/// all words comes before one that fits some of them well.
fn score(tool: &Value, wanted: &[String]) -> usize {
    let text = |key: &str| tool.get(key).and_then(Value::as_str).unwrap_or_default().to_lowercase();
    let name = text("name");
    let described = format!("{} {}", text("title"), text("description"));
    let parameters = tool.pointer("/inputSchema/properties").and_then(Value::as_object);
    let parameters: Vec<String> = parameters.into_iter().flatten().flat_map(|(key, _)| words(key)).collect();
    let (own, said) = (words(&name), words(&described));
    let mut sum = 0;
    let mut fitting = 0;
    for word in wanted {
        let points = [
            (own.contains(word), 20),
            (name.contains(word.as_str()), 10),
            (said.contains(word), 6),
            (described.contains(word.as_str()), 3),
            (parameters.contains(word), 2),
        ];
        let best = points.into_iter().find(|(fits, _)| *fits).map_or(0, |(_, points)| points);
        fitting += usize::from(best > 0);
        sum += best;
    }
    sum * fitting
}

/// Letters and digits in lower case; `readFile`, `read_file` and `read file` are the same words.
fn words(text: &str) -> Vec<String> {
    let mut spread = String::with_capacity(text.len());
    let mut before_lower = false;
    for c in text.chars() {
        if c.is_uppercase() && before_lower {
            spread.push(' ');
        }
        before_lower = c.is_lowercase();
        spread.extend(c.to_lowercase());
    }
    let words = spread.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// What a model needs to call a tool.
fn shortened(tool: &Value) -> Value {
    let keys = ["name", "title", "description", "inputSchema", "annotations"];
    keys.into_iter().filter_map(|key| Some((key.to_owned(), tool.get(key)?.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str) -> Value {
        json!({ "name": name, "description": description, "inputSchema": { "type": "object", "properties": { "path": {} } } })
    }

    fn found(query: &str, more: Value) -> Vec<String> {
        let tools = [
            tool("fs__read_file", "Reads the contents of a file"),
            tool("fs__writeFile", "Writes a file"),
            tool("git__log", "Shows the history of a repository"),
            tool("mail__send", "Sends a message; reads no file"),
        ];
        let mut arguments = json!({ "query": query });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = find(&tools, arguments.as_object().unwrap()).unwrap();
        let names = answer["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
        names.chain(answer.get("more").map(|more| format!("{more} more"))).collect()
    }

    #[test]
    fn the_best_fit_comes_first_and_what_does_not_fit_is_not_told() {
        assert_eq!(found("read file", json!({}))[0], "fs__read_file");
        assert_eq!(found("write a file", json!({ "limit": 1 }))[0], "fs__writeFile");
        assert_eq!(found("history", json!({})), ["git__log"]);
        assert_eq!(found("nothing of the kind", json!({}))[..], ["fs__read_file", "git__log"], "`of` is a word");
        assert_eq!(found("xyzzy", json!({})), [""; 0]);
    }

    #[test]
    fn no_words_find_everything_and_an_answer_says_what_it_left_out() {
        assert_eq!(found("", json!({})).len(), 4);
        assert_eq!(found("", json!({ "limit": 2 })), ["fs__read_file", "fs__writeFile", "2 more"]);
        let large = "x".repeat(BYTES);
        let tools = [tool("a__a", &large), tool("a__b", &large)];
        let answer = find(&tools, &Map::new()).unwrap();
        assert_eq!((answer["tools"].as_array().unwrap().len(), &answer["more"]), (1, &json!(1)));
    }

    #[test]
    fn a_question_of_the_wrong_kind_is_told_what_is_wrong() {
        for (arguments, word) in [(json!({ "query": 3 }), "query"), (json!({ "query": "", "limit": 0 }), "limit")] {
            assert!(find(&[], arguments.as_object().unwrap()).unwrap_err().contains(word));
        }
        assert!(wanted(Map::new()).unwrap_err().contains("find_tools"));
        let odd = json!({ "name": "a", "arguments": [] });
        assert!(wanted(odd.as_object().unwrap().clone()).is_err());
    }

    #[test]
    fn a_name_that_there_is_not_brings_those_that_are_near() {
        let names = ["fs__read_file", "fs__write_file", "git__log"].map(str::to_owned);
        let text = unknown("fs__raed_file", names.iter(), FIND);
        assert_eq!(
            text,
            "unknown tool: fs__raed_file; similar are fs__read_file, fs__write_file; find_tools tells which there are"
        );
        assert_eq!(unknown("zzz", names.iter(), FIND), "unknown tool: zzz; find_tools tells which there are");
    }
}
