//! What counts as a file of the repository, and which files the words of a launch name.

use std::collections::BTreeMap;

use super::super::files::{KnownLaunch, Project, bases, program_name, programs, runs_inline_code};
use super::*;

fn launch(cwd: &Path, command: &[&str]) -> KnownLaunch {
    KnownLaunch {
        command: command[0].to_owned(),
        args: command[1..].iter().map(|word| (*word).to_owned()).collect(),
        code: Vec::new(),
        program: None,
        cwd: cwd.to_path_buf(),
    }
}

#[cfg(unix)]
#[test]
fn a_path_in_a_worktree_is_one_in_the_main_checkout_and_other_paths_stay_as_they_are() {
    let (_keep, top) = project();
    write_worktree(&top);
    let tree = Project::new(&top.join("tree"), &Environment::of_this_process());
    let at = |path: &str| top.join(path).display().to_string();
    let in_main = |path: &str| tree.in_main(Path::new(&at(path)));
    assert_eq!(in_main("tree"), at("main"));
    assert_eq!(in_main("tree/sub/x.py"), at("main/sub/x.py"));
    for other in ["treehouse/x.py", "tree/../x.py", "main/x.py", "x.py"] {
        assert_eq!(in_main(other), at(other));
    }
}

#[test]
fn the_folders_above_count_up_to_the_home_folder_or_the_root() {
    let (_keep, top) = project();
    let home = top.join("home");
    let work = home.join("work");
    let repository = work.join("repository");
    let sub = repository.join("sub");
    fs::create_dir_all(repository.join(".git")).unwrap();
    fs::create_dir(&sub).unwrap();
    let with_home = |folder: &Path, home: Option<&Path>| {
        let home = home.map(|home| ("HOME".to_owned(), home.to_str().unwrap().to_owned()));
        Project::new(folder, &Environment::from(home.into_iter().collect::<BTreeMap<_, _>>()))
    };
    let project = with_home(&repository, Some(&home));
    assert_eq!(project.folders_up(&sub), [sub.clone(), repository.clone(), work.clone()]);
    assert_eq!(project.folders_up(&home), std::slice::from_ref(&home), "the folder itself always counts");
    let all: Vec<PathBuf> = sub.ancestors().filter(|above| above.parent().is_some()).map(Path::to_path_buf).collect();
    assert_eq!(with_home(&repository, None).folders_up(&sub), all);
    // A repository can be the home folder itself.
    fs::create_dir(home.join(".git")).unwrap();
    assert_eq!(with_home(&work, Some(&home)).folders_up(&work), [work.clone(), home.clone()]);
}

#[test]
fn a_path_is_shown_relative_to_the_workspace_folder() {
    let (_keep, top) = project();
    let folder = top.join("open/folder");
    fs::create_dir_all(&folder).unwrap();
    let project = Project::new(&folder, &Environment::of_this_process());
    let name = |path: &str| project.name(&top.join(path)).replace('\\', "/");
    assert_eq!(name("open/folder/in/x.py"), "in/x.py");
    assert_eq!(name("open/other/x.py"), "../other/x.py");
    assert_eq!(name("x.py"), "../../x.py");
}

