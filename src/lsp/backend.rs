//! The language features as tower-lsp calls them. The work is done in `ide`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use lsp_types::{
    CodeActionParams, CodeActionResponse, CodeLens, CodeLensParams, CompletionList, CompletionParams,
    CompletionResponse, DocumentHighlight, DocumentHighlightParams, DocumentLink, DocumentLinkParams,
    DocumentSymbolParams, DocumentSymbolResponse, FoldingRange, FoldingRangeParams, GotoDefinitionParams,
    GotoDefinitionResponse, Hover, HoverParams, InitializeParams, InitializeResult, InlayHint, InlayHintParams,
    Location, PrepareRenameResponse, ReferenceParams, RenameParams, SelectionRange, SelectionRangeParams,
    TextDocumentPositionParams, Url, WorkspaceEdit,
};
use tower_lsp::LanguageServer;
use tower_lsp::jsonrpc::{Error, Result};

use super::convert::PositionMap;
use super::convert::language::{Format, Snippets};
use super::documents::Document;
use super::open_config::OpenConfig;
use super::session::EditorSession;
use super::{capabilities, code_actions, raw_response};
use crate::config::expand::Values;
use crate::ide;
use crate::ide::config_view::ConfigView;
use crate::ide::lenses::LensOptions;
use crate::ide::references::Include;

pub struct Backend {
    session: Arc<EditorSession>,
}

impl Backend {
    pub fn new(session: Arc<EditorSession>) -> Self {
        Self { session }
    }

