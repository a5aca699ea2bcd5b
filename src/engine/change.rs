//! What a call would make of a file of the workspace, as far as its arguments tell. Only for looking: the arguments are
//! always shown beside it, and they are what is allowed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::paths::read_file;
use crate::text::visible;

/// A file larger than this, or one that would become so, is not compared.
const LARGEST: usize = 256 << 10;

/// How the tools of many servers name a file, its new text, and a piece of it before and after.
const PATHS: &[&str] = &["path", "file_path", "filePath", "filepath", "file", "filename", "relative_path", "uri"];
const TEXTS: &[&str] = &["content", "contents", "text", "file_text", "new_content", "newContent"];
const BEFORE: &[&str] = &["oldText", "old_text", "old_string", "oldString", "old_str", "search"];
const AFTER: &[&str] = &["newText", "new_text", "new_string", "newString", "new_str", "replace"];

/// A file before and after a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// Where it really is.
    pub file: String,
    /// As seen from its workspace folder.
    pub path: String,
    /// There is no such file yet.
    pub is_new: bool,
    /// Its whole text after the call.
    pub after: String,
    /// The difference, as `diff -U2` tells it.
    pub diff: String,
}

/// Reads the file, so not on a thread that answers requests.
pub fn of(arguments: &Map<String, Value>, folders: &[Arc<Path>]) -> Option<Change> {
    let (file, path) = place(word(arguments, PATHS)?, folders)?;
    let present = read_file(&file, LARGEST).ok()?;
    let before = String::from_utf8(present.clone().unwrap_or_default()).ok().filter(|text| !text.contains('\0'))?;
    let after = after(&before, arguments).filter(|after| *after != before && after.len() <= LARGEST)?;
    let difference = similar::TextDiff::from_lines(&before, &after).unified_diff().context_radius(2).to_string();
    Some(Change {
        file: file.display().to_string(),
        path,
        is_new: present.is_none(),
        diff: visible(difference.trim_end(), usize::MAX),
        after,
    })
}

/// Where a file really is, so that `..` and links do not make one of elsewhere look like one of here; and how the
/// workspace calls it.
fn place(named: &str, folders: &[Arc<Path>]) -> Option<(PathBuf, String)> {
    let named = match url::Url::parse(named) {
        Ok(uri) if uri.scheme() == "file" => uri.to_file_path().ok()?,
        _ => PathBuf::from(named),
    };
    folders.iter().find_map(|folder| {
        let folder = folder.canonicalize().ok()?;
        let file = real(&folder.join(&named))?;
        let path = file.strip_prefix(&folder).ok()?.display().to_string();
        Some((file, path))
    })
}

/// The same for a file that need not be there yet.
fn real(path: &Path) -> Option<PathBuf> {
    let made = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(made)
}

/// What the file would hold; nothing where the arguments do not tell.
fn after(before: &str, arguments: &Map<String, Value>) -> Option<String> {
    let edits: Vec<&Map<String, Value>> = match arguments.get("edits") {
        Some(Value::Array(edits)) => edits.iter().filter_map(Value::as_object).collect(),
        _ => vec![arguments],
    };
    if edits.first().is_none_or(|edit| word(edit, BEFORE).is_none()) {
        return word(arguments, TEXTS).map(str::to_owned);
    }
    edits.into_iter().try_fold(before.to_owned(), |text, edit| {
        let (old, new) = (word(edit, BEFORE).filter(|old| !old.is_empty())?, word(edit, AFTER)?);
        text.contains(old).then(|| text.replacen(old, new, 1))
    })
}

/// The first of these that holds text.
fn word<'a>(arguments: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| arguments.get(*name)?.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A workspace with one file; what a call with these arguments would change in it.
    fn told(arguments: Value) -> Option<Change> {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("work");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("notes.md"), "milk\nbread\n").unwrap();
        std::fs::write(place.path().join("elsewhere.md"), "x\n").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(place.path().join("elsewhere.md"), folder.join("link.md")).unwrap();
        of(arguments.as_object().unwrap(), &[folder.into()])
    }

    #[test]
    fn a_new_text_and_replaced_pieces_are_told_as_a_difference() {
        let whole = told(json!({ "path": "notes.md", "content": "milk\nbutter\n" })).unwrap();
        assert_eq!((whole.path.as_str(), whole.is_new), ("notes.md", false));
        insta::assert_snapshot!(whole.diff, @r"
        @@ -1,2 +1,2 @@
         milk
        -bread
        +butter
        ");
        let pieces =
            json!([{ "oldText": "bread", "newText": "$& and butter" }, { "oldText": "milk", "newText": "tea" }]);
        assert_eq!(told(json!({ "file_path": "notes.md", "edits": pieces })).unwrap().after, "tea\n$& and butter\n");
        let new = told(json!({ "path": "new.md", "content": "x" })).unwrap();
        assert_eq!((new.is_new, new.diff.as_str()), (true, "@@ -0,0 +1 @@\n+x\n\\ No newline at end of file"));
    }

    #[test]
    fn nothing_is_claimed_about_files_outside_or_changes_that_cannot_be_told() {
        for arguments in [
            json!({ "path": "../elsewhere.md", "content": "x" }),
            json!({ "path": "link.md", "content": "y" }),
            json!({ "path": "/etc/hostname", "content": "x" }),
            json!({ "path": "notes.md" }),
            json!({ "path": "notes.md", "edits": [{ "oldText": "not there", "newText": "x" }] }),
            json!({ "path": "notes.md", "edits": [{ "oldText": "", "newText": "x" }] }),
            json!({ "path": "notes.md", "content": "milk\nbread\n" }),
            json!({ "path": "notes.md", "content": "x".repeat(LARGEST + 1) }),
            json!({ "path": 5, "content": "x" }),
            json!({}),
        ] {
            assert_eq!(told(arguments.clone()), None, "{arguments}");
        }
    }
}
