//! How a call would change a file in the workspace, as far as its arguments show. This is only a preview: the user
//! always sees the arguments as well, and approves those.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::paths::read_file;
use crate::text::{changed_lines, exact, line_difference, visible};

/// No diff if the file is larger than this, before or after the call.
const MAX_FILE_SIZE: usize = 256 << 10;

/// Common argument names for a file, its new text, and a text to replace.
const PATHS: &[&str] = &["path", "file_path", "filePath", "filepath", "file", "filename", "relative_path", "uri"];
const TEXTS: &[&str] = &["content", "contents", "text", "file_text", "new_content", "newContent"];
const BEFORE: &[&str] = &["oldText", "old_text", "old_string", "oldString", "old_str", "search"];
const AFTER: &[&str] = &["newText", "new_text", "new_string", "newString", "new_str", "replace"];

/// A file before and after a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The canonical path.
    pub file: String,
    /// Relative to the workspace folder.
    pub path: String,
    /// The file does not exist yet.
    pub is_new: bool,
    /// Its whole text after the call.
    pub after: String,
    /// The difference in the format of `diff -U2`.
    pub diff: String,
    /// The file has unsaved changes in an editor. The difference is to these.
    pub unsaved: bool,
}

impl Change {
    /// The same change to a text that is not saved yet.
    fn against(self, unsaved: Option<&str>) -> Self {
        match unsaved {
            Some(text) => Self { diff: difference(text, &self.after), unsaved: true, ..self },
            None => self,
        }
    }
}

fn difference(before: &str, after: &str) -> String {
    let difference = line_difference(before, after).unified_diff().context_radius(2).to_string();
    visible(difference.trim_end(), usize::MAX)
}

/// The file that a call is about, if it is in the workspace. Reads links, so call it on a blocking thread.
pub fn file_of(arguments: &Map<String, Value>, folders: &[Arc<Path>]) -> Option<(PathBuf, String)> {
    locate(string_field(arguments, PATHS)?, folders)
}

/// Reads the file, so call it on a blocking thread. `unsaved` is its text in an editor, if it has unsaved changes there.
pub fn of(arguments: &Map<String, Value>, file: &Path, path: String, unsaved: Option<&str>) -> Option<Change> {
    let present = read_file(file, MAX_FILE_SIZE).ok()?;
    let before = String::from_utf8(present.clone().unwrap_or_default()).ok().filter(|text| !text.contains('\0'))?;
    let after = after(&before, arguments).filter(|after| *after != before && after.len() <= MAX_FILE_SIZE)?;
    let change = Change {
        file: file.display().to_string(),
        path,
        is_new: present.is_none(),
        diff: difference(&before, &after),
        after,
        unsaved: false,
    };
    Some(change.against(unsaved))
}

/// The lines that a call removes (`-`) and adds (`+`), in order. Reads the file, so call it on a blocking thread.
pub fn lines_of(arguments: &Map<String, Value>, file: &Path) -> Option<Vec<String>> {
    let before = String::from_utf8(read_file(file, MAX_FILE_SIZE).ok()?.unwrap_or_default()).ok()?;
    let after = after(&before, arguments)?;
    let lines = changed_lines(&before, &after).into_iter().map(|(sign, line)| format!("{sign}{line}"));
    Some(lines.collect())
}

/// The same lines of a difference in the unified format. `None` if it contains anything else.
pub fn lines_of_diff(diff: &str) -> Option<Vec<String>> {
    let mut hunks = diff.lines().skip_while(|line| !line.starts_with("@@"));
    hunks.try_fold(Vec::new(), |mut lines, line| {
        match line.chars().next() {
            Some('+' | '-') => lines.push(line.to_owned()),
            Some(' ' | '@' | '\\') | None => {}
            // The header of another file.
            Some(_) => return None,
        }
        Some(lines)
    })
}

/// The canonical path of a file, so that `..` and links cannot make an outside file look like one in the workspace; and
/// its path relative to the workspace folder.
pub fn locate(named: &str, folders: &[Arc<Path>]) -> Option<(PathBuf, String)> {
    let named = match url::Url::parse(named) {
        Ok(uri) if uri.scheme() == "file" => uri.to_file_path().ok()?,
        _ => PathBuf::from(named),
    };
    folders.iter().find_map(|folder| {
        let folder = folder.canonicalize().ok()?;
        let file = real(&folder.join(&named))?;
        let path = exact(&file.strip_prefix(&folder).ok()?.display().to_string());
        Some((file, path))
    })
}

/// The canonical path of a file that may not exist yet.
fn real(path: &Path) -> Option<PathBuf> {
    let made = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(made)
}

