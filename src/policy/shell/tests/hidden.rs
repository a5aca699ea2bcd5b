//! Texts in which a shell runs a command that a careless reader does not see. All of them run `rm -rf x` in bash or dash.

use super::*;

#[track_caller]
fn all_show_it(texts: &[&str]) {
    for text in texts {
        let found = ShellCommand::read(text);
        assert!(found.commands.contains("rm -rf x"), "{text}: {found:?}");
    }
}

#[test]
fn a_quote_inside_of_a_document_hides_nothing_after_it() {
    all_show_it(&[
        "cat <<EOF\ndon't\nEOF\nrm -rf x",
        "cat <<'EOF'\ndon't\nEOF\nrm -rf x",
        "cat << \"E F\"\ndon't\nE F\nrm -rf x",
        "cat <<-EOF\n\tdon't\n\tEOF\nrm -rf x",
        "cat <<EOF\nEOF \n\tEOF\ndon't\nEOF\nrm -rf x",
        "cat <<EOF\r\ndon't\r\nEOF\r\nrm -rf x",
        "cat <<A <<B\ndon't\nA\nI'm\nB\nrm -rf x",
        "cat <<EOF; rm -rf x\ndon't\nEOF",
        "cat<<EOF|rm -rf x\ndon't\nEOF\n",
        "rm<<EOF -rf x\nit's\nEOF",
        "cat <<< \"don't\"; rm -rf x",
        "echo \"$(cat <<'EOF'\ndon't (do)\nEOF\n)\"; rm -rf x",
        "echo 'a' $((1 << 2))\necho 'b'\nrm -rf x",
        "((y = 1<<A))\necho '\nA\n'; rm -rf x",
        "echo $(cat <<EOF)\ndon't\nEOF\nrm -rf x\n'",
    ]);
}

#[test]
fn a_document_can_run_something_itself() {
    all_show_it(&[
        "cat <<EOF\ndon't $(rm -rf x)\nEOF",
        "cat <<EOF\ndon't `rm -rf x`\nEOF",
        "cat <<EOF\n\"${y:-$(rm -rf x)}\nEOF",
        "bash <<'EOF'\necho 'a'; rm -rf x\nEOF",
        "bash <<EOF\nrm -rf x",
        "bash <<<'true; rm -rf x'",
        "bash <<< \"rm -rf x\" -s",
        "cat <<EOF\n${y:-'}$(rm -rf x)'}\nEOF",
        "cat <<EOF\ndon't\n`echo \\\"; rm -rf x; echo \\\"`\nEOF",
    ]);
    for quoted in [
        "cat <<'EOF'\ndon't $(rm -rf x)\nEOF",
        "cat <<E\\OF\ndon't $(rm -rf x)\nEOF",
        "cat <<$'EOF'\ndon't $(rm -rf x)\nEOF",
    ] {
        assert!(!ShellCommand::read(quoted).commands.contains("rm -rf x"), "{quoted}");
    }
}

#[test]
fn a_substitution_ends_where_the_shell_ends_it() {
    all_show_it(&[
        "echo $(echo ')' ; rm -rf x)",
        "echo \"$(echo \")\" ; rm -rf x)\"",
        "echo \"$(echo '\"' )\"; rm -rf x",
        "echo \"$(# don't\n)\"; rm -rf x",
        "echo \"$(case x in x) rm -rf x;; esac)\"",
        "echo \"$(if true; then case x in (x) true;; y) true;; esac; fi)\"; rm -rf x",
        "echo \"$( (true) )\"; rm -rf x",
        "echo \"$(echo esac case)\"; rm -rf x",
        "echo $((1 + $(rm -rf x; echo 1)))",
        "echo \"${y#'}'}\"; rm -rf x",
        "echo ${y:-'}'}; rm -rf x; echo '}'",
        "echo ${y:-\"}\"}; rm -rf x; echo '}'",
        "echo ${y:-\\}}; rm -rf x",
        "echo \"${y:-`rm -rf x`}\"",
        "echo \"${y:-'}\"; rm -rf x; echo \"'}\"",
        "${ rm -rf x; }",
    ]);
}

#[test]
fn backquotes_inside_of_backquotes_are_read() {
    all_show_it(&[
        "echo `echo \\`rm -rf x\\``",
        "echo \"`echo \\\"\\`rm -rf x\\`\\\"`\"",
        "echo `echo \\$(rm -rf x)`",
        "echo `echo '\\\\'; rm -rf x`",
        "echo `# don't\nrm -rf x`",
        "echo `echo a\\b`; rm -rf x",
    ]);
}

