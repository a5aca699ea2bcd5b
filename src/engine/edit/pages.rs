//! Where the texts are that get changed.

use std::path::Path;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

/// The texts that an editor has open.
pub trait Pages: Send + Sync {
    /// The text of a file as it stands in the editor, if it is open there and can be changed there.
    fn open(&self, path: &Path) -> Option<Arc<str>>;
    /// Puts another text in its place; false when the editor would not.
    fn put<'a>(&'a self, path: &'a Path, text: &'a str) -> BoxFuture<'a, bool>;
}

/// Nothing is open: files are changed on disk.
pub struct OnDisk;

impl Pages for OnDisk {
    fn open(&self, _: &Path) -> Option<Arc<str>> {
        None
    }

    fn put<'a>(&'a self, _: &'a Path, _: &'a str) -> BoxFuture<'a, bool> {
        std::future::ready(false).boxed()
    }
}
