//! The answers that a question takes, in the order in which every front shows them.

use super::approvals::{ALLOW_READ_ONLY, About, Approval, Kind, MAX_LISTED};
use crate::text::one_line;

/// One way to answer a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerChoice {
    /// A decision, or `accept`, `decline` or `cancel`.
    pub decision: &'static str,
    pub label: String,
    /// The label if only some questions of a group are answered.
    pub selected_label: Option<&'static str>,
    /// It lets something happen.
    pub grants: bool,
    /// It applies to later questions, too.
    pub lasts: bool,
    /// What has changed for later questions.
    pub effect: Option<Effect>,
}

/// What an answer has changed, as a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    pub text: String,
    /// The same without what the question has just said, for one line.
    pub short: String,
}

impl Approval {
    pub fn answers(&self) -> Vec<AnswerChoice> {
        self.options.iter().map(|decision| self.answer(decision)).collect()
    }

    pub(super) fn answer(&self, decision: &'static str) -> AnswerChoice {
        let trust = self.kind == Kind::Trust;
        // The label, and what has become of the tool or server if the answer lasts.
        let (label, effect) = match decision {
            "allow-once" if trust => ("Trust once", None),
            "allow-once" => ("Allow once", None),
            "allow-session" if trust => ("Trust for this session", Some("is trusted for this session")),
            "allow-session" => ("Allow for this session", Some("is allowed for this session")),
            ALLOW_READ_ONLY => ("Allow all read-only tools for this session", Some("")),
            "allow-project" if trust => ("Trust", Some("is trusted in this project")),
            "allow-project" => ("Allow in this project", Some("is allowed in this project")),
            "allow-always" if trust => ("Trust", Some("is trusted")),
            "allow-always" => ("Always allow", Some("is always allowed")),
            "deny" if trust => ("Do not trust", Some("is not trusted and does not start")),
            "deny" => ("Deny", None),
            "disable" => match &self.about {
                Some(About::Resource { .. }) => ("Disable this resource", Some("is disabled in this project")),
                Some(About::Prompt { .. }) => ("Disable this prompt", Some("is disabled in this project")),
                Some(About::AgentTool { .. }) | None => ("Disable this tool", Some("is disabled in this project")),
            },
            "accept" if self.url.is_some() => ("Open the page", None),
            "accept" => ("Accept", None),
            "decline" => ("Decline", None),
            _ => ("Cancel", None),
        };
        AnswerChoice {
            decision,
            label: label.to_owned(),
            selected_label: None,
            grants: grants(decision),
            lasts: effect.is_some(),
            effect: effect.map(|effect| match decision {
                ALLOW_READ_ONLY => {
                    let text =
                        format!("The tools that `{}` declares as read-only are allowed for this session.", self.server);
                    Effect { short: text.clone(), text }
                }
                _ => {
                    let until = if trust && keeps(decision) { " until its definition changes" } else { "" };
                    let (subject, short) = self.subject();
                    Effect { text: format!("{subject} {effect}{until}."), short: format!("{short} {effect}.") }
                }
            }),
        }
    }

    /// What the question is about, and only its name.
    fn subject(&self) -> (String, String) {
        let (kind, name) = match (&self.tool, &self.about) {
            (Some(tool), _) => ("tool", tool.as_str()),
            (None, Some(About::Resource { uri, .. })) => ("resource", uri.as_str()),
            (None, Some(About::Prompt { name })) => ("prompt", name.as_str()),
            (None, Some(About::AgentTool { name, target })) => {
                let text = format!("`{}` by `{}`", one_line(target.as_ref().unwrap_or(name), 80), self.server);
                return (text.clone(), text);
            }
            (None, None) => return (format!("The server `{}`", self.server), format!("`{}`", self.server)),
        };
        let short = format!("`{}`", one_line(name, 80));
        (format!("The {kind} {short} of `{}`", self.server), short)
    }
}

/// Whether trust is stored with the definition, and ends with it.
fn keeps(decision: &str) -> bool {
    matches!(decision, "allow-project" | "allow-always")
}

fn grants(decision: &str) -> bool {
    decision == "accept" || decision.starts_with("allow-")
}

/// The answers that several questions take together, the one that grants nothing first. For calls they are only about
/// these calls: a lasting grant must be decided for each tool.
pub fn shared_answers(questions: &[&Approval]) -> Vec<AnswerChoice> {
    let all = |kind: Kind| questions.iter().all(|question| question.kind == kind);
    let decisions: &[&'static str] = match () {
        () if questions.is_empty() => &[],
        () if all(Kind::Trust) => &["deny", "allow-project", "allow-session"],
        () if all(Kind::Tool) => &["deny", "allow-once"],
        () if questions.iter().all(|question| matches!(question.kind, Kind::Trust | Kind::Tool)) => &["deny"],
        () => &[],
    };
    // Arguments that are not in the list are shown only when their question is opened, so they are allowed one by one.
    let all_shown =
        questions.iter().all(|one| one.arguments.as_ref().is_none_or(|arguments| arguments.bytes() <= MAX_LISTED));
    let offered = decisions
        .iter()
        .filter(|decision| questions.iter().all(|one| one.options.contains(decision)))
        .filter(|decision| all_shown || !grants(decision));
    offered.map(|decision| shared_answer(decision, questions)).collect()
}

fn shared_answer(decision: &'static str, questions: &[&Approval]) -> AnswerChoice {
    let trust = questions.iter().all(|question| question.kind == Kind::Trust);
    let count = questions.len();
    let (label, selected_label) = match decision {
        "deny" if trust => ("Trust none".to_owned(), "Do not trust the selected servers"),
        "allow-session" => {
            (format!("Trust all {count} for this session"), "Trust the selected servers for this session")
        }
        "allow-project" => (format!("Trust all {count}"), "Trust the selected servers"),
        "allow-once" => (format!("Allow all {count} once"), "Allow the selected calls once"),
        _ => (format!("Deny all {count}"), "Deny the selected calls"),
    };
    let effect = shared_effect(decision, questions);
    let (grants, lasts) = (grants(decision), effect.is_some());
    AnswerChoice { decision, label, selected_label: Some(selected_label), grants, lasts, effect }
}

/// What has changed after all of these questions were answered in this way.
pub fn shared_effect(decision: &str, questions: &[&Approval]) -> Option<Effect> {
    if let [only] = questions {
        return only.answers().into_iter().find(|answer| answer.decision == decision)?.effect;
    }
    let servers: Vec<String> = questions.iter().map(|question| format!("`{}`", question.server)).collect();
    let (article, servers) = match servers.as_slice() {
        [_, _, _, _, ..] => ("", format!("{} servers", servers.len())),
        [others @ .., last] => ("The servers ", format!("{} and {last}", others.join(", "))),
        [] => return None,
    };
    let trust = questions.iter().all(|question| question.kind == Kind::Trust);
    let effect = match decision {
        _ if !trust => return None,
        "allow-project" => "are trusted in this project",
        "allow-session" => "are trusted for this session",
        _ => "are not trusted and do not start",
    };
    let until = if keeps(decision) { " until their definitions change" } else { "" };
    Some(Effect { text: format!("{article}{servers} {effect}{until}."), short: format!("{servers} {effect}.") })
}
