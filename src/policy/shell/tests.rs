use super::*;

#[test]
fn only_a_single_command_with_literal_words_is_plain() {
    for plain in [
        "git status",
        "git diff --stat src/main.rs",
        "  ls -la  ",
        "git commit -m 'fix: a; b | c'",
        r#"git commit -m "fix: a; b""#,
        "make -j4 CC=clang",
        "npm run build:all",
        "git push origin main@{upstream}".trim_end_matches("@{upstream}"),
    ] {
        let read = ShellCommand::read(plain);
        assert!(read.is_plain(), "{plain}: {:?}", read.not_plain);
    }
    for not_plain in [
        "",
        "  ",
        "git status; rm x",
        "git status && rm x",
        "git status || rm x",
        "git status | sh",
        "git status & rm x",
        "git status &",
        "git status\nrm x",
        "git status\r\nrm x",
        "git status > ~/.bashrc",
        "git status 2>&1",
        "git status &> x",
        "git status < x",
        "git status <(rm x)",
        "cat <<EOF\nrm x\nEOF",
        "cat <<< x",
        "git status $(rm x)",
        "git status `rm x`",
        r#"git status "$(rm x)""#,
        r#"git status "`rm x`""#,
        "git status $HOME",
        r#"git status "$HOME""#,
        "git status ${x:-$(rm x)}",
        "git status $'\\n'",
        "git status *",
        "git status a?",
        "git status [ab]",
        "git status {a,b}",
        "git status ~",
        "git status !!",
        "git status \\\nrm",
        "git status # rm",
        "PATH=/tmp git status",
        "(git status)",
        "{ git status; }",
        "if true; then rm x; fi",
        "time git status",
        "git 'status",
        "git \"status",
        "git\u{a0}status",
        "git status \u{2028}rm",
        "git status \u{202e}",
        "ｇｉｔ status",
        "git status '\u{202e}'",
        "git status\u{0}rm",
        "git status \u{1b}[2K",
        "=git status",
        "'' git",
    ] {
        assert!(!ShellCommand::read(not_plain).is_plain(), "{not_plain:?}");
    }
}

#[test]
fn every_command_inside_a_text_is_found() {
    let hidden = [
        "git status; rm -rf x",
        "git status && rm -rf x",
        "git status || rm -rf x",
        "true | rm -rf x",
        "true & rm -rf x",
        "true\nrm -rf x",
        "echo $(rm -rf x)",
        "echo `rm -rf x`",
        r#"echo "a $(rm -rf x) b""#,
        "echo ${y:-$(rm -rf x)}",
        "cat <(rm -rf x)",
        "(rm -rf x)",
        "{ rm -rf x; }",
        "if true; then rm -rf x; fi",
        "A=1 B=2 rm -rf x",
        "rm  -rf   x",
        "r'm' -rf x",
        "r\"m\" -r\\f x",
        "/bin/rm -rf x",
        "sudo rm -rf x",
        "sudo -u root env A=1 rm -rf x",
        "bash -c 'rm -rf x'",
        "bash -lc \"true && rm -rf x\"",
        "sudo sh -c 'rm -rf x'",
        "eval rm -rf x",
        "eval 'rm -rf x'",
        "ls | xargs rm -rf x",
        "find . -exec rm -rf x",
        "rm -rf x > /dev/null 2>&1",
        ">log rm -rf x",
        "2>log rm -rf x",
        "bash <<EOF\nrm -rf x\nEOF",
        "! rm -rf x",
        "time rm -rf x",
    ];
    for text in hidden {
        let found = ShellCommand::read(text).commands;
        assert!(found.contains("rm -rf x"), "{text}: {found:?}");
    }
    let found = ShellCommand::read("git commit -m 'then; rm -rf x'").commands;
    assert!(!found.contains("rm -rf x"), "a quoted text is not a command: {found:?}");
}

