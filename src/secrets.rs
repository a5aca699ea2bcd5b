//! Saved secrets: answers to inputs, `${keyring:…}` and sign-ins, in the OS keyring.
//!
//! A machine without a keyring (a server, a container) saves nothing, unless the user allows a file. The keyring may
//! ask the user to unlock it, so one thread talks to it and everything else waits with a timeout. The list of names is
//! a file next to the database; it contains no values.

mod entry_lock;
mod vault;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::config::spec::Input;
use crate::model::{Error, Result};
use crate::paths::Paths;
use crate::paths::canonical;
use crate::text::{Secret, io_reason};
pub use entry_lock::EntryLock;
use vault::{FileVault, Names};

/// The service name of our keyring entries.
const SERVICE: &str = "mcp-sidecar";
/// Long enough to type a password into the unlock dialog.
const UNLOCK_TIMEOUT: Duration = Duration::from_secs(120);
const QUEUE: usize = 256;

/// A handle to the keyring. Cheap to clone.
#[derive(Clone)]
pub struct Keyring {
    /// Starts the thread on first use: most workspaces have no secrets.
    jobs: Arc<LazyJobs>,
    /// Whether the user allows a file if there is no keyring.
    file_allowed: Arc<AtomicBool>,
    /// For locks between processes.
    folder: Arc<Path>,
}

type Job = Box<dyn FnOnce(&Owner) + Send>;
/// The channel to the thread, which starts with the first job.
type LazyJobs = LazyLock<mpsc::Sender<Job>, Box<dyn FnOnce() -> mpsc::Sender<Job> + Send>>;

/// The state of the keyring thread.
struct Owner {
    names: Names,
    file: FileVault,
    file_allowed: Arc<AtomicBool>,
    backend: Backend,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backend {
    System,
    /// Behaves as if there were no keyring.
    Absent,
}

/// The name of an input's saved answer. An input of a project belongs to its file, so another project with an input of
/// the same id does not get this answer.
pub fn input_name(input: &Input) -> String {
    match (&input.file, input.scope.needs_trust()) {
        (Some(file), true) => format!("input:{} of {}", input.id, canonical(file).display()),
        _ => format!("input:{}", input.id),
    }
}

/// The name of `${keyring:name}`.
pub fn keyring_name(name: &str) -> String {
    format!("keyring:{name}")
}

impl Keyring {
    pub fn open(paths: &Paths) -> Self {
        Self::with(&paths.state_dir, Backend::System)
    }

    /// For an isolated engine: behaves as if the system had no keyring.
    pub fn without_system(paths: &Paths) -> Self {
        Self::with(&paths.state_dir, Backend::Absent)
    }

    fn with(folder: &Path, backend: Backend) -> Self {
        let file_allowed = Arc::new(AtomicBool::new(false));
        let owner = Owner {
            names: Names::new(folder),
            file: FileVault::new(folder),
            file_allowed: file_allowed.clone(),
            backend,
        };
        let start = move || {
            let (jobs, mut receiver) = mpsc::channel::<Job>(QUEUE);
            let started = std::thread::Builder::new().name("keyring".to_owned()).spawn(move || {
                while let Some(job) = receiver.blocking_recv() {
                    job(&owner);
                }
            });
            if let Err(error) = started {
                tracing::error!(%error, "cannot start the keyring thread; no secrets can be saved");
            }
            jobs
        };
        Self { jobs: Arc::new(LazyLock::new(Box::new(start))), file_allowed, folder: folder.into() }
    }

    /// Applies the setting `secrets`: whether a file that only the user can read may replace a missing keyring.
    pub fn allow_file(&self, allowed: bool) {
        self.file_allowed.store(allowed, Ordering::Release);
    }

    /// The value saved under a name, if any.
    pub async fn get(&self, name: &str) -> Result<Option<Secret>> {
        Ok(self.read(name).await?.map(Secret::new))
    }

    /// The same for a value that contains secrets. The caller registers them.
    pub async fn get_compound(&self, name: &str) -> Result<Option<Secret>> {
        Ok(self.read(name).await?.map(Secret::plain))
    }

