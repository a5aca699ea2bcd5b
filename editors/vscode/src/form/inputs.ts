/**
 * A form made of VS Code's quick inputs: first each required field, then one list to review everything and send it. An
 * object is a separate list, and so is a list of values. The sidecar reads and checks what is entered, as it is typed.
 */

import { type CancellationToken, type QuickPickItem, QuickPickItemKind, ThemeIcon, window } from "vscode";
import { failureOf } from "../errors";
import { pageSettled } from "../focus";
import type { Choice, Field } from "../protocol";
import { editText } from "./document";
import { type Check, Entered, initial, isObject, type Path, same, shown, type Values } from "./entered";

export interface FormRequest {
  title: string;
  fields: readonly Field[];
  given?: Values;
  /** Reads and checks what was entered. */
  check: Check;
  /** What the last step does, such as ``Run `echo` ``. */
  verb: string;
  /**
   * The first line of the review, for what must not happen by pressing Enter once too often: Enter then chooses this line,
   * which only explains.
   */
  caution?: { label: string; detail: string; explain: () => unknown };
  /** Who asks, and what for: shown above the values. */
  message?: string | undefined;
  /** The JSON Schema of all values. With it, they can be edited as JSON. */
  schema?: unknown;
  /** What was entered is kept under this name if the user leaves the form, and comes back with it. */
  draft?: string;
  /** Closes the form, as if the user had cancelled it. */
  token?: CancellationToken;
}

/** What was entered in forms that were left. */
const drafts = new Map<string, Values>();

/** What was typed is checked after a pause of this length. */
const CHECK_MS = 100;
const YES_OR_NO: Choice[] = [
  { value: true, title: "yes" },
  { value: false, title: "no" },
];

/** All values, after the user has reviewed them; `undefined` if the user cancelled. */
export async function showForm(request: FormRequest): Promise<Values | undefined> {
  const { title, fields, draft = "", token } = request;
  const form = new Entered(request.check, token);
  const first = initial(fields, request.given);
  const restored = drafts.get(draft);
  await form.set([], restored ?? first);
  const filled = await fillRequired(form, [], fields, title);
  const unchanged = () => same(form.values, first);
  // A form that is one secret needs no review.
  const isSecret = fields.length > 0 && fields.every(field => field.kind === "secret");
  const leaves = !filled && (isSecret || unchanged());
  const done = !leaves && (isSecret || (await review(form, request, restored && first)));
  if (draft && !isSecret && !done && !token?.isCancellationRequested && !unchanged()) {
    drafts.set(draft, form.values);
  } else {
    drafts.delete(draft);
  }
  return done ? form.checked.arguments : undefined;
}

type Run = () => Promise<"done" | "cancel" | undefined>;

/** A line of a list. `run` says whether the list is finished or cancelled; otherwise it stays open. */
interface Line extends QuickPickItem {
  run?: Run;
}

/** Shows a list again and again, until a line finishes it. */
async function loop({ token }: Entered, title: string, placeHolder: string, lines: () => Line[]): Promise<boolean> {
  while (!token?.isCancellationRequested) {
    const options = { title, placeHolder, ignoreFocusOut: true, matchOnDescription: true };
    await pageSettled();
    const chosen = await window.showQuickPick(lines(), options, token);
    const then = chosen ? await chosen.run?.() : "cancel";
    if (then) {
      return then === "done";
    }
  }
  return false;
}

/** @param first the values to start over with, if others were restored */
function review(form: Entered, request: FormRequest, first: Values | undefined): Promise<boolean> {
  const { title, fields, verb, caution, message, schema } = request;
  const names = fields.map(field => field.name);
  let before = first;
  const startOver: Run = async () => {
    await form.set([], before);
    before = undefined;
    return undefined;
  };
  const explain: Run = async () => {
    await caution?.explain();
    return "cancel";
  };
  const send: Run = async () => {
    if (form.checked.problems.length === 0) {
      return "done";
    }
    const wrong = fields.find(
      ({ name, required }) => form.problem([name]) || (required && form.at([name]) === undefined),
    );
    if (wrong) {
      await fill(form, [wrong.name], wrong, title);
    }
    return undefined;
  };
  const json: Run = async () => {
    let text = JSON.stringify(form.checked.arguments, undefined, 2);
    let hint: string | undefined;
    // A text that is not JSON comes back as it was typed.
    for (;;) {
      const edited = await editText("arguments.json", text, { schema, hint, token: form.token });
      try {
        await form.set([], edited === undefined ? form.values : objectOf(edited));
        return undefined;
      } catch (error) {
        text = edited ?? text;
        hint = `This is not a JSON object: ${failureOf(error).message}. Fix it, then save or close it`;
      }
    }
  };
  const restored: Line[] = [
    { label: "$(history) Start over", detail: "The form has what you entered before", run: startOver },
  ];
  return loop(form, title, fields.length > 0 ? orChange(verb) : `Choose “${verb}”`, () => {
    const extra = Object.entries(form.values).filter(([name]) => !names.includes(name));
    const problem = form.otherProblem([], names);
    return [
      ...(message ? [{ label: `$(comment-discussion) ${oneLine(message)}` }] : []),
      ...(caution ? [{ label: `$(warning) ${caution.label}`, detail: caution.detail, run: explain }] : []),
      { label: `$(play) ${verb}`, ...problemDetail(problem, problem ? "" : form.otherWarning([], names)), run: send },
      ...(before ? restored : []),
      { label: "Values", kind: QuickPickItemKind.Separator },
      ...fields.map(field => fieldLine(form, [field.name], field, title)),
      ...extra.map(([name, value]) => ({ label: `$(edit) ${name}`, description: shown(undefined, value) })),
      ...(schema && fields.length > 0 ? [{ label: "$(json) Edit as JSON…", run: json }] : []),
    ];
  });
}

