use std::fs;
use std::thread::sleep;

use serde_json::json;

use super::*;

/// Bounds a test that would otherwise wait forever; much longer than any step takes.
const BOUND: Duration = Duration::from_secs(20);
/// The time between the two steps of a save.
const STEP: Duration = Duration::from_millis(50);

/// A workspace with a running watcher.
struct Scene {
    _root: tempfile::TempDir,
    root: PathBuf,
    settings: watch::Sender<Arc<Settings>>,
    watcher: Watcher,
    loaded: watch::Receiver<Arc<Loaded>>,
}

fn environments() -> watch::Receiver<Arc<Environments>> {
    watch::channel(Arc::default()).1
}

impl Scene {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("work")).unwrap();
        fs::create_dir(root.join("config")).unwrap();
        let paths = Paths {
            config_dir: root.join("config"),
            state_dir: root.join("state"),
            runtime_dir: root.join("run"),
            managed_config: root.join("managed/mcp.json"),
        };
        let settings = watch::Sender::new(Arc::new(Settings::default()));
        let watcher = Watcher::spawn(paths, settings.subscribe(), environments());
        watcher.set_folders(vec![root.join("work").into()]).await;
        let mut loaded = watcher.subscribe();
        loaded.mark_unchanged();
        Self { _root: folder, root, settings, watcher, loaded }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Changes the file on another thread, which may block.
    async fn save(&self, style: impl FnOnce(&Path) + Send + 'static) {
        let root = self.root.clone();
        tokio::task::spawn_blocking(move || style(&root)).await.unwrap();
    }

    /// The next published config: `name=command` of each server.
    async fn next(&mut self) -> String {
        tokio::time::timeout(BOUND, self.loaded.changed()).await.expect("nothing was published").unwrap();
        servers(&self.loaded.borrow_and_update())
    }

    /// Asserts that every change so far has been published exactly once.
    async fn settled(&mut self) {
        self.watcher.reload().await;
        assert!(!self.loaded.has_changed().unwrap(), "published more than once");
    }

    fn errors(&self, name: &str) -> Vec<String> {
        let loaded = self.loaded.borrow();
        let problems = &loaded.file(&self.path(name)).unwrap().problems;
        let errors = problems.iter().filter(|problem| problem.severity == super::super::Severity::Error);
        errors.map(|problem| problem.message.clone()).collect()
    }
}

fn servers(loaded: &Loaded) -> String {
    let command = |definition: &super::super::Definition| match &definition.spec.launch {
        super::super::Launch::Stdio(stdio) => stdio.command.clone(),
        other => other.transport().to_owned(),
    };
    let all: Vec<_> =
        loaded.config.servers.iter().map(|(name, definition)| format!("{name}={}", command(definition))).collect();
    all.join(" ")
}

fn config(command: &str) -> String {
    config_of("fs", command)
}

fn config_of(name: &str, command: &str) -> String {
    json!({ "servers": { name: { "command": command } } }).to_string()
}

fn write(path: PathBuf, text: String) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Starts with `one` in the file and changes it to `two` in the given way, which must be published exactly once.
async fn published_once(file: &'static str, prepare: fn(&Path), change: fn(&Path)) {
    let mut scene = Scene::new().await;
    scene.save(prepare).await;
    scene.watcher.reload().await;
    scene.loaded.mark_unchanged();
    assert_eq!(servers(&scene.loaded.borrow()), "fs=one", "{file}");
    scene.save(change).await;
    assert_eq!(scene.next().await, "fs=two");
    scene.settled().await;
    assert_eq!(fs::read_to_string(scene.path(file)).unwrap(), config("two"));
}

fn one(root: &Path) {
    write(root.join("work/mcp.json"), config("one"));
}

fn one_below(root: &Path) {
    write(root.join("work/.vscode/mcp.json"), config("one"));
}

#[cfg(unix)]
fn one_linked(root: &Path) {
    // A link out of the repository is not followed, so all of this is one repository.
    fs::create_dir(root.join(".git")).unwrap();
    write(root.join("dotfiles/real.json"), config("one"));
    std::os::unix::fs::symlink("../dotfiles/real.json", root.join("work/mcp.json")).unwrap();
}

