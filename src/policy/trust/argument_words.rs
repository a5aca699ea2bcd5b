//! The words of an argument that may name a file, a folder or a program. Arguments can be scripts for a shell.

/// Characters that separate words inside of a word, as in `--import=./hook.js` and `a.jar:b.jar`.
const INNER: &[char] = &[' ', '\t', '\n', '\r', '=', ';', '\'', '"', ',', '&', '|', '(', ')', '<', '>', ':', '`', '$'];

/// A path of this length cannot be opened.
const LONGEST: usize = 4_096;

/// The whole argument, its words as a shell would split it, and the parts of these. In the order in which they occur.
pub fn words(argument: &str) -> Vec<String> {
    split(argument).into_iter().map(|(word, _)| word).collect()
}

/// The same; each with whether it is only a part of a word.
pub fn split(argument: &str) -> Vec<(String, bool)> {
    let mut words = vec![(argument.to_owned(), false)];
    // `env -S` reads `\_` as a blank.
    for word in shell_words(&argument.replace("\\_", " ")) {
        let parts = word.split(INNER).chain(glued(&word)).filter(|part| !part.is_empty() && *part != word);
        let parts: Vec<_> = parts.map(|part| (part.to_owned(), true)).collect();
        words.push((word, false));
        words.extend(parts);
    }
    // Nothing else can name a file.
    words.retain(|(word, _)| !word.is_empty() && word.len() < LONGEST && !word.contains('\0'));
    words.dedup();
    words
}

/// The value of a short flag that is written without a blank: `-fscript`, `-Cfolder`.
pub fn glued(word: &str) -> Option<&str> {
    let rest = word.strip_prefix('-')?;
    let flag = rest.chars().next().filter(|c| c.is_ascii_alphabetic())?;
    rest.get(flag.len_utf8()..).filter(|value| !value.is_empty())
}

/// Splits like a shell: at blanks and operators, but not in quotes or after a backslash. An unclosed quote ends with
/// the text.
fn shell_words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let end = words.len() - 1;
        let Some(word) = words.get_mut(end) else { break };
        match c {
            c if quote == Some(c) => quote = None,
            '\'' | '"' if quote.is_none() => quote = Some(c),
            '\\' if quote != Some('\'') => word.extend(chars.next()),
            c if quote.is_none() && (c.is_whitespace() || ";&|()<>`".contains(c)) => words.push(String::new()),
            c => word.push(c),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_split_like_a_shell_would_and_at_its_inner_separators() {
        assert_eq!(words("server.py"), ["server.py"]);
        assert_eq!(words("--import=./a.js"), ["--import=./a.js", "--import", "./a.js"]);
        let script = "cd sub&&exec\tsh 'a b.sh' c\\ d.sh<e.txt";
        assert_eq!(
            words(script)[1..],
            ["cd", "sub", "exec", "sh", "a b.sh", "a", "b.sh", "c d.sh", "c", "d.sh", "e.txt"]
        );
        assert_eq!(words("a.jar:b.jar")[1..], ["a.jar", "b.jar"]);
        assert_eq!(words("'open"), ["'open", "open"]);
        assert_eq!(words("\"it's a\" b")[1..], ["it's a", "it", "s", "a", "b"]);
        assert_eq!(words(r"'a\' b")[1..], [r"a\", "b"]);
        assert_eq!(words(""), [""; 0]);
        assert_eq!(words("a  a"), ["a  a", "a"]);
        assert_eq!(words("-Csub"), ["-Csub", "sub"]);
        assert_eq!(words("a\0b c")[..], ["c"]);
        let (long, longer) = ("x".repeat(LONGEST - 1), "x".repeat(LONGEST));
        assert_eq!(words(&format!("{longer}:{long}")), [long]);
        assert_eq!(words("sh\\_a.txt")[1..], ["sh", "a.txt"]);
    }
}