function orChange(verb: string): string {
  return `Choose “${verb}”, or a value to change it`;
}

function objectOf(text: string): Values {
  const value: unknown = JSON.parse(text);
  if (!isObject(value)) {
    throw new Error("expected `{`");
  }
  return value;
}

function problemDetail(problem: string, warning = ""): { detail?: string } {
  return problem ? { detail: `$(error) ${problem}` } : warning ? { detail: `$(warning) ${warning}` } : {};
}

function fieldLine(form: Entered, path: Path, field: Field, title: string): Line {
  const value = form.at(path);
  const isSet = value !== undefined;
  const need = isItem(path) ? "" : field.required ? "required" : "optional";
  return {
    label: `${isSet ? "$(edit)" : "$(circle-outline)"} ${field.title}`,
    description: isSet ? shown(field, value) : field.required ? "required" : "not set",
    detail: [need, field.rule, oneLine(field.help)].filter(Boolean).join(" · "),
    ...problemDetail(form.problem(path), form.warning(path)),
    run: async () => {
      await fill(form, path, field, title);
      return undefined;
    },
  };
}

/** Asks for the required fields that have no value; `false` if the user cancelled. */
async function fillRequired(form: Entered, path: Path, fields: readonly Field[], title: string): Promise<boolean> {
  const open = fields.filter(field => field.required && form.at([...path, field.name]) === undefined);
  for (const [place, field] of open.entries()) {
    if (!(await fill(form, [...path, field.name], field, `${title} (${place + 1} of ${open.length})`))) {
      return false;
    }
  }
  return true;
}

/** Asks for one value; `false` if the user cancelled. An object or a list that is cancelled stays as it was. */
async function fill(form: Entered, path: Path, field: Field, title: string): Promise<boolean> {
  switch (field.kind) {
    case "boolean":
      return choose(form, path, field, YES_OR_NO, title);
    case "choice":
      return choose(form, path, field, field.choices ?? [], title);
    case "choices":
      return chooseMany(form, path, field, title);
    case "object":
    case "list": {
      const before = form.at(path);
      const inside = `${title} › ${field.title}`;
      const done = await (field.kind === "object" ? fillObject : fillList)(form, path, field, inside);
      if (!done) {
        await form.set(path, before);
      }
      return done;
    }
    default:
      return enter(form, path, field, title);
  }
}

/** The lines that end a list: one that keeps it, and one that leaves it out if that is possible. */
function endings(form: Entered, path: Path, field: Field, keys: Path): [done: Line, ...remove: Line[]] {
  const remove: Run = async () => {
    await form.set(path, undefined);
    return "done";
  };
  const done: Line = {
    label: "$(check) Done",
    ...problemDetail(form.otherProblem(path, keys)),
    run: async () => "done",
  };
  return field.required && !isItem(path) ? [done] : [done, { label: `$(trash) ${omission(path)}`, run: remove }];
}

function isItem(path: Path): boolean {
  return typeof path.at(-1) === "number";
}

function omission(path: Path): string {
  return isItem(path) ? "Remove this item" : "Omit it";
}

async function fillObject(form: Entered, path: Path, field: Field, title: string): Promise<boolean> {
  const { fields = [] } = field;
  const before = form.at(path);
  await form.set(path, isObject(before) ? before : initial(fields));
  if (!(await fillRequired(form, path, fields, title))) {
    return false;
  }
  const names = fields.map(one => one.name);
  return loop(form, title, orChange("Done"), () => {
    const [done, ...remove] = endings(form, path, field, names);
    return [done, ...fields.map(one => fieldLine(form, [...path, one.name], one, title)), ...remove];
  });
}

