//! Links from diagnostics to their documentation. The configuration reference is built in and written to the state
//! folder, so that links work offline and match this version.

use std::path::Path;
use std::sync::LazyLock;

use lsp_types::Url;

use super::convert;

const TEXT: &str = include_str!("../../docs/configuration.md");

/// The line of each diagnostic code in the reference. Counted from one, as in editor links.
static LINES: LazyLock<Vec<(&'static str, usize)>> = LazyLock::new(|| {
    let table = TEXT.lines().enumerate().skip_while(|(_, line)| *line != "## Diagnostics");
    table.filter_map(|(number, line)| Some((line.strip_prefix("| `")?.split_once('`')?.0, number + 1))).collect()
});

/// Writes the reference to a file; `None` if that fails, and then there are no links.
pub fn write(state: &Path) -> Option<Url> {
    let folder = state.join("docs");
    let path = folder.join("configuration.md");
    if std::fs::read(&path).ok().as_deref() != Some(TEXT.as_bytes()) {
        std::fs::create_dir_all(&folder).ok()?;
        crate::config::edit::write_atomically(&path, TEXT).ok()?;
    }
    convert::uri(&path)
}

/// The link to the documentation of a code.
pub fn link(reference: &Url, code: &str) -> Option<Url> {
    let (_, line) = LINES.iter().find(|(known, _)| *known == code)?;
    let mut link = reference.clone();
    link.set_fragment(Some(&format!("L{line}")));
    Some(link)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_links_to_the_line_that_documents_it() {
        let reference = Url::parse("file:///state/docs/configuration.md").unwrap();
        let link = link(&reference, "unset-variable").unwrap();
        let line: usize = link.fragment().unwrap().trim_start_matches('L').parse().unwrap();
        assert!(TEXT.lines().nth(line - 1).unwrap().starts_with("| `unset-variable` |"));
        assert_eq!(super::link(&reference, "unknown-code"), None);
    }
}
