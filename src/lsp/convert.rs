//! Converts between our types and those of LSP. Makes no decisions.

mod actions;
pub mod language;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lsp_types::{
    Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, DiagnosticTag, DocumentLink, DocumentSymbol,
    FoldingRange, FoldingRangeKind, Location, NumberOrString, Position, PositionEncodingKind, Range, SymbolInformation,
    SymbolKind, TextEdit, Url,
};
use serde_json::{Value, json};
use tower_lsp::jsonrpc;

use crate::config::problem::{self, Fix, Related};
use crate::config::{Loaded, Problem, Severity, Span};
use crate::ide::folding::{Fold, FoldKind};
use crate::ide::links::{Link, Target};
use crate::ide::symbols::{Kind, Symbol};
use crate::model::Error;
use crate::protocol::errors::ErrorData;
use crate::text::lines::{self, Encoding, LineIndex};

pub use actions::{CommandTarget, menu};

pub fn encoding(encoding: Encoding) -> PositionEncodingKind {
    match encoding {
        Encoding::Utf8 => PositionEncodingKind::UTF8,
        Encoding::Utf16 => PositionEncodingKind::UTF16,
    }
}

/// The file that a URI names, if any. The URI of an unnamed buffer is `file://`.
pub fn path(uri: &Url) -> Option<PathBuf> {
    if uri.scheme() != "file" || uri.host_str().is_some_and(|host| !host.is_empty()) {
        return None;
    }
    uri.to_file_path().ok().filter(|path| path.parent().is_some())
}

pub fn uri(path: &Path) -> Option<Url> {
    Url::from_file_path(path).ok()
}

/// Converts between byte offsets and LSP positions in one text.
pub struct PositionMap {
    index: LineIndex,
    /// Negotiated with the editor.
    encoding: Encoding,
    /// The cheapest encoding that gives the same columns in this text.
    column_encoding: Encoding,
}

impl PositionMap {
    pub fn new(text: &Arc<str>, encoding: Encoding) -> Self {
        // In ASCII all columns are byte columns, which need no counting. This keeps a large file on one line fast.
        let column_encoding = if text.is_ascii() { Encoding::Utf8 } else { encoding };
        Self { index: LineIndex::new(text.clone()), encoding, column_encoding }
    }

    pub fn offset(&self, position: Position) -> usize {
        let position = lines::Position { line: position.line, column: position.character };
        self.index.offset(position, self.column_encoding)
    }

    /// The span of a range; empty if the range ends before it starts.
    pub fn span(&self, range: Range) -> Span {
        let start = self.offset(range.start);
        start..self.offset(range.end).max(start)
    }

    pub fn position(&self, offset: usize) -> Position {
        let position = self.index.position(offset, self.column_encoding);
        Position { line: position.line, character: position.column }
    }

    pub fn range(&self, span: &Span) -> Range {
        Range { start: self.position(span.start), end: self.position(span.end) }
    }

    pub fn text_edit(&self, edit: &problem::TextEdit) -> TextEdit {
        TextEdit { range: self.range(&edit.span), new_text: edit.text.clone() }
    }

    pub fn diagnostic(&self, problem: &Problem, loaded: &Loaded) -> Diagnostic {
        let message = match &problem.help {
            Some(help) => format!("{}\n{help}", problem.message),
            None => problem.message.clone(),
        };
        let related: Vec<_> = problem.related.iter().filter_map(|related| self.related(related, loaded)).collect();
        Diagnostic {
            range: self.range(&problem.span),
            severity: Some(severity(problem.severity)),
            code: Some(NumberOrString::String(problem.code.to_string())),
            source: Some("mcp-sidecar".to_owned()),
            message,
            related_information: (!related.is_empty()).then_some(related),
            tags: tags(problem),
            data: problem.fix.as_ref().map(|fix| self.fix(fix)),
            ..Diagnostic::default()
        }
    }

    /// The data of a quick fix. The editor sends it back when it requests code actions.
    fn fix(&self, fix: &Fix) -> Value {
        let edits: Vec<TextEdit> = fix.edits.iter().map(|edit| self.text_edit(edit)).collect();
        json!({ "fix": { "title": fix.title, "edits": edits } })
    }

