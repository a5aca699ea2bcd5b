//! A question of a server as a form in the terminal, with one line for each field.

use serde_json::{Value, json};

use super::engine_client::EngineClient;
use super::question::{answer_of, describe};
use super::style::{Color, Style};
use super::terminal::{self, Echo};
use crate::lsp_client::CommandError;
use crate::protocol::answers::CheckedForm;
use crate::protocol::commands::{ApprovalResolve, FormCheck};
use crate::protocol::errors::Violation;
use crate::protocol::form::{Field, FieldKind, Form};
use crate::protocol::types::{Approval, Object};
use crate::text::one_line;

/// Asks for the answer. The end of the input declines.
pub(super) async fn fill(engine: &EngineClient, question: &Approval) -> anyhow::Result<ApprovalResolve> {
    let content = ask(engine, question, "accept").await?;
    let decision = if content.is_some() { "accept" } else { "decline" };
    Ok(ApprovalResolve { content, ..ApprovalResolve::one(&question.id, decision) })
}

/// Asks for everything that this decision needs: the fields of the form, or just a yes. `None` if the user does not
/// agree.
pub(super) async fn ask(engine: &EngineClient, question: &Approval, decision: &str) -> anyhow::Result<Option<Value>> {
    terminal::eprint(&describe(question, Style::of_stderr()))?;
    if let Some(form) = fields_of(question) {
        return Ok(ask_fields(engine, question, form).await?.map(Value::Object));
    }
    let label = answer_of(question, decision).map(|answer| answer.label.as_str());
    let prompt = format!("  {}? [y] yes  [n] no: ", label.unwrap_or(decision));
    let typed = terminal::ask_decision(&prompt).await?.unwrap_or_default();
    Ok(matches!(typed.trim().to_lowercase().as_str(), "y" | "yes").then(|| json!({})))
}

/// The form, if there is something to fill in.
pub(super) fn fields_of(question: &Approval) -> Option<&Form> {
    question.form.as_ref().filter(|form| question.url.is_none() && !form.fields.is_empty())
}

async fn ask_fields(engine: &EngineClient, question: &Approval, form: &Form) -> anyhow::Result<Option<Object>> {
    let mut entered = Object::new();
    loop {
        for field in &form.fields {
            if !ask_field(engine, question, field, &mut entered).await? {
                return Ok(None);
            }
        }
        let checked = check(engine, question, &entered).await?;
        if checked.problems.is_empty() {
            return Ok(Some(checked.arguments));
        }
        // These concern several fields, so that the user has to go through them again.
        show(checked.problems.iter().map(|problem| problem.message.as_str()))?;
    }
}

/// Asks for one field until its value is valid. Returns false at the end of the input.
async fn ask_field(
    engine: &EngineClient,
    question: &Approval,
    field: &Field,
    entered: &mut Object,
) -> anyhow::Result<bool> {
    if let Some(help) = &field.help {
        terminal::eprint(&format!("  {}\n", Style::of_stderr().paint(Color::Dim, &one_line(help, 2_000))))?;
    }
    let echo = if field.kind == FieldKind::Secret { Echo::Off } else { Echo::On };
    loop {
        entered.shift_remove(&field.name);
        let Some(typed) = terminal::ask(&prompt(field), echo).await? else { return Ok(false) };
        let value = match (typed.trim(), &field.default) {
            ("", Some(default)) => default.clone(),
            ("", None) if !field.required => return Ok(true),
            ("", None) => {
                show(["this field is required; press Ctrl-D to stop"])?;
                continue;
            }
            (typed, _) => typed.into(),
        };
        entered.insert(field.name.clone(), value);
        let problems = check(engine, question, entered).await?.problems;
        let mut own = problems.iter().filter(|problem| is_about(problem, field)).peekable();
        if own.peek().is_none() {
            return Ok(true);
        }
        match field.kind {
            // A message would show what was typed.
            FieldKind::Secret => show([format!("this value is not valid; expected {}", field.rule).as_str()])?,
            _ => show(own.map(|problem| problem.message.as_str()))?,
        }
    }
}

async fn check(engine: &EngineClient, question: &Approval, entered: &Object) -> Result<CheckedForm, CommandError> {
    engine
        .call(FormCheck { tool: None, approval: Some(question.id.clone()), server: None, values: entered.clone() })
        .await
}

fn prompt(field: &Field) -> String {
    let titles = || field.choices.iter().map(|choice| choice.title.as_str()).collect::<Vec<_>>().join(", ");
    let hint = match field.kind {
        FieldKind::Choice => titles(),
        FieldKind::Choices => format!("{}; separate several with commas", titles()),
        FieldKind::Object | FieldKind::List => format!("{}, as JSON", field.rule),
        _ if field.rule == "text" => String::new(),
        _ => field.rule.clone(),
    };
    let hint = if hint.is_empty() { hint } else { format!(" ({})", one_line(&hint, 400)) };
    let default = match (&field.default, field.kind) {
        (None, _) => String::new(),
        (Some(_), FieldKind::Secret) => " [default: hidden]".to_owned(),
        (Some(default), _) => format!(" [{}]", one_line(&default.to_string(), 100)),
    };
    format!("  {}{hint}{default}: ", one_line(&field.title, 200))
}

/// Whether the problem is in the value of this field, or deeper.
fn is_about(problem: &Violation, field: &Field) -> bool {
    let first = problem.path.strip_prefix('/').and_then(|path| path.split('/').next());
    first.is_some_and(|name| name.replace("~1", "/").replace("~0", "~") == field.name)
}

fn show<'a>(problems: impl IntoIterator<Item = &'a str>) -> std::io::Result<()> {
    let style = Style::of_stderr();
    let mut problems = problems.into_iter();
    problems.try_for_each(|text| terminal::eprint(&format!("  {}\n", style.paint(Color::Bad, &one_line(text, 400)))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_says_what_can_be_entered_and_hides_secrets() {
        let schema = json!({ "properties": {
            "name": { "type": "string", "title": "Name" },
            "age": { "type": "integer", "minimum": 1, "default": 7 },
            "color": { "oneOf": [{ "const": "r", "title": "Red" }, { "const": "b", "title": "Blue" }] },
            "days": { "type": "array", "items": { "type": "string", "enum": ["Mon", "Tue"] } },
            "home": { "type": "object", "properties": { "city": { "type": "string" } } },
            "key": { "type": "string", "format": "password", "default": "hunter2" },
        } });
        let Value::Object(schema) = schema else { panic!("not an object") };
        let prompts: Vec<String> =
            Form::of_schema(&schema).fields.iter().map(|field| prompt(field).trim().to_owned()).collect();
        insta::assert_snapshot!(prompts.join("\n"), @r"
        Name:
        age (a whole number, at least 1) [7]:
        color (Red, Blue):
        days (Mon, Tue; separate several with commas):
        home (an object, as JSON):
        key [default: hidden]:
        ");
    }

    #[test]
    fn a_problem_belongs_to_the_field_that_its_path_begins_with() {
        let Value::Object(schema) = json!({ "properties": { "a/b": {}, "a": {} } }) else { panic!("not an object") };
        let form = Form::of_schema(&schema);
        let about = |path: &str| -> Vec<&str> {
            let problem = Violation { path: path.to_owned(), message: String::new() };
            form.fields.iter().filter(|field| is_about(&problem, field)).map(|field| field.name.as_str()).collect()
        };
        assert_eq!(about("/a~1b"), ["a/b"]);
        assert_eq!(about("/a/0/b"), ["a"]);
        assert!(about("").is_empty());
    }
}