/// The new content of the file; `None` if the arguments do not show it.
fn after(before: &str, arguments: &Map<String, Value>) -> Option<String> {
    let edits: Vec<&Map<String, Value>> = match arguments.get("edits") {
        Some(Value::Array(edits)) => edits.iter().filter_map(Value::as_object).collect(),
        _ => vec![arguments],
    };
    if edits.first().is_none_or(|edit| string_field(edit, BEFORE).is_none()) {
        return string_field(arguments, TEXTS).map(str::to_owned);
    }
    edits.into_iter().try_fold(before.to_owned(), |text, edit| {
        let (old, new) = (string_field(edit, BEFORE).filter(|old| !old.is_empty())?, string_field(edit, AFTER)?);
        let is_for_all = ["replace_all", "allow_multiple"].iter().any(|key| edit.get(*key) == Some(&Value::Bool(true)));
        let replaced = || if is_for_all { text.replace(old, new) } else { text.replacen(old, new, 1) };
        text.contains(old).then(replaced)
    })
}

/// The first of these fields that is a string.
fn string_field<'a>(arguments: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| arguments.get(*name)?.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// How a call with these arguments would change a workspace with one file.
    fn change_for(arguments: Value) -> Option<Change> {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("work");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("notes.md"), "milk\nbread\n").unwrap();
        std::fs::write(place.path().join("elsewhere.md"), "x\n").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(place.path().join("elsewhere.md"), folder.join("link.md")).unwrap();
        let (file, path) = file_of(arguments.as_object().unwrap(), &[folder.into()])?;
        of(arguments.as_object().unwrap(), &file, path, None)
    }

    #[test]
    fn new_content_and_replacements_are_shown_as_a_diff() {
        let whole = change_for(json!({ "path": "notes.md", "content": "milk\nbutter\n" })).unwrap();
        assert_eq!((whole.path.as_str(), whole.is_new), ("notes.md", false));
        insta::assert_snapshot!(whole.diff, @r"
        @@ -1,2 +1,2 @@
         milk
        -bread
        +butter
        ");
        let pieces =
            json!([{ "oldText": "bread", "newText": "$& and butter" }, { "oldText": "milk", "newText": "tea" }]);
        assert_eq!(
            change_for(json!({ "file_path": "notes.md", "edits": pieces })).unwrap().after,
            "tea\n$& and butter\n"
        );
        let all = json!({ "path": "notes.md", "old_string": "r", "new_string": "R", "replace_all": true });
        assert_eq!(change_for(all).unwrap().after, "milk\nbRead\n");
        let new = change_for(json!({ "path": "new.md", "content": "x" })).unwrap();
        assert_eq!((new.is_new, new.diff.as_str()), (true, "@@ -0,0 +1 @@\n+x\n\\ No newline at end of file"));
    }

    #[test]
    fn the_changed_lines_of_a_call_are_those_of_a_difference() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("notes.md");
        let lines = |arguments: Value| lines_of(arguments.as_object().unwrap(), &file);
        let created =
            "\ndiff --git a/notes.md b/notes.md\n--- a/dev/null\n+++ b/notes.md\n@@ -1,0 +1,2 @@\n+milk\n++++ x\n";
        assert_eq!(lines(json!({ "file_text": "milk\n+++ x\n" })), lines_of_diff(created));
        std::fs::write(&file, "milk\nbread\n").unwrap();
        let edited = "--- a/notes.md\n+++ b/notes.md\n@@ -1,3 +1,3 @@\n-milk\n+tea\n bread\n \n";
        assert_eq!(lines(json!({ "old_str": "milk", "new_str": "tea" })), lines_of_diff(edited));
        assert_ne!(lines(json!({ "old_str": "milk", "new_str": "oil" })), lines_of_diff(edited));
        let two = format!("{edited}diff --git a/other b/other\n@@ -1 +1 @@\n");
        assert_eq!(lines_of_diff(&two), None, "another file");
    }

    /// Comparing every line with every other one would take minutes, on a thread that others wait for.
    #[test]
    fn a_file_without_a_line_in_common_is_compared_in_bounded_time() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("numbers.txt");
        let numbers = |from: usize| (from..from + 40_000).map(|number| format!("{number:x}\n")).collect::<String>();
        std::fs::write(&file, numbers(0)).unwrap();
        let arguments = json!({ "content": numbers(40_000) });
        let arguments = arguments.as_object().unwrap();
        let change = of(arguments, &file, "numbers.txt".to_owned(), None).unwrap();
        assert_eq!(change.diff.lines().filter(|line| line.starts_with('-')).count(), 40_000);
        assert_eq!(lines_of(arguments, &file).unwrap().len(), 80_000);
    }

    #[test]
    fn files_outside_and_unknown_changes_have_no_diff() {
        for arguments in [
            json!({ "path": "../elsewhere.md", "content": "x" }),
            json!({ "path": "link.md", "content": "y" }),
            json!({ "path": "/etc/hostname", "content": "x" }),
            json!({ "path": "notes.md" }),
            json!({ "path": "notes.md", "edits": [{ "oldText": "not there", "newText": "x" }] }),
            json!({ "path": "notes.md", "edits": [{ "oldText": "", "newText": "x" }] }),
            json!({ "path": "notes.md", "content": "milk\nbread\n" }),
            json!({ "path": "notes.md", "content": "x".repeat(MAX_FILE_SIZE + 1) }),
            json!({ "path": 5, "content": "x" }),
            json!({}),
        ] {
            assert_eq!(change_for(arguments.clone()), None, "{arguments}");
        }
    }
}