    fn related(&self, related: &Related, loaded: &Loaded) -> Option<DiagnosticRelatedInformation> {
        let text = loaded.file(&related.file).map_or_else(|| "".into(), |file| file.text.clone());
        let range = PositionMap::new(&text, self.encoding).range(&related.span);
        let location = Location { uri: uri(&related.file)?, range };
        Some(DiagnosticRelatedInformation { location, message: related.message.clone() })
    }

    /// For editors without nested symbols: each symbol names its container.
    pub fn flat_symbols(&self, symbols: &[Symbol], file: &Url) -> Vec<SymbolInformation> {
        let mut flat = Vec::new();
        let mut open: Vec<(&Symbol, Option<&Symbol>)> = symbols.iter().rev().map(|symbol| (symbol, None)).collect();
        while let Some((symbol, container)) = open.pop() {
            #[allow(deprecated)] // The struct has no constructor that omits the field.
            flat.push(SymbolInformation {
                name: symbol.name.clone(),
                kind: symbol_kind(symbol.kind),
                tags: None,
                deprecated: None,
                location: Location { uri: file.clone(), range: self.range(&symbol.span) },
                container_name: container.map(|container| container.name.clone()),
            });
            open.extend(symbol.children.iter().rev().map(|child| (child, Some(symbol))));
        }
        flat
    }

    pub fn symbol(&self, symbol: &Symbol) -> DocumentSymbol {
        #[allow(deprecated)] // The struct has no constructor that omits the field.
        DocumentSymbol {
            name: symbol.name.clone(),
            detail: symbol.detail.clone(),
            kind: symbol_kind(symbol.kind),
            tags: None,
            deprecated: None,
            range: self.range(&symbol.span),
            selection_range: self.range(&symbol.key),
            children: (!symbol.children.is_empty())
                .then(|| symbol.children.iter().map(|child| self.symbol(child)).collect()),
        }
    }

    /// A fold covers whole lines; `None` if it begins and ends on the same line.
    pub fn fold(&self, fold: &Fold) -> Option<FoldingRange> {
        let start = self.position(fold.span.start).line;
        let last = self.position(fold.span.end).line;
        // The closing bracket stays visible.
        let end = if fold.kind == FoldKind::Comment { last } else { last.saturating_sub(1) };
        (end > start).then(|| FoldingRange {
            start_line: start,
            end_line: end,
            kind: (fold.kind == FoldKind::Comment).then_some(FoldingRangeKind::Comment),
            ..FoldingRange::default()
        })
    }

    pub fn link(&self, link: &Link, tooltips: bool) -> Option<DocumentLink> {
        let target = match &link.target {
            Target::WebPage(url) => Url::parse(url).ok()?,
            Target::File(file) => uri(file)?,
        };
        Some(DocumentLink {
            range: self.range(&link.span),
            target: Some(target),
            tooltip: tooltips.then(|| link.tooltip.clone()),
            data: None,
        })
    }
}

fn symbol_kind(kind: Kind) -> SymbolKind {
    match kind {
        Kind::Group => SymbolKind::NAMESPACE,
        Kind::Server => SymbolKind::MODULE,
        Kind::Tool => SymbolKind::FUNCTION,
        Kind::Input => SymbolKind::VARIABLE,
        Kind::Action => SymbolKind::EVENT,
        Kind::Property => SymbolKind::PROPERTY,
    }
}

fn tags(problem: &Problem) -> Option<Vec<DiagnosticTag>> {
    let tags = [(problem.unnecessary, DiagnosticTag::UNNECESSARY), (problem.deprecated, DiagnosticTag::DEPRECATED)];
    let tags: Vec<_> = tags.into_iter().filter(|(is, _)| *is).map(|(_, tag)| tag).collect();
    (!tags.is_empty()).then_some(tags)
}

fn severity(severity: Severity) -> DiagnosticSeverity {
    match severity {
        Severity::Error => DiagnosticSeverity::ERROR,
        Severity::Warning => DiagnosticSeverity::WARNING,
        Severity::Information => DiagnosticSeverity::INFORMATION,
        Severity::Hint => DiagnosticSeverity::HINT,
    }
}

/// An error of the engine as a JSON-RPC error.
pub fn error(error: &Error) -> jsonrpc::Error {
    let data = ErrorData::from(error);
    let code = data.kind.code().into();
    jsonrpc::Error { code, message: error.to_string().into(), data: serde_json::to_value(data).ok() }
}
