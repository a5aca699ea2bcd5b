//! The language features as tower-lsp calls them: one line a method, the work is in `ide`.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tower_lsp::LanguageServer;
use tower_lsp::jsonrpc::{Error, Result};
use tower_lsp::lsp_types::{
    CodeActionParams, CodeActionResponse, CodeLens, CodeLensParams, CompletionParams, CompletionResponse,
    DocumentHighlight, DocumentHighlightParams, DocumentLink, DocumentLinkParams, DocumentSymbolParams,
    DocumentSymbolResponse, FoldingRange, FoldingRangeParams, GotoDefinitionParams, GotoDefinitionResponse, Hover,
    HoverParams, InitializeParams, InitializeResult, InlayHint, InlayHintParams, Location, PrepareRenameResponse,
    ReferenceParams, RenameParams, SelectionRange, SelectionRangeParams, TextDocumentPositionParams, Url,
    WorkspaceEdit,
};

use super::convert::Places;
use super::convert::words::Snippets;
use super::documents::Document;
use super::look::Look;
use super::seat::Seat;
use super::{actions, capabilities, look};
use crate::config::Loaded;
use crate::config::tree::{self, Tree};
use crate::engine::snapshot::Snapshot;
use crate::ide;
use crate::ide::page::Page;
use crate::ide::references::Wanted;

pub struct Backend {
    seat: Arc<Seat>,
}

impl Backend {
    pub fn new(seat: Arc<Seat>) -> Self {
        Self { seat }
    }

    /// An open config file together with what runs; other buffers have nothing alive in them.
    fn look(&self, uri: &Url) -> Option<Look> {
        Look::at(&self.seat, self.seat.documents.get(uri)?)
    }

    /// Answers from an open config file; other buffers are none of our business.
    fn on_config<T>(&self, uri: &Url, answer: impl FnOnce(&Open) -> T) -> Result<Option<T>> {
        let document = self.seat.documents.get(uri).filter(|document| self.seat.is_config(document));
        Ok(document.map(|document| answer(&Open::new(&self.seat, document))))
    }

    /// The same about one place in it.
    fn at<T>(
        &self,
        position: &TextDocumentPositionParams,
        answer: impl FnOnce(&Open, &Page<'_>, usize) -> T,
    ) -> Result<Option<T>> {
        self.on_config(&position.text_document.uri, |file| {
            answer(file, &file.page(), file.places.offset(position.position))
        })
    }
}

/// A config file in the editor, ready to be asked about.
struct Open {
    document: Document,
    tree: Tree,
    places: Places,
    /// What `${workspaceFolder}` means in it.
    folder: Option<PathBuf>,
    /// The path under which the engine knows it.
    source: Option<PathBuf>,
    loaded: Arc<Loaded>,
    snapshot: Arc<Snapshot>,
    variables: BTreeSet<String>,
}

impl Open {
    fn new(seat: &Seat, document: Document) -> Self {
        let depth = seat.engine.settings().borrow().limits.config_depth;
        let path = document.path.as_deref();
        let loaded = seat.engine.loaded().borrow().clone();
        let source = path.and_then(|path| look::source_of(&loaded, path));
        let known = source.as_deref().and_then(|path| loaded.file(path)?.source.folder.as_deref());
        Self {
            tree: tree::parse(&document.text, depth),
            places: Places::new(&document.text, seat.greeting().encoding),
            folder: known.or_else(|| path?.parent()).map(PathBuf::from),
            source,
            snapshot: seat.engine.now(),
            variables: std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect(),
            loaded,
            document,
        }
    }

    fn page(&self) -> Page<'_> {
        Page {
            text: &self.document.text,
            tree: &self.tree,
            path: self.source.as_deref().or_else(|| self.document.path.as_deref().map(Path::new)),
            loaded: &self.loaded,
            snapshot: &self.snapshot,
            variables: &self.variables,
        }
    }
}

#[tower_lsp::async_trait]
impl LanguageServer for Backend {
    async fn initialize(&self, _: InitializeParams) -> Result<InitializeResult> {
        Ok(capabilities::answer(self.seat.greeting()))
    }

    async fn shutdown(&self) -> Result<()> {
        Ok(())
    }

    async fn document_symbol(&self, params: DocumentSymbolParams) -> Result<Option<DocumentSymbolResponse>> {
        self.on_config(&params.text_document.uri, |file| {
            let symbols = ide::symbols::symbols(&file.tree);
            DocumentSymbolResponse::Nested(symbols.iter().map(|symbol| file.places.symbol(symbol)).collect())
        })
    }

    async fn folding_range(&self, params: FoldingRangeParams) -> Result<Option<Vec<FoldingRange>>> {
        self.on_config(&params.text_document.uri, |file| {
            ide::folding::folds(&file.document.text, &file.tree)
                .iter()
                .filter_map(|fold| file.places.fold(fold))
                .collect()
        })
    }

