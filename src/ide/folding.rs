//! Folding of objects, lists and comments.

use crate::config::Span;
use crate::config::tree::{Kind, Node, Tree};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fold {
    pub span: Span,
    pub kind: FoldKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoldKind {
    Brackets,
    Comment,
}

/// All objects, lists and comments. Consecutive line comments are one fold. The front end drops folds on a single line.
pub fn folds(text: &str, tree: &Tree) -> Vec<Fold> {
    let mut folds = Vec::new();
    if let Some(root) = &tree.root {
        brackets(root, &mut folds);
    }
    let mut comments: Vec<Span> = Vec::new();
    for comment in &tree.comments {
        match comments.last_mut() {
            Some(last) if follows(text, last, comment) => last.end = comment.end,
            _ => comments.push(comment.clone()),
        }
    }
    folds.extend(comments.into_iter().map(|span| Fold { span, kind: FoldKind::Comment }));
    folds.sort_by_key(|fold| fold.span.start);
    folds
}

/// The parser limits the depth of the tree, so the recursion is bounded.
fn brackets(node: &Node, folds: &mut Vec<Fold>) {
    let children: Vec<&Node> = match &node.kind {
        Kind::Object(members) => members.iter().map(|member| &member.value).collect(),
        Kind::List(items) => items.iter().collect(),
        _ => return,
    };
    folds.push(Fold { span: node.span.clone(), kind: FoldKind::Brackets });
    children.into_iter().for_each(|child| brackets(child, folds));
}

/// Whether both are line comments with only one line break between them.
fn follows(text: &str, last: &Span, next: &Span) -> bool {
    let is_line = |span: &Span| text.get(span.clone()).is_some_and(|text| text.starts_with("//"));
    let between = text.get(last.end..next.start).unwrap_or("x");
    is_line(last) && is_line(next) && between.trim().is_empty() && between.matches('\n').count() <= 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tree::parse;

    /// The line numbers of each fold, counted from one.
    fn lines(text: &str) -> String {
        let line = |offset: usize| text[..offset].matches('\n').count() + 1;
        let show = |fold: &Fold| format!("{}-{} {:?}", line(fold.span.start), line(fold.span.end), fold.kind);
        folds(text, &parse(text, 64)).iter().map(show).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn brackets_and_comments_fold() {
        insta::assert_snapshot!(
            lines("// one\n// two\n{\n  \"servers\": {\n    \"a\": { \"args\": [\n      1 ] }\n  }\n}\n/* x\n y */\n\n// alone\n"),
            @"1-2 Comment, 3-8 Brackets, 4-7 Brackets, 5-6 Brackets, 5-6 Brackets, 9-10 Comment, 12-12 Comment"
        );
    }

    #[test]
    fn an_incomplete_file_is_folded() {
        assert_eq!(lines("{\n \"a\": {\n  \"b\": 1"), "1-3 Brackets, 2-3 Brackets");
        assert_eq!(lines(""), "");
    }
}
