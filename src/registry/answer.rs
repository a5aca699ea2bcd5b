//! The answers of the registry, as its published schema describes them. Fields that are not used are not read.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::model::{Error, Result};
use crate::text::{json_reason, one_line};

const MAX_NAME: usize = 200;
const MAX_TEXT: usize = 300;
/// More packages, arguments or variables than any server has.
const MAX_PARTS: usize = 100;

/// A server in the result of a search. All texts are safe to show.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedServer {
    pub name: String,
    pub title: Option<String>,
    pub description: String,
    pub version: String,
    pub is_deprecated: bool,
    /// How it can be used: `npm`, `pypi`, `oci`, `nuget`, `mcpb`, `http` or `sse`.
    pub package_types: Vec<String>,
    /// An earlier result whose name looks almost the same.
    pub looks_like: Option<String>,
}

/// A version of a server.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerDetail {
    pub name: String,
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub description: String,
    pub version: String,
    #[serde(default)]
    pub(super) packages: Option<Vec<Package>>,
    #[serde(default)]
    pub(super) remotes: Option<Vec<Remote>>,
    #[serde(skip)]
    pub is_deprecated: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Package {
    pub registry_type: String,
    pub identifier: String,
    #[serde(default)]
    pub version: Option<String>,
    #[serde(default)]
    pub transport: Option<Transport>,
    #[serde(default)]
    pub runtime_arguments: Vec<Argument>,
    #[serde(default)]
    pub package_arguments: Vec<Argument>,
    #[serde(default)]
    pub environment_variables: Vec<Named>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Transport {
    pub r#type: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Remote {
    pub r#type: String,
    pub url: String,
    #[serde(default)]
    pub headers: Vec<Named>,
    #[serde(default)]
    pub variables: BTreeMap<String, Input>,
}

/// A value that is fixed, or that the user enters.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Input {
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub is_required: bool,
    #[serde(default)]
    pub is_secret: bool,
    #[serde(default)]
    pub value: Option<String>,
    #[serde(default)]
    pub default: Option<String>,
    #[serde(default)]
    pub choices: Vec<String>,
}

/// A variable or a header.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Named {
    pub name: String,
    #[serde(flatten)]
    pub input: Input,
    #[serde(default)]
    pub variables: BTreeMap<String, Input>,
}

/// `--name value`, or a value without a name.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Argument {
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub value_hint: Option<String>,
    #[serde(flatten)]
    pub input: Input,
    #[serde(default)]
    pub variables: BTreeMap<String, Input>,
}

#[derive(Deserialize)]
struct Response {
    server: Value,
    #[serde(default, rename = "_meta")]
    meta: Value,
}

#[derive(Deserialize)]
struct List {
    servers: Vec<Value>,
    #[serde(default)]
    metadata: Value,
}

/// One page of a list.
pub(super) struct RegistryPage {
    pub servers: Vec<ListedServer>,
    pub invalid: usize,
    pub next: Option<String>,
}

/// One bad entry does not affect the others.
pub(super) fn list(text: &str) -> Result<RegistryPage> {
    let list: List = serde_json::from_str(text).map_err(|error| not_understood(&error))?;
    let next = list.metadata.get("nextCursor").and_then(Value::as_str).filter(|next| !next.is_empty());
    let (mut servers, mut invalid) = (Vec::new(), 0);
    for value in list.servers {
        match serde_json::from_value(value).ok().and_then(read) {
            Some((_, status)) if status == "deleted" => {}
            Some((detail, _)) => servers.push(detail.listed()),
            None => invalid += 1,
        }
    }
    Ok(RegistryPage { servers, invalid, next: next.map(str::to_owned) })
}

