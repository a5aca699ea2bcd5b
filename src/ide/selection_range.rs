//! Expand selection: from the word to its string, entry, object, and finally the whole file.

use crate::config::Span;
use crate::config::tree::{Kind, Node, Tree};

use super::config_view::inner;

/// The spans around an offset, innermost first, each inside the next.
pub fn selection_ranges(text: &str, tree: &Tree, offset: usize) -> Vec<Span> {
    let mut spans: Vec<Span> = std::iter::once(0..text.len()).collect();
    let mut next = tree.root.as_ref();
    while let Some(node) = next.filter(|node| holds(&node.span, offset)) {
        spans.push(node.span.clone());
        next = match &node.kind {
            Kind::Object(members) => {
                brackets(text, node, offset, &mut spans);
                let whole = |key: &Span, value: &Node| key.start..value.span.end.max(key.end);
                let found = members.iter().find(|member| holds(&whole(&member.key.span, &member.value), offset));
                found.and_then(|member| {
                    spans.push(whole(&member.key.span, &member.value));
                    if holds(&member.key.span, offset) {
                        spans.push(member.key.span.clone());
                        spans.push(inner(text, &member.key.span));
                        return None;
                    }
                    Some(&member.value)
                })
            }
            Kind::List(items) => {
                brackets(text, node, offset, &mut spans);
                items.iter().find(|item| holds(&item.span, offset))
            }
            Kind::Text(_) => {
                spans.push(inner(text, &node.span));
                None
            }
            _ => None,
        };
    }
    spans.retain(|span| holds(span, offset));
    spans.dedup();
    spans.reverse();
    spans
}

/// The text between the brackets, without surrounding whitespace.
fn brackets(text: &str, node: &Node, offset: usize, spans: &mut Vec<Span>) {
    let within = node.span.start + 1..node.span.end.saturating_sub(1).max(node.span.start + 1);
    let raw = text.get(within.clone()).unwrap_or_default();
    let start = within.start + (raw.len() - raw.trim_start().len());
    let end = start + raw.trim().len();
    if start < end && holds(&(start..end), offset) {
        spans.push(start..end);
    }
}

fn holds(span: &Span, offset: usize) -> bool {
    span.start <= offset && offset <= span.end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tree::parse;

    fn widening(marked: &str) -> String {
        let offset = marked.find("$0").unwrap();
        let text = marked.replace("$0", "");
        let spans = selection_ranges(&text, &parse(&text, 64), offset);
        for pair in spans.windows(2) {
            assert!(pair[1].start <= pair[0].start && pair[0].end <= pair[1].end, "{spans:?}");
        }
        spans.iter().map(|span| text[span.clone()].to_owned()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_selection_expands_from_the_word_to_the_file() {
        insta::assert_snapshot!(widening("{ \"a\": { \"b\": [\"o$0ne\", 2] } } "), @r#"
        one
        "one"
        "one", 2
        ["one", 2]
        "b": ["one", 2]
        { "b": ["one", 2] }
        "a": { "b": ["one", 2] }
        { "a": { "b": ["one", 2] } }
        { "a": { "b": ["one", 2] } }
        "#);
        insta::assert_snapshot!(widening("{ \"a$0\": 1, \"b\": 2 }"), @r#"
        a
        "a"
        "a": 1
        "a": 1, "b": 2
        { "a": 1, "b": 2 }
        "#);
        assert_eq!(widening("$0"), "");
    }
}