#[cfg(unix)]
fn one_in_linked_folder(root: &Path) {
    fs::create_dir(root.join(".git")).unwrap();
    write(root.join("dotfiles/vscode/mcp.json"), config("one"));
    std::os::unix::fs::symlink(root.join("dotfiles/vscode"), root.join("work/.vscode")).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_save_in_place_is_published_once() {
    published_once("work/mcp.json", one, |root| fs::write(root.join("work/mcp.json"), config("two")).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_save_that_empties_the_file_first_is_published_once() {
    published_once("work/mcp.json", one, |root| {
        let path = root.join("work/mcp.json");
        fs::write(&path, "").unwrap();
        sleep(STEP);
        fs::write(&path, config("two")).unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_save_in_several_pieces_is_published_once() {
    published_once("work/mcp.json", one, |root| {
        use std::io::Write;
        let mut file = fs::File::create(root.join("work/mcp.json")).unwrap();
        for piece in config("two").as_bytes().chunks(12) {
            file.write_all(piece).unwrap();
            sleep(STEP);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_save_by_rename_is_published_once() {
    published_once("work/mcp.json", one, |root| {
        fs::write(root.join("work/.mcp.json.tmp"), config("two")).unwrap();
        fs::rename(root.join("work/.mcp.json.tmp"), root.join("work/mcp.json")).unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_save_with_a_backup_as_in_vim_is_published_once() {
    published_once("work/mcp.json", one, |root| {
        fs::write(root.join("work/4913"), "").unwrap();
        fs::remove_file(root.join("work/4913")).unwrap();
        fs::rename(root.join("work/mcp.json"), root.join("work/mcp.json~")).unwrap();
        fs::write(root.join("work/mcp.json"), config("two")).unwrap();
        fs::remove_file(root.join("work/mcp.json~")).unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_and_recreated_file_is_published_once() {
    published_once("work/mcp.json", one, |root| {
        fs::remove_file(root.join("work/mcp.json")).unwrap();
        sleep(STEP);
        fs::write(root.join("work/mcp.json"), config("two")).unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_and_recreated_folder_is_published_once() {
    published_once("work/.vscode/mcp.json", one_below, |root| {
        fs::remove_dir_all(root.join("work/.vscode")).unwrap();
        sleep(STEP);
        write(root.join("work/.vscode/mcp.json"), config("two"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_recreated_immediately_is_published_once() {
    published_once("work/.vscode/mcp.json", one_below, |root| {
        fs::remove_dir_all(root.join("work/.vscode")).unwrap();
        write(root.join("work/.vscode/mcp.json"), config("two"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_folder_is_published_once() {
    published_once("work/.vscode/mcp.json", one_below, |root| {
        write(root.join("work/next/mcp.json"), config("two"));
        fs::rename(root.join("work/.vscode"), root.join("work/old")).unwrap();
        fs::rename(root.join("work/next"), root.join("work/.vscode")).unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_workspace_is_published_once() {
    published_once("work/mcp.json", one, |root| {
        write(root.join("next/mcp.json"), config("two"));
        fs::rename(root.join("work"), root.join("old")).unwrap();
        fs::rename(root.join("next"), root.join("work")).unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_with_the_same_size_and_an_older_date_is_published_once() {
    published_once("work/mcp.json", one, |root| {
        let old = fs::File::create(root.join("work/next")).unwrap();
        fs::write(root.join("work/next"), config("two")).unwrap();
        old.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        fs::rename(root.join("work/next"), root.join("work/mcp.json")).unwrap();
    })
    .await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_save_of_a_symlink_target_is_published_once() {
    published_once("work/mcp.json", one_linked, |root| {
        fs::write(root.join("dotfiles/real.json"), config("two")).unwrap()
    })
    .await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_symlink_target_replaced_by_rename_is_published_once() {
    published_once("work/mcp.json", one_linked, |root| {
        fs::write(root.join("dotfiles/next"), config("two")).unwrap();
        fs::rename(root.join("dotfiles/next"), root.join("dotfiles/real.json")).unwrap();
    })
    .await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_changed_symlink_is_published_once() {
    published_once("work/mcp.json", one_linked, |root| {
        write(root.join("other/real.json"), config("two"));
        std::os::unix::fs::symlink(root.join("other/real.json"), root.join("work/next")).unwrap();
        fs::rename(root.join("work/next"), root.join("work/mcp.json")).unwrap();
    })
    .await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_save_in_a_symlinked_folder_is_published_once() {
    published_once("work/.vscode/mcp.json", one_in_linked_folder, |root| {
        fs::write(root.join("dotfiles/vscode/mcp.json"), config("two")).unwrap();
    })
    .await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_changed_symlink_to_a_folder_is_published_once() {
    published_once("work/.vscode/mcp.json", one_in_linked_folder, |root| {
        write(root.join("other/mcp.json"), config("two"));
        std::os::unix::fs::symlink("../other", root.join("work/next")).unwrap();
        fs::rename(root.join("work/next"), root.join("work/.vscode")).unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_files_in_new_folders_are_found() {
    let mut scene = Scene::new().await;
    scene.save(|root| write(root.join("work/.vscode/mcp.json"), config("below"))).await;
    assert_eq!(scene.next().await, "fs=below");
    scene.save(|root| write(root.join("managed/mcp.json"), config_of("company", "policy"))).await;
    assert_eq!(scene.next().await, "company=policy fs=below");
    scene.save(|root| write(root.join("config/mcp.json"), config_of("mine", "always"))).await;
    assert_eq!(scene.next().await, "company=policy fs=below mine=always");
    scene.settled().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_save_is_lost() {
    let mut scene = Scene::new().await;
    for round in 0..40 {
        let text = config(&format!("v{round}"));
        scene
            .save(move |root| {
                let (path, next) = (root.join("work/mcp.json"), root.join("work/next"));
                match round % 4 {
                    0 => fs::write(path, text).unwrap(),
                    1 => fs::write(&next, text).and_then(|()| fs::rename(next, path)).unwrap(),
                    2 => fs::remove_file(&path).and_then(|()| fs::write(path, text)).unwrap(),
                    _ => fs::rename(&path, root.join("work/mcp.json~")).and_then(|()| fs::write(path, text)).unwrap(),
                }
            })
            .await;
        assert_eq!(scene.next().await, format!("fs=v{round}"));
    }
    scene.settled().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_file_is_reported_and_its_last_valid_text_stays_in_force() {
    let mut scene = Scene::new().await;
    scene.save(one).await;
    assert_eq!(scene.next().await, "fs=one");
    assert_eq!(scene.errors("work/mcp.json"), [""; 0]);

    scene.save(|root| fs::write(root.join("work/mcp.json"), r#"{ "servers": { "fs": "#).unwrap()).await;
    assert_eq!(scene.next().await, "fs=one");
    assert!(!scene.errors("work/mcp.json").is_empty());
    assert!(!scene.loaded.borrow().file(&scene.path("work/mcp.json")).unwrap().valid);

    // Meanwhile, changes of another file are still applied.
    scene.save(|root| write(root.join("config/mcp.json"), config_of("mine", "always"))).await;
    assert_eq!(scene.next().await, "fs=one mine=always");

    scene.save(|root| fs::write(root.join("work/mcp.json"), config("two")).unwrap()).await;
    assert_eq!(scene.next().await, "fs=two mine=always");
    assert_eq!(scene.errors("work/mcp.json"), [""; 0]);
    scene.settled().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_file_keeps_its_last_valid_text_in_force() {
    let mut scene = Scene::new().await;
    scene.save(one).await;
    assert_eq!(scene.next().await, "fs=one");
    for bytes in [&b""[..], b"  \n", b"\xff\xfe{\0}\0", &[b' '; (1 << 20) + 1]] {
        let bytes = bytes.to_vec();
        scene.save(move |root| fs::write(root.join("work/mcp.json"), bytes).unwrap()).await;
        assert_eq!(scene.next().await, "fs=one");
    }
    let errors = scene.errors("work/mcp.json");
    assert!(errors.iter().any(|message| message.contains("larger than 1 MiB")), "{errors:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_file_removes_its_servers() {
    let mut scene = Scene::new().await;
    scene.save(one).await;
    assert_eq!(scene.next().await, "fs=one");
    scene.save(|root| fs::remove_file(root.join("work/mcp.json")).unwrap()).await;
    assert_eq!(scene.next().await, "");
    scene.settled().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_project_folder_is_reported_once_and_found_again() {
    let mut scene = Scene::new().await;
    scene.save(one).await;
    assert_eq!(scene.next().await, "fs=one");
    let work: Arc<Path> = scene.path("work").into();
    scene.save(|root| fs::rename(root.join("work"), root.join("elsewhere")).unwrap()).await;
    // Its servers are kept, so that their status can say why they do not run.
    assert_eq!(scene.next().await, "fs=one");
    assert_eq!(scene.loaded.borrow().config.gone, [work.clone()].into());
    scene.settled().await;
    scene.save(|root| fs::rename(root.join("elsewhere"), root.join("work")).unwrap()).await;
    assert_eq!(scene.next().await, "fs=one");
    assert!(scene.loaded.borrow().config.gone.is_empty());
    scene.save(|root| fs::remove_dir_all(root.join("work")).unwrap()).await;
    assert_eq!(scene.next().await, "fs=one");
    assert_eq!(scene.loaded.borrow().config.gone, [work].into());
    scene.save(|root| write(root.join("work/mcp.json"), config("again"))).await;
    assert_eq!(scene.next().await, "fs=again");
    assert!(scene.loaded.borrow().config.gone.is_empty());
    scene.settled().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_files_changed_together_are_one_change() {
    let mut scene = Scene::new().await;
    scene
        .save(|root| {
            fs::write(root.join("config/mcp.json"), config_of("mine", "always")).unwrap();
            fs::write(root.join("work/mcp.json"), config("one")).unwrap();
        })
        .await;
    assert_eq!(scene.next().await, "fs=one mine=always");
    scene.settled().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_comment_changes_the_text_but_not_the_config() {
    let mut scene = Scene::new().await;
    scene.save(one).await;
    scene.next().await;
    let before = scene.loaded.borrow().clone();
    scene.save(|root| fs::write(root.join("work/mcp.json"), format!("// new\n{}", config("one"))).unwrap()).await;
    scene.next().await;
    let after = scene.loaded.borrow().clone();
    let specs =
        |loaded: &Loaded| format!("{:?}", loaded.config.servers.values().map(|it| &it.spec).collect::<Vec<_>>());
    assert_eq!(specs(&before), specs(&after));
    assert!(after.file(&scene.path("work/mcp.json")).unwrap().text.starts_with("// new"));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_files_in_the_folder_are_ignored() {
    let mut scene = Scene::new().await;
    scene.save(|root| fs::write(root.join("work/README.md"), "hello").unwrap()).await;
    scene.settled().await;
    scene.save(one).await;
    assert_eq!(scene.next().await, "fs=one");
}

#[tokio::test(flavor = "multi_thread")]
async fn session_definitions_and_unsaved_texts_are_merged_with_the_files() {
    let mut scene = Scene::new().await;
    scene.save(one).await;
    scene.next().await;
    let session = BTreeMap::from([("tmp".to_owned(), json!({ "command": "now" }))]);
    assert_eq!(servers(&*scene.watcher.set_session(session).await), "fs=one tmp=now");
    assert_eq!(scene.watcher.session_names(), ["tmp"]);

    let buffers = BTreeMap::from([(scene.path("work/mcp.json"), Arc::from(config("unsaved")))]);
    assert_eq!(servers(&scene.watcher.preview(&buffers)), "fs=unsaved tmp=now");
    assert_eq!(servers(&*scene.watcher.reload().await), "fs=one tmp=now");
    assert_eq!(servers(&*scene.watcher.set_session(BTreeMap::new()).await), "fs=one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_list_of_files_takes_effect_immediately() {
    let mut scene = Scene::new().await;
    scene.save(|root| write(root.join("work/tools.json"), config("odd"))).await;
    let mut settings = Settings::default();
    settings.files.project = vec!["tools.json".to_owned()];
    scene.settings.send_replace(Arc::new(settings));
    assert_eq!(scene.next().await, "fs=odd");
    scene.save(|root| write(root.join("work/tools.json"), config("odder"))).await;
    assert_eq!(scene.next().await, "fs=odder");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_accepts_the_files_as_they_are() {
    let mut scene = Scene::new().await;
    scene.save(one).await;
    scene.next().await;
    scene.save(|root| fs::remove_file(root.join("work/mcp.json")).unwrap()).await;
    assert_eq!(servers(&*scene.watcher.reload().await), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_task_ends_with_its_last_handle() {
    let mut scene = Scene::new().await;
    drop(scene.watcher);
    while tokio::time::timeout(BOUND, scene.loaded.changed()).await.expect("the task goes on").is_ok() {}
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_leads_nowhere_is_an_error_and_the_servers_stay() {
    for (file, link) in [
        ("config/mcp.json", "config/mcp.json"),
        ("work/mcp.json", "work/mcp.json"),
        ("work/.vscode/mcp.json", "work/.vscode"),
    ] {
        let mut scene = Scene::new().await;
        write(scene.path(file), config("one"));
        scene.watcher.reload().await;
        fs::rename(scene.path(link), scene.path("moved")).unwrap();
        std::os::unix::fs::symlink("/nowhere/else", scene.path(link)).unwrap();
        let loaded = scene.watcher.reload().await;
        assert_eq!(servers(&loaded), "fs=one", "{file}");
        scene.loaded.mark_unchanged();
        assert!(scene.errors(file)[0].contains("/nowhere/else"), "{:?}", scene.errors(file));
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_a_link_leads_through_and_that_is_exchanged_is_published_once() {
    fn linked(root: &Path) {
        write(root.join("work/..1/mcp.json"), config("one"));
        write(root.join("work/..2/mcp.json"), config("two"));
        std::os::unix::fs::symlink("..1", root.join("work/..data")).unwrap();
        std::os::unix::fs::symlink("..data/mcp.json", root.join("work/mcp.json")).unwrap();
    }
    fn exchanged(root: &Path) {
        std::os::unix::fs::symlink("..2", root.join("work/..new")).unwrap();
        fs::rename(root.join("work/..new"), root.join("work/..data")).unwrap();
    }
    published_once("work/mcp.json", linked, exchanged).await;
}
