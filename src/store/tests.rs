use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::json;
use serde_json::value::RawValue;

use super::*;
use crate::model::{CallId, Decision, Requester, RequesterKind, ServerName, Timestamp, ToolId};
use crate::paths::write_worktree;
use crate::policy::Pin;
use crate::policy::trust::TrustRecord;
use crate::text::Secret;

fn options(project: &str) -> Options {
    Options { project: project.into(), main: project.into(), strict: false, keep_days: 30, record_bytes: 200 }
}

async fn store(path: &Path) -> Store {
    Store::open(path, options("/home/you/shop")).await
}

async fn strict(path: &Path) -> Store {
    Store::open(path, Options { strict: true, ..options("/home/you/shop") }).await
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state/state.db");
    (dir, path)
}

fn server(name: &str) -> ServerName {
    ServerName::new(name).unwrap()
}

fn key() -> TrustKey {
    TrustKey { project: "/home/you/shop".into(), server: server("fs") }
}

fn fingerprint(digest: &str) -> Arc<Fingerprint> {
    let text = json!({ "digest": digest, "launch": "l", "lines": { "command": "npx" } });
    Arc::new(serde_json::from_value(text).unwrap())
}

fn grant(tool: &str, decision: Decision) -> Grant {
    let id = ToolId::new(server("fs"), tool);
    let asked = GrantQuery { tool: &id, project: Path::new("/home/you/shop"), fingerprint: None, pin: "p" };
    Grant::new(&asked, decision, Pin { digest: "p".into(), text: "{}".into() }).unwrap()
}

fn call(id: &str, arguments: Value, result: Option<&str>) -> FinishedCall {
    FinishedCall {
        record: Arc::new(CallRecord {
            call_id: CallId(id.into()),
            folder: None,
            time: Timestamp::now(),
            kind: Default::default(),
            server: server("fs"),
            tool: "read".into(),
            requester: Requester::default(),
            workflow: None,
            decision: "allow-session".into(),
            decided_by: "user".into(),
            success: true,
            error: None,
            duration_ms: 1.5,
            waited_ms: 0.0,
            result_size: None,
            arguments: None,
            requested_arguments: None,
            result: None,
        }),
        arguments: Arc::new(arguments.as_object().cloned().unwrap_or_default()),
        requested: None,
        result: result.map(|text| RawValue::from_string(text.to_owned()).unwrap().into()),
    }
}

async fn record(store: &Store, call: FinishedCall) {
    let started = store.begin_call(call.clone()).await.unwrap();
    store.finish_call(started, call).await;
}

async fn found(store: &Store, tool: &str, project: &str) -> bool {
    let id = ToolId::new(server("fs"), tool);
    let asked = GrantQuery { tool: &id, project: Path::new(project), fingerprint: None, pin: "p" };
    matches!(store.find_grant(&asked).await, GrantMatch::Active(_))
}

async fn pragma(store: &Store, name: &'static str, value: i64) {
    let set = store.run(move |owner| {
        owner.connected(|connection| {
            connection.query_row(&format!("PRAGMA {name} = {value}"), [], |_| Ok(())).or_else(|error| match error {
                rusqlite::Error::QueryReturnedNoRows => Ok(()),
                error => Err(error),
            })
        })
    });
    set.await.unwrap().unwrap();
}

fn integrity(path: &Path) -> String {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap()
}

fn problem(store: &Store) -> Option<String> {
    store.health().borrow().problem.clone()
}

