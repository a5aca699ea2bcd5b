//! The repository of a folder, which files belong to it, and of which repository it is a worktree. Only real paths count:
//! what the repository contains, such as links and the contents of `.git`, cannot make it larger, and cannot make it a
//! worktree of a repository that does not know it.

use std::io;
use std::path::{Component, Path, PathBuf};

use super::read::read_file;

/// The size limit of the files in `.git` that contain one path.
const MAX_PATH_FILE: usize = 16 << 10;

/// The canonical path of the repository: the nearest folder at or above `folder` that contains `.git`. Without one, the
/// folder itself.
pub fn repository(folder: &Path) -> PathBuf {
    root_of(&canonical(folder)).to_path_buf()
}

/// The same folder in the main checkout of its repository. A folder that is not in a worktree stays as it is. For a
/// worktree of a bare repository, the bare repository takes the place of the main checkout.
pub fn in_main_checkout(folder: &Path) -> PathBuf {
    let real = canonical(folder);
    let root = root_of(&real);
    match main_checkout(root).zip(real.strip_prefix(root).ok()) {
        Some((main, inside)) if inside.as_os_str().is_empty() => main,
        Some((main, inside)) => main.join(inside),
        None => real,
    }
}

/// The canonical path, or the path itself if it does not exist.
pub fn canonical(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

/// The repositories around a canonical path, the nearest first.
pub(super) fn repositories_around(real: &Path) -> impl Iterator<Item = &Path> {
    real.ancestors().filter(|folder| folder.join(".git").symlink_metadata().is_ok())
}

/// The repository of a canonical path, or the path itself.
fn root_of(real: &Path) -> &Path {
    repositories_around(real).next().unwrap_or(real)
}

/// The main checkout of the worktree at this canonical path. `None` unless both point to each other: the `.git` file to
/// the repository, and the repository's own record of its worktrees back to the `.git` file. Only `git worktree add` and
/// the like write that record, so a folder that merely claims to be a worktree gets nothing.
pub(super) fn main_checkout(root: &Path) -> Option<PathBuf> {
    let link = root.join(".git");
    if !link.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let record = root.join(read_path(&link)?.strip_prefix("gitdir:")?.trim_start()).canonicalize().ok()?;
    let common = record.join(read_path(&record.join("commondir"))?).canonicalize().ok()?;
    let is_known = record.parent()? == common.join("worktrees");
    let points_back = record.join(read_path(&record.join("gitdir"))?).canonicalize().ok()? == link;
    if !is_known || !points_back {
        return None;
    }
    Some(if common.ends_with(".git") { common.parent()?.to_path_buf() } else { common })
}

/// A path that git has stored in a file of its own.
fn read_path(file: &Path) -> Option<String> {
    let text = String::from_utf8(read_file(file, MAX_PATH_FILE).ok()??).ok()?;
    Some(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// The file that a path stands for after following links. It need not exist.
pub fn real_target(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_path_buf();
    for _ in 0..40 {
        match std::fs::read_link(&target) {
            Ok(next) => target = target.parent().map_or_else(|| next.clone(), |folder| folder.join(&next)),
            Err(_) => return real_parent(&target),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// The path with the links of its existing folders resolved.
fn real_parent(path: &Path) -> io::Result<PathBuf> {
    let existing = path.ancestors().skip(1).find_map(|folder| Some((folder, std::fs::canonicalize(folder).ok()?)));
    let Some((folder, real)) = existing else { return Ok(path.to_path_buf()) };
    let rest = path.strip_prefix(folder).unwrap_or(path);
    match rest.components().all(|part| matches!(part, Component::Normal(_))) {
        true => Ok(real.join(rest)),
        false => Err(io::Error::other("the path contains `..` after a folder that does not exist")),
    }
}

/// The same as [`real_target`], if it is inside of `repository`.
pub fn target_inside(path: &Path, repository: &Path) -> io::Result<PathBuf> {
    let target = real_target(path)?;
    match target.starts_with(repository) {
        true => Ok(target),
        false => Err(io::Error::other(format!("it leads to {}, outside of the repository", target.display()))),
    }
}

/// A repository `main` with a worktree `tree`, written as git writes them.
#[cfg(test)]
pub fn write_worktree(root: &Path) {
    let record = root.join("main/.git/worktrees/tree");
    std::fs::create_dir_all(&record).unwrap();
    std::fs::create_dir_all(root.join("tree/sub")).unwrap();
    std::fs::write(root.join("tree/.git"), format!("gitdir: {}\n", record.display())).unwrap();
    std::fs::write(record.join("gitdir"), format!("{}\n", root.join("tree/.git").display())).unwrap();
    std::fs::write(record.join("commondir"), "../..\n").unwrap();
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_nearest_git_folder_is_the_repository_whatever_it_contains() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("repo/a/b")).unwrap();
        assert_eq!(repository(&root.join("repo/a")), root.join("repo/a"), "without .git, the folder itself");
        std::fs::create_dir(root.join("repo/.git")).unwrap();
        std::fs::write(root.join("repo/.git/commondir"), "/").unwrap();
        assert_eq!(repository(&root.join("repo/a/b")), root.join("repo"));
        std::fs::write(root.join("repo/a/.git"), "gitdir: /elsewhere").unwrap();
        assert_eq!(repository(&root.join("repo/a/b")), root.join("repo/a"), "a worktree or submodule");
        symlink("repo/a", root.join("link")).unwrap();
        assert_eq!(repository(&root.join("link")), root.join("repo/a"));
    }

    #[test]
    fn a_worktree_belongs_to_the_main_checkout_that_knows_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        write_worktree(&root);
        assert_eq!(in_main_checkout(&root.join("tree")), root.join("main"));
        assert_eq!(in_main_checkout(&root.join("tree/sub")), root.join("main/sub"));
        assert_eq!(in_main_checkout(&root.join("main")), root.join("main"));
        // Git can store relative paths.
        std::fs::write(root.join("tree/.git"), "gitdir: ../main/.git/worktrees/tree\n").unwrap();
        std::fs::write(root.join("main/.git/worktrees/tree/gitdir"), "../../../../tree/.git\n").unwrap();
        assert_eq!(in_main_checkout(&root.join("tree/sub")), root.join("main/sub"));
        std::fs::rename(root.join("main/.git"), root.join("bare")).unwrap();
        std::fs::write(root.join("tree/.git"), "gitdir: ../bare/worktrees/tree\n").unwrap();
        std::fs::write(root.join("bare/worktrees/tree/gitdir"), "../../../tree/.git\n").unwrap();
        assert_eq!(in_main_checkout(&root.join("tree/sub")), root.join("bare/sub"));
    }

    #[test]
    fn a_folder_that_only_claims_to_be_a_worktree_stays_itself() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        write_worktree(&root);
        let record = root.join("main/.git/worktrees/tree");
        // `.git` names the record of another worktree.
        let clone = root.join("clone");
        std::fs::create_dir(&clone).unwrap();
        std::fs::copy(root.join("tree/.git"), clone.join(".git")).unwrap();
        assert_eq!(in_main_checkout(&clone), clone);
        // Its own record claims to be part of the repository.
        let own = clone.join("record");
        std::fs::create_dir(&own).unwrap();
        std::fs::write(clone.join(".git"), "gitdir: record\n").unwrap();
        std::fs::write(own.join("gitdir"), format!("{}\n", clone.join(".git").display())).unwrap();
        std::fs::write(own.join("commondir"), format!("{}\n", root.join("main/.git").display())).unwrap();
        assert_eq!(in_main_checkout(&clone), clone);
        // Odd contents.
        for content in [
            "",
            ".",
            "..",
            "../..",
            "/",
            "\0",
            "../main/.git\n../main/.git",
            "~/x",
            "$PWD",
            "../main/.git/worktrees/..",
        ] {
            std::fs::write(own.join("commondir"), content).unwrap();
            assert_eq!(in_main_checkout(&clone), clone, "{content:?}");
        }
        // A bare repository and a submodule of its own: its own paths at most.
        std::fs::create_dir_all(clone.join("bare/worktrees")).unwrap();
        let record_of_bare = clone.join("bare/worktrees/x");
        std::fs::create_dir(&record_of_bare).unwrap();
        std::fs::write(clone.join(".git"), "gitdir: bare/worktrees/x\n").unwrap();
        std::fs::write(record_of_bare.join("gitdir"), format!("{}\n", clone.join(".git").display())).unwrap();
        for content in ["../../../../main/.git", "../..", "../../../main"] {
            std::fs::write(record_of_bare.join("commondir"), content).unwrap();
            assert!(in_main_checkout(&clone).starts_with(&clone), "{content:?}");
        }
        std::fs::write(clone.join(".git"), "gitdir: record\n").unwrap();
        std::fs::write(own.join("commondir"), format!("{}\n", root.join("main/.git").display())).unwrap();
        // A `.git` folder, or a link, with the files of a record.
        std::fs::remove_file(clone.join(".git")).unwrap();
        std::fs::rename(&own, clone.join(".git")).unwrap();
        assert_eq!(in_main_checkout(&clone), clone);
        std::fs::remove_dir_all(clone.join(".git")).unwrap();
        for target in [root.join("main/.git"), record, root.join("tree/.git")] {
            symlink(target, clone.join(".git")).unwrap();
            assert_eq!(in_main_checkout(&clone), clone);
            std::fs::remove_file(clone.join(".git")).unwrap();
        }
        // A worktree that was moved without git.
        std::fs::rename(root.join("tree"), root.join("moved")).unwrap();
        assert_eq!(in_main_checkout(&root.join("moved")), root.join("moved"));
    }

    #[test]
    fn links_are_followed_before_a_path_counts_as_inside() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let repo = root.join("repo");
        std::fs::create_dir_all(repo.join("sub")).unwrap();
        symlink("sub", repo.join("in")).unwrap();
        symlink(&root, repo.join("out")).unwrap();
        symlink("out/new.json", repo.join("file")).unwrap();
        symlink("loop", repo.join("loop")).unwrap();
        let inside = |name: &str| target_inside(&repo.join(name), &repo).ok();
        assert_eq!(inside("new/deep/mcp.json"), Some(repo.join("new/deep/mcp.json")));
        assert_eq!(inside("in/mcp.json"), Some(repo.join("sub/mcp.json")));
        for outside in ["out/mcp.json", "file", "loop", "../x", "sub/../../x", "none/../../x", "in/../../x"] {
            assert_eq!(inside(outside), None, "{outside}");
        }
    }
}
