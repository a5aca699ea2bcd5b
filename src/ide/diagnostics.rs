//! What is wrong with a config file, in the order in which it is read.

use crate::config::{File, Problem};

/// More complaints than this about one file help nobody.
const MOST: usize = 500;

/// The problems of a file, each once, worst first where two stand at the same place. `live` are those that its servers
/// have beside those of its text.
pub fn diagnostics(file: &File, live: Vec<Problem>) -> Vec<Problem> {
    let mut problems = file.problems.clone();
    problems.extend(live);
    problems.sort_by(|one, other| {
        let place = |problem: &Problem| (problem.span.start, problem.severity, problem.span.end);
        place(one).cmp(&place(other)).then_with(|| one.code.cmp(other.code))
    });
    problems.dedup();
    problems.truncate(MOST);
    problems
}

#[cfg(test)]
mod tests {
    use crate::config::{Severity, Source};
    use crate::model::Scope;

    use super::*;

    #[test]
    fn problems_come_in_reading_order_and_only_once() {
        let warning = Problem::warning("unknown-key", 5..8, "b");
        let problems = vec![
            warning.clone(),
            Problem::error("type", 5..8, "a"),
            warning,
            Problem::new(Severity::Hint, "hint", 0..1, "c"),
        ];
        let file = File {
            source: Source { path: std::path::Path::new("/mcp.json").into(), scope: Scope::Project, folder: None },
            exists: true,
            valid: true,
            servers: Vec::new(),
            problems,
            text: "".into(),
            tree: Default::default(),
        };
        let codes: Vec<_> = diagnostics(&file, Vec::new()).iter().map(|problem| problem.code).collect();
        assert_eq!(codes, ["hint", "type", "unknown-key"]);
    }
}
