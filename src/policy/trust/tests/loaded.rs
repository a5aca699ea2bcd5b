//! Which files an interpreter loads for a name.

use super::super::files::Project;
use super::super::modules::{loaded, module, tests_in};
use super::*;

/// The files below a folder, by their names there.
fn names(folder: &Path, mut found: Vec<PathBuf>) -> Vec<String> {
    found.sort();
    found.iter().map(|path| path.strip_prefix(folder).unwrap().display().to_string()).collect()
}

fn folder_with(files: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let keep = tempfile::tempdir().unwrap();
    let folder = keep.path().canonicalize().unwrap();
    for file in files {
        let path = folder.join(file);
        match file.strip_suffix('/') {
            Some(_) => fs::create_dir_all(&path).unwrap(),
            None => {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "0").unwrap();
            }
        }
    }
    (keep, folder)
}

#[test]
fn a_script_without_an_ending_is_a_file_with_one_or_the_start_of_a_folder() {
    let all = ["a.js", "a.py", "a.rb", "a/index.js", "a/index.mjs", "a/__main__.py", "a/other.js", "a.ts/", "b.js"];
    let (_keep, folder) = folder_with(&all);
    assert_eq!(names(&folder, module(&folder.join("a"))), ["a/__main__.py", "a/index.js", "a.js"]);
    assert!(module(&folder.join("c")).is_empty());
    // A folder with an ending is not a file.
    assert!(module(&folder.join("a.ts")).is_empty());
}

#[test]
fn the_main_file_of_a_folder_is_found_with_and_without_its_ending() {
    let all = ["p/lib/start", "p/lib/start.js", "p/lib/next/index.js", "p/lib/next.ts", "p/x.js"];
    let (_keep, folder) = folder_with(&all);
    let with_main = |main: &str| {
        fs::write(folder.join("p/package.json"), json!({ "main": main }).to_string()).unwrap();
        names(&folder, module(&folder.join("p")))
    };
    assert_eq!(with_main("lib/start"), ["p/lib/start", "p/lib/start.js"]);
    assert_eq!(with_main("./lib/next"), ["p/./lib/next/index.js", "p/./lib/next.ts"]);
    assert!(with_main("missing").is_empty());
}

#[test]
fn code_loads_a_file_a_folder_or_a_package_of_a_folder_above() {
    let (_keep, top) = folder_with(&[
        ".git/",
        "in/a.py",
        "in/a/b.py",
        "in/a/init.lua",
        "in/a/__init__.py",
        "in/a.b.rb",
        "in/plain",
        "in/x/y.z.pm",
        "in/node_modules/a/index.js",
        "node_modules/a.mts",
        "node_modules/deep/index.cjs",
        "node_modules/deep/part.js",
    ]);
    let base = top.join("in");
    let project = Project::new(&base, &Environment::of_this_process());
    let load = |name: &str| names(&top, loaded(&base, name, &project));
    assert_eq!(
        load("a"),
        ["in/a/__init__.py", "in/a/init.lua", "in/a.py", "in/node_modules/a/index.js", "node_modules/a.mts"]
    );
    assert_eq!(load("a.b"), ["in/a/b.py", "in/a.b.rb"], "a dot can separate packages");
    assert_eq!(load("plain"), ["in/plain"]);
    assert_eq!(load("x/y.z"), ["in/x/y.z.pm"], "but not behind a folder");
    assert!(load("x/y/z").is_empty());
    assert_eq!(load("deep"), ["node_modules/deep/index.cjs"]);
    assert_eq!(load("deep/part"), ["node_modules/deep/part.js"]);
    // A path is not the name of a package.
    assert_eq!(load("./a"), ["in/./a/__init__.py", "in/./a/init.lua", "in/./a.py"]);
    assert!(load("./deep").is_empty());
    let absolute = top.join("node_modules/deep");
    assert_eq!(load(absolute.to_str().unwrap()), ["node_modules/deep/index.cjs"]);
}

#[test]
fn a_package_offers_all_files_of_its_exports() {
    let (_keep, top) =
        folder_with(&["node_modules/p/a.js", "node_modules/p/b.js", "node_modules/p/c.js", "node_modules/@s/p/d.js"]);
    let project = Project::new(&top, &Environment::of_this_process());
    let exports = json!({ "exports": { ".": { "import": "./a.js", "default": ["./b.js", 5] }, "./none": null } });
    fs::write(top.join("node_modules/p/package.json"), exports.to_string()).unwrap();
    fs::write(top.join("node_modules/@s/p/package.json"), json!({ "exports": "d.js" }).to_string()).unwrap();
    let load = |name: &str| names(&top, loaded(&top, name, &project));
    assert_eq!(load("p"), ["node_modules/p/./a.js", "node_modules/p/./b.js", "node_modules/p/package.json"]);
    let part = ["node_modules/p/./a.js", "node_modules/p/./b.js", "node_modules/p/c.js", "node_modules/p/package.json"];
    assert_eq!(load("p/c"), part);
    assert_eq!(load("@s/p"), ["node_modules/@s/p/d.js", "node_modules/@s/p/package.json"]);
    assert_eq!(load("@s/p/part"), ["node_modules/@s/p/d.js", "node_modules/@s/p/package.json"]);
    fs::write(top.join("node_modules/p/package.json"), "broken").unwrap();
    assert_eq!(load("p"), ["node_modules/p/package.json"]);
}

#[test]
fn tests_are_the_code_in_all_folders_but_those_of_packages() {
    let all =
        ["a.js", "b.mts", "c.txt", "none", "in/d.cjs", "in/deep/e.ts", "node_modules/f.js", "in/node_modules/g.js"];
    let (_keep, folder) = folder_with(&all);
    assert_eq!(names(&folder, tests_in(&folder)), ["a.js", "b.mts", "in/d.cjs", "in/deep/e.ts"]);
    assert!(tests_in(&folder.join("a.js")).is_empty());
}

#[test]
fn the_tests_of_a_huge_tree_are_not_all_read() {
    let keep = tempfile::tempdir().unwrap();
    for number in 0..6 {
        let folder = keep.path().join(format!("f{number}"));
        fs::create_dir(&folder).unwrap();
        (0..300).for_each(|file| fs::write(folder.join(format!("{file}.js")), "").unwrap());
    }
    // A folder is read to its end, and no other one after the limit of 1,024.
    assert_eq!(tests_in(keep.path()).len(), 1_200);
}
