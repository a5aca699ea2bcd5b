//! Which servers of the user depend on an open folder, or run its code.

use super::*;
use crate::config::spec::Sandbox;

struct Folders {
    _keep: tempfile::TempDir,
    /// A repository that is open.
    open: PathBuf,
    /// A folder of the user next to it.
    beside: PathBuf,
}

fn test_folders() -> Folders {
    let (keep, folder) = project();
    let (open, beside) = (folder.join("open"), folder.join("beside"));
    for folder in [&open.join(".git"), &beside] {
        fs::create_dir_all(folder).unwrap();
    }
    for (folder, text) in [(&open, "NODE_OPTIONS=--import=data:x\n"), (&beside, "NODE_OPTIONS=--inspect\n")] {
        fs::write(folder.join(".env"), text).unwrap();
        fs::write(folder.join("data.env"), "A=1").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::write(folder.join("tool"), "#!/bin/sh\n").unwrap();
            fs::set_permissions(folder.join("tool"), fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    Folders { _keep: keep, open, beside }
}

fn of_user(launch: Launch, fallback: Option<Launch>) -> Definition {
    let base = definition(Path::new("/home/me"));
    let spec = ServerSpec { fallback, ..ServerSpec::new(launch) };
    Definition { scope: Scope::User, folder: None, spec, ..base }
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// Changes of a launch, made for a folder: each depends on the folder, and the last ones run its code.
type Change = fn(&mut Stdio, &Path);
const DATA: [(&str, Change); 4] = [
    ("args", |stdio, folder| stdio.args = vec![format!("--root={}", text(folder))]),
    ("env", |stdio, folder| drop(stdio.env.insert("ROOT".into(), Some(text(folder))))),
    ("envFile", |stdio, folder| stdio.env_file = Some(text(&folder.join("data.env")))),
    ("sandbox", |stdio, folder| {
        let write = vec![text(folder)];
        stdio.sandbox = Some(Sandbox { read: None, write, network: false, required: false });
    }),
];
const CODE: [(&str, Change); 4] = [
    ("cwd", |stdio, folder| stdio.cwd = Some(text(folder))),
    ("command", |stdio, folder| stdio.command = text(&folder.join("tool"))),
    ("NODE_OPTIONS", |stdio, folder| {
        drop(stdio.env.insert("NODE_OPTIONS".into(), Some(format!("--require={}/x.js", text(folder)))));
    }),
    ("envFile", |stdio, folder| stdio.env_file = Some(text(&folder.join(".env")))),
];

#[cfg(unix)]
#[test]
fn a_server_of_the_user_runs_the_code_of_a_folder_by_its_program_folder_variables_or_env_file() {
    let disk = test_folders();
    let folders: [Arc<Path>; 2] = ["/elsewhere".as_ref(), &*disk.open].map(Arc::from);
    let environment = Environment::of_this_process();
    let changed = |change: Change, folder: &Path| {
        let mut stdio = Stdio { command: "sh".into(), ..Stdio::default() };
        change(&mut stdio, folder);
        Launch::Stdio(stdio)
    };
    let plain = || Launch::Stdio(Stdio { command: "sh".into(), ..Stdio::default() });
    let inside = |definition: &Definition| runs_inside(definition, &folders, &environment);
    let independent = |definition: &Definition| is_independent(definition, &folders, &environment);
    assert!(inside(&of_user(plain(), None)).is_none() && independent(&of_user(plain(), None)));
    for (name, change) in CODE {
        let first = of_user(changed(change, &disk.open), None);
        let second = of_user(plain(), Some(changed(change, &disk.open)));
        for definition in [&first, &second] {
            assert_eq!(inside(definition).as_deref(), Some(&*disk.open), "{name}");
            assert!(touches(definition, &folders, &environment) && !independent(definition), "{name}");
        }
        let other = of_user(changed(change, &disk.beside), None);
        assert!(inside(&other).is_none() && independent(&other), "{name} in another folder");
    }
    for (name, change) in DATA {
        let definition = of_user(changed(change, &disk.open), None);
        assert_eq!(inside(&definition), None, "{name} is data of the server");
        assert!(touches(&definition, &folders, &environment) && !independent(&definition), "{name}");
        let second = of_user(plain(), Some(changed(change, &disk.open)));
        assert!(touches(&second, &folders, &environment), "{name} in the fallback");
        assert!(independent(&of_user(changed(change, &disk.beside), None)), "{name} in another folder");
    }
}

#[test]
fn only_a_server_of_the_user_that_does_not_name_the_workspace_is_independent() {
    let environment = Environment::of_this_process();
    let independent = |definition: &Definition| is_independent(definition, &[], &environment);
    let launch = |argument: &str| {
        Launch::Stdio(Stdio { command: "sh".into(), args: vec![argument.to_owned()], ..Stdio::default() })
    };
    let own = of_user(launch("x"), None);
    assert!(independent(&own) && independent(&Definition { scope: Scope::Managed, ..own.clone() }));
    assert!(!independent(&Definition { scope: Scope::Project, ..own.clone() }));
    assert!(!independent(&Definition { folder: Some(Path::new("/work").into()), ..own }));
    for reference in ["${workspaceFolder}/x", "${workspaceFolderBasename}"] {
        assert!(!independent(&of_user(launch(reference), None)), "{reference}");
        assert!(!independent(&of_user(launch("x"), Some(launch(reference)))), "{reference} in the fallback");
        assert!(touches(&of_user(launch(reference), None), &[], &environment), "{reference}");
    }
    assert!(independent(&of_user(launch("${userHome}/x"), None)));
    let missing = Stdio { command: "no-such-program".into(), ..Stdio::default() };
    assert!(independent(&of_user(Launch::Stdio(missing), None)));
    let remote = |url: &str| Launch::Http(Remote { url: url.to_owned(), ..Remote::default() });
    assert!(independent(&of_user(remote("http://127.0.0.1/mcp"), None)));
    assert!(!independent(&of_user(remote("http://127.0.0.1/${workspaceFolderBasename}"), None)));
}

#[cfg(unix)]
#[test]
fn a_link_to_an_open_folder_touches_it() {
    let disk = test_folders();
    std::os::unix::fs::symlink(&disk.open, disk.beside.join("link")).unwrap();
    let touches = |argument: &str| {
        let args = vec![text(&disk.beside.join(argument))];
        let launch = Launch::Stdio(Stdio { command: "sh".into(), args, ..Stdio::default() });
        touches(&of_user(launch, None), &[Arc::from(&*disk.open)], &Environment::of_this_process())
    };
    assert!(touches("link") && touches("link/tool") && !touches("other"));
}

#[cfg(unix)]
#[test]
fn a_relative_working_folder_is_not_in_an_open_folder_and_the_home_folder_can_be_one() {
    let environment = Environment::of_this_process();
    let inside = |cwd: &Path, open: &Path| {
        let stdio = Stdio { command: "sh".into(), cwd: Some(text(cwd)), ..Stdio::default() };
        runs_inside(&of_user(Launch::Stdio(stdio), None), &[Arc::from(open)], &environment).is_some()
    };
    // It starts at the private folder of the server, wherever this process works.
    let here = std::env::current_dir().unwrap();
    assert!(inside(&here.join("src"), &here) && !inside(Path::new("src"), &here));
    if let Ok(home) = etcetera::home_dir().map(|home| home.canonicalize().unwrap()) {
        assert!(inside(&home, &home));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn no_text_names_an_open_folder_whose_name_is_not_unicode() {
    use std::os::unix::ffi::OsStrExt;
    let open = Path::new(std::ffi::OsStr::from_bytes(b"/work/\xff"));
    let launch = Launch::Stdio(Stdio { command: "sh".into(), args: vec!["/work/x".into()], ..Stdio::default() });
    assert!(!touches(&of_user(launch, None), &[Arc::from(open)], &Environment::of_this_process()));
}