/// One server, which must be the one that was asked for.
pub(super) fn detail(text: &str, name: &str) -> Result<ServerDetail> {
    let response: Response = serde_json::from_str(text).map_err(|error| not_understood(&error))?;
    match read(response) {
        Some((detail, status)) if detail.name == name && status != "deleted" => Ok(detail),
        Some((detail, _)) if detail.name == name => {
            Err(Error::NotFound(format!("`{name}` was deleted from the registry")))
        }
        _ => Err(Error::Io(format!("the registry's answer about `{name}` is not valid"))),
    }
}

fn not_understood(error: &serde_json::Error) -> Error {
    Error::Io(format!("cannot parse the response of the registry: {}", json_reason(error)))
}

/// An entry that follows the rules of the registry, and its status.
fn read(response: Response) -> Option<(ServerDetail, String)> {
    let official = response.meta.get("io.modelcontextprotocol.registry/official");
    let status = official.and_then(|meta| meta.get("status")).and_then(Value::as_str).unwrap_or("active").to_owned();
    let mut detail: ServerDetail = serde_json::from_value(response.server).ok()?;
    detail.is_deprecated = status == "deprecated";
    let parts = detail.packages.iter().flatten().flat_map(|package| {
        [package.runtime_arguments.len(), package.package_arguments.len(), package.environment_variables.len()]
    });
    let headers = detail.remotes.iter().flatten().map(|remote| remote.headers.len());
    let offers = detail.packages.iter().map(Vec::len).chain(detail.remotes.iter().map(Vec::len));
    let is_small = parts.chain(headers).chain(offers).all(|count| count <= MAX_PARTS);
    (is_name(&detail.name) && is_version(&detail.version) && is_small).then_some((detail, status))
}

/// `io.github.user/weather`: only characters that look like themselves.
pub(super) fn is_name(name: &str) -> bool {
    let plain = |text: &str, extra: &str| {
        !text.is_empty()
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || extra.contains(c))
    };
    name.len() <= MAX_NAME && name.split_once('/').is_some_and(|(space, name)| plain(space, ".-") && plain(name, "._-"))
}

/// One version, not a range.
pub(super) fn is_version(version: &str) -> bool {
    version.len() <= MAX_NAME
        && version.starts_with(|c: char| c.is_ascii_alphanumeric())
        && version.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c))
        && version != "latest"
}

impl ServerDetail {
    /// How the server can be used, in the order of the registry.
    pub fn package_types(&self) -> Vec<String> {
        let packages = self.packages.iter().flatten().map(|package| package.registry_type.as_str());
        let remotes = self.remotes.iter().flatten().map(|remote| match remote.r#type.as_str() {
            "streamable-http" => "http",
            other => other,
        });
        let mut package_types: Vec<String> = Vec::new();
        for package_type in packages.chain(remotes).map(|package_type| one_line(package_type, 20)) {
            if !package_types.contains(&package_type) {
                package_types.push(package_type);
            }
        }
        package_types
    }

    fn listed(&self) -> ListedServer {
        ListedServer {
            name: self.name.clone(),
            title: self.title.as_deref().map(|title| one_line(title, MAX_TEXT)),
            description: one_line(&self.description, MAX_TEXT),
            version: self.version.clone(),
            is_deprecated: self.is_deprecated,
            package_types: self.package_types(),
            looks_like: None,
        }
    }
}

impl ListedServer {
    /// Whether it contains all words, which are in lower case.
    pub fn mentions(&self, words: &[String]) -> bool {
        let title = self.title.as_deref().unwrap_or_default();
        let text = format!("{} {title} {}", self.name, self.description).to_lowercase();
        words.iter().all(|word| text.contains(word))
    }
}

/// Marks names that look like an earlier one at a glance.
pub(super) fn mark_lookalikes(servers: &mut [ListedServer]) {
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    for server in servers {
        let look = crate::policy::lookalike::appearance(&server.name);
        match seen.get(&look) {
            Some(other) if *other != server.name => server.looks_like = Some(other.clone()),
            Some(_) => {}
            None => drop(seen.insert(look, server.name.clone())),
        }
    }
}
