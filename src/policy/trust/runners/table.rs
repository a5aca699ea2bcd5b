//! The package runners, and the files of a repository that decide what each of them runs.

use super::formats::Format;

pub struct Runner {
    pub programs: &'static [&'static str],
    /// Only with one of these arguments, if there are any.
    pub with: &'static [&'static str],
    pub files: &'static [SettingsFile],
    /// Where it looks for a program, by name.
    pub found_in: &'static [&'static str],
    /// Whether it runs packages in `node_modules`.
    pub packages: bool,
}

pub struct SettingsFile {
    pub names: &'static [&'static str],
    pub format: Format,
    /// Dotted keys. Empty: all of them. With `*` at the end, only the entries that an argument names, or all of a package
    /// whose scripts run.
    pub only: &'static [&'static str],
    pub harmless: &'static [&'static str],
}

const fn whole(names: &'static [&'static str]) -> SettingsFile {
    SettingsFile { names, format: Format::Whole, only: &[], harmless: &[] }
}

#[rustfmt::skip]
const NPMRC: SettingsFile = SettingsFile {
    names: &[".npmrc"], format: Format::Lines, only: &[],
    harmless: &[
        "audit", "audit-level", "auto-install-peers", "color", "dedupe-peer-dependents", "engine-strict", "fund", "heading",
        "hoist", "hoist-pattern", "init-author-email", "init-author-name", "init-author-url", "init-license", "init-version",
        "legacy-peer-deps", "link-workspace-packages", "lockfile", "loglevel", "message", "package-lock", "prefer-dedupe",
        "prefer-workspace-packages", "progress", "public-hoist-pattern", "resolution-mode", "save", "save-dev", "save-exact",
        "save-prefix", "save-workspace-protocol", "shamefully-hoist", "sign-git-commit", "sign-git-tag",
        "strict-peer-dependencies", "tag-version-prefix", "unicode", "update-notifier",
    ],
};
const PACKAGE: SettingsFile = SettingsFile {
    names: &["package.json"],
    format: Format::Json,
    only: &["packageManager", "devEngines", "bin.*", "scripts.*"],
    harmless: &[],
};
#[rustfmt::skip]
const BUNFIG: SettingsFile = SettingsFile {
    names: &["bunfig.toml"], format: Format::Toml, only: &[], harmless: &["install.exact", "install.lockfile", "telemetry", "test"],
};
#[rustfmt::skip]
const YARNRC: SettingsFile = SettingsFile {
    names: &[".yarnrc.yml"], format: Format::Yaml, only: &[],
    harmless: &["compressionLevel", "defaultSemverRangePrefix", "enableGlobalCache", "enableProgressBars", "enableTelemetry", "preferInteractive"],
};
const OLD_YARNRC: SettingsFile = SettingsFile { names: &[".yarnrc"], format: Format::Lines, only: &[], harmless: &[] };
const PNPM_WORKSPACE: SettingsFile = SettingsFile {
    names: &["pnpm-workspace.yaml", "pnpm-workspace.yml"],
    format: Format::Yaml,
    only: &[],
    harmless: &["catalog", "catalogs", "packages"],
};
const UV: SettingsFile = SettingsFile {
    names: &["uv.toml"],
    format: Format::Toml,
    only: &[],
    harmless: &["dev-dependencies", "default-groups", "package"],
};
#[rustfmt::skip]
const PYPROJECT: SettingsFile = SettingsFile {
    names: &["pyproject.toml"],
    format: Format::Toml,
    only: &["tool.uv", "tool.pip", "tool.hatch", "build-system", "project.scripts.*", "project.gui-scripts.*",
        "project.entry-points.console_scripts.*", "project.entry-points.gui_scripts.*", "tool.poetry.scripts.*", "tool.pdm.scripts"],
    harmless: &["tool.uv.dev-dependencies", "tool.uv.default-groups", "tool.uv.package"],
};
/// The settings of a Python project whose values are `module:function`.
pub const ENTRY_POINTS: &[&str] = &[
    "project.scripts.",
    "project.gui-scripts.",
    "project.entry-points.",
    "tool.poetry.scripts.",
    "tool.pdm.scripts",
    "options.entry_points",
];
const SETUP: SettingsFile =
    SettingsFile { names: &["setup.cfg"], format: Format::Sections, only: &["options.entry_points"], harmless: &[] };
const DENO: SettingsFile = SettingsFile {
    names: &["deno.json", "deno.jsonc"],
    format: Format::Json,
    only: &[],
    #[rustfmt::skip]
    harmless: &["bench", "compilerOptions", "exclude", "exports", "fmt", "license", "lint", "name", "publish", "test", "version"],
};
const COMPOSE: SettingsFile = whole(&[
    "compose.yaml",
    "compose.yml",
    "compose.override.yaml",
    "compose.override.yml",
    "docker-compose.yaml",
    "docker-compose.yml",
    "docker-compose.override.yaml",
    "docker-compose.override.yml",
    "docker-bake.hcl",
    "docker-bake.json",
    "Dockerfile",
    ".env",
]);
const PIP: SettingsFile =
    SettingsFile { names: &["pip.conf", "pip.ini"], format: Format::Lines, only: &[], harmless: &[] };
