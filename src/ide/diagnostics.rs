//! The diagnostics of a config file, in file order.

use super::config_view::ConfigView;
use super::live;
use crate::config::{Code, Problem, Span};

/// The maximum number of diagnostics per file.
const MAX_DIAGNOSTICS: usize = 500;

/// The problems in the text of a file and with its servers.
pub fn diagnostics(config: &ConfigView<'_>) -> Vec<Problem> {
    let file = config.file;
    if !file.exists {
        return ordered(file.problems.clone());
    }
    let entries = config.entries();
    let holds = |span: &Span, problem: &Problem| span.start <= problem.span.start && problem.span.end <= span.end;
    let entry_of = |problem: &Problem| entries.iter().find(|entry| holds(&entry.span(), problem));
    let is_refuted = |problem: &&Problem| match problem.code {
        // A running server has found its program and its variables.
        Code::CommandNotFound | Code::UnsetVariable => entry_of(problem).is_some_and(live::runs),
        Code::NeedsTrust => match entry_of(problem) {
            Some(entry) => live::is_trusted(entry),
            // The problem applies to all servers of the file that run.
            None => {
                let mut running = entries.iter().filter(|entry| entry.definition.is_some_and(|one| one.spec.enabled));
                !entries.is_empty() && running.all(live::is_trusted)
            }
        },
        _ => false,
    };
    let mut problems: Vec<Problem> = file.problems.iter().filter(|problem| !is_refuted(problem)).cloned().collect();
    problems.extend(live::problems(config));
    ordered(problems)
}

/// Removes duplicates. ValueType problems at the same position, the most severe comes first.
fn ordered(mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.sort_by(|one, other| {
        let position = |problem: &Problem| (problem.span.start, problem.severity, problem.span.end);
        position(one).cmp(&position(other)).then_with(|| one.code.as_str().cmp(other.code.as_str()))
    });
    problems.dedup();
    problems.truncate(MAX_DIAGNOSTICS);
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ide::tests::Scene;

    #[test]
    fn problems_are_sorted_and_unique() {
        let warning = Problem::new(Code::UnknownKey, 5..8, "b");
        let problems = vec![
            warning.clone(),
            Problem::new(Code::WrongType, 5..8, "a"),
            warning,
            Problem::new(Code::OtherSpelling, 0..1, "c"),
        ];
        let codes: Vec<_> = ordered(problems).iter().map(|problem| problem.code).collect();
        assert_eq!(codes, [Code::OtherSpelling, Code::WrongType, Code::UnknownKey]);
    }

    #[test]
    fn a_running_server_has_no_missing_program() {
        let text = r#"{ "servers": { "a": { "command": "/surely/not/there" } } }"#;
        let codes =
            |scene: &Scene| -> Vec<Code> { diagnostics(&scene.config()).iter().map(|problem| problem.code).collect() };
        assert_eq!(codes(&Scene::new(text)), [Code::CommandNotFound]);
        let running = Scene::new(text).connected("a", &["x"]);
        assert_eq!(codes(&running), []);
        assert_eq!(codes(&running.typed(&text.replace("there", "here"))), [Code::CommandNotFound]);
    }

    #[test]
    fn trusted_levels_need_no_trust() {
        let text = r#"{ "servers": { "a": { "url": "https://x.test", "tools": { "x": "allow-session" } } } }"#;
        let count = |scene: &Scene| {
            diagnostics(&scene.config()).iter().filter(|problem| problem.code == Code::NeedsTrust).count()
        };
        assert_eq!(count(&Scene::new(text).untrusted("a")), 1);
        assert_eq!(count(&Scene::new(text)), 0);
        let more = text.replace("session", "always");
        assert_eq!(count(&Scene::new(text).typed(&more)), 1, "other levels were trusted");
    }

    #[test]
    fn a_rule_for_the_whole_file_needs_trust_only_in_servers_that_run() {
        let text = r#"{ "servers": { "a": { "url": "https://x.test" }, "off": { "command": "sh", "enabled": false } },
            "policy": { "allowlist": [{ "server": "a", "tool": "x" }] } }"#;
        let needs_trust =
            |scene: &Scene| diagnostics(&scene.config()).iter().any(|problem| problem.code == Code::NeedsTrust);
        assert!(needs_trust(&Scene::new(text).untrusted("a")));
        assert!(!needs_trust(&Scene::new(text).untrusted("off")));
    }
}