    async fn code_lens(&self, params: CodeLensParams) -> Result<Option<Vec<CodeLens>>> {
        let Some(look) = self.look(&params.text_document.uri) else { return Ok(None) };
        let unsaved = look.unsaved(&self.seat.engine).await;
        let hide = self.seat.engine.settings().borrow().editor.hide_lenses.clone();
        let lenses = ide::lenses::lenses(&look.sight(), unsaved.as_ref(), &hide);
        Ok(Some(lenses.iter().map(|lens| look.places.lens(lens)).collect()))
    }

    async fn inlay_hint(&self, params: InlayHintParams) -> Result<Option<Vec<InlayHint>>> {
        let Some(look) = self.look(&params.text_document.uri) else { return Ok(None) };
        // Many servers use few programs.
        let found = RefCell::new(BTreeMap::new());
        let find = |name: &str| {
            let mut found = found.borrow_mut();
            found.entry(name.to_owned()).or_insert_with(|| which::which(name).ok()).clone()
        };
        let hints = ide::hints::hints(&look.sight(), &look.places.span(params.range), find);
        Ok(Some(hints.iter().map(|hint| look.places.hint(hint)).collect()))
    }

    async fn code_action(&self, params: CodeActionParams) -> Result<Option<CodeActionResponse>> {
        Ok(actions::menu(&self.seat, &params))
    }

    async fn document_link(&self, params: DocumentLinkParams) -> Result<Option<Vec<DocumentLink>>> {
        self.on_config(&params.text_document.uri, |file| {
            let links = ide::links::links(&file.tree, file.folder.as_deref(), |path| path.exists());
            links.iter().filter_map(|link| file.places.link(link)).collect()
        })
    }

    async fn completion(&self, params: CompletionParams) -> Result<Option<CompletionResponse>> {
        let snippets = if self.seat.greeting().supports.snippets { Snippets::Known } else { Snippets::Unknown };
        self.at(&params.text_document_position, |file, page, offset| {
            let completions = ide::completion::complete(page, offset);
            CompletionResponse::List(file.places.completions(&completions, snippets))
        })
    }

    async fn hover(&self, params: HoverParams) -> Result<Option<Hover>> {
        let hover = self.at(&params.text_document_position_params, |file, page, offset| {
            ide::hover::hover(page, offset).map(|hover| file.places.hover(&hover))
        });
        hover.map(Option::flatten)
    }

    async fn goto_definition(&self, params: GotoDefinitionParams) -> Result<Option<GotoDefinitionResponse>> {
        self.at(&params.text_document_position_params, |file, page, offset| {
            let spots = ide::definition::definition(page, offset);
            GotoDefinitionResponse::Array(file.places.locations(&spots, &file.document.uri, &file.loaded))
        })
    }

    async fn references(&self, params: ReferenceParams) -> Result<Option<Vec<Location>>> {
        let wanted = if params.context.include_declaration { Wanted::UsesAndDefinition } else { Wanted::Uses };
        self.at(&params.text_document_position, |file, page, offset| {
            let spots = ide::references::references(page, offset, wanted);
            file.places.locations(&spots, &file.document.uri, &file.loaded)
        })
    }

    async fn document_highlight(&self, params: DocumentHighlightParams) -> Result<Option<Vec<DocumentHighlight>>> {
        self.at(&params.text_document_position_params, |file, page, offset| {
            ide::references::highlights(page, offset).iter().map(|used| file.places.highlight(used)).collect()
        })
    }

    async fn prepare_rename(&self, params: TextDocumentPositionParams) -> Result<Option<PrepareRenameResponse>> {
        let renamable = self.at(&params, |file, page, offset| {
            let used = ide::rename::renamable(page, offset)?;
            let placeholder = page.text.get(used.span.clone())?.to_owned();
            Some(PrepareRenameResponse::RangeWithPlaceholder { range: file.places.range(&used.span), placeholder })
        });
        renamable.map(Option::flatten)
    }

    async fn rename(&self, params: RenameParams) -> Result<Option<WorkspaceEdit>> {
        let renamed = self.at(&params.text_document_position, |file, page, offset| {
            let edits = ide::rename::rename(page, offset, &params.new_name)?;
            Ok(file.places.renamed(&edits, &file.document.uri))
        });
        renamed?.transpose().map_err(|reason: String| Error::invalid_params(reason))
    }

    async fn selection_range(&self, params: SelectionRangeParams) -> Result<Option<Vec<SelectionRange>>> {
        self.on_config(&params.text_document.uri, |file| {
            let around = |position| {
                let offset = file.places.offset(position);
                file.places.selection(&ide::selection::selection(&file.document.text, &file.tree, offset))
            };
            params.positions.into_iter().map(around).collect()
        })
    }
}
