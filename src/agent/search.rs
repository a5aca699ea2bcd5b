//! Offers two tools instead of a long list: an agent searches for a tool and calls it by name.
//!
//! A search finds the tools that would have been listed, and calls by name go through the gate like all calls.

mod index;

use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use crate::config::shape::did_you_mean;
use crate::text::one_line;
use index::{Index, distinct_words, words};

pub const FIND: &str = "find_tools";
pub const CALL: &str = "call_tool";

/// The default and the maximum number of tools in one result.
const DEFAULT_LIMIT: usize = 10;
const MAX_LIMIT: usize = 50;
/// The maximum size of one result. It always contains at least one tool.
const MAX_BYTES: usize = 64 << 10;
/// How many similar names are suggested for an unknown name.
const MAX_SUGGESTIONS: usize = 5;
/// Longer texts are not names of tools, and nothing is suggested for them.
const MAX_NAME_BYTES: usize = 200;

/// The two tools that the agent sees.
pub fn tools(servers: &[&str]) -> Vec<Value> {
    let servers = match servers {
        [] => "No server is running.".to_owned(),
        servers => format!("Servers: {}.", servers.join(", ")),
    };
    let query = json!({ "type": "string", "description": "What the tool should do, in a few words, or part of its name. Leave empty for all tools" });
    let limit = json!({ "type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "description": "Maximum number of tools to return" });
    let name = json!({ "type": "string", "description": "Name of the tool, as returned by find_tools" });
    let arguments = json!({ "type": "object", "description": "Arguments that match the inputSchema of the tool" });
    vec![
        json!({
            "name": FIND,
            "title": "Find tools",
            "description": format!(
                "Finds tools of this workspace by keywords and returns their names, descriptions and schemas. Call a tool with {CALL}. {servers}"
            ),
            "inputSchema": { "type": "object", "properties": { "query": query, "limit": limit }, "required": ["query"] },
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        }),
        json!({
            "name": CALL,
            "title": "Call a tool",
            "description": format!("Calls a tool that {FIND} returned. Returns the result of the tool."),
            "inputSchema": {
                "type": "object", "properties": { "name": name, "arguments": arguments }, "required": ["name"],
            },
        }),
    ]
}

/// All tools that can be found.
#[derive(Default)]
pub struct SearchableTools {
    tools: Vec<Value>,
    /// Made for the first search.
    index: OnceLock<Index>,
}

impl SearchableTools {
    pub fn new(tools: Vec<Value>) -> Self {
        Self { tools, index: OnceLock::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The tools that match, best first. An empty query finds all of them.
    fn ranked(&self, query: &str) -> Vec<&Value> {
        if distinct_words(query).is_empty() {
            return self.tools.iter().collect();
        }
        let index = self.index.get_or_init(|| Index::new(&self.tools));
        index.ranked(query).into_iter().filter_map(|place| self.tools.get(place)).collect()
    }
}

/// The result of `find_tools`, or an error message.
pub fn find(searched: &SearchableTools, arguments: &Map<String, Value>) -> Result<Value, String> {
    let query = match arguments.get("query") {
        None | Some(Value::Null) => "",
        Some(Value::String(query)) => query,
        Some(_) => return Err("`query` must be a string".to_owned()),
    };
    let limit = match arguments.get("limit") {
        None | Some(Value::Null) => DEFAULT_LIMIT,
        Some(limit) => match limit.as_u64().and_then(|limit| usize::try_from(limit).ok()) {
            Some(limit @ 1..) => limit.min(MAX_LIMIT),
            _ => return Err(format!("`limit` must be a whole number from 1 to {MAX_LIMIT}")),
        },
    };
    let found = searched.ranked(query);
    let total = found.len();
    let mut returned: Vec<Value> = Vec::new();
    let mut bytes = 0;
    for tool in found.into_iter().take(limit) {
        let tool = shortened(tool);
        bytes += tool.to_string().len();
        if bytes > MAX_BYTES && !returned.is_empty() {
            break;
        }
        returned.push(tool);
    }
    let left_out = total - returned.len();
    let mut answer = json!({ "tools": returned });
    if let Some(fields) = answer.as_object_mut().filter(|_| left_out > 0) {
        fields.insert("more".to_owned(), json!(left_out));
    }
    Ok(answer)
}

/// The name and the arguments in a call of `call_tool`.
pub fn parse_call(arguments: Map<String, Value>) -> Result<(String, Map<String, Value>), String> {
    let mut arguments = arguments;
    let name = match arguments.remove("name") {
        Some(Value::String(name)) => name,
        _ => return Err(format!("`name` must be the name of a tool; use {FIND} to find tools")),
    };
    match arguments.remove("arguments") {
        None | Some(Value::Null) => Ok((name, Map::new())),
        Some(Value::Object(inner)) => Ok((name, inner)),
        Some(_) => Err("`arguments` must be an object".to_owned()),
    }
}

/// The error for an unknown tool, with similar names.
pub fn unknown<'a>(name: &str, names: impl Iterator<Item = &'a String>, listed_by: &str) -> String {
    let names: Vec<&str> = names.map(String::as_str).collect();
    let mut text = format!("unknown tool `{}`", one_line(name, 200));
    let similar = similar_names(name, &names);
    match similar.is_empty() {
        true => text.push('.'),
        false => text.push_str(&format!("; did you mean `{}`?", similar.join("` or `"))),
    }
    text.push_str(&format!(" Use {listed_by} to see all tools."));
    text
}

/// The most similar names: by spelling, then by shared words.
fn similar_names<'a>(name: &str, names: &[&'a str]) -> Vec<&'a str> {
    if name.len() > MAX_NAME_BYTES {
        return Vec::new();
    }
    let words = distinct_words(name);
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
        if near.len() < MAX_SUGGESTIONS && !near.contains(&known) {
            near.push(known);
        }
    }
    near
}