#[tokio::test]
async fn decisions_survive_a_restart_but_session_grants_do_not() {
    let (_keep, path) = folder();
    let first = store(&path).await;
    assert_eq!(first.trust(key(), fingerprint("a")).await, Saved::ToDisk);
    for (tool, decision) in [("s", Decision::AllowSession), ("p", Decision::AllowProject), ("a", Decision::AllowAlways)]
    {
        first.add_grant(grant(tool, decision)).await;
    }
    let listed: Vec<String> =
        first.grants().await.iter().map(|grant| format!("{} {}", grant.tool, grant.scope.as_str())).collect();
    assert_eq!(listed.len(), 3);
    drop(first);

    let second = store(&path).await;
    assert_eq!(second.decisions().await.trust[&key()].trusted, Some(fingerprint("a")));
    let mut table = String::new();
    for tool in ["s", "p", "a"] {
        let here = found(&second, tool, "/home/you/shop").await;
        table.push_str(&format!("{tool}: here {here}, elsewhere {}\n", found(&second, tool, "/other").await));
    }
    insta::assert_snapshot!(table, @"
    s: here false, elsewhere false
    p: here true, elsewhere false
    a: here true, elsewhere true
    ");
}

#[tokio::test]
async fn a_denial_is_bound_to_its_definition_and_a_later_yes_replaces_it() {
    let (_keep, path) = folder();
    let store = store(&path).await;
    store.trust(key(), fingerprint("a")).await;
    store.distrust(key(), &fingerprint("b")).await;
    let said = |trusted: Option<&str>, denied: Option<&str>| TrustRecord {
        trusted: trusted.map(fingerprint),
        denied: denied.map(str::to_owned),
    };
    assert_eq!(store.decisions().await.trust[&key()], said(Some("a"), Some("b")));
    store.distrust(key(), &fingerprint("a")).await;
    assert_eq!(store.decisions().await.trust[&key()], said(None, Some("a")));
    store.trust(key(), fingerprint("a")).await;
    assert_eq!(store.decisions().await.trust[&key()], said(Some("a"), None));
    store.forget_trust(key()).await;
    assert!(store.decisions().await.trust.is_empty());
}

#[tokio::test]
async fn engines_that_share_the_file_see_each_others_decisions() {
    let (_keep, path) = folder();
    let (one, two) = (store(&path).await, store(&path).await);
    one.add_grant(grant("a", Decision::AllowAlways)).await;
    assert!(found(&two, "a", "/home/you/shop").await);
    let id = two.grants().await[0].id.clone();
    assert_eq!(two.revoke_grant(&id).await, Some(Saved::ToDisk));
    assert!(!found(&one, "a", "/home/you/shop").await);
    assert_eq!(one.revoke_grant(&id).await, None, "there is none of that id any more");
}

#[tokio::test]
async fn revoking_all_covers_session_project_and_always_grants_of_this_workspace() {
    let (_keep, path) = folder();
    let store = store(&path).await;
    for decision in [Decision::AllowSession, Decision::AllowProject, Decision::AllowAlways] {
        store.add_grant(grant("t", decision)).await;
    }
    let elsewhere = Grant { project: Some("/other".into()), ..grant("t", Decision::AllowProject) };
    store.add_grant(elsewhere).await;
    assert_eq!(store.revoke_grants().await, (3, Saved::ToDisk));
    assert!(store.grants().await.is_empty());
    assert_eq!(store.decisions().await.grants.len(), 1, "another project's grant is not ours to revoke");
}

#[tokio::test]
async fn a_second_grant_for_the_same_tool_replaces_the_first() {
    let (_keep, path) = folder();
    let store = store(&path).await;
    store.add_grant(grant("t", Decision::AllowAlways)).await;
    store.add_grant(grant("t", Decision::AllowAlways)).await;
    assert_eq!(store.grants().await.len(), 1);
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_user_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let (_keep, path) = folder();
    let store = store(&path).await;
    store.trust(key(), fingerprint("a")).await;
    let mode = |path: &Path| format!("{:o}", fs::metadata(path).unwrap().permissions().mode() & 0o777);
    assert_eq!(mode(path.parent().unwrap()), "700");
    for entry in fs::read_dir(path.parent().unwrap()).unwrap() {
        let entry = entry.unwrap().path();
        assert_eq!(mode(&entry), "600", "{}", entry.display());
    }
}

#[tokio::test]
async fn a_foreign_file_is_moved_and_never_overwritten() {
    let stranger = |path: &Path| {
        rusqlite::Connection::open(path).unwrap().execute_batch("CREATE TABLE mine (a)").unwrap();
    };
    let garbage = |path: &Path| fs::write(path, "garbage ".repeat(1_000)).unwrap();
    let damaged = |path: &Path| {
        let connection = rusqlite::Connection::open(path).unwrap();
        connection.pragma_update(None, "application_id", 0x6d63_7073).unwrap();
        connection
            .execute_batch("CREATE TABLE t (a); INSERT INTO t SELECT hex(randomblob(2000)) FROM generate_series(1,9)")
            .ok();
        connection.execute_batch("CREATE TABLE u (a); INSERT INTO u VALUES (hex(randomblob(9000)))").unwrap();
        drop(connection);
        let mut bytes = fs::read(path).unwrap();
        bytes.iter_mut().skip(4_096).for_each(|byte| *byte = 0xaa);
        fs::write(path, bytes).unwrap();
    };
    type Make<'a> = &'a dyn Fn(&Path);
    let cases: [(&str, Make<'_>); 3] = [("stranger", &stranger), ("garbage", &garbage), ("damaged", &damaged)];
    for (name, make) in cases {
        let (_keep, path) = folder();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        make(&path);
        let before = fs::read(&path).unwrap();
        let store = store(&path).await;
        let health = store.health().borrow().clone();
        assert!(health.is_good() && health.notice.is_some(), "{name}: {health:?}");
        assert_eq!(store.trust(key(), fingerprint("a")).await, Saved::ToDisk, "{name}");
        let aside = fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
        let aside: Vec<PathBuf> = aside.filter(|path| path.to_string_lossy().contains(".broken-")).collect();
        let kept = aside.iter().any(|path| fs::read(path).unwrap() == before);
        assert!(kept, "{name}: {aside:?}");
    }
}

fn database_of_the_first_format(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch(include_str!("../../tests/fixtures/state-1.sql")).unwrap();
}

#[tokio::test]
async fn every_decision_survives_a_restart_and_a_migration() {
    for old in [false, true] {
        let (_keep, path) = folder();
        if old {
            database_of_the_first_format(&path);
        }
        let first = store(&path).await;
        for decision in Decision::ALL {
            if GrantScope::of(decision).is_some() {
                assert_eq!(first.add_grant(grant(decision.as_str(), decision)).await, Saved::ToDisk, "{decision:?}");
            }
        }
        assert_eq!(first.distrust(key(), &fingerprint("b")).await, Saved::ToDisk);
        assert_eq!(problem(&first), None);
        drop(first);

        let second = store(&path).await;
        let mut kept: Vec<String> =
            second.grants().await.iter().map(|grant| format!("{} {}", grant.tool, grant.level())).collect();
        kept.sort();
        let mut expected = vec!["allow-always allow-always", "allow-project allow-project", "disable disable"];
        expected.extend(old.then_some("kept allow-always"));
        assert_eq!(kept, expected);
        assert_eq!(second.decisions().await.trust[&key()].denied.as_deref(), Some("b"));
        assert_eq!(integrity(&path), "ok");
    }
}

#[tokio::test]
async fn a_rejected_decision_does_not_block_the_others() {
    let (_keep, path) = folder();
    let first = store(&path).await;
    first
        .run(|owner| {
            owner.connected(|connection| {
                connection.execute_batch(
                    "CREATE TRIGGER reject BEFORE INSERT ON grants WHEN NEW.tool = 'rejected'
                        BEGIN SELECT RAISE(ABORT, 'rejected by a test'); END",
                )
            })
        })
        .await
        .unwrap()
        .unwrap();
    let rejected = first.add_grant(grant("rejected", Decision::AllowAlways)).await;
    assert!(matches!(&rejected, Saved::InMemory(why) if why.contains("rejected by a test")), "{rejected:?}");
    assert!(found(&first, "rejected", "/home/you/shop").await, "it holds until the engine ends");
    assert_eq!(first.add_grant(grant("accepted", Decision::AllowAlways)).await, Saved::ToDisk);
    assert!(problem(&first).is_some(), "the user is problem that one decision is not on disk");
    drop(first);
    let second = store(&path).await;
    assert_eq!(
        (found(&second, "accepted", "/home/you/shop").await, found(&second, "rejected", "/home/you/shop").await),
        (true, false)
    );
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_left_alone() {
    let (_keep, path) = folder();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    {
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.pragma_update(None, "application_id", 0x6d63_7073).unwrap();
        connection.pragma_update(None, "user_version", 99).unwrap();
    }
    let before = fs::read(&path).unwrap();
    let store = store(&path).await;
    let problem = problem(&store).unwrap_or_default();
    assert!(problem.contains("newer version of mcp-sidecar"), "{problem}");
    assert!(matches!(store.trust(key(), fingerprint("a")).await, Saved::InMemory(_)));
    drop(store);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn a_file_that_is_damaged_at_run_time_is_replaced_without_losing_decisions() {
    let (_keep, path) = folder();
    let store = store(&path).await;
    store.trust(key(), fingerprint("a")).await;
    store
        .run(|owner| owner.connected(|c| c.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))))
        .await
        .unwrap()
        .unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes.iter_mut().skip(100).for_each(|byte| *byte = 0xaa);
    fs::write(&path, bytes).unwrap();
    pragma(&store, "cache_size", 0).await;
    store.add_grant(grant("t", Decision::AllowAlways)).await;
    store.flush().await;
    drop(store);
    let again = self::store(&path).await;
    assert_eq!(again.decisions().await.trust[&key()].trusted, Some(fingerprint("a")));
    assert!(found(&again, "t", "/home/you/shop").await);
    assert_eq!(integrity(&path), "ok");
}

#[tokio::test]
async fn a_full_disk_stops_strict_calls_and_keeps_decisions_in_memory_until_there_is_room() {
    let (_keep, path) = folder();
    let store = strict(&path).await;
    let filler = || call("filler", json!({ "text": "x".repeat(150) }), Some(&format!("{:?}", "y".repeat(150))));
    pragma(&store, "max_page_count", 1).await;
    let refused = loop {
        match store.begin_call(filler()).await {
            Ok(_) => continue,
            Err(error) => break error.to_string(),
        }
    };
    assert_eq!(refused, "cannot write the audit log: disk full");
    let mut last = Saved::ToDisk;
    for index in 0..50 {
        let pin = Pin { digest: "p".into(), text: "x".repeat(5_000) };
        last = store.add_grant(Grant { pin, ..grant(&format!("t{index}"), Decision::AllowAlways) }).await;
        if last != Saved::ToDisk {
            assert!(found(&store, &format!("t{index}"), "/home/you/shop").await, "it holds although it is not on disk");
            break;
        }
    }
    assert_eq!(last, Saved::InMemory("disk full".into()));
    assert_eq!(problem(&store).as_deref(), Some("cannot use the state database: disk full"));

    pragma(&store, "max_page_count", 1_000_000).await;
    let mut health = store.health();
    health.wait_for(Health::is_good).await.unwrap();
    assert!(store.begin_call(filler()).await.is_ok());
    let all = store.grants().await.len();
    drop(store);
    assert_eq!(self::store(&path).await.grants().await.len(), all);
}

#[tokio::test]
async fn an_unwritable_folder_is_reported_and_used_once_it_is_writable() {
    let (keep, path) = folder();
    // A file instead of the folder: stops root as well.
    fs::write(keep.path().join("state"), "in the way").unwrap();
    let store = store(&path).await;
    assert!(problem(&store).is_some());
    assert!(matches!(store.trust(key(), fingerprint("a")).await, Saved::InMemory(_)));
    assert_eq!(store.decisions().await.trust[&key()].trusted, Some(fingerprint("a")));
    record(&store, call("c", json!({}), None)).await;

    fs::remove_file(keep.path().join("state")).unwrap();
    store.health().wait_for(Health::is_good).await.unwrap();
    assert_eq!(store.calls(CallQuery::default()).await.unwrap().len(), 1);
    drop(store);
    assert!(!self::store(&path).await.decisions().await.trust.is_empty());
}

#[cfg(unix)]
#[tokio::test]
async fn a_folder_that_others_can_write_is_refused_and_one_that_others_can_read_is_repaired() {
    use std::os::unix::fs::PermissionsExt;

    let (_keep, path) = folder();
    let state = path.parent().unwrap();
    let set_mode = |mode: u32| fs::set_permissions(state, fs::Permissions::from_mode(mode)).unwrap();
    fs::create_dir(state).unwrap();
    set_mode(0o777);
    let store = store(&path).await;
    assert!(problem(&store).is_some_and(|problem| problem.contains("is writable by other users; run `chmod 700`")));
    // What could not be written is written as soon as that is possible.
    assert!(matches!(store.trust(key(), fingerprint("a")).await, Saved::InMemory(_)));
    set_mode(0o755);
    store.health().wait_for(Health::is_good).await.unwrap();
    assert_eq!(fs::metadata(state).unwrap().permissions().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn a_log_that_is_deleted_at_run_time_loses_nothing() {
    let (_keep, path) = folder();
    let store = store(&path).await;
    store.trust(key(), fingerprint("a")).await;
    fs::remove_file(format!("{}-wal", path.display())).unwrap();
    store.add_grant(grant("t", Decision::AllowAlways)).await;
    record(&store, call("c", json!({}), None)).await;
    assert_eq!(store.calls(CallQuery::default()).await.unwrap().len(), 1);
    drop(store);
    let again = self::store(&path).await;
    assert_eq!(again.decisions().await.trust.len(), 1);
    assert!(found(&again, "t", "/home/you/shop").await);
    assert_eq!(integrity(&path), "ok");
}

/// The files of the database that an engine uses.
#[cfg(unix)]
fn identities(path: &Path) -> Vec<u64> {
    use std::os::unix::fs::MetadataExt;
    let files = ["", "-wal", "-shm"].map(|suffix| format!("{}{suffix}", path.display()));
    files.iter().map(|file| fs::metadata(file).map_or(0, |found| found.ino())).collect()
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_of_the_database_that_is_deleted_while_in_use_is_restored_and_nothing_is_lost() {
    for deleted in [&["-wal"][..], &["-shm"], &["-wal", "-shm"], &[""], &["", "-wal", "-shm"]] {
        let (_keep, path) = folder();
        let (one, idle) = (strict(&path).await, store(&path).await);
        one.trust(key(), fingerprint("a")).await;
        record(&one, call("before", json!({}), None)).await;
        let used = identities(&path);
        for suffix in deleted {
            fs::remove_file(format!("{}{suffix}", path.display())).unwrap();
        }
        // An engine that opens the database and one that is about to write must use the same files.
        let opened = strict(&path).await;
        assert_eq!(identities(&path), used, "{deleted:?}");
        for suffix in deleted {
            fs::remove_file(format!("{}{suffix}", path.display())).unwrap();
        }
        record(&one, call("after", json!({}), None)).await;
        assert_eq!(identities(&path), used, "{deleted:?}");
        record(&opened, call("opened", json!({}), None)).await;
        idle.add_grant(grant("t", Decision::AllowAlways)).await;
        assert_eq!(opened.calls(CallQuery::default()).await.unwrap().len(), 3, "{deleted:?}");
        drop((one, idle, opened));
        let again = store(&path).await;
        assert_eq!(again.decisions().await.trust.len(), 1, "{deleted:?}");
        assert!(found(&again, "t", "/home/you/shop").await);
        assert_eq!(again.calls(CallQuery::default()).await.unwrap().len(), 3);
        drop(again);
        assert_eq!(integrity(&path), "ok");
    }
}

#[tokio::test]
async fn known_decisions_are_written_to_a_new_file_if_the_folder_is_deleted_while_in_use() {
    let (_keep, path) = folder();
    let store = strict(&path).await;
    store.trust(key(), fingerprint("a")).await;
    store.add_grant(grant("t", Decision::AllowAlways)).await;
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    let started = store.begin_call(call("c", json!({}), None)).await.unwrap();
    assert!(started.0.is_some());
    store.flush().await;
    drop(store);
    let again = self::store(&path).await;
    assert_eq!(again.decisions().await.trust.len(), 1);
    assert!(found(&again, "t", "/home/you/shop").await);
    assert_eq!(again.calls(CallQuery::default()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_folder_that_was_deleted_is_not_created_again_on_exit() {
    let (_keep, path) = folder();
    let mut owner = Owner::new(store(&path).await.shared);
    owner.open();
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    owner.close();
    assert!(!path.parent().unwrap().exists());
}

#[tokio::test]
async fn a_database_that_is_replaced_while_in_use_is_opened_again() {
    let (keep, path) = folder();
    let other = keep.path().join("other/state.db");
    let saved = store(&other).await;
    saved.add_grant(grant("theirs", Decision::AllowAlways)).await;
    drop(saved);
    while fs::metadata(keep.path().join("other/state.db-wal")).is_ok() {
        tokio::task::yield_now().await;
    }
    let store = strict(&path).await;
    store.add_grant(grant("ours", Decision::AllowAlways)).await;
    fs::rename(&other, &path).unwrap();
    record(&store, call("c", json!({}), None)).await;
    assert_eq!(store.calls(CallQuery::default()).await.unwrap().len(), 1);
    assert!(found(&store, "theirs", "/home/you/shop").await);
    drop(store);
    let again = self::store(&path).await;
    assert!(found(&again, "theirs", "/home/you/shop").await);
    assert_eq!(integrity(&path), "ok");
}

#[cfg(unix)]
#[tokio::test]
async fn a_lock_or_fifo_of_another_program_makes_the_database_unavailable_for_a_limited_time() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    for suffix in ["", "-lock", "-users"] {
        let (_keep, path) = folder();
        fs::create_dir(path.parent().unwrap()).unwrap();
        let odd = PathBuf::from(format!("{}{suffix}", path.display()));
        mknodat(CWD, &odd, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let blocked = store(&path).await;
        let why = problem(&blocked).unwrap_or_default();
        assert!(why.contains("is not a regular file; remove it"), "{why}");
        fs::remove_file(&odd).unwrap();
        assert_eq!(blocked.trust(key(), fingerprint("a")).await, Saved::ToDisk);
    }
    let (_keep, path) = folder();
    fs::create_dir(path.parent().unwrap()).unwrap();
    let lock = fs::File::create(format!("{}-lock", path.display())).unwrap();
    lock.lock().unwrap();
    let waiting = store(&path).await;
    let why = problem(&waiting).unwrap_or_default();
    assert!(why.contains("another program has locked") && why.contains("state.db-lock"), "{why}");
    assert!(matches!(waiting.trust(key(), fingerprint("a")).await, Saved::InMemory(_)));
    lock.unlock().unwrap();
    waiting.health().wait_for(Health::is_good).await.unwrap();
    drop(waiting);
    assert_eq!(store(&path).await.decisions().await.trust.len(), 1);
}

#[tokio::test]
async fn a_long_read_does_not_block_writes() {
    let (_keep, path) = folder();
    let store = store(&path).await;
    let mut reader = rusqlite::Connection::open(&path).unwrap();
    let transaction = reader.transaction().unwrap();
    transaction.query_row("SELECT count(*) FROM calls", [], |_| Ok(())).unwrap();
    record(&store, call("c", json!({}), None)).await;
    assert_eq!(store.calls(CallQuery::default()).await.unwrap().len(), 1);
    assert_eq!(store.trust(key(), fingerprint("a")).await, Saved::ToDisk);
}

#[tokio::test]
async fn calls_are_filtered_and_listed_newest_first() {
    let (_keep, path) = folder();
    let store = store(&path).await;
    for (index, (server, tool, workflow, success)) in [
        ("fs", "read", None, true),
        ("fs", "write", Some("w"), false),
        ("git", "log", Some("w"), true),
        ("git", "log", None, false),
    ]
    .into_iter()
    .enumerate()
    {
        let mut call = call(&format!("c{index}"), json!({}), None);
        Arc::make_mut(&mut call.record).server = self::server(server);
        Arc::make_mut(&mut call.record).tool = tool.into();
        Arc::make_mut(&mut call.record).workflow = workflow.map(str::to_owned);
        Arc::make_mut(&mut call.record).success = success;
        if index == 3 {
            Arc::make_mut(&mut call.record).decision = "deny".into();
            Arc::make_mut(&mut call.record).requester.name = "codex".into();
            Arc::make_mut(&mut call.record).error = Some("Not the Log".into());
        }
        Arc::make_mut(&mut call.record).time =
            Timestamp::from_unix_millis(Timestamp::now().unix_millis() + 1_000 * index as i64);
        record(&store, call).await;
    }
    let other = Store::open(&path, options("/other")).await;
    record(&other, call("elsewhere", json!({}), None)).await;
    other.flush().await;

    let text = |query: CallQuery| async {
        let calls = store.calls(query).await.unwrap();
        calls.iter().map(|call| call.call_id.0.to_string()).collect::<Vec<_>>().join(" ")
    };
    let since = store.calls(CallQuery::default()).await.unwrap()[1].time;
    let all = [
        text(CallQuery::default()).await,
        text(CallQuery { server: Some("git".into()), ..CallQuery::default() }).await,
        text(CallQuery { tool: Some("read".into()), ..CallQuery::default() }).await,
        text(CallQuery { workflow: Some("w".into()), ..CallQuery::default() }).await,
        text(CallQuery { failed: Some(true), ..CallQuery::default() }).await,
        text(CallQuery { since: Some(since), ..CallQuery::default() }).await,
        text(CallQuery { limit: Some(1), ..CallQuery::default() }).await,
        text(CallQuery { denied: true, ..CallQuery::default() }).await,
        text(CallQuery { agent: Some("codex".into()), ..CallQuery::default() }).await,
        text(CallQuery { text: Some("NOT THE log".into()), ..CallQuery::default() }).await,
        text(CallQuery { text: Some("fs".into()), failed: Some(true), ..CallQuery::default() }).await,
        text(CallQuery { server: Some("'; DROP TABLE calls; --".into()), ..CallQuery::default() }).await,
    ];
    insta::assert_snapshot!(all.join("\n"), @"
    c3 c2 c1 c0
    c3 c2
    c0
    c2 c1
    c3 c1
    c3 c2
    c3
    c3
    c3
    c3
    c1
    ");
}

#[tokio::test]
async fn arguments_and_results_are_masked_and_truncated() {
    let (_keep, path) = folder();
    let store = store(&path).await;
    Secret::new("store-secret-value");
    let long = "é".repeat(5_000_000);
    let calls = [
        call("secret", json!({ "token": "store-secret-value", "n": 1 }), Some(r#"{"content":"store-secret-value"}"#)),
        call("sql", json!({ "q": "'; DROP TABLE calls; --", "nul": "a\0b" }), Some(r#"{"text":"\ud800 \u0000"}"#)),
        call("long", json!({ "text": long }), Some(&json!({ "text": "z".repeat(300) }).to_string())),
    ];
    for call in calls {
        record(&store, call).await;
    }
    let digest = regex::Regex::new("[0-9a-f]{64}").unwrap();
    let mut text = String::new();
    for call in store.calls(CallQuery::default()).await.unwrap().into_iter().rev() {
        let short = |value: Option<Value>| {
            let text = value.unwrap_or_default().to_string().replace("éé", "").replace("zz", "");
            digest.replace(&text, "…").into_owned()
        };
        text.push_str(&format!("{}\n  {}\n  {}\n", call.call_id.0, short(call.arguments), short(call.result)));
    }
    insta::assert_snapshot!(text, @r#"
    secret
      {"token":"•••","n":1}
      {"withheld":"contains a secret","length":32,"sha256":"…"}
    sql
      {"q":"'; DROP TABLE calls; --","nul":"a\u0000b"}
      "{\"text\":\"\\ud800 \\u0000\"}"
    long
      {"cut":"{\"text\":\"é","length":10000011,"sha256":"…"}
      {"cut":"{\"text\":\"z","length":311,"sha256":"…"}
    "#);
    drop(store);
    let everything: Vec<u8> = fs::read_dir(path.parent().unwrap())
        .unwrap()
        .flat_map(|entry| fs::read(entry.unwrap().path()).unwrap_or_default())
        .collect();
    assert!(!String::from_utf8_lossy(&everything).contains("store-secret-value"), "the value is in no file");
}

#[tokio::test]
async fn metrics_count_only_calls_that_ran() {
    let (_keep, path) = folder();
    let store = store(&path).await;
    for index in 1..=100 {
        let mut call = call(&format!("c{index}"), json!({}), None);
        Arc::make_mut(&mut call.record).duration_ms = f64::from(index);
        Arc::make_mut(&mut call.record).success = index % 10 != 0;
        record(&store, call).await;
    }
    let mut denied = call("denied", json!({}), None);
    Arc::make_mut(&mut denied.record).decision = "deny".into();
    record(&store, denied).await;
    let metrics = store.metrics(Some("fs".into())).await.unwrap();
    let figures = |tool: &ToolMetrics| {
        json!({ "tool": tool.tool, "calls": tool.calls, "errors": tool.errors, "p50Ms": tool.p50_ms, "p95Ms": tool.p95_ms,
            "p99Ms": tool.p99_ms })
    };
    let metrics: Vec<Value> = metrics.iter().map(figures).collect();
    insta::assert_snapshot!(serde_json::to_string(&metrics).unwrap(), @r#"[{"tool":"read","calls":100,"errors":10,"p50Ms":50.0,"p95Ms":95.0,"p99Ms":99.0}]"#);
    assert!(store.metrics(Some("git".into())).await.unwrap().is_empty());
}

#[tokio::test]
async fn old_calls_are_deleted() {
    let (_keep, path) = folder();
    let first = store(&path).await;
    let mut old = call("old", json!({}), None);
    Arc::make_mut(&mut old.record).time =
        Timestamp::from_unix_millis(Timestamp::now().unix_millis() - 40 * 24 * 3_600_000);
    record(&first, old).await;
    record(&first, call("new", json!({}), None)).await;
    first.flush().await;
    drop(first);
    let second = store(&path).await;
    record(&second, call("newer", json!({}), None)).await;
    let left: Vec<String> =
        second.calls(CallQuery::default()).await.unwrap().iter().map(|call| call.call_id.0.to_string()).collect();
    assert_eq!(left, ["newer", "new"]);
}

#[tokio::test]
async fn facts_about_a_launch_survive_a_restart() {
    let (_keep, path) = folder();
    let first = store(&path).await;
    first.remember("launch", [("era", "2025-11-25".to_owned())]).await;
    first.remember("launch", [("era", "2026-07-28".to_owned()), ("tools", "[]".to_owned())]).await;
    drop(first);
    let second = store(&path).await;
    assert_eq!(second.recall("launch", ["era", "tools"]).await, [Some("2026-07-28".to_owned()), Some("[]".to_owned())]);
    assert_eq!(second.recall("other", ["era"]).await, [None]);
}

const WRITER: &str = "MCP_SIDECAR_TEST_STORE_WRITER";

/// Not a test itself: the next one runs it in a process and kills it.
#[expect(clippy::print_stderr, reason = "the lines tell the other process how far this one came")]
#[tokio::test]
async fn writer_for_the_test_below() {
    let Some(path) = std::env::var_os(WRITER) else { return };
    let store = strict(Path::new(&path)).await;
    for index in 0.. {
        record(&store, call(&format!("call-{index}"), json!({}), Some("{}"))).await;
        // A denied call, which has not begun.
        store.finish_call(StartedRecord::default(), call(&format!("denied-{index}"), json!({}), None)).await;
        store.add_grant(grant(&format!("tool-{index}"), Decision::AllowAlways)).await;
        eprintln!("done {index}");
    }
}

#[tokio::test]
async fn a_killed_process_loses_no_finished_call_and_no_decision() {
    let (_keep, path) = folder();
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::tests::writer_for_the_test_below", "--nocapture", "--test-threads=1"])
        .env(WRITER, &path)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(writer.stderr.take().unwrap()).lines();
    let done = lines.map_while(Result::ok).filter(|line| line.contains("done ")).take(1_000).count();
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert_eq!(done, 1_000);

    let store = strict(&path).await;
    assert!(store.health().borrow().notice.is_none(), "the file is sound");
    let calls = store.calls(CallQuery { limit: Some(20_000), ..CallQuery::default() }).await.unwrap();
    for index in 0..done {
        for name in [format!("call-{index}"), format!("denied-{index}")] {
            assert!(calls.iter().any(|call| *call.call_id.0 == *name && call.success), "{name}");
        }
        assert!(found(&store, &format!("tool-{index}"), "/home/you/shop").await, "tool-{index}");
    }
    drop(store);
    assert_eq!(integrity(&path), "ok");
}

/// Each workspace has its own batches: that of the later call can be written first.
#[cfg(unix)]
#[tokio::test]
async fn calls_of_all_worktrees_are_listed_by_their_time_in_whatever_order_they_were_written() {
    let (keep, path) = folder();
    let root = keep.path().canonicalize().unwrap();
    write_worktree(&root);
    let start = Timestamp::now().unix_millis();
    let at = |id, after| {
        let call = call(id, json!({}), None);
        let time = Timestamp::from_unix_millis(start + after);
        FinishedCall { record: Arc::new(CallRecord { time, ..call.record.as_ref().clone() }), ..call }
    };
    let of = |folder| Options { project: root.join(folder), main: root.join("main"), ..options("") };
    let (main, tree) = (Store::open(&path, of("main")).await, Store::open(&path, of("tree")).await);
    record(&main, at("second", 2)).await;
    record(&main, at("fourth", 4)).await;
    main.flush().await;
    record(&tree, at("first", 1)).await;
    record(&tree, at("third", 3)).await;
    tree.flush().await;

    let listed = async |limit| {
        let calls = main.calls(CallQuery { worktrees: true, limit, ..CallQuery::default() }).await.unwrap();
        calls.into_iter().map(|call| call.call_id.0.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(listed(None).await, ["fourth", "third", "second", "first"]);
    assert_eq!(listed(Some(2)).await, ["fourth", "third"]);
}

#[tokio::test]
async fn a_call_that_waited_for_days_does_not_hide_what_agents_did_before_it_ended() {
    let (_keep, path) = folder();
    let store = store(&path).await;
    let now = Timestamp::now();
    for (id, days_ago, days_waited) in [("old", 3, 0), ("quick", 0, 0), ("slow", 2, 2)] {
        let call = call(id, json!({}), None);
        let requester = Requester { kind: RequesterKind::Agent, name: "codex".into() };
        let (time, waited_ms) = (now.days_before(days_ago), f64::from(days_waited) * 86_400_000.0);
        let row = CallRecord { requester, time, waited_ms, ..call.record.as_ref().clone() };
        record(&store, FinishedCall { record: Arc::new(row), ..call }).await;
    }
    let figures = store.agent_figures(now.days_before(1)).await.unwrap();
    assert_eq!(figures.of(Path::new("/home/you/shop"), "codex").calls, 2);
}

/// A call of this tool, so many days ago.
fn call_of(tool: &str, days_ago: u32, decision: &str) -> FinishedCall {
    let call = call("c", json!({}), None);
    let time = Timestamp::now().days_before(days_ago);
    let row = CallRecord { time, tool: tool.into(), decision: decision.into(), ..call.record.as_ref().clone() };
    FinishedCall { record: Arc::new(row), ..call }
}

/// How often each tool was called in this workspace and in all, in the last ten days.
async fn called(store: &Store) -> Vec<String> {
    let mut rows = store.tool_calls(Timestamp::now().days_before(10)).await.unwrap();
    rows.sort_by(|one, other| one.1.cmp(&other.1));
    rows.iter().map(|(_, tool, calls)| format!("{tool} {} {}", calls.here, calls.anywhere)).collect()
}

#[tokio::test]
async fn calls_of_tools_are_counted_by_day_however_they_are_recorded() {
    let (_keep, path) = folder();
    let other = Store::open(&path, options("/home/you/other")).await;
    record(&other, call_of("a", 0, "allow-always")).await;
    other.flush().await;
    let normal = store(&path).await;
    for days_ago in [0, 3, 11] {
        record(&normal, call_of("a", days_ago, "allow-always")).await;
    }
    record(&normal, call_of("never-ran", 0, "deny")).await;
    assert_eq!(called(&normal).await, ["a 2 3"]);
    drop(normal);
    let strict = strict(&path).await;
    record(&strict, call_of("b", 0, "allow-always")).await;
    assert_eq!(called(&strict).await, ["a 2 3", "b 1 1"]);
}

#[tokio::test]
async fn calls_that_an_older_version_recorded_are_counted() {
    let (_keep, path) = folder();
    let old = store(&path).await;
    record(&old, call_of("a", 1, "allow-always")).await;
    record(&old, call_of("never-ran", 1, "invalid")).await;
    old.flush().await;
    drop(old);
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute_batch(
            "DROP TABLE tool_days; CREATE INDEX calls_by_tool ON calls (project, server, tool); PRAGMA user_version = 7;",
        )
        .unwrap();
    drop(connection);
    assert_eq!(called(&store(&path).await).await, ["a 1 1"]);
}

mod chain;