    async fn read(&self, name: &str) -> Result<Option<String>> {
        let name = name.to_owned();
        self.run(move |owner| owner.get(&name)).await
    }

    pub async fn set(&self, name: &str, value: &Secret) -> Result<()> {
        let (name, value) = (name.to_owned(), value.clone());
        self.run(move |owner| owner.set(&name, &value)).await
    }

    /// Removes a value; succeeds if there is none.
    pub async fn remove(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.run(move |owner| owner.remove(&name)).await
    }

    /// Keeps other processes from changing a value that is replaced in several steps. Waits until they have finished.
    pub async fn lock(&self, name: &str) -> Result<Option<EntryLock>> {
        entry_lock::lock(&self.folder, name).await
    }

    /// The names of all saved values.
    pub async fn names(&self) -> Result<Vec<String>> {
        self.run(|owner| owner.names.list().map_err(file_error)).await
    }

    /// Where values are saved, as text for the user; an error if they cannot be saved.
    pub async fn location(&self) -> Result<String> {
        self.run(Owner::location).await
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce(&Owner) -> Result<T> + Send + 'static) -> Result<T> {
        let (sender, answer) = oneshot::channel();
        let job: Job = Box::new(move |owner| {
            sender.send(work(owner)).ok();
        });
        let gone = || Error::Io("the keyring is not available: its thread has ended; restart mcp-sidecar".to_owned());
        let answered = async {
            self.jobs.send(job).await.map_err(|_| gone())?;
            answer.await.map_err(|_| gone())?
        };
        tokio::time::timeout(UNLOCK_TIMEOUT, answered).await.unwrap_or_else(|_| {
            let seconds = UNLOCK_TIMEOUT.as_secs();
            Err(Error::Io(format!("the keyring did not answer within {seconds} s; unlock it and try again")))
        })
    }
}

/// Where a value is saved.
enum Location<'a> {
    System(keyring::Entry),
    File(&'a FileVault),
}

impl Owner {
    fn find(&self, name: &str) -> Result<Location<'_>> {
        let entry = match self.backend {
            Backend::System => keyring::Entry::new(SERVICE, name),
            Backend::Absent => Err(keyring::Error::NoDefaultStore),
        };
        match entry {
            Ok(entry) => Ok(Location::System(entry)),
            Err(keyring::Error::NoDefaultStore) if self.file_allowed.load(Ordering::Acquire) => {
                Ok(Location::File(&self.file))
            }
            Err(keyring::Error::NoDefaultStore) => Err(no_keyring()),
            Err(error) => Err(unusable(&error)),
        }
    }

    fn get(&self, name: &str) -> Result<Option<String>> {
        match self.find(name)? {
            Location::System(entry) => match entry.get_password() {
                Ok(value) => Ok(Some(value)),
                Err(keyring::Error::NoEntry) => Ok(None),
                Err(error) => Err(unusable(&error)),
            },
            Location::File(file) => file.get(name).map_err(file_error),
        }
    }

    fn set(&self, name: &str, value: &Secret) -> Result<()> {
        match self.find(name)? {
            Location::System(entry) => entry.set_password(value.reveal()).map_err(|error| unusable(&error))?,
            Location::File(file) => file.set(name, Some(value)).map_err(file_error)?,
        }
        self.names.add(name).map_err(file_error)
    }

    fn remove(&self, name: &str) -> Result<()> {
        match self.find(name)? {
            Location::System(entry) => match entry.delete_credential() {
                Ok(()) | Err(keyring::Error::NoEntry) => {}
                Err(error) => return Err(unusable(&error)),
            },
            Location::File(file) => file.set(name, None).map_err(file_error)?,
        }
        self.names.remove(name).map_err(file_error)
    }

    fn location(&self) -> Result<String> {
        Ok(match self.find("probe")? {
            Location::System(_) => "the system keyring".to_owned(),
            Location::File(file) => {
                format!("the file {}, which only you can read; it is not encrypted", file.path().display())
            }
        })
    }
}