    /// Answers a request about an open config file. Other buffers have no answer.
    fn on_config<T>(&self, uri: &Url, answer: impl FnOnce(&OpenConfig, &ConfigView<'_>) -> T) -> Result<Option<T>> {
        let open = self.session.open_config(uri);
        Ok(open.and_then(|open| Some(answer(&open, &open.view()?))))
    }

    /// A position in `config.toml`.
    fn at_settings(&self, position: &TextDocumentPositionParams) -> Option<(Document, PositionMap, usize)> {
        let settings = self.session.settings_document(&position.text_document.uri)?;
        let positions = PositionMap::new(&settings.text, self.session.info().encoding);
        let offset = positions.offset(position.position);
        Some((settings, positions, offset))
    }

    /// Answers a request about a position in an open config file.
    fn at<T>(
        &self,
        position: &TextDocumentPositionParams,
        answer: impl FnOnce(&OpenConfig, &ConfigView<'_>, usize) -> T,
    ) -> Result<Option<T>> {
        self.on_config(&position.text_document.uri, |open, config| {
            answer(open, config, open.positions.offset(position.position))
        })
    }
}

#[tower_lsp::async_trait]
impl LanguageServer for Backend {
    async fn initialize(&self, _: InitializeParams) -> Result<InitializeResult> {
        Ok(capabilities::answer(self.session.info(), self.session.engine.editors().ticket()))
    }

    async fn shutdown(&self) -> Result<()> {
        Ok(())
    }

    async fn document_symbol(&self, params: DocumentSymbolParams) -> Result<Option<DocumentSymbolResponse>> {
        let answer = self.on_config(&params.text_document.uri, |open, config| {
            let symbols = ide::symbols::symbols(config);
            match self.session.info().supports.nested_symbols {
                true => {
                    DocumentSymbolResponse::Nested(symbols.iter().map(|symbol| open.positions.symbol(symbol)).collect())
                }
                false => DocumentSymbolResponse::Flat(open.positions.flat_symbols(&symbols, open.uri())),
            }
        });
        raw_response::send(answer)
    }

    async fn folding_range(&self, params: FoldingRangeParams) -> Result<Option<Vec<FoldingRange>>> {
        let answer = self.on_config(&params.text_document.uri, |open, config| {
            ide::folding::folds(config.text, config.tree).iter().filter_map(|fold| open.positions.fold(fold)).collect()
        });
        raw_response::send(answer)
    }

    async fn code_lens(&self, params: CodeLensParams) -> Result<Option<Vec<CodeLens>>> {
        let Some(open) = self.session.open_config(&params.text_document.uri) else { return Ok(None) };
        let needs_trust = open.needs_trust_on_save(&self.session.engine).await;
        let settings = self.session.engine.settings().borrow().editor.clone();
        let editor = self.session.info().identity.name.clone();
        let owner = settings.own_files.iter().any(|file| open.path.ends_with(file)).then(|| editor.unwrap_or_default());
        let options = LensOptions { needs_trust, hide: settings.hide_lenses, owner };
        let lenses = open.view().map(|config| ide::lenses::lenses(&config, &options));
        let target = self.session.command_target(&open.document);
        let lens = |lens: &ide::lenses::Lens| open.positions.lens(lens, &target);
        let possible = |lens: &&ide::lenses::Lens| target.can_run(lens.command.command);
        raw_response::send(Ok(lenses.map(|lenses| lenses.iter().filter(possible).map(lens).collect())))
    }

    async fn inlay_hint(&self, params: InlayHintParams) -> Result<Option<Vec<InlayHint>>> {
        // Many servers share a few programs.
        let found = RefCell::new(BTreeMap::new());
        let answer = self.on_config(&params.text_document.uri, |open, config| {
            let find = |name: &str| {
                let search =
                    || which::which_in(name, open.environment.path(), open.folder().unwrap_or(Path::new("/"))).ok();
                found.borrow_mut().entry(name.to_owned()).or_insert_with(search).clone()
            };
            let hints = ide::hints::hints(config, &open.positions.span(params.range), find);
            hints.iter().map(|hint| open.positions.hint(hint)).collect()
        });
        raw_response::send(answer)
    }

    async fn code_action(&self, params: CodeActionParams) -> Result<Option<CodeActionResponse>> {
        Ok(code_actions::menu(&self.session, &params))
    }

    async fn document_link(&self, params: DocumentLinkParams) -> Result<Option<Vec<DocumentLink>>> {
        let answer = self.on_config(&params.text_document.uri, |open, config| {
            let links = ide::links::links(config.tree, &Values::in_folder(open.folder(), &open.environment), |path| {
                path.exists()
            });
            let tooltips = self.session.info().supports.link_tooltips;
            links.iter().filter_map(|link| open.positions.link(link, tooltips)).collect()
        });
        raw_response::send(answer)
    }

    async fn completion(&self, params: CompletionParams) -> Result<Option<CompletionResponse>> {
        let supports = self.session.info().supports;
        let snippets = if supports.snippets { Snippets::Supported } else { Snippets::Unsupported };
        let format = Format::of(supports.plain_docs);
        if let Some((settings, positions, offset)) = self.at_settings(&params.text_document_position) {
            let completions = ide::settings_file::complete(&settings.text, offset);
            let list = positions.completions(&completions, snippets, format);
            return raw_response::send(Ok(Some(CompletionResponse::List(list))));
        }
        let trigger = params.context.as_ref().and_then(|context| context.trigger_character.as_deref());
        let answer = self.at(&params.text_document_position, |open, config, offset| {
            // A brace opens an object, which Enter then breaks; only after `$` it asks for a name.
            let before = config.text.get(..offset).unwrap_or_default();
            if trigger == Some("{") && !before.ends_with("${") {
                return CompletionResponse::List(CompletionList::default());
            }
            let completions = ide::completion::complete(config, offset, || open.env_files());
            CompletionResponse::List(open.positions.completions(&completions, snippets, format))
        });
        raw_response::send(answer)
    }

    async fn hover(&self, params: HoverParams) -> Result<Option<Hover>> {
        let format = Format::of(self.session.info().supports.plain_hover);
        if let Some((settings, positions, offset)) = self.at_settings(&params.text_document_position_params) {
            let hover = ide::settings_file::hover(&settings.text, offset);
            return Ok(hover.map(|hover| positions.hover(&hover, format)));
        }
        let hover = self.at(&params.text_document_position_params, |open, config, offset| {
            ide::hover::hover(config, offset).map(|hover| open.positions.hover(&hover, format))
        });
        hover.map(Option::flatten)
    }

    async fn goto_definition(&self, params: GotoDefinitionParams) -> Result<Option<GotoDefinitionResponse>> {
        self.at(&params.text_document_position_params, |open, config, offset| {
            let locations = ide::definition::definition(config, offset);
            GotoDefinitionResponse::Array(open.positions.locations(&locations, open.uri(), &open.loaded))
        })
    }

    async fn references(&self, params: ReferenceParams) -> Result<Option<Vec<Location>>> {
        let include = Include::of(params.context.include_declaration);
        let answer = self.at(&params.text_document_position, |open, config, offset| {
            let locations = ide::references::references(config, offset, include);
            open.positions.locations(&locations, open.uri(), &open.loaded)
        });
        raw_response::send(answer)
    }

    async fn document_highlight(&self, params: DocumentHighlightParams) -> Result<Option<Vec<DocumentHighlight>>> {
        self.at(&params.text_document_position_params, |open, config, offset| {
            ide::references::highlights(config, offset)
                .iter()
                .map(|occurrence| open.positions.highlight(occurrence))
                .collect()
        })
    }

    async fn prepare_rename(&self, params: TextDocumentPositionParams) -> Result<Option<PrepareRenameResponse>> {
        let renamable = self.at(&params, |open, config, offset| {
            let occurrence = ide::rename::renamable(config, offset)?;
            let placeholder = config.text.get(occurrence.span.clone())?.to_owned();
            Some(PrepareRenameResponse::RangeWithPlaceholder {
                range: open.positions.range(&occurrence.span),
                placeholder,
            })
        });
        renamable.map(Option::flatten)
    }

    async fn rename(&self, params: RenameParams) -> Result<Option<WorkspaceEdit>> {
        let renamed = self.at(&params.text_document_position, |open, config, offset| {
            let renamed = ide::rename::rename(config, offset, &params.new_name)?;
            Ok(open.positions.renamed(&renamed, open.uri(), &open.loaded))
        });
        renamed?.transpose().map_err(|reason: String| Error::invalid_params(reason))
    }

    async fn selection_range(&self, params: SelectionRangeParams) -> Result<Option<Vec<SelectionRange>>> {
        self.on_config(&params.text_document.uri, |open, config| {
            let ranges = |position| {
                let offset = open.positions.offset(position);
                open.positions.selection(&ide::selection_range::selection_ranges(config.text, config.tree, offset))
            };
            params.positions.into_iter().map(ranges).collect()
        })
    }
}