async function fillList(form: Entered, path: Path, field: Field, title: string): Promise<boolean> {
  const before = form.at(path);
  await form.set(path, Array.isArray(before) ? before : []);
  return loop(form, title, orChange("Done"), () => {
    const places = [...(form.at(path) as unknown[]).keys()];
    const line = (place: number): Line => {
      const item = { ...(field.item as Field), title: String(place + 1) };
      return fieldLine(form, [...path, place], item, title);
    };
    const [done, ...remove] = endings(form, path, field, places);
    const add = { ...line(places.length), label: "$(add) Add one more…", description: "", detail: field.rule };
    return places.length === 0 ? [add, done, ...remove] : [done, ...places.map(line), add, ...remove];
  });
}

/** Asks for a text, which the sidecar reads. */
async function enter(form: Entered, path: Path, field: Field, title: string): Promise<boolean> {
  const current = form.at(path) ?? "";
  const value = typeof current === "string" ? current : JSON.stringify(current);
  const toStore = (typed: string) => (typed === "" && (!field.required || isItem(path)) ? undefined : typed);
  const problem = (text: string) => form.problemWith(path, toStore(text));
  const ending = field.kind === "json" ? "json" : "txt";
  const inDocument = (text: string) => editText(`${field.title}.${ending}`, text, { token: form.token });
  // An input box would drop the line breaks of a text that is pasted.
  const typed =
    field.kind === "multiline" || value.includes("\n")
      ? await inDocument(value)
      : await input(field.kind, { title, prompt: prompt(path, field), value }, problem, inDocument, form.token);
  if (typed === undefined) {
    return false;
  }
  await form.set(path, toStore(typed));
  return true;
}

/** An input box that shows problems as the user types, and rejects a text that has one. */
async function input(
  kind: Field["kind"],
  shape: { title: string; prompt: string; value: string },
  problem: (text: string) => Promise<string>,
  inDocument: (text: string) => Promise<string | undefined>,
  token?: CancellationToken,
): Promise<string | undefined> {
  await pageSettled();
  return new Promise(resolve => {
    const box = Object.assign(window.createInputBox(), shape, { ignoreFocusOut: true, password: kind === "secret" });
    box.buttons =
      kind === "text" || kind === "json"
        ? [{ iconPath: new ThemeIcon("go-to-file"), tooltip: "Edit in a document" }]
        : [];
    let timer: NodeJS.Timeout | undefined;
    const check = async () => {
      clearTimeout(timer);
      const text = box.value;
      const found = await problem(text).catch(error => failureOf(error).message);
      // What was typed in between has its own check.
      if (text === box.value) {
        box.validationMessage = found;
      }
      return text === box.value && !found;
    };
    const listening = token?.onCancellationRequested(() => box.hide());
    const end = (text: string | undefined | Promise<string | undefined>) => {
      resolve(text);
      listening?.dispose();
      clearTimeout(timer);
      box.dispose();
    };
    box.onDidChangeValue(() => {
      clearTimeout(timer);
      timer = setTimeout(check, CHECK_MS);
    });
    box.onDidAccept(async () => (await check()) && end(box.value));
    box.onDidTriggerButton(() => end(inDocument(box.value)));
    box.onDidHide(() => end(undefined));
    box.show();
  });
}

function oneLine(text = ""): string {
  return text.replace(/\s+/g, " ").trim();
}

function prompt(path: Path, field: Field): string {
  const need = isItem(path) ? "empty removes it" : field.required ? "required" : "optional, leave empty to omit it";
  return `${field.title}: ${[oneLine(field.help), field.rule, need].filter(Boolean).join(" · ")}`;
}

async function choose(form: Entered, path: Path, field: Field, choices: readonly Choice[], title: string) {
  const current = form.at(path);
  const items: (QuickPickItem & { value?: unknown })[] = choices.map(choice => ({
    label: choice.title,
    value: choice.value,
    ...(same(choice.value, current) && { description: "current" }),
  }));
  if (!field.required || isItem(path)) {
    items.push({ label: `$(circle-slash) ${omission(path)}` });
  }
  const options = { title, placeHolder: prompt(path, field), ignoreFocusOut: true };
  await pageSettled();
  const chosen = await window.showQuickPick(items, options, form.token);
  if (chosen) {
    await form.set(path, chosen.value);
  }
  return chosen !== undefined;
}

async function chooseMany(form: Entered, path: Path, field: Field, title: string): Promise<boolean> {
  const current = [form.at(path) ?? []].flat();
  const items = (field.choices ?? []).map(choice => ({
    label: choice.title,
    value: choice.value,
    picked: current.some(one => same(one, choice.value)),
  }));
  const options = { title, placeHolder: prompt(path, field), canPickMany: true as const, ignoreFocusOut: true };
  await pageSettled();
  const chosen = await window.showQuickPick(items, options, form.token);
  if (chosen) {
    await form.set(
      path,
      chosen.map(item => item.value),
    );
  }
  return chosen !== undefined;
}
