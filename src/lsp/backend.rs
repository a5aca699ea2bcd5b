//! The language features as tower-lsp calls them: one line a method, the work is in `ide`.

use std::path::PathBuf;
use std::sync::Arc;

use tower_lsp::LanguageServer;
use tower_lsp::jsonrpc::Result;
use tower_lsp::lsp_types::{
    DocumentLink, DocumentLinkParams, DocumentSymbolParams, DocumentSymbolResponse, FoldingRange, FoldingRangeParams,
    InitializeParams, InitializeResult, Url,
};

use super::capabilities;
use super::convert::Places;
use super::documents::Document;
use super::seat::Seat;
use crate::config::tree::{self, Tree};
use crate::ide;

pub struct Backend {
    seat: Arc<Seat>,
}

impl Backend {
    pub fn new(seat: Arc<Seat>) -> Self {
        Self { seat }
    }

    /// Answers from an open config file; other buffers are none of our business.
    fn on_config<T>(&self, uri: &Url, answer: impl FnOnce(&Open) -> T) -> Result<Option<T>> {
        let document = self.seat.documents.get(uri).filter(|document| self.seat.is_config(document));
        Ok(document.map(|document| answer(&Open::new(&self.seat, document))))
    }
}

/// A config file in the editor, ready to be asked about.
struct Open {
    document: Document,
    tree: Tree,
    places: Places,
    /// What `${workspaceFolder}` means in it.
    folder: Option<PathBuf>,
}

impl Open {
    fn new(seat: &Seat, document: Document) -> Self {
        let depth = seat.engine.settings().borrow().limits.config_depth;
        let path = document.path.as_deref();
        let loaded = seat.engine.loaded().borrow().clone();
        let known = path.and_then(|path| loaded.file(path)?.source.folder.as_deref());
        Self {
            tree: tree::parse(&document.text, depth),
            places: Places::new(&document.text, seat.greeting().encoding),
            folder: known.or_else(|| path?.parent()).map(PathBuf::from),
            document,
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

    async fn document_link(&self, params: DocumentLinkParams) -> Result<Option<Vec<DocumentLink>>> {
        self.on_config(&params.text_document.uri, |file| {
            let links = ide::links::links(&file.tree, file.folder.as_deref(), |path| path.exists());
            links.iter().filter_map(|link| file.places.link(link)).collect()
        })
    }
}