#[test]
fn hostile_texts_are_read_in_limits() {
    let deep = format!("{}rm{}", "$(".repeat(10_000), ")".repeat(10_000));
    let many = "a;".repeat(50_000);
    let words = format!("sudo {}", "sudo ".repeat(5_000));
    let long = "x".repeat(10 << 20);
    let started = std::time::Instant::now();
    for text in [deep, many, words, long, "`".repeat(60_000), "\"$(".repeat(20_000), "sh ".repeat(20_000)] {
        let read = ShellCommand::read(&text);
        // A shell that runs a file is one program, however often it is named.
        assert!(!read.is_plain() || text.starts_with("sh "), "{}", text.get(..40).unwrap_or_default());
        assert!(read.commands.len() <= MAX_COMMANDS);
    }
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

mod exact;
mod hidden;

/// Each of them made the reader go through the same words again and again.
#[test]
fn texts_that_nest_without_end_are_read_in_bounded_time() {
    for text in [
        "sudo ".repeat(64),
        format!("sudo {}", "A=1 ".repeat(15_000)),
        format!("sudo {}", "sh ".repeat(20_000)),
        "env eval ".repeat(40),
        "if ".repeat(20_000),
        "${".repeat(40),
        "${".repeat(30_000),
        "\"${".repeat(200),
        "`".repeat(60_000),
        "$(".repeat(30_000),
        "eval 'env \"sudo ".repeat(1_000),
    ] {
        let read = ShellCommand::read(&text);
        assert!(read.commands.len() <= MAX_COMMANDS + 2, "{text:.20}: {}", read.commands.len());
    }
}

#[test]
fn commands_behind_many_wrappers_are_found() {
    let read = ShellCommand::read(&format!("{}rm -rf x", "sudo env nice ".repeat(6)));
    assert!(read.commands.contains("rm -rf x"), "{read:?}");
}

#[test]
fn a_text_beyond_a_limit_is_not_read_whole() {
    let nested = |times: usize, inner: &str| format!("{}{inner}{}", "b $(".repeat(times), ")".repeat(times));
    let commands = |count: usize| (0..count).map(|number| format!("a{number}\n")).collect::<String>();
    for (within, beyond) in [
        ("x".repeat(MAX_BYTES), "x".repeat(MAX_BYTES + 1)),
        (nested(MAX_DEPTH, "a"), nested(MAX_DEPTH + 1, "a")),
        (nested(MAX_DEPTH - 1, "b `a`"), nested(MAX_DEPTH, "b `a`")),
        (nested(MAX_DEPTH - 1, "sudo a"), nested(MAX_DEPTH, "sudo a")),
        (commands(MAX_COMMANDS), commands(MAX_COMMANDS + 1)),
        (format!("sudo {}", "A=1 ".repeat(1_000)), format!("sudo {}", "A=1 ".repeat(1_500))),
        ("${a}".repeat(2 * MAX_BRACES), "${".repeat(MAX_BRACES + 1)),
        ("$'a' ".repeat(1_000), "$'a' ".repeat(20_000)),
    ] {
        assert!(ShellCommand::read(&within).is_read_whole(), "{within:.40}");
        assert!(!ShellCommand::read(&beyond).is_read_whole(), "{beyond:.40}");
    }
    assert!(!ShellCommand::unread().is_read_whole());
}

#[test]
fn each_variable_in_braces_is_read_as_one() {
    let count = 2 * MAX_BRACES;
    let read = ShellCommand::read(&"${a}".repeat(count));
    assert_eq!(read.commands, ["a".to_owned(), "$".repeat(count)].into());
}

#[test]
fn the_words_of_a_list_are_a_command_and_those_that_it_runs() {
    let words = ["sudo", "rm", "a b"].map(str::to_owned);
    let read = ShellCommand::of_words(&words);
    assert_eq!(read.commands, ["sudo rm a b", "rm a b", "a b"].map(str::to_owned).into());
    assert_eq!(read.not_plain, ["a list of words"].into());
}
