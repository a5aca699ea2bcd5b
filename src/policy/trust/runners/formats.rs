//! The settings in a file of a package runner: dotted key → value.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::config::tree;

#[derive(Clone, Copy)]
pub enum Format {
    /// `key=value`, or `key value`.
    Lines,
    /// `key: value`, with indented lines below.
    Yaml,
    Toml,
    Json,
    /// `[section]` lines, then `key = value` with indented lines below.
    Sections,
    /// Every change counts.
    Whole,
}

/// `None` if the file counts as a whole: what cannot be read in only one way is not read.
pub fn settings(format: Format, text: &str) -> Option<BTreeMap<String, String>> {
    match format {
        Format::Whole => None,
        Format::Lines if is_plain(text) => Some(lines(text)),
        Format::Yaml if is_plain(text) => Some(yaml(text)),
        Format::Sections if is_plain(text) => Some(sections(text)),
        Format::Lines | Format::Yaml | Format::Sections => None,
        Format::Toml => {
            let table = text.parse::<toml::Table>().ok()?;
            Some(leaves(&serde_json::to_value(&table).ok()?, usize::MAX))
        }
        Format::Json => json(text).map(|value| leaves(&with_bins(value), 2)),
    }
}

/// Whether every program sees the same lines in a text: without control characters, and without other line breaks.
fn is_plain(text: &str) -> bool {
    !text.contains(|c: char| c.is_control() && !"\n\r\t".contains(c) || matches!(c, '\u{2028}' | '\u{2029}'))
}

/// npm and yarn end a line at a single carriage return, too.
fn split_lines(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\n', '\r'])
}

/// `None` if it does not parse: a runner may read more of it.
pub fn json(text: &str) -> Option<Value> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_json::from_str(text).ok().or_else(|| {
        let tree = tree::parse(text, 64);
        if tree.valid() { tree.root.map(|root| root.to_value()) } else { None }
    })
}

/// `bin` can be a string, for the name of the package.
fn with_bins(mut package: Value) -> Value {
    let name = package.get("name").and_then(Value::as_str).and_then(|name| name.rsplit('/').next()).map(str::to_owned);
    if let (Some(name), Some(bin)) = (name, package.get_mut("bin").filter(|bin| bin.is_string())) {
        *bin = Value::Object([(name, bin.take())].into_iter().collect());
    }
    package
}

/// A value on one line.
pub fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The values by dotted key, down to this depth.
fn leaves(value: &Value, depth: usize) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![(String::new(), value, depth)];
    while let Some((key, value, depth)) = open.pop() {
        match value.as_object().filter(|object| depth > 0 && !object.is_empty()) {
            Some(object) => open.extend(object.iter().map(|(name, value)| {
                let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                (key, value, depth - 1)
            })),
            // A key can contain dots itself.
            None => append(&mut found, &key, &shown(value)),
        }
    }
    found
}

/// `key=value` lines; in files without `=`, `key value` lines.
fn lines(text: &str) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for line in split_lines(text).map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';'])) {
        let (key, value) = line.split_once('=').or_else(|| line.split_once(' ')).unwrap_or((line, ""));
        append(&mut found, key.trim(), value.trim());
    }
    found
}

/// The keys of the first level, each with everything below it.
fn yaml(text: &str) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let mut current: Option<(usize, String)> = None;
    for line in split_lines(text).filter(|line| !line.trim().is_empty() && !line.trim().starts_with('#')) {
        let indent = line.len() - line.trim_start().len();
        match &current {
            Some((first, key)) if indent > *first => append(&mut found, key, line.trim()),
            _ => {
                let (key, value) = line.split_once(':').unwrap_or((line, ""));
                let key = key.trim().trim_matches(['"', '\'']).to_owned();
                append(&mut found, &key, value.trim());
                let first = current.as_ref().map_or(indent, |(first, _)| *first);
                current = Some((first, key));
            }
        }
    }
    found
}