#[cfg(unix)]
#[test]
fn a_link_out_of_the_repository_is_recognized_however_its_folder_is_named() {
    use std::os::unix::fs::symlink;

    let (_keep, top) = project();
    let folder = top.join("open");
    write(&folder, &[("own.py", "")]);
    symlink(top.join("server.py"), folder.join("out.py")).unwrap();
    symlink(folder.join("own.py"), folder.join("in.py")).unwrap();
    symlink(top.join("none"), folder.join("dangling")).unwrap();
    symlink(&folder, top.join("link")).unwrap();
    let project = Project::new(&top.join("link"), &Environment::of_this_process());
    assert!(project.contains(&folder.join("own.py")));
    assert!(!project.contains(&top.join("server.py")) && !project.contains(&folder.join("out.py")));
    for name in ["open/out.py", "link/out.py"] {
        assert!(project.is_link_out(&top.join(name)), "{name}");
    }
    for name in ["open/own.py", "open/in.py", "open/dangling", "server.py", "open/../server.py"] {
        assert!(!project.is_link_out(&top.join(name)), "{name}");
    }
    let content = |name: &str, relative: bool| project.content(&top.join(name), relative);
    let target = format!("leads to {}", top.join("server.py").display());
    assert_eq!(content("link/out.py", false), Some(("out.py".to_owned(), target)));
    assert_eq!(content("open/in.py", false).unwrap().0, "own.py");
    assert_eq!(content("server.py", false), None);
    assert_eq!(content("server.py", true).unwrap().0, "../server.py");
}

#[test]
fn a_file_outside_of_the_repository_counts_only_if_a_relative_path_leads_out_to_it() {
    let (_keep, top) = project();
    let folder = top.join("open");
    fs::create_dir(&folder).unwrap();
    let project = Project::new(&folder, &Environment::of_this_process());
    let pinned = |cwd: &Path, word: &str| programs(&launch(cwd, &["server", word]), &project).into_keys();
    assert_eq!(pinned(&folder, "../server.py").collect::<Vec<_>>(), ["../server.py"]);
    assert_eq!(pinned(&folder, top.join("server.py").to_str().unwrap()).count(), 0);
    assert_eq!(pinned(&top, "server.py").count(), 0);
}

const FILES: [(&str, &str); 4] = [("f.txt", "1"), ("g.txt", "1"), ("inner.js", "1"), ("tests/a.test.js", "1")];

#[test]
fn a_data_file_is_pinned_if_a_program_runs_it() {
    for command in [
        &["env", "sed", "-f", "f.txt"][..],
        &["env", "uvx", "-c", "f.txt", "x"],
        &["env", "ld-musl-x86_64.so.1", "f.txt"],
        &["/lib64/ld-linux-x86-64.so.2", "f.txt"],
        &["sh", "-c", ". f.txt"],
        &["sh", "-c", "sed p f.txt; eval $x"],
        &["sh", "-c", "x $(cat f.txt)"],
        &["sh", "-c", "x $(<f.txt)"],
        &["sh", "-c", "x `cat f.txt`"],
        &["sh", "-c", "cat f.txt | python3"],
        &["sh", "-c", "cat f.txt | nice python3 -"],
        &["sh", "-c", "find . -name f.txt -exec tool {} +"],
        &["sh", "-c", "xargs -a f.txt env"],
    ] {
        assert_eq!(decided(command, &FILES), "content f.txt", "{command:?}");
    }
    // Any flag with an unknown meaning may have a value, so each of the files can be the script.
    assert_eq!(decided(&["zsh", "--rcs", "f.txt", "g.txt"], &FILES), "content f.txt\ncontent g.txt");
    assert_eq!(decided(&["sh", "-c", ". inner"], &FILES), "content inner.js");
    assert_eq!(decided(&["node", "--test", "tests"], &FILES), "content tests/a.test.js");
}

#[test]
fn a_file_that_no_program_runs_is_not_pinned() {
    for command in [
        &["server", "inner"][..],
        &["server", "tests"],
        &["server", "-f", "f.txt"],
        &["server", "f.txt=eval"],
        &["server", "find", "f.txt"],
        &["server", "sed", "f.txt"],
        &["node", ".", "f.txt"],
        &["python3", "y", "f.txt"],
        &["pypy3", "-m", "server", "f.txt"],
        &["sh", "$script", "f.txt"],
        &["sh", "-c", "f.txt x"],
        &["bash", "-euxc", "f.txt x"],
        &["sh", "-c", "sed p f.txt"],
        &["sh", "-c", "cat f.txt|jq"],
        &["sh", "-c", "cat f.txt | jq"],
        &["sh", "-c", "python3 none.py f.txt | jq"],
    ] {
        assert_eq!(decided(command, &FILES), "", "{command:?}");
    }
}

