//! Turns a server of the registry into a definition. Nothing of it reaches a shell, the version is the one that the
//! registry names, and options that change how the runner itself works are refused.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Offer;
use super::answer::{Argument, Input, Named, Package, Remote, ServerDetail, is_version};
use super::inputs::{About, Inputs, fixed};
use crate::text::one_line;

/// Package types in order of preference, if the user names none.
const PREFERRED: [&str; 6] = ["npm", "pypi", "oci", "nuget", "http", "sse"];
/// The options of `docker run` that an entry may use. Others could open the machine.
const DOCKER_OPTIONS: [&str; 5] = ["-e", "--env", "-v", "--volume", "--mount"];
/// Flags without a value that are already there.
const USUAL_FLAGS: [&str; 6] = ["-y", "--yes", "-i", "--interactive", "--rm", "run"];
/// A container that cannot change its own files, and gets no rights.
const DOCKER: [&str; 8] =
    ["run", "-i", "--rm", "--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges"];

pub(super) fn offer(detail: &ServerDetail, package_type: Option<&str>) -> Result<Offer, String> {
    let name = server_name(&detail.name);
    let package_types = detail.package_types();
    let available = || if package_types.is_empty() { "none".to_owned() } else { package_types.join(", ") };
    let package_type = match package_type {
        Some(package_type) if package_types.iter().any(|known| known == package_type) => package_type,
        Some(package_type) => {
            return Err(format!(
                "`{}` is not available as `{}`; available: {}",
                detail.name,
                one_line(package_type, 20),
                available()
            ));
        }
        None => PREFERRED
            .into_iter()
            .find(|package_type| package_types.iter().any(|known| known == package_type))
            .ok_or_else(|| match package_types.iter().any(|package_type| package_type == "mcpb") {
                true => format!(
                    "`{}` is a bundle; download its .mcpb file and use `mcp-sidecar add --from-bundle FILE`",
                    detail.name
                ),
                false => {
                    format!("`{}` has no package that mcp-sidecar can run; available: {}", detail.name, available())
                }
            })?,
    };
    let mut parts = Parts { inputs: Inputs::new(&name), unset: Vec::new() };
    let package = detail.packages.iter().flatten().find(|package| package.registry_type == package_type);
    let config = match package {
        Some(package) => parts.package(package, package_type)?,
        None => {
            let kind = if package_type == "http" { "streamable-http" } else { package_type };
            let remote = detail.remotes.iter().flatten().find(|remote| remote.r#type == kind);
            parts.remote(remote.ok_or("this server has no address")?, package_type)?
        }
    };
    let mut notes = Vec::new();
    if detail.is_deprecated {
        notes.push("the registry says that this server is deprecated".to_owned());
    }
    if !parts.unset.is_empty() {
        notes.push(format!("optional and not set: {}", parts.unset.join(", ")));
    }
    Ok(Offer { name, config, inputs: parts.inputs.entries, notes })
}

/// The last part of the name, as the name of a server in a config file.
pub(super) fn server_name(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or_default();
    let plain: String = last.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(40).collect();
    let plain = plain.trim_matches('-');
    if plain.is_empty() { "server".to_owned() } else { plain.to_owned() }
}

struct Parts {
    inputs: Inputs,
    /// Optional variables without a value.
    unset: Vec<String>,
}

impl Parts {
    fn package(&mut self, package: &Package, package_type: &str) -> Result<Value, String> {
        if let Some(transport) = package.transport.as_ref().filter(|transport| transport.r#type != "stdio") {
            let kind = one_line(&transport.r#type, 30);
            return Err(format!("this package listens on a port (`{kind}`) and must be started by hand"));
        }
        let identifier = identifier(&package.identifier, package_type)?;
        let version = package.version.as_deref().filter(|version| !version.is_empty());
        if let Some(version) = version.filter(|version| !is_version(version)) {
            return Err(format!("`{}` is not a single version", one_line(version, 40)));
        }
        let pinned = |separator: &str| match version {
            Some(version) => Ok(format!("{identifier}{separator}{version}")),
            None => Err(format!("the registry has no version of `{identifier}`")),
        };
        let options = self.arguments(&package.runtime_arguments)?;
        let env = self.named(&package.environment_variables)?;
        let (command, mut args) = match package_type {
            "npm" => ("npx", vec!["-y".to_owned(), pinned("@")?]),
            "pypi" => ("uvx", vec![pinned("==")?]),
            "nuget" => ("dnx", vec![pinned("@")?, "--yes".to_owned(), "--".to_owned()]),
            "oci" => ("docker", docker(&options, &env, &identifier, version)?),
            _ => return Err(format!("packages of type `{}` are not supported", one_line(package_type, 20))),
        };
        if package_type != "oci"
            && let Some(option) = options.iter().find(|option| !USUAL_FLAGS.contains(&option.as_str()))
        {
            return Err(refused(command, option));
        }
        args.extend(self.arguments(&package.package_arguments)?);
        let mut config = json!({ "command": command, "args": args });
        if let (false, Some(fields)) = (env.is_empty(), config.as_object_mut()) {
            fields.insert("env".to_owned(), Value::Object(env));
        }
        Ok(config)
    }

    fn remote(&mut self, remote: &Remote, package_type: &str) -> Result<Value, String> {
        let url = self.filled(&remote.url, &remote.variables)?;
        let headers = self.named(&remote.headers)?;
        let mut config = json!({ "type": package_type, "url": url });
        if let (false, Some(fields)) = (headers.is_empty(), config.as_object_mut()) {
            fields.insert("headers".to_owned(), Value::Object(headers));
        }
        Ok(config)
    }

    fn arguments(&mut self, arguments: &[Argument]) -> Result<Vec<String>, String> {
        let mut words = Vec::new();
        for argument in arguments {
            let hint = argument.name.as_deref().or(argument.value_hint.as_deref()).unwrap_or("argument");
            // An optional value that the user did not choose is left out together with its flag.
            let value = self.value(hint, &argument.input, &argument.variables)?;
            match (&argument.name, value) {
                (Some(name), value) => {
                    let is_flag = value.is_none() && argument.value_hint.is_none() && !argument.input.is_required;
                    if value.is_some() || is_flag {
                        words.push(fixed(name)?);
                    }
                    words.extend(value);
                }
                (None, value) => words.extend(value),
            }
        }
        Ok(words)
    }

    fn named(&mut self, all: &[Named]) -> Result<Map<String, Value>, String> {
        let mut map = Map::new();
        for Named { name, input, variables } in all {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            if name.is_empty() || !name.chars().all(is_plain) {
                return Err(format!("`{}` is not the name of a variable or a header", one_line(name, 60)));
            }
            match self.value(name, input, variables)? {
                Some(value) => drop(map.insert(name.clone(), json!(value))),
                None => self.unset.push(name.clone()),
            }
        }
        Ok(map)
    }

    /// A fixed value, the default, or a question; `None` if it is optional and has no default.
    fn value(
        &mut self,
        name: &str,
        input: &Input,
        variables: &BTreeMap<String, Input>,
    ) -> Result<Option<String>, String> {
        match (&input.value, &input.default) {
            (Some(value), _) => self.filled(value, variables).map(Some),
            (None, Some(default)) if !input.is_required && !input.is_secret => fixed(default).map(Some),
            (None, _) if input.is_required => Ok(Some(self.inputs.ask(name, &About::from(input)))),
            _ => Ok(None),
        }
    }

    /// Replaces `{name}` by the answer to a question, if there is a variable of this name.
    fn filled(&mut self, text: &str, variables: &BTreeMap<String, Input>) -> Result<String, String> {
        fixed(text)?;
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let inner = after.split_once('}').and_then(|(name, behind)| Some((name, variables.get(name)?, behind)));
            let Some((name, variable, behind)) = inner else {
                filled.push_str(before);
                filled.push('{');
                rest = after;
                continue;
            };
            filled.push_str(before);
            filled.push_str(&match &variable.value {
                Some(value) => fixed(value)?,
                None => self.inputs.ask(name, &About::from(variable)),
            });
            rest = behind;
        }
        filled.push_str(rest);
        // `$` and `{…}` next to each other would be a separate reference.
        let own = self.inputs.entries.iter().filter_map(|entry| entry.get("id").and_then(Value::as_str));
        let without = own.fold(filled.clone(), |text, id| text.replace(&format!("${{input:{id}}}"), ""));
        fixed(&without).map(|_| filled)
    }
}

/// The name of a package. It must not look like an option of the runner.
fn identifier(text: &str, package_type: &str) -> Result<String, String> {
    let extra = if package_type == "oci" { "@._-/:" } else { "@._-/~" };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || extra.contains(c);
    let parts_ok = text.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    let starts_ok = text.starts_with(|c: char| c.is_ascii_alphanumeric() || (c == '@' && package_type == "npm"));
    let slashes = text.matches('/').count();
    let shape_ok = match package_type {
        "npm" => slashes == usize::from(text.starts_with('@')) && text.matches('@').count() <= 1,
        "oci" => true,
        _ => slashes == 0 && !text.contains('@'),
    };
    match starts_ok && parts_ok && shape_ok && text.len() <= 300 && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err(format!("`{}` is not the name of a package", one_line(text, 100))),
    }
}

