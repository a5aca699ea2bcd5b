//! Variables that decide what a program does, whatever its command says.

/// What setting a variable can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Programs load other code, or other settings, which can name code.
    Code,
    /// Programs talk to another machine, or trust one.
    Traffic,
}

impl Effect {
    /// Completes `sets X, which can …`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Code => "make programs load other code",
            Self::Traffic => "redirect or reveal what programs send",
        }
    }
}

const CODE_PREFIXES: &str = "
    LD_ DYLD_ NPM_CONFIG_ PNPM_ YARN_ BUN_ DENO_ COREPACK_ PYTHON PIP_ PIPX_ UV_ POETRY_ CONDA_ GIT_ XDG_ PERL
    RUBY GEM_ BUNDLE_ JAVA_ JDK_JAVA MAVEN_ GRADLE_ DOTNET_ CORECLR_ COR_ COMPLUS_ CARGO_ RUSTC RUSTUP_ RUSTDOC
    GCONV_ LUA_ R_ PHP_ BASH_FUNC_ VOLTA_ ASDF_ MISE_ RTX_ PYENV_ RBENV_ NODENV_ NVM_ FNM_ GOENV_ JENV_ PIXI_ PDM_ DIRENV_ JULIA_ GUILE_ NIX_ ELECTRON_ NODE_OPTIONS NODE_PATH NODE_REPL_";
const CODE: &str = "
    PATH HOME USERPROFILE APPDATA SHELL EDITOR VISUAL PAGER BROWSER ENV BASH_ENV IFS ZDOTDIR PROMPT_COMMAND
    SHELLOPTS BASHOPTS PS4 INPUTRC TMPDIR TERMINFO LOCPATH NLSPATH CLASSPATH _JAVA_OPTIONS GOFLAGS GOPROXY GOPATH
    GOROOT GOENV GOTOOLCHAIN PHPRC NODE_ENV_FILE OPENSSL_CONF OPENSSL_MODULES OPENSSL_ENGINES KRB5_CONFIG
    SSH_ASKPASS SUDO_ASKPASS MAKEFLAGS DOCKER_CONFIG KUBECONFIG VIRTUAL_ENV
    MAKEFILES MFLAGS GNUMAKEFLAGS CDPATH GLOBIGNORE FPATH PUPPETEER_EXECUTABLE_PATH PLAYWRIGHT_BROWSERS_PATH
    CHROME_PATH CHROME_BIN FIREFOX_BIN CHROMEDRIVER_PATH AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE BOTO_CONFIG
    CLOUDSDK_CONFIG AZURE_CONFIG_DIR GNUPGHOME SSH_CONFIG CURL_HOME WGETRC NETRC PGSERVICEFILE PGSYSCONFDIR PSQLRC
    MYSQL_HOME ODBCINI ODBCSYSINI ORACLE_HOME TNS_ADMIN LESSOPEN LESSCLOSE MANPAGER AWKPATH AWKLIBPATH
    EMACSLOADPATH COMSPEC PATHEXT PSMODULEPATH";
const TRAFFIC: &str = "
    DOCKER_HOST SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS NODE_TLS_REJECT_UNAUTHORIZED REQUESTS_CA_BUNDLE
    CURL_CA_BUNDLE SSLKEYLOGFILE SSH_AUTH_SOCK RES_OPTIONS HOSTALIASES LOCALDOMAIN AWS_CA_BUNDLE AWS_ENDPOINT_URL
    GRPC_DEFAULT_SSL_ROOTS_FILE_PATH";
/// They match a prefix above, but are common and harmless.
const HARMLESS: &str = "
    PYTHONUNBUFFERED PYTHONIOENCODING PYTHONUTF8 PYTHONDONTWRITEBYTECODE PYTHONHASHSEED GIT_AUTHOR_NAME
    GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_TERMINAL_PROMPT PIP_DISABLE_PIP_VERSION_CHECK";

/// What a variable with this name can do. `None` if only the program itself knows it.
pub fn effect(name: &str) -> Option<Effect> {
    let name = name.to_ascii_uppercase();
    let is_in = |names: &str| names.split_whitespace().any(|known| known == name);
    match () {
        () if is_in(HARMLESS) => None,
        () if name.ends_with("_PROXY") || is_in(TRAFFIC) => Some(Effect::Traffic),
        () if is_in(CODE) || CODE_PREFIXES.split_whitespace().any(|prefix| name.starts_with(prefix)) => {
            Some(Effect::Code)
        }
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_load_code_are_known_in_any_case() {
        for name in [
            "node_options",
            "npm_config_registry",
            "LD_PRELOAD",
            "PYTHONPATH",
            "GIT_SSH",
            "HOME",
            "Path",
            "MAKEFILES",
            "CDPATH",
            "BASH_FUNC_tool%%",
            "PUPPETEER_EXECUTABLE_PATH",
            "AWS_CONFIG_FILE",
            "GNUMAKEFLAGS",
            "NODE_OPTIONS",
            "LESSOPEN",
        ] {
            assert_eq!(effect(name), Some(Effect::Code), "{name}");
        }
        assert_eq!(effect("https_proxy"), Some(Effect::Traffic));
        for name in ["NODE_ENV", "PYTHONUNBUFFERED", "GITHUB_TOKEN", "GOOGLE_API_KEY", "MODE", "RATE"] {
            assert_eq!(effect(name), None, "{name}");
        }
    }
}
