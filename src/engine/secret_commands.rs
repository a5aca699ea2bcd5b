//! Secrets that programs of the user print. One run serves all servers that start at the same time: a password manager
//! may ask the user for each run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};

use crate::config::Environment;
use crate::paths::{Paths, make_private_folder};
use crate::server::process::run_secret_command;
use crate::text::{Secret, io_reason};

/// Long enough for the restarts of a server, short enough to notice a new value. Kept in memory only.
const KEPT: Duration = Duration::from_secs(300);

type Output = Shared<BoxFuture<'static, Result<Secret, String>>>;
/// By command, with the time of the start.
type Outputs = BTreeMap<Vec<String>, (Instant, Output)>;

/// The empty private folder that commands run in.
pub fn folder(paths: &Paths) -> PathBuf {
    paths.state_dir.join("secret-commands")
}

/// Cheap to clone; all clones share the outputs. The lock is private and never held over an await.
#[derive(Clone, Default)]
pub struct SecretCommands(Arc<Mutex<Outputs>>);

impl SecretCommands {
    /// The output of a command. `folder` is an empty private folder to run it in. The error is for the user.
    pub async fn output(
        &self,
        command: Vec<String>,
        environment: &Environment,
        folder: &Path,
    ) -> Result<Secret, String> {
        let output = {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.retain(|_, (since, _)| since.elapsed() < KEPT);
            let (_, output) = known
                .entry(command.clone())
                .or_insert_with(|| (Instant::now(), start(command.clone(), environment.clone(), folder)));
            output.clone()
        };
        let result = output.await;
        if result.is_err() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&command);
        }
        result
    }
}

/// In its own task, so that it ends even if the server that wanted it is gone.
fn start(command: Vec<String>, environment: Environment, folder: &Path) -> Output {
    let folder = folder.to_path_buf();
    let task = tokio::spawn(async move {
        make_private_folder(&folder).map_err(|error| io_reason(&error))?;
        run_secret_command(&command, &environment, &folder).await
    });
    async move { task.await.unwrap_or_else(|error| Err(error.to_string())) }.boxed().shared()
}
