//! Ranks tools by BM25 over their names, descriptions and parameters.
//!
//! The fields of a tool count with different weights, as in BM25F: a word in the name says more than one in the description.
//! We have our own index because crates for this rank plain texts, and bring stemmers and stop words of many languages.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// How much a word counts in each field.
const NAME: f64 = 4.0;
const DESCRIPTION: f64 = 1.0;
const PARAMETER: f64 = 0.5;
/// The usual constants of BM25: how fast repeated words stop to matter, and how much long texts are held back.
const K1: f64 = 1.2;
const B: f64 = 0.6;
/// A word of the query that is only the beginning of a word of the tool.
const PREFIX: f64 = 0.4;
/// How much of a query is used. All words are compared with all tools.
const MAX_QUERY_BYTES: usize = 1_000;
const MAX_QUERY_WORDS: usize = 32;
/// How long the beginning of a word must be.
const LEAST_PREFIX: usize = 3;

pub struct Index {
    tools: Vec<Indexed>,
    /// Word → in how many tools it is.
    tools_with: HashMap<String, usize>,
    average_length: f64,
}

struct Indexed {
    /// Word → how often it is there, weighted by field.
    words: HashMap<String, f64>,
    length: f64,
}

impl Index {
    pub fn new(tools: &[Value]) -> Self {
        let tools: Vec<Indexed> = tools.iter().map(Indexed::new).collect();
        let mut tools_with: HashMap<String, usize> = HashMap::new();
        for word in tools.iter().flat_map(|tool| tool.words.keys()) {
            *tools_with.entry(word.clone()).or_default() += 1;
        }
        let average_length = tools.iter().map(|tool| tool.length).sum::<f64>() / tools.len().max(1) as f64;
        Self { tools, tools_with, average_length }
    }

    /// The places of the tools that match, best first. Tools that match equally well keep their order.
    pub fn ranked(&self, query: &str) -> Vec<usize> {
        let wanted = distinct_words(query);
        let scored = self.tools.iter().enumerate().map(|(place, tool)| (self.score(tool, &wanted), place));
        let mut scored: Vec<(f64, usize)> = scored.filter(|(score, _)| *score > 0.0).collect();
        scored.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        scored.into_iter().map(|(_, place)| place).collect()
    }

    fn score(&self, tool: &Indexed, wanted: &[String]) -> f64 {
        let held_back = K1 * (1.0 - B + B * tool.length / self.average_length.max(f64::MIN_POSITIVE));
        let saturated = |count: f64| count * (K1 + 1.0) / (count + held_back);
        let of = |word: &String| match tool.words.get(word) {
            Some(count) => self.rarity(word) * saturated(*count),
            None => {
                let begun =
                    tool.words.iter().filter(|(own, _)| word.len() >= LEAST_PREFIX && own.starts_with(word.as_str()));
                let best = begun.map(|(own, count)| self.rarity(own) * saturated(*count));
                PREFIX * best.fold(0.0, f64::max)
            }
        };
        wanted.iter().map(of).sum()
    }

    /// Rare words say more than common ones. Never negative.
    fn rarity(&self, word: &str) -> f64 {
        let with = self.tools_with.get(word).copied().unwrap_or_default() as f64;
        (1.0 + (self.tools.len() as f64 - with + 0.5) / (with + 0.5)).ln()
    }
}

impl Indexed {
    fn new(tool: &Value) -> Self {
        let text = |tool: &Value, key: &str| tool.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut indexed = Self { words: HashMap::new(), length: 0.0 };
        indexed.add(&text(tool, "name"), NAME);
        indexed.add(&text(tool, "title"), DESCRIPTION);
        indexed.add(&text(tool, "description"), DESCRIPTION);
        let parameters = tool.pointer("/inputSchema/properties").and_then(Value::as_object);
        for (name, schema) in parameters.into_iter().flatten() {
            indexed.add(name, PARAMETER);
            indexed.add(&text(schema, "description"), PARAMETER);
        }
        indexed
    }

    fn add(&mut self, text: &str, weight: f64) {
        for word in words(text) {
            *self.words.entry(word).or_default() += weight;
            self.length += weight;
        }
    }
}

/// The first distinct words of a query or of a name that an agent sent.
pub fn distinct_words(query: &str) -> Vec<String> {
    let used = query.get(..query.floor_char_boundary(MAX_QUERY_BYTES)).unwrap_or_default();
    let mut wanted = words(used);
    if used.len() < query.len() {
        // The last one may be cut.
        wanted.pop();
    }
    let mut seen = HashSet::new();
    wanted.retain(|word| seen.insert(word.clone()));
    wanted.truncate(MAX_QUERY_WORDS);
    wanted
}

/// Letters and digits in lower case, without the endings of plurals and verbs; `readFiles`, `read_file` and `reads files` are
/// the same words.
pub fn words(text: &str) -> Vec<String> {
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
    words.map(stem).collect()
}