/// The fields that a model needs to call a tool.
fn shortened(tool: &Value) -> Value {
    let keys = ["name", "title", "description", "inputSchema", "annotations"];
    keys.into_iter().filter_map(|key| Some((key.to_owned(), tool.get(key)?.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::costs::SEARCH_TOKENS;

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
        let answer = find(&SearchableTools::new(tools.into()), arguments.as_object().unwrap()).unwrap();
        let names = answer["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
        names.chain(answer.get("more").map(|more| format!("{more} more"))).collect()
    }

    #[test]
    fn the_best_match_comes_first_and_other_tools_are_left_out() {
        assert_eq!(found("read file", json!({}))[0], "fs__read_file");
        assert_eq!(found("write a file", json!({ "limit": 1 }))[0], "fs__writeFile");
        assert_eq!(found("history", json!({})), ["git__log"]);
        assert_eq!(found("nothing of the kind", json!({})).len(), 2, "`of` is a word");
        assert_eq!(found("xyzzy", json!({})), [""; 0]);
    }

    #[test]
    fn an_empty_query_finds_everything_and_the_result_says_how_many_are_left_out() {
        assert_eq!(found("", json!({})).len(), 4);
        assert_eq!(found("", json!({ "limit": 2 })), ["fs__read_file", "fs__writeFile", "2 more"]);
        let large = "x".repeat(MAX_BYTES);
        let tools = [tool("a__a", &large), tool("a__b", &large)];
        let answer = find(&SearchableTools::new(tools.into()), &Map::new()).unwrap();
        assert_eq!((answer["tools"].as_array().unwrap().len(), &answer["more"]), (1, &json!(1)));
    }

    #[test]
    fn invalid_arguments_are_reported() {
        for (arguments, word) in [(json!({ "query": 3 }), "query"), (json!({ "query": "", "limit": 0 }), "limit")] {
            assert!(find(&SearchableTools::default(), arguments.as_object().unwrap()).unwrap_err().contains(word));
        }
        assert!(parse_call(Map::new()).unwrap_err().contains("find_tools"));
        let odd = json!({ "name": "a", "arguments": [] });
        assert!(parse_call(odd.as_object().unwrap().clone()).is_err());
    }

    #[test]
    fn the_engine_knows_what_the_two_tools_cost() {
        let bytes: usize = tools(&[]).iter().map(|tool| shortened(tool).to_string().len()).sum();
        let estimated = crate::model::tokens::of_bytes(bytes);
        assert!(SEARCH_TOKENS.abs_diff(estimated) < 40, "{estimated}");
    }

    #[test]
    fn an_unknown_name_is_answered_with_similar_names() {
        let names = ["fs__read_file", "fs__write_file", "git__log"].map(str::to_owned);
        let text = unknown("fs__raed_file", names.iter(), FIND);
        assert_eq!(
            text,
            "unknown tool `fs__raed_file`; did you mean `fs__read_file` or `fs__write_file`? Use find_tools to see all tools."
        );
        assert_eq!(unknown("zzz", names.iter(), FIND), "unknown tool `zzz`. Use find_tools to see all tools.");
        assert!(!unknown(&"fs__read_file ".repeat(20), names.iter(), FIND).contains("did you mean"));
    }
}
