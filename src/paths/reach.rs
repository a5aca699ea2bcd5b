//! Whether a path depends on folders that a stranger may have written.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use super::repository::{canonical, main_checkout, repositories_around, repository};

/// More links than any real path has.
const MAX_LINKS: usize = 40;

/// The folders whose content decides what runs in a folder: its repository, the repositories around it (the folder may be
/// a submodule), and its main checkout. Canonical paths, and the folder as it is written. A folder that contains the user's
/// home folder is not among them, because otherwise no program of the user could be found.
pub fn code_roots(folder: &Path) -> BTreeSet<PathBuf> {
    let real = canonical(folder);
    let around: Vec<&Path> = repositories_around(&real).collect();
    let main = around.first().and_then(|root| main_checkout(root)).map(|main| repository(&main));
    let home = home_folder();
    let contains_home = |root: &PathBuf| home.is_some_and(|home| home.starts_with(root));
    let roots = around.iter().map(|root| root.to_path_buf()).chain([real.clone()]).chain(main);
    let mut roots: BTreeSet<PathBuf> = roots.filter(|root| !contains_home(root)).collect();
    if roots.contains(&real) {
        roots.insert(folder.to_path_buf());
    }
    roots
}

/// Whether a path is in one of these folders, or leads through one: a link there can be changed.
pub fn leads_through(path: &Path, roots: &BTreeSet<PathBuf>) -> bool {
    let is_inside = |path: &Path| roots.iter().any(|root| path.starts_with(root));
    // The system may ignore case.
    if std::fs::canonicalize(path).is_ok_and(|real| is_inside(&real)) {
        return true;
    }
    let parts = |path: &Path| path.components().map(|part| part.as_os_str().to_owned()).collect::<VecDeque<OsString>>();
    let mut rest = parts(path);
    let mut reached = PathBuf::new();
    let mut links = 0;
    while let Some(part) = rest.pop_front() {
        match Path::new(&part).components().next() {
            Some(Component::ParentDir) => drop(reached.pop()),
            Some(Component::CurDir) | None => {}
            Some(_) => reached.push(&part),
        }
        if let Ok(target) = std::fs::read_link(&reached) {
            links += 1;
            if links > MAX_LINKS {
                return true;
            }
            reached.pop();
            let mut next = parts(&target);
            next.append(&mut rest);
            rest = next;
        }
        if is_inside(&reached) {
            return true;
        }
    }
    false
}

/// The home folder of the user who runs this process. Not `HOME` if the system knows better: tools for projects set it.
/// Read once, because every check of a server needs it.
fn home_folder() -> Option<&'static Path> {
    static HOME: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
        let known = user_record().or_else(|| etcetera::home_dir().ok())?;
        Some(canonical(&known))
    });
    HOME.as_deref()
}

#[cfg(unix)]
fn user_record() -> Option<PathBuf> {
    let user = rustix::process::geteuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let fields =
        users.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|line| line.get(2) == Some(&&*user))?;
    fields.get(5).filter(|home| home.starts_with('/')).map(PathBuf::from)
}

#[cfg(not(unix))]
fn user_record() -> Option<PathBuf> {
    None
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_that_leads_through_a_folder_depends_on_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let repo = root.join("repo");
        std::fs::create_dir_all(repo.join("sub")).unwrap();
        std::fs::create_dir(root.join("outside")).unwrap();
        symlink(&root, repo.join("out")).unwrap();
        symlink("repo", root.join("in")).unwrap();
        symlink("repo/out/outside", root.join("through")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let roots = BTreeSet::from([repo]);
        let depends = |path: &str| leads_through(&root.join(path), &roots);
        for path in ["repo", "repo/sub", "repo/none/bin", "in", "in/none", "repo/out/outside", "through", "loop"] {
            assert!(depends(path), "{path}");
        }
        for path in ["outside/../repo", "none/../repo/x", "outside/./../in"] {
            assert!(depends(path), "{path}");
        }
        for path in ["outside", "repository", "none/x", "outside/../none"] {
            assert!(!depends(path), "{path}");
        }
    }

    #[test]
    fn repositories_around_a_folder_count_and_the_home_folder_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/.git")).unwrap();
        std::fs::create_dir_all(root.join("a/module/sub")).unwrap();
        std::fs::write(root.join("a/module/.git"), "gitdir: ../.git/modules/module\n").unwrap();
        let found: Vec<PathBuf> = code_roots(&root.join("a/module/sub")).into_iter().collect();
        assert_eq!(found, [root.join("a"), root.join("a/module"), root.join("a/module/sub")]);
        assert_eq!(code_roots(Path::new("/")), BTreeSet::new());
        assert_eq!(code_roots(home_folder().unwrap()), BTreeSet::new());
    }
}