fn append(found: &mut BTreeMap<String, String>, key: &str, value: &str) {
    let entry = found.entry(key.to_owned()).or_default();
    if !entry.is_empty() && !value.is_empty() {
        entry.push(' ');
    }
    entry.push_str(value);
}

fn sections(text: &str) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let (mut section, mut current) = ("", String::new());
    for line in split_lines(text).filter(|line| !line.trim().is_empty() && !line.trim().starts_with(['#', ';'])) {
        if let Some(name) = line.strip_prefix('[') {
            section = name.split(']').next().unwrap_or(name).trim();
        } else if line.starts_with([' ', '\t']) && !current.is_empty() {
            append(&mut found, &current, line.trim());
        } else {
            let (key, value) = line.split_once(['=', ':']).unwrap_or((line, ""));
            current = format!("{section}.{}", key.trim());
            append(&mut found, &current, value.trim());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The settings as `key=value`.
    fn read(format: Format, text: &str) -> Vec<String> {
        let found = settings(format, text).unwrap_or_else(|| panic!("{text:?} counts as a whole"));
        found.iter().map(|(key, value)| format!("{key}={value}")).collect()
    }

    #[test]
    fn lines_that_programs_split_differently_count_as_a_whole() {
        for format in [Format::Lines, Format::Yaml, Format::Sections] {
            for text in ["a: 1\u{85}b: 2", "a: 1\u{2028}b: 2", "a: 1\u{b}b: 2", "a\0"] {
                assert!(settings(format, text).is_none(), "{text:?}");
            }
            assert!(settings(format, "a: 1\r\n\tb: 2").is_some());
        }
        assert!(settings(Format::Whole, "a: 1").is_none());
    }

    #[test]
    fn a_key_of_lines_ends_at_an_equals_sign_or_a_blank() {
        assert_eq!(
            read(Format::Lines, "  # x\n a = b c \n;y\n\nyarn-path ./x\nflag\n"),
            ["a=b c", "flag=", "yarn-path=./x"]
        );
        assert_eq!(read(Format::Lines, "a=1\na=\na=2\nb\nb=3\n"), ["a=1 2", "b=3"], "repeated keys");
    }

    #[test]
    fn a_yaml_file_has_the_keys_of_its_first_level_with_all_that_is_below_them() {
        let text = "  \n   # x\na:\n  b: 1\n \n  # y\n    - c\n'd' :  2\ne\n";
        assert_eq!(read(Format::Yaml, text), ["a=b: 1 - c", "d=2", "e="]);
        assert_eq!(read(Format::Yaml, "  a: 1\n  b:\n    c\n"), ["a=1", "b=c"], "all keys can be indented");
    }

    #[test]
    fn a_key_of_sections_has_indented_lines_below_it() {
        let text = " \n ; x\n# y\n first = 1\n[ options ]\nkeys = a\n  b\n \n\tc\nother: d\n[next]\nplain\n";
        assert_eq!(read(Format::Sections, text), [".first=1", "next.plain=", "options.keys=a b c", "options.other=d"]);
    }

    #[test]
    fn a_json_file_has_dotted_keys_down_to_the_second_level() {
        let text = r#"{ "a": { "b": { "c": 1 }, "d": {} }, "e": {}, "f": [true] }"#;
        assert_eq!(read(Format::Json, text), [r#"a.b={"c":1}"#, "a.d={}", "e={}", "f=[true]"]);
        assert_eq!(read(Format::Json, r#"{ "name": "@s/n", "bin": "x.js" }"#), ["bin.n=x.js", "name=@s/n"]);
        assert_eq!(read(Format::Json, "\u{feff}{ // comment\n \"a\": 1, }"), ["a=1"]);
        assert!(settings(Format::Json, "{ \"a\": ").is_none());
    }

    #[test]
    fn a_toml_file_has_dotted_keys_of_all_levels() {
        assert_eq!(read(Format::Toml, "[a.b]\nc = { d = 1 }\ne = ['x']\n"), ["a.b.c.d=1", r#"a.b.e=["x"]"#]);
        assert!(settings(Format::Toml, "a = [").is_none());
    }
}