fn no_keyring() -> Error {
    let help = "set `secrets = \"file\"` in config.toml to keep values in a file that only you can read, but that is not encrypted";
    Error::Io(format!("no keyring is running on this machine; {help}"))
}

/// The library's errors may contain the bytes of an entry, so only their kind is shown.
fn unusable(error: &keyring::Error) -> Error {
    let why = match error {
        keyring::Error::NoStorageAccess(_) => "it is locked, or access was refused",
        keyring::Error::BadEncoding(_) | keyring::Error::BadDataFormat(..) => "the entry is not text",
        keyring::Error::TooLong(..) => "the value is too long for it",
        keyring::Error::Ambiguous(_) => "it has several entries with this name",
        _ => "it reported an error",
    };
    Error::Io(format!("cannot use the keyring: {why}"))
}

fn file_error((path, error): (PathBuf, std::io::Error)) -> Error {
    Error::Io(format!("cannot access {}: {}", path.display(), io_reason(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::spec::InputKind;
    use crate::model::Scope;

    fn keyring(folder: &Path) -> Keyring {
        Keyring::with(folder, Backend::Absent)
    }

    #[tokio::test]
    async fn without_a_keyring_nothing_is_saved_unless_a_file_is_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let keyring = keyring(folder.path());
        let secret = Secret::new("a-value-of-an-input");
        let refused = keyring.set("input:key", &secret).await.unwrap_err().to_string();
        insta::assert_snapshot!(refused, @r#"no keyring is running on this machine; set `secrets = "file"` in config.toml to keep values in a file that only you can read, but that is not encrypted"#);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was written");

        keyring.allow_file(true);
        keyring.set("input:key", &secret).await.unwrap();
        assert_eq!(keyring.get("input:key").await.unwrap(), Some(secret.clone()));
        assert_eq!(keyring.get("input:other").await.unwrap(), None);
        assert_eq!(keyring.names().await.unwrap(), ["input:key"]);
        assert_eq!(self::keyring(folder.path()).names().await.unwrap(), ["input:key"]);

        keyring.remove("input:key").await.unwrap();
        keyring.remove("input:key").await.unwrap();
        assert_eq!(keyring.get("input:key").await.unwrap(), None);
        assert!(keyring.names().await.unwrap().is_empty());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn the_files_are_private_and_the_list_contains_no_value() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let keyring = keyring(folder.path());
        keyring.allow_file(true);
        keyring.set("keyring:github", &Secret::new("value-for-the-file")).await.unwrap();
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.path());
            let holds = std::fs::read_to_string(entry.path()).unwrap().contains("value-for-the-file");
            assert_eq!(holds, entry.file_name() == "secrets.json", "{:?}", entry.path());
        }
    }

    #[tokio::test]
    async fn several_engines_share_one_list() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (keyring(folder.path()), keyring(folder.path()));
        one.allow_file(true);
        two.allow_file(true);
        let add = |keyring: Keyring, prefix: &'static str| async move {
            for index in 0..20 {
                keyring.set(&format!("{prefix}{index}"), &Secret::plain("v")).await.unwrap();
            }
        };
        tokio::join!(add(one.clone(), "a"), add(two, "b"));
        assert_eq!(one.names().await.unwrap().len(), 40);
        assert_eq!(one.get("b7").await.unwrap(), Some(Secret::plain("v")));
    }

    #[test]
    fn an_input_of_a_project_is_not_shared_with_another_project() {
        let input = |scope, file: &str| Input {
            id: "key".into(),
            kind: InputKind::Prompt,
            description: String::new(),
            default: None,
            password: true,
            scope,
            file: Some(Path::new(file).into()),
        };
        let names = [
            input_name(&input(Scope::User, "/home/mcp.json")),
            input_name(&input(Scope::Project, "/one/mcp.json")),
            input_name(&input(Scope::Project, "/two/mcp.json")),
        ];
        insta::assert_snapshot!(names.join("\n"), @"
        input:key
        input:key of /one/mcp.json
        input:key of /two/mcp.json
        ");
    }
}
