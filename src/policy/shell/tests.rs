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