#[test]
fn a_variable_that_loads_code_names_modules_with_and_without_a_blank() {
    let (_keep, folder) = project();
    for name in ["a", "b", "c"] {
        write(&folder, &[(&format!("node_modules/{name}/index.js"), "0")]);
    }
    let project = Project::new(&folder, &Environment::of_this_process());
    let code = vec!["-ra --title c --require b".to_owned()];
    let launch = KnownLaunch { code, ..launch(&folder, &["server"]) };
    let pinned: Vec<String> = programs(&launch, &project).into_keys().collect();
    assert_eq!(pinned, ["node_modules/a/index.js", "node_modules/b/index.js"]);
}

#[cfg(unix)]
#[test]
fn relative_paths_start_at_each_folder_that_a_launch_changes_to() {
    let (_keep, folder) = project();
    let (_other, outside) = project();
    fs::create_dir_all(folder.join("sub/deep")).unwrap();
    fs::create_dir(folder.join("other")).unwrap();
    std::os::unix::fs::symlink(&outside, folder.join("link")).unwrap();
    let from = |command: &[&str]| -> Vec<String> {
        let bases = bases(&launch(&folder, command));
        bases.iter().map(|base| base.strip_prefix(&folder).unwrap().display().to_string()).collect()
    };
    assert_eq!(from(&["sh", "-c", "cd sub && cd deep"]), ["", "sub", "sub/deep"]);
    assert_eq!(from(&["env", "-Csub", "sh"]), ["", "sub"]);
    assert_eq!(from(&["env", "-xsub", "sh"]), [""]);
    assert_eq!(from(&["server", "--cwd", "none"]), [""]);
    assert_eq!(from(&["server", "--cwd", "sub", "--dir", "sub"]), ["", "sub"], "each only once");
    assert_eq!(from(&["server", "--cwd", "sub/../other"]), ["", "other"]);
    // The name of a link stays, so that a link out of the repository is recognized.
    assert_eq!(from(&["server", "--cwd", "link"]), ["", "link"]);
}

#[test]
fn a_launch_that_changes_to_many_folders_starts_at_64_of_them() {
    let (_keep, folder) = project();
    let names: Vec<String> = (0..70).map(|number| format!("f{number}")).collect();
    names.iter().for_each(|name| fs::create_dir(folder.join(name)).unwrap());
    let command: Vec<&str> = std::iter::once("sh").chain(names.iter().flat_map(|name| ["cd", name])).collect();
    assert_eq!(bases(&launch(&folder, &command)).len(), 64);
}

#[test]
fn code_in_an_argument_is_recognized_with_and_without_a_separate_value() {
    let runs = |command: &[&str]| runs_inline_code(command[0], &launch(Path::new("/"), command).args);
    for command in [
        &["node", "--eval", "1"][..],
        &["node", "--eval=1"],
        &["node", "-e1"],
        &["perl", "-E1"],
        &["python3", "-cprint(1)"],
        &["php", "-r", "1"],
        &["env", "node", "-e", "1"],
    ] {
        assert!(runs(command), "{command:?}");
    }
    for command in [
        &["node", "--eval"][..],
        &["node", "-e"],
        &["node", "a=1"],
        &["node", "--port=1"],
        &["node", "-x1"],
        &["node", "-r", "1"],
        &["php", "-n", "1"],
        &["sh", "-c", "1"],
        &["server", "-e", "1"],
    ] {
        assert!(!runs(command), "{command:?}");
    }
}

#[test]
fn the_name_of_a_program_has_no_folder_no_ending_and_no_capital_letters() {
    assert_eq!(program_name(r"C:\Tools\Node.EXE"), "node");
    assert_eq!(program_name("/opt/NPX.cmd"), "npx");
    assert_eq!(program_name("python3.12"), "python3.12");
}
