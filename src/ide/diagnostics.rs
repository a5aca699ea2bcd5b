//! What is wrong with a config file, in the order in which it is read.

use super::live;
use super::page::Page;
use crate::config::{File, Problem, Span};

/// More complaints than this about one file help nobody.
const MOST: usize = 500;

/// The problems of a file: those of its text, and those that its servers have.
pub fn diagnostics(page: &Page<'_>, file: &File) -> Vec<Problem> {
    if !file.exists {
        return ordered(file.problems.clone());
    }
    let entries = page.entries();
    let holds = |span: &Span, problem: &Problem| span.start <= problem.span.start && problem.span.end <= span.end;
    let entry_of = |problem: &Problem| entries.iter().find(|entry| holds(&entry.span(), problem));
    let refuted = |problem: &&Problem| match problem.code {
        // A server that runs as it is written has found its program and its variables, whatever the text looks like.
        "command-not-found" | "unset-variable" => entry_of(problem).is_some_and(live::runs),
        "needs-trust" => match entry_of(problem) {
            Some(entry) => live::is_trusted(entry),
            // Of the whole file: it counts for each server that was trusted with it.
            None => !entries.is_empty() && entries.iter().all(live::is_trusted),
        },
        _ => false,
    };
    let mut problems: Vec<Problem> = file.problems.iter().filter(|problem| !refuted(problem)).cloned().collect();
    problems.extend(live::live(page));
    ordered(problems)
}

/// Each once, worst first where two stand at the same place.
fn ordered(mut problems: Vec<Problem>) -> Vec<Problem> {
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
    use super::*;
    use crate::config::Severity;
    use crate::ide::tests::Scene;

    #[test]
    fn problems_come_in_reading_order_and_only_once() {
        let warning = Problem::warning("unknown-key", 5..8, "b");
        let problems = vec![
            warning.clone(),
            Problem::error("type", 5..8, "a"),
            warning,
            Problem::new(Severity::Hint, "hint", 0..1, "c"),
        ];
        let codes: Vec<_> = ordered(problems).iter().map(|problem| problem.code).collect();
        assert_eq!(codes, ["hint", "type", "unknown-key"]);
    }

    #[test]
    fn a_server_that_runs_has_found_its_program() {
        let text = r#"{ "servers": { "a": { "command": "/surely/not/there" } } }"#;
        let codes = |scene: &Scene| -> Vec<&str> {
            let file = scene.loaded.file(&scene.path).unwrap();
            diagnostics(&scene.page(), file).iter().map(|problem| problem.code).collect()
        };
        assert_eq!(codes(&Scene::new(text)), ["command-not-found"]);
        let running = Scene::new(text).connected("a", &["x"]);
        assert_eq!(codes(&running), [] as [&str; 0]);
        assert_eq!(codes(&running.typed(&text.replace("there", "here"))), ["command-not-found"]);
    }

    #[test]
    fn levels_that_were_trusted_need_no_more_trust() {
        let text = r#"{ "servers": { "a": { "url": "https://x.test", "tools": { "x": "allow-session" } } } }"#;
        let told = |scene: &Scene| {
            let file = scene.loaded.file(&scene.path).unwrap();
            diagnostics(&scene.page(), file).iter().filter(|problem| problem.code == "needs-trust").count()
        };
        assert_eq!(told(&Scene::new(text).untrusted("a")), 1);
        assert_eq!(told(&Scene::new(text)), 0);
        let more = text.replace("session", "always");
        assert_eq!(told(&Scene::new(text).typed(&more)), 1, "what was trusted were other levels");
    }
}
