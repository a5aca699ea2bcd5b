//! Access to the files that an editor has open.

use std::path::Path;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

/// The files that an editor has open.
pub trait OpenBuffers: Send + Sync {
    /// The text of a file in the editor, if it is open there and can be changed.
    fn open(&self, path: &Path) -> Option<Arc<str>>;
    /// Replaces the text of a file. False if the editor refused.
    fn put<'a>(&'a self, path: &'a Path, text: &'a str) -> BoxFuture<'a, bool>;
}

/// No editor: files are changed on disk.
pub struct NoBuffers;

impl OpenBuffers for NoBuffers {
    fn open(&self, _: &Path) -> Option<Arc<str>> {
        None
    }

    fn put<'a>(&'a self, _: &'a Path, _: &'a str) -> BoxFuture<'a, bool> {
        std::future::ready(false).boxed()
    }
}