#[test]
fn escapes_mean_what_they_mean_in_bash() {
    all_show_it(&[
        "echo $'\\'' ; rm -rf x #'",
        "echo $'\\\\' ; rm -rf x #'",
        "$'\\x72m' -rf x",
        "$'r\\155' -rf x",
        "$'\\u0072\\U0000006d' -rf x",
        "$'rm\\0no' -rf x",
        "$'rm' -rf $'x'",
        "echo $'\\cA\\e\\n'; rm -rf x",
        "echo $'\\'' $'\\c'; rm -rf x #'",
        "echo $'\\'' $'\\c\\\\'; rm -rf x #'",
        "echo $'\\'' $'\\c\\'' ; rm -rf x #'",
        "echo $'a' $'\\''; rm -rf x #'",
        "$'\\562m' -rf x",
        "$'rm\\400no' -rf x",
        "$'\\x{72}m' -rf x",
        "$'\\x{172m' -rf x",
        "$\"rm\" -rf x",
        "\"r\\\nm\" -rf x",
        "r\\\nm -rf x",
    ]);
    let shows = |text: &str, command: &str| ShellCommand::read(text).commands.contains(command);
    assert!(shows("a $'\\n\\t\\r' b", "a \n\t\r b"));
    // In shells that do not know it, the quote ends earlier.
    all_show_it(&[
        "echo $'\\'; rm -rf x; echo ''",
        "echo `echo $'a'`; echo $'\\'; rm -rf x; echo ''",
        "bash -c 'echo $'\\''a'\\'; echo $'\\'; rm -rf x; echo ''",
        "cat <<EOF\ndon't\nEOF\necho $'\\'; rm -rf x; echo ''",
    ]);
    // Inside of double quotes, it is a character.
    assert!(shows("echo \"$'a'\"", "echo $'a'"));
}

#[test]
fn a_redirection_takes_one_word_or_none() {
    all_show_it(&[
        "2>&- rm -rf x",
        "<&- rm -rf x",
        "rm >&- -rf x",
        "{fd}>log rm -rf x",
        "{f_1}<log rm -rf x",
        "<>log rm -rf x",
        ">|log rm -rf x",
        ">>log rm -rf x",
        "&>log rm -rf x",
        "rm&>log -rf x",
        "rm>&2 -rf x",
        "rm 2>&1 -rf x",
        "rm -rf x 2>&1-",
        "rm -rf x>log",
    ]);
    let kept = |text: &str| ShellCommand::read(text).commands;
    assert_eq!(kept("echo {}>log"), ["echo {}".to_owned()].into());
    assert_eq!(kept("echo a2>log"), ["echo a2".to_owned()].into());
    assert_eq!(kept("echo {a-b}>log"), ["echo {a-b}".to_owned()].into());
}

#[test]
fn words_before_a_command_do_not_hide_it() {
    all_show_it(&[
        "time -p rm -rf x",
        "time -- rm -rf x",
        "time ! rm -rf x",
        "! time -p rm -rf x",
        "function f { rm -rf x; }; f",
        "coproc rm -rf x",
        "coproc NAME { rm -rf x; }",
        "A[0]=1 rm -rf x",
        "A+=1 B[1]+=2 rm -rf x",
        "trap 'rm -rf x' EXIT",
        "ssh host 'true; rm -rf x'",
        "watch 'true; rm -rf x'",
        "/BIN/RM -rf x; true",
        "C:\\\\bin\\\\RM.EXE -rf x",
        "cmd.exe /c rm -rf x; true",
        "x[ 1 ]=1 rm -rf x",
        "$SUDO rm -rf x",
        "$(true) rm -rf x",
    ]);
    let options = ShellCommand::read("if -p rm -rf x").commands;
    assert_eq!(options, ["-p rm -rf x".to_owned()].into(), "only `time` has options");
}

#[test]
fn a_single_quote_hides_nothing_in_arithmetic() {
    all_show_it(&[
        "echo $(( ' $(rm -rf x) ' ))",
        "echo \"$(( ' $(rm -rf x) ' ))\"",
        "echo $((1'))\n$(rm -rf x)' ))",
        "(( ' `rm -rf x` ' ))",
        "a[' $(rm -rf x) ']=1",
        "echo ${x[' $(rm -rf x) ']}",
        "echo $[ ' $(rm -rf x) ' ]",
    ]);
    for quoted in ["echo '$(rm -rf x)'", "(echo '$(rm -rf x)')", "[ '$(rm -rf x)' ]", "echo ${x:-'$(rm -rf x)'}"] {
        assert!(!ShellCommand::read(quoted).commands.contains("rm -rf x"), "{quoted}");
    }
    // In such a text, it is unknown which quotes are in arithmetic.
    all_show_it(&["((1)); echo '$(rm -rf x)'"]);
    let deep = format!("{}(( 1 '$(a)' )){}", "$(".repeat(MAX_DEPTH), ")".repeat(MAX_DEPTH));
    assert!(!ShellCommand::read(&deep).is_read_whole());
}