fn stem(word: &str) -> String {
    let long = |stem: &&str| stem.chars().count() >= 3;
    if let Some(stem) = word.strip_suffix("ies").filter(long) {
        return format!("{stem}y");
    }
    for ending in ["ches", "shes", "sses", "xes"] {
        if word.ends_with(ending) {
            return word.strip_suffix("es").unwrap_or(word).to_owned();
        }
    }
    let plural = word.strip_suffix('s').filter(long).filter(|stem| !stem.ends_with(['s', 'u', 'i']));
    plural.unwrap_or(word).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Tools as public servers describe them.
    fn tools() -> Vec<Value> {
        let tool = |name: &str, description: &str, parameters: &[(&str, &str)]| {
            let properties: serde_json::Map<String, Value> = parameters
                .iter()
                .map(|(name, about)| ((*name).to_owned(), json!({ "type": "string", "description": about })))
                .collect();
            json!({ "name": name, "description": description, "inputSchema": { "type": "object", "properties": properties } })
        };
        vec![
            tool("fs__read_file", "Read the complete contents of a file from the file system", &[("path", "")]),
            tool(
                "fs__write_file",
                "Create a new file or completely overwrite an existing file with new content",
                &[("path", ""), ("content", "")],
            ),
            tool("fs__list_directory", "Get a listing of all files and directories in a path", &[("path", "")]),
            tool("fs__search_files", "Search for files and directories that match a pattern", &[("pattern", "")]),
            tool("git__git_log", "Shows the commit logs", &[("repo_path", ""), ("max_count", "Number of commits")]),
            tool("git__git_commit", "Records changes to the repository", &[("message", "Commit message")]),
            tool("git__git_diff_staged", "Shows changes that are staged for commit", &[("repo_path", "")]),
            tool("github__create_issue", "Create a new issue in a GitHub repository", &[("title", ""), ("body", "")]),
            tool("github__list_issues", "List issues in a GitHub repository with filtering options", &[("state", "")]),
            tool("github__search_code", "Search for code across GitHub repositories", &[("q", "")]),
            tool(
                "time__get_current_time",
                "Get current time in a specific timezone",
                &[("timezone", "IANA timezone name")],
            ),
            tool(
                "fetch__fetch",
                "Fetches a URL from the internet and extracts its contents as markdown",
                &[("url", "")],
            ),
            tool("sqlite__read_query", "Execute a SELECT query on the SQLite database", &[("query", "The SQL query")]),
            tool("memory__create_entities", "Create multiple new entities in the knowledge graph", &[("entities", "")]),
        ]
    }

    fn best(query: &str, count: usize) -> Vec<String> {
        let tools = tools();
        let ranked = Index::new(&tools).ranked(query);
        ranked.into_iter().take(count).map(|place| tools[place]["name"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_tool_that_people_mean_comes_first() {
        for (query, expected) in [
            ("read a file", "fs__read_file"),
            ("write file", "fs__write_file"),
            ("list directories", "fs__list_directory"),
            ("find files by pattern", "fs__search_files"),
            ("commit history log", "git__git_log"),
            ("commit my changes", "git__git_commit"),
            ("staged diff", "git__git_diff_staged"),
            ("open a new issue on github", "github__create_issue"),
            ("search code", "github__search_code"),
            ("what time is it in a timezone", "time__get_current_time"),
            ("download url", "fetch__fetch"),
            ("run sql select", "sqlite__read_query"),
            ("knowledge graph entity", "memory__create_entities"),
            ("listIssues", "github__list_issues"),
        ] {
            assert_eq!(best(query, 1), [expected], "{query}");
        }
    }

    #[test]
    fn rare_words_count_more_than_common_ones_and_repetition_saturates() {
        assert_eq!(best("github repository search", 1), ["github__search_code"]);
        let stuffed = json!({ "name": "spam__x", "description": "file ".repeat(200) });
        let mut tools = tools();
        tools.push(stuffed);
        let ranked = Index::new(&tools).ranked("read file");
        assert_eq!(tools[ranked[0]]["name"], "fs__read_file");
    }

    #[test]
    fn parameters_and_beginnings_of_words_are_found_and_other_tools_are_not() {
        assert_eq!(best("iana", 5), ["time__get_current_time"]);
        assert_eq!(best("zone", 5), [""; 0], "only beginnings");
        assert_eq!(best("sql", 1), ["sqlite__read_query"]);
        assert_eq!(best("xyzzy", 5), [""; 0]);
        assert_eq!(best("", 5), [""; 0]);
    }

    #[test]
    fn words_are_split_and_lose_their_endings() {
        assert_eq!(
            words("readFiles list_entries HTTPServer branches"),
            ["read", "file", "list", "entry", "httpserver", "branch"]
        );
        assert_eq!(distinct_words(&"word file Words ".repeat(200_000)), ["word", "file"]);
        let many: String = (0..1_000).map(|number| format!("w{number} ")).collect();
        assert_eq!(distinct_words(&many).len(), MAX_QUERY_WORDS);
        assert_eq!(words("status this class 4 bus"), ["status", "this", "class", "4", "bus"]);
    }
}
