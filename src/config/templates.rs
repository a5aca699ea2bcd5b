//! Ready-made definitions of servers that many people use, and of each kind of server. Data only: completion, the
//! `mcp.templates` command and the shell offer them.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A definition to begin with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Template {
    /// Also a good name for the server.
    pub id: String,
    pub title: String,
    pub description: String,
    /// What stands under the server's name.
    pub config: Value,
    /// What has to stand in `inputs` beside it.
    #[serde(default)]
    pub inputs: Vec<Value>,
}

/// Every template: servers by name first, then one for each kind.
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
    use crate::config::{Content, Severity, Source, load};
    use crate::model::Scope;

    #[test]
    fn every_template_is_a_good_definition_with_the_inputs_that_it_needs() {
        assert!(templates().len() >= 20);
        let ids: BTreeSet<&str> = templates().iter().map(|template| template.id.as_str()).collect();
        assert_eq!(ids.len(), templates().len(), "an id stands for one template");
        for template in templates() {
            let file = serde_json::json!({ "servers": { &template.id: template.config }, "inputs": template.inputs });
            let source = Source { path: Path::new("/project/mcp.json").into(), scope: Scope::Project, folder: None };
            let text = Content::Text(file.to_string().into());
            let loaded = load(&[(source, text)], &BTreeMap::new(), &crate::settings::Settings::default().limits);
            // Whether the program is on this machine is not the template's business.
            let bad = |problem: &&crate::config::Problem| {
                problem.severity <= Severity::Warning && problem.code != "command-not-found"
            };
            let problems: Vec<_> = loaded.files[0].problems.iter().filter(bad).collect();
            assert!(problems.is_empty(), "{}: {problems:#?}", template.id);
        }
    }
}
