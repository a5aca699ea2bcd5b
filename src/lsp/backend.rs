//! The language features as tower-lsp calls them: one line a method, the work is in `ide`.

use std::cell::RefCell;
use std::collections::BTreeMap;
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
use super::convert::words::{Format, Snippets};
use super::look::Look;
use super::seat::Seat;
use super::{actions, aside, capabilities};
use crate::ide;
use crate::ide::references::Wanted;

pub struct Backend {
    seat: Arc<Seat>,
}

impl Backend {
    pub fn new(seat: Arc<Seat>) -> Self {
        Self { seat }
    }

    /// Answers from an open config file; other buffers are none of our business.
    fn on_config<T>(&self, uri: &Url, answer: impl FnOnce(&Look<'_>, &Places) -> T) -> Result<Option<T>> {
        let sheet = self.seat.sheet(uri);
        let look = sheet.as_deref().and_then(|sheet| Look::at(&self.seat, sheet));
        Ok(look.map(|look| answer(&look, &look.sheet.places)))
    }

    /// The same about one place in it.
    fn at<T>(
        &self,
        position: &TextDocumentPositionParams,
        answer: impl FnOnce(&Look<'_>, &Places, usize) -> T,
    ) -> Result<Option<T>> {
        self.on_config(&position.text_document.uri, |look, places| {
            answer(look, places, places.offset(position.position))
        })
    }
}

#[tower_lsp::async_trait]
impl LanguageServer for Backend {
    async fn initialize(&self, _: InitializeParams) -> Result<InitializeResult> {
        Ok(capabilities::answer(self.seat.greeting(), self.seat.engine.editors().ticket()))
    }

    async fn shutdown(&self) -> Result<()> {
        Ok(())
    }

    async fn document_symbol(&self, params: DocumentSymbolParams) -> Result<Option<DocumentSymbolResponse>> {
        let answer = self.on_config(&params.text_document.uri, |look, places| {
            let symbols = ide::symbols::symbols(&look.page());
            match self.seat.greeting().supports.nested_symbols {
                true => DocumentSymbolResponse::Nested(symbols.iter().map(|symbol| places.symbol(symbol)).collect()),
                false => DocumentSymbolResponse::Flat(places.flat_symbols(&symbols, look.uri())),
            }
        });
        aside::lay(answer)
    }

    async fn folding_range(&self, params: FoldingRangeParams) -> Result<Option<Vec<FoldingRange>>> {
        let answer = self.on_config(&params.text_document.uri, |look, places| {
            let page = look.page();
            ide::folding::folds(page.text, page.tree).iter().filter_map(|fold| places.fold(fold)).collect()
        });
        aside::lay(answer)
    }

    async fn code_lens(&self, params: CodeLensParams) -> Result<Option<Vec<CodeLens>>> {
        let Some(sheet) = self.seat.sheet(&params.text_document.uri) else { return Ok(None) };
        let Some(look) = Look::at(&self.seat, &sheet) else { return Ok(None) };
        let unsaved = look.unsaved(&self.seat.engine).await;
        let hide = self.seat.engine.settings().borrow().editor.hide_lenses.clone();
        let lenses = ide::lenses::lenses(&look.page(), unsaved.as_ref(), &hide);
        let shown = self.seat.shown(&sheet.document);
        aside::lay(Ok(Some(lenses.iter().map(|lens| sheet.places.lens(lens, &shown)).collect())))
    }

    async fn inlay_hint(&self, params: InlayHintParams) -> Result<Option<Vec<InlayHint>>> {
        // Many servers use few programs.
        let found = RefCell::new(BTreeMap::new());
        let find = |name: &str| {
            let mut found = found.borrow_mut();
            found.entry(name.to_owned()).or_insert_with(|| which::which(name).ok()).clone()
        };
        let answer = self.on_config(&params.text_document.uri, |look, places| {
            let hints = ide::hints::hints(&look.page(), &places.span(params.range), find);
            hints.iter().map(|hint| places.hint(hint)).collect()
        });
        aside::lay(answer)
    }

    async fn code_action(&self, params: CodeActionParams) -> Result<Option<CodeActionResponse>> {
        Ok(actions::menu(&self.seat, &params))
    }

    async fn document_link(&self, params: DocumentLinkParams) -> Result<Option<Vec<DocumentLink>>> {
        let answer = self.on_config(&params.text_document.uri, |look, places| {
            let links = ide::links::links(look.page().tree, look.folder(), |path| path.exists());
            links.iter().filter_map(|link| places.link(link)).collect()
        });
        aside::lay(answer)
    }

    async fn completion(&self, params: CompletionParams) -> Result<Option<CompletionResponse>> {
        let supports = self.seat.greeting().supports;
        let snippets = if supports.snippets { Snippets::Known } else { Snippets::Unknown };
        let format = Format::of(supports.plain_docs);
        let answer = self.at(&params.text_document_position, |look, places, offset| {
            let completions = ide::completion::complete(&look.page(), offset, || look.env_files());
            CompletionResponse::List(places.completions(&completions, snippets, format))
        });
        aside::lay(answer)
    }

    async fn hover(&self, params: HoverParams) -> Result<Option<Hover>> {
        let format = Format::of(self.seat.greeting().supports.plain_hover);
        let hover = self.at(&params.text_document_position_params, |look, places, offset| {
            ide::hover::hover(&look.page(), offset).map(|hover| places.hover(&hover, format))
        });
        hover.map(Option::flatten)
    }

    async fn goto_definition(&self, params: GotoDefinitionParams) -> Result<Option<GotoDefinitionResponse>> {
        self.at(&params.text_document_position_params, |look, places, offset| {
            let spots = ide::definition::definition(&look.page(), offset);
            GotoDefinitionResponse::Array(places.locations(&spots, look.uri(), &look.sheet.loaded))
        })
    }

    async fn references(&self, params: ReferenceParams) -> Result<Option<Vec<Location>>> {
        let wanted = if params.context.include_declaration { Wanted::UsesAndDefinition } else { Wanted::Uses };
        let answer = self.at(&params.text_document_position, |look, places, offset| {
            let spots = ide::references::references(&look.page(), offset, wanted);
            places.locations(&spots, look.uri(), &look.sheet.loaded)
        });
        aside::lay(answer)
    }

    async fn document_highlight(&self, params: DocumentHighlightParams) -> Result<Option<Vec<DocumentHighlight>>> {
        self.at(&params.text_document_position_params, |look, places, offset| {
            ide::references::highlights(&look.page(), offset).iter().map(|used| places.highlight(used)).collect()
        })
    }

    async fn prepare_rename(&self, params: TextDocumentPositionParams) -> Result<Option<PrepareRenameResponse>> {
        let renamable = self.at(&params, |look, places, offset| {
            let page = look.page();
            let used = ide::rename::renamable(&page, offset)?;
            let placeholder = page.text.get(used.span.clone())?.to_owned();
            Some(PrepareRenameResponse::RangeWithPlaceholder { range: places.range(&used.span), placeholder })
        });
        renamable.map(Option::flatten)
    }

    async fn rename(&self, params: RenameParams) -> Result<Option<WorkspaceEdit>> {
        let renamed = self.at(&params.text_document_position, |look, places, offset| {
            let renamed = ide::rename::rename(&look.page(), offset, &params.new_name)?;
            Ok(places.renamed(&renamed, look.uri(), &look.sheet.loaded))
        });
        renamed?.transpose().map_err(|reason: String| Error::invalid_params(reason))
    }

    async fn selection_range(&self, params: SelectionRangeParams) -> Result<Option<Vec<SelectionRange>>> {
        self.on_config(&params.text_document.uri, |look, places| {
            let page = look.page();
            let around =
                |position| places.selection(&ide::selection::selection(page.text, page.tree, places.offset(position)));
            params.positions.into_iter().map(around).collect()
        })
    }
}
