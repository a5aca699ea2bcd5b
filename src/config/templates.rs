//! Templates for popular servers and for each type of server. Completion, the `mcp.templates` command and the command
//! line offer them.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A template for a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Template {
    /// Also the suggested name of the server.
    pub id: String,
    pub title: String,
    pub description: String,
    /// The entry of the server.
    pub config: Value,
    /// The entries of `inputs` that it needs.
    #[serde(default)]
    pub inputs: Vec<Value>,
    /// What the user has to replace: it stands for a package or an address, and must not be written as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<Placeholder>,
}

/// A value of a template that the user has to enter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placeholder {
    /// The name of its field in a form.
    pub field: String,
    pub title: String,
    /// The text in `config` that stands for it.
    pub value: String,
}

/// All templates: first specific servers, then one for each type.
pub fn templates() -> &'static [Template] {
    static TEMPLATES: LazyLock<Vec<Template>> =
        LazyLock::new(|| serde_json::from_str(include_str!("templates.json")).unwrap_or_default());
    &TEMPLATES
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use super::*;
    use crate::config::{Code, Content, Severity, Source, load};
    use crate::model::Scope;

    #[test]
    fn every_template_is_valid_and_has_the_inputs_that_it_needs() {
        assert!(templates().len() >= 20);
        let ids: BTreeSet<&str> = templates().iter().map(|template| template.id.as_str()).collect();
        assert_eq!(ids.len(), templates().len(), "ids are unique");
        for template in templates() {
            let file = serde_json::json!({ "servers": { &template.id: template.config }, "inputs": template.inputs });
            let source = Source { path: Path::new("/project/mcp.json").into(), scope: Scope::Project, folder: None };
            let text = Content::Text(file.to_string().into());
            let loaded = load(&[(source, text)], &BTreeMap::new(), &crate::settings::Settings::default().limits);
            // The program need not be installed on this machine.
            let bad = |problem: &&crate::config::Problem| {
                problem.severity <= Severity::Warning && problem.code != Code::CommandNotFound
            };
            let problems: Vec<_> = loaded.files[0].problems.iter().filter(bad).collect();
            assert!(problems.is_empty(), "{}: {problems:#?}", template.id);
        }
    }
}