fn refused(command: &str, option: &str) -> String {
    format!(
        "this entry changes how `{command}` runs (`{}`), which could expose your machine; add it by hand if you need it",
        one_line(option, 60)
    )
}

/// Whether a mount names a path of this machine that the user did not enter.
fn names_host_path(option: &str, value: &str) -> bool {
    let is_path = |source: &str| !source.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '$');
    match option {
        "-v" | "--volume" => is_path(value),
        "--mount" => value.split(',').any(|part| {
            let (key, source) = part.split_once('=').unwrap_or_default();
            matches!(key, "src" | "source") && is_path(source)
        }),
        _ => false,
    }
}

/// `docker run` with the variables by name only: their values are in `env`.
fn docker(
    options: &[String],
    env: &Map<String, Value>,
    identifier: &str,
    version: Option<&str>,
) -> Result<Vec<String>, String> {
    let mut args: Vec<String> = DOCKER.map(str::to_owned).into();
    let mut words = options.iter();
    while let Some(word) = words.next() {
        if USUAL_FLAGS.contains(&word.as_str()) {
            continue;
        }
        let value = words.next().filter(|value| !value.starts_with('-'));
        match value.filter(|value| DOCKER_OPTIONS.contains(&word.as_str()) && !names_host_path(word, value)) {
            Some(value) => args.extend([word.clone(), value.clone()]),
            None => return Err(refused("docker", word)),
        }
    }
    for name in env.keys() {
        args.extend(["-e".to_owned(), name.clone()]);
    }
    // The tag or the digest is usually part of the name.
    let last = identifier.rsplit('/').next().unwrap_or(identifier);
    args.push(match version {
        _ if last.contains([':', '@']) => identifier.to_owned(),
        Some(version) => format!("{identifier}:{version}"),
        None => return Err(format!("the registry has no version of `{identifier}`")),
    });
    Ok(args)
}
