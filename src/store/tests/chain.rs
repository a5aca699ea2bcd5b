//! The chain of call records: what is noticed, and what is not reported by mistake.

use super::*;

const DAY: i64 = 24 * 3_600_000;

async fn records(store: &Store, names: &[&str]) {
    for name in names {
        record(store, call(name, json!({ "n": name }), Some("{}"))).await;
    }
    store.flush().await;
}

fn at(name: &str, days_ago: i64) -> FinishedCall {
    let mut call = call(name, json!({}), None);
    Arc::make_mut(&mut call.record).time = Timestamp::from_unix_millis(Timestamp::now().unix_millis() - days_ago * DAY);
    call
}

/// The outcome without the times, which differ.
async fn outcome(store: &Store) -> String {
    let time = regex::Regex::new(r" at [0-9T:.-]+Z").unwrap();
    time.replace_all(&store.verify_calls().await.unwrap().message(), "").into_owned()
}

fn tamper(path: &Path, sql: &str) {
    rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

#[tokio::test]
async fn every_change_of_the_call_log_is_noticed_and_names_the_record() {
    let cases = [
        ("edit", "UPDATE calls SET arguments = '{\"n\":\"x\"}' WHERE call_id = 'b'"),
        ("outcome", "UPDATE calls SET success = 0 WHERE call_id = 'b'"),
        ("requester", "UPDATE calls SET requester = 'x' WHERE call_id = 'd'"),
        ("delete", "DELETE FROM calls WHERE call_id = 'b'"),
        ("delete all", "DELETE FROM calls"),
        ("delete with its links", "DELETE FROM links WHERE call = 2; DELETE FROM calls WHERE id = 2"),
        (
            "swap",
            "UPDATE calls SET id = 9 WHERE id = 2; UPDATE calls SET id = 2 WHERE id = 3; UPDATE calls SET id = 3 WHERE id = 9",
        ),
        ("swap links", "UPDATE links SET call = 5 - call WHERE call IN (2, 3)"),
        ("cut", "DELETE FROM links WHERE call = 4; DELETE FROM calls WHERE id = 4"),
        (
            "add",
            "INSERT INTO calls SELECT 9, 'z', project, time, server, tool, requester, workflow, decision, decided_by, finished, success, error, duration_us, arguments, result, waited_us, requested, kind, result_bytes, result_tokens FROM calls WHERE id = 2",
        ),
        (
            "add before",
            "INSERT INTO calls SELECT -9, 'z', project, time, server, tool, requester, workflow, decision, decided_by, finished, success, error, duration_us, arguments, result, waited_us, requested, kind, result_bytes, result_tokens FROM calls WHERE id = 2",
        ),
        ("another workspace", "UPDATE calls SET project = '/other' WHERE id = 3"),
        ("without an end", "DELETE FROM chains"),
        ("link", "UPDATE links SET digest = zeroblob(32) WHERE number = 2"),
        ("beginning", "UPDATE chains SET pruned_digest = zeroblob(31)"),
    ];
    let mut table = String::new();
    for strictly in [false, true] {
        for (name, sql) in cases {
            let (_keep, path) = folder();
            let first = if strictly { strict(&path).await } else { store(&path).await };
            records(&first, &["a", "b", "c", "d"]).await;
            assert_eq!(outcome(&first).await, "The call log is intact: 4 records are unchanged.");
            drop(first);
            tamper(&path, sql);
            let report = outcome(&store(&path).await).await;
            assert!(report.starts_with("The call log was changed: "), "{name}: {report}");
            if !strictly {
                table.push_str(&format!("{name}: {}\n", report.trim_start_matches("The call log was changed: ")));
            }
        }
    }
    insta::assert_snapshot!(table, @"
    edit: the record of the call to fs/read (b) does not match entry 2 of the chain.
    outcome: the record of the call to fs/read (b) does not match entry 2 of the chain.
    requester: the record of the call to fs/read (d) does not match entry 4 of the chain.
    delete: the record of entry 2 of the chain was deleted; it came after the record of the call to fs/read (a).
    delete all: the record of entry 1 of the chain was deleted.
    delete with its links: entry 2 of the chain is missing; it came after the record of the call to fs/read (a).
    swap: the record of the call to fs/read (c) does not match entry 2 of the chain.
    swap links: the record of the call to fs/read (c) does not match entry 2 of the chain.
    cut: the newest records were deleted: the chain ends at entry 3 instead of 4.
    add: the record of the call to fs/read (z) was added or completed by another program.
    add before: the record of the call to fs/read (z) was added or completed by another program.
    another workspace: the record of the call to fs/read (c) does not match entry 3 of the chain.
    without an end: the end of the chain was deleted.
    link: the record of the call to fs/read (b) does not match entry 2 of the chain.
    beginning: the record of the call to fs/read (a) does not match entry 1 of the chain.
    ");
}

#[tokio::test]
async fn an_outcome_of_a_strict_log_cannot_be_added_or_removed() {
    for sql in ["UPDATE calls SET finished = 1, success = 1 WHERE call_id = 'open'", "UPDATE calls SET finished = 0"] {
        let (_keep, path) = folder();
        let first = strict(&path).await;
        records(&first, &["a"]).await;
        let _open = first.begin_call(call("open", json!({}), None)).await.unwrap();
        assert_eq!(outcome(&first).await, "The call log is intact: 2 records are unchanged.");
        drop(first);
        tamper(&path, sql);
        assert!(store(&path).await.verify_calls().await.unwrap().broken.is_some(), "{sql}");
    }
}

#[tokio::test]
async fn a_running_engine_notices_that_its_records_were_cut_off_or_rewritten() {
    // The newest record disappears without a trace in the file.
    let cut = "DELETE FROM links WHERE number > 1; DELETE FROM calls WHERE id > 1;
        UPDATE chains SET last = 1, digest = (SELECT digest FROM links WHERE number = 1)";
    for sql in [cut, "DELETE FROM links; DELETE FROM chains"] {
        let (_keep, path) = folder();
        let first = store(&path).await;
        records(&first, &["a", "b"]).await;
        tamper(&path, sql);
        let expected = "records that this engine wrote were deleted or replaced while it was running";
        for more in [&[][..], &["c", "d", "e"]] {
            records(&first, more).await;
            assert_eq!(first.verify_calls().await.unwrap().broken.as_deref(), Some(expected), "{sql} {more:?}");
        }
    }
}

#[tokio::test]
async fn engines_that_share_the_file_extend_the_chain_of_a_workspace_and_leave_the_others_alone() {
    let (_keep, path) = folder();
    let (one, two, other) = (store(&path).await, strict(&path).await, Store::open(&path, options("/other")).await);
    for round in 0..20 {
        let name = format!("c{round}");
        let names = [name.as_str()];
        tokio::join!(records(&one, &names), records(&two, &names), records(&other, &names));
    }
    for (store, count) in [(&one, 40), (&two, 40), (&other, 20)] {
        let report = store.verify_calls().await.unwrap();
        assert_eq!((report.broken, report.checked, report.unchecked), (None, count, 0));
    }
    drop((one, two, other));
    tamper(&path, "DELETE FROM calls WHERE project = '/other' AND call_id = 'c7'");
    let (here, there) = (store(&path).await, Store::open(&path, options("/other")).await);
    assert_eq!(here.verify_calls().await.unwrap().broken, None);
    assert!(there.verify_calls().await.unwrap().broken.is_some());
}

#[tokio::test]
async fn the_chain_continues_after_a_restart_and_from_where_old_records_were_deleted() {
    let (_keep, path) = folder();
    let first = strict(&path).await;
    // The outcome of the oldest call comes after a record that stays.
    let slow = first.begin_call(at("slow", 40)).await.unwrap();
    record(&first, at("old", 40)).await;
    record(&first, call("new", json!({}), None)).await;
    first.finish_call(slow, at("slow", 40)).await;
    records(&first, &["newer"]).await;
    drop(first);
    // Writing a batch deletes old records.
    let second = store(&path).await;
    records(&second, &["newest"]).await;
    assert_eq!(outcome(&second).await, "The call log is intact: 4 records are unchanged.");
    drop(second);
    tamper(&path, "UPDATE calls SET time = 1");
    assert!(store(&path).await.verify_calls().await.unwrap().broken.is_some());

    // If all records are old, the chain still continues.
    let (_keep, path) = folder();
    let first = store(&path).await;
    record(&first, at("old", 40)).await;
    first.flush().await;
    assert_eq!(outcome(&first).await, "There are no call records to check.");
    records(&first, &["new"]).await;
    assert_eq!(outcome(&first).await, "The call log is intact: 1 record is unchanged.");
    drop(first);
    tamper(&path, "UPDATE chains SET pruned = 0");
    assert!(store(&path).await.verify_calls().await.unwrap().broken.is_some());
}

#[tokio::test]
async fn records_from_before_the_chain_are_counted_separately() {
    let (_keep, path) = folder();
    database_of_the_first_format(&path);
    let now = Timestamp::now().unix_millis();
    tamper(
        &path,
        &format!(
            "INSERT INTO calls VALUES (1, 'old', '/home/you/shop', {now}, 'fs', 'read', '{{}}', NULL, 'd', 'u', 1, 1, NULL, 1, '{{}}', NULL)"
        ),
    );
    let first = store(&path).await;
    let old = "1 record was written before the chain began and cannot be checked.";
    assert_eq!(outcome(&first).await, format!("There are no call records to check. {old}"));
    records(&first, &["a"]).await;
    assert_eq!(outcome(&first).await, format!("The call log is intact: 1 record is unchanged. {old}"));
}
