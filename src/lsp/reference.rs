//! Where a complaint is explained: the reference of the config, which is built in and laid beside the state, so that a
//! link leads to it on every machine, without a network and in the words of this very version.

use std::path::Path;
use std::sync::LazyLock;

use tower_lsp::lsp_types::Url;

use super::convert;

const TEXT: &str = include_str!("../../docs/configuration.md");

/// The line of each code in the reference, counted from one, as editors do in links.
static LINES: LazyLock<Vec<(&'static str, usize)>> = LazyLock::new(|| {
    let table = TEXT.lines().enumerate().skip_while(|(_, line)| *line != "## Diagnostics");
    table.filter_map(|(number, line)| Some((line.strip_prefix("| `")?.split_once('`')?.0, number + 1))).collect()
});

/// Lays the reference down; `None` when there is no room for it, and then there are no links.
pub fn lay_down(state: &Path) -> Option<Url> {
    let folder = state.join("docs");
    let path = folder.join("configuration.md");
    if std::fs::read(&path).ok().as_deref() != Some(TEXT.as_bytes()) {
        std::fs::create_dir_all(&folder).ok()?;
        crate::config::edit::write_atomically(&path, TEXT).ok()?;
    }
    convert::uri(&path)
}

/// The place in it where a code is explained.
pub fn place(reference: &Url, code: &str) -> Option<Url> {
    let (_, line) = LINES.iter().find(|(known, _)| *known == code)?;
    let mut place = reference.clone();
    place.set_fragment(Some(&format!("L{line}")));
    Some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_leads_to_the_line_that_explains_it() {
        let reference = Url::parse("file:///state/docs/configuration.md").unwrap();
        let place = place(&reference, "unset-variable").unwrap();
        let line: usize = place.fragment().unwrap().trim_start_matches('L').parse().unwrap();
        assert!(TEXT.lines().nth(line - 1).unwrap().starts_with("| `unset-variable` |"));
        assert_eq!(super::place(&reference, "nothing-of-the-kind"), None);
    }
}
