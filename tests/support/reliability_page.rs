//! Where the figures of a long run go: a file in `target`, and their section of `docs/reliability.md`.

use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Writes `target/FOLDER/NAME.md`.
#[allow(clippy::print_stdout, reason = "for the person who runs it")]
pub fn store(folder: &str, name: &str, text: &str) -> PathBuf {
    let folder = root().join("target").join(folder);
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("{name}.md"));
    std::fs::write(&file, text).unwrap();
    println!("report: {}", file.display());
    file
}

/// Replaces what is between `<!-- NAME -->` and `<!-- end of NAME -->`.
pub fn replace(name: &str, text: &str) {
    let page = root().join("docs/reliability.md");
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let old = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = old.split_once(&begin).expect("the page has a place for it");
    let (_, after) = rest.split_once(&end).expect("the place has an end");
    std::fs::write(page, format!("{before}{begin}{text}{end}{after}")).unwrap();
}
