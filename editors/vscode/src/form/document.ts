/** Text of several lines, or JSON with its schema, for a form, edited in a document: saving or closing the document returns to the form. */

import {
  type CancellationToken,
  commands,
  Disposable,
  EventEmitter,
  type FileChangeEvent,
  FileSystemError,
  FileType,
  ProgressLocation,
  TabInputText,
  TextDocumentSaveReason,
  Uri,
  window,
  workspace,
} from "vscode";

const SCHEME = "mcp-form";
/** The address of the schema, as `package.json` names it. It is that of the document that is being edited. */
const SCHEMA = Uri.from({ scheme: "mcp-schema", path: "/arguments.json" });
const schemaChanged = new EventEmitter<Uri>();
let schemaNow: unknown = {};
/** The documents that are being edited, and their texts as saved last. */
const texts = new Map<string, Uint8Array>();
/** Saves and closes each of these documents. */
const endings = new Map<string, () => Promise<void>>();
let count = 0;

export function registerFormDocuments(): Disposable {
  const read = (uri: Uri) => {
    const text = texts.get(uri.toString());
    if (!text) {
      throw FileSystemError.FileNotFound(uri);
    }
    return text;
  };
  const refuse = () => {
    throw FileSystemError.NoPermissions();
  };
  const schemas = workspace.registerTextDocumentContentProvider(SCHEMA.scheme, {
    onDidChange: schemaChanged.event,
    provideTextDocumentContent: () => JSON.stringify(schemaNow),
  });
  const files = workspace.registerFileSystemProvider(SCHEME, {
    onDidChangeFile: new EventEmitter<FileChangeEvent[]>().event,
    watch: () => new Disposable(() => {}),
    stat: uri => ({ type: FileType.File, ctime: 0, mtime: Date.now(), size: read(uri).length }),
    readFile: read,
    writeFile: (uri, text) => void texts.set(uri.toString(), text),
    readDirectory: () => [],
    createDirectory: refuse,
    delete: refuse,
    rename: refuse,
  });
  // The key that saves is ours in these documents: VS Code ignores it while it saves the same text by itself.
  const done = commands.registerCommand("mcpSidecar.form.done", () =>
    endings.get(window.activeTextEditor?.document.uri.toString() ?? "")?.(),
  );
  return Disposable.from(schemas, files, done);
}

interface EditOptions {
  /** The JSON Schema of the text. */
  schema?: unknown;
  /** Shown while the document is open. */
  hint?: string | undefined;
  token?: CancellationToken | undefined;
}

/** The text after the user has saved or closed the document; `undefined` if the user or `token` cancelled. */
export async function editText(name: string, text: string, options: EditOptions = {}): Promise<string | undefined> {
  const { schema, hint, token } = options;
  if (schema) {
    schemaNow = schema;
    schemaChanged.fire(SCHEMA);
  }
  const uri = Uri.from({ scheme: SCHEME, path: `/mcp-form/${++count}/${name.replace(/[\\/?#]/g, "-")}` });
  texts.set(uri.toString(), Buffer.from(text));
  const isOurs = (tab: { input: unknown }) =>
    tab.input instanceof TabInputText && tab.input.uri.toString() === uri.toString();
  const tabs = () => window.tabGroups.all.flatMap(group => group.tabs).filter(isOurs);
  const listening: Disposable[] = [];
  const title = hint ?? "Save or close the text to return to the form";
  const progress = { location: ProgressLocation.Notification, title, cancellable: true };
  try {
    const document = await workspace.openTextDocument(uri);
    let byKey = false;
    const finish = async () => {
      byKey = true; // A save that is under way makes this one fail. When it ends, this is called again.
      if (document.isDirty) {
        await document.save();
      }
      if (!document.isDirty) {
        await window.tabGroups.close(tabs());
      }
    };
    endings.set(uri.toString(), finish);
    await window.showTextDocument(document, { preview: false });
    return await window.withProgress(progress, (_, byButton) => {
      return new Promise<string | undefined>(resolve => {
        let byUser = false;
        const cancel = async () => {
          resolve(undefined);
          await window.showTextDocument(document);
          await commands.executeCommand("workbench.action.revertAndCloseActiveEditor");
        };
        listening.push(
          // A text that VS Code saves by itself is not finished.
          workspace.onWillSaveTextDocument(save => {
            if (save.document === document) {
              byUser = save.reason === TextDocumentSaveReason.Manual;
            }
          }),
          workspace.onDidSaveTextDocument(saved => {
            if (saved === document && (byKey || byUser)) {
              void finish(); // What was saved may be older than what has been typed.
            }
          }),
          window.tabGroups.onDidChangeTabs(({ closed }) => {
            if (closed.some(isOurs)) {
              resolve(new TextDecoder().decode(texts.get(uri.toString())));
            }
          }),
          byButton.onCancellationRequested(cancel),
          ...(token ? [token.onCancellationRequested(cancel)] : []),
        );
      });
    });
  } finally {
    Disposable.from(...listening).dispose();
    texts.delete(uri.toString());
    endings.delete(uri.toString());
  }
}