const NODE_PROGRAMS: &[&str] = &["node_modules/.bin/{}"];
const PYTHON_PROGRAMS: &[&str] = &[".venv/bin/{}", ".venv/bin/python", ".venv/Scripts/{}.exe", "__pypackages__/bin/{}"];

#[rustfmt::skip]
pub const RUNNERS: &[Runner] = &[
    Runner { programs: &["npx", "npm"], with: &[], files: &[NPMRC, PACKAGE], found_in: NODE_PROGRAMS, packages: true },
    Runner { programs: &["node"], with: &["--run"], files: &[PACKAGE], found_in: NODE_PROGRAMS, packages: true },
    Runner { programs: &["bunx", "bun"], with: &[], files: &[BUNFIG, NPMRC, PACKAGE], found_in: NODE_PROGRAMS, packages: true },
    Runner { programs: &["pnpm", "pnpx"], with: &[], files: &[PNPM_WORKSPACE, NPMRC, PACKAGE, whole(&[".pnpmfile.cjs", ".pnpmfile.mjs"])],
        found_in: NODE_PROGRAMS, packages: true },
    Runner { programs: &["yarn", "yarnpkg"], with: &[], files: &[YARNRC, OLD_YARNRC, NPMRC, PACKAGE, whole(&[".pnp.cjs", ".pnp.loader.mjs"])],
        found_in: NODE_PROGRAMS, packages: true },
    Runner { programs: &["uvx", "uv"], with: &[], files: &[UV, PYPROJECT, SETUP, PIP, whole(&[".python-version"])],
        found_in: PYTHON_PROGRAMS, packages: false },
    Runner { programs: &["uv"], with: &["run"], files: &[whole(&["setup.py"])], found_in: &[], packages: false },
    Runner { programs: &["pipx", "poetry", "pdm", "hatch", "rye"], with: &[], files: &[PIP, PYPROJECT, SETUP], found_in: PYTHON_PROGRAMS, packages: false },
    Runner { programs: &["deno"], with: &[], files: &[DENO, NPMRC], found_in: NODE_PROGRAMS, packages: true },
    Runner { programs: &["make", "gmake"], with: &[], files: &[whole(&["GNUmakefile", "makefile", "Makefile"])], found_in: &[], packages: false },
    Runner { programs: &["just"], with: &[], files: &[whole(&["justfile", "Justfile", ".justfile", ".env"])], found_in: &[], packages: false },
    Runner { programs: &["mise"], with: &[], files: &[whole(&["mise.toml", ".mise.toml", ".tool-versions"])], found_in: &[], packages: false },
    Runner { programs: &["docker", "podman"], with: &["compose", "build", "buildx", "bake", "stack"], files: &[COMPOSE], found_in: &[], packages: false },
    Runner { programs: &["docker-compose", "podman-compose"], with: &[], files: &[COMPOSE], found_in: &[], packages: false },
];

/// Whose `scripts` run. `node` only with `--run`.
pub const SCRIPT_RUNNERS: &[&str] = &["npm", "pnpm", "yarn", "yarnpkg", "bun", "node"];
/// Their commands that run a package instead of a script.
pub const PACKAGE_COMMANDS: &[&str] = &["exec", "x", "dlx", "create"];
/// Their commands that run the script of this name, or the one that is named next.
pub const SCRIPT_COMMANDS: &[&str] = &["run", "run-script", "start", "stop", "test"];
/// Words of a runner before the package that it runs.
#[rustfmt::skip]
pub const COMMANDS: &[&str] =
    &["run", "run-script", "exec", "x", "dlx", "create", "tool", "install", "compose", "build", "buildx", "bake", "up", "task"];
/// Flags of runners without a value: the word after them is not their value.
#[rustfmt::skip]
pub const PLAIN_FLAGS: &[&str] = &[
    "--", "-y", "--yes", "--offline", "-q", "--quiet", "-s", "--silent", "--no", "--no-install", "--prefer-offline",
    "--verbose", "--bun", "--isolated", "--no-cache", "--refresh", "--rm", "-A", "--allow-all",
];
/// What a package in `node_modules/.bin` could stand in for. Programs on the PATH count as well.
#[rustfmt::skip]
pub const TOOLS: &[&str] = &[
    "bash", "bun", "cmd", "corepack", "curl", "dash", "deno", "docker", "env", "git", "node", "nodejs", "npm", "npx", "pnpm",
    "powershell", "pwsh", "py", "python", "python3", "sh", "ssh", "tar", "uv", "uvx", "wget", "yarn", "zsh",
];
