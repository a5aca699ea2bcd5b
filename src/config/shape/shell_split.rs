//! Splits a command line into arguments like a shell.

use serde_json::{Value, json};

/// Splits a line into words; `None` if a quote is not closed. Quotes and the braces of `${…}` group words. A backslash
/// is a normal character, because Windows paths contain it.
pub fn shell_split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut braces = 0usize;
    let mut before = ' ';
    for c in line.chars() {
        let inside = quote.is_some() || braces > 0;
        match c {
            _ if quote == Some(c) => quote = None,
            '"' | '\'' if !inside => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            c if c.is_whitespace() && !inside => words.extend(word.take()),
            c => {
                match c {
                    '{' if before == '$' => braces += 1,
                    '}' => braces = braces.saturating_sub(1),
                    _ => {}
                }
                word.get_or_insert_default().push(c);
            }
        }
        before = c;
    }
    words.extend(word);
    (quote.is_none() && braces == 0).then_some(words)
}

/// The definition of a server that the user typed as one line: a URL or a command line. An error says what is wrong.
pub fn definition_of_line(line: &str) -> Result<Value, &'static str> {
    let line = line.trim();
    if line.starts_with("http://") || line.starts_with("https://") {
        return Ok(json!({ "url": line }));
    }
    let words = shell_split(line).ok_or("expected a command line, found an unclosed quote")?;
    let (command, args) = words.split_first().ok_or("expected a command line or a URL, found nothing")?;
    Ok(if args.is_empty() { json!({ "command": command }) } else { json!({ "command": command, "args": args }) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_at_blanks_outside_of_quotes_and_references() {
        let cut = |line: &str| shell_split(line).map(|words| words.join("|"));
        assert_eq!(cut("npx -y  foo").as_deref(), Some("npx|-y|foo"));
        assert_eq!(cut(r#"--name "two words" --empty= ''"#).as_deref(), Some("--name|two words|--empty=|"));
        assert_eq!(cut(r#"--a="b c"d ${input:my key}"#).as_deref(), Some("--a=b cd|${input:my key}"));
        assert_eq!(cut("${A:-x y"), None);
        assert_eq!(cut("${A:-${B:-x y}} z").as_deref(), Some("${A:-${B:-x y}}|z"));
        assert_eq!(cut(r"C:\tools\x.exe -v").as_deref(), Some(r"C:\tools\x.exe|-v"));
        assert_eq!(cut("it's"), None);
        assert_eq!(cut("  ").as_deref(), Some(""));
    }
}
