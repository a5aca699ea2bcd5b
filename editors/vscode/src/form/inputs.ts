/** A form made of VS Code's quick inputs: first each required field, then one list to review everything and send it. */

import { QuickInputButtons, type QuickPickItem, QuickPickItemKind, window } from "vscode";
import type { Schema } from "../protocol";
import { type Field, fields, initial, missing, parse, show, type Values } from "./schema";

export interface FormRequest {
  title: string;
  schema: Schema;
  given?: Values;
  /** What the last step does, such as ``Run `echo` ``. */
  verb: string;
  /**
   * The first line of the review, for what must not happen by pressing Enter once too often: Enter then chooses this line,
   * which only explains.
   */
  caution?: { label: string; detail: string; explain: () => unknown };
  /** What was wrong with the values that were sent last. */
  problem?: string;
}

const UNSET = Symbol("unset");

/** All values, after the user has reviewed them; `undefined` if the user cancelled. */
export async function showForm(request: FormRequest): Promise<Values | undefined> {
  const all = fields(request.schema);
  const values = initial(all, request.given);
  const open = missing(all, values);
  for (const [place, field] of open.entries()) {
    const answer = await askField(field, undefined, `${request.title} (${place + 1} of ${open.length})`);
    if (answer === undefined) {
      return undefined;
    }
    values[field.name] = answer;
  }
  // A form that is one secret needs no review.
  if (all.length > 0 && all.every(field => field.kind === "secret")) {
    return values;
  }
  return review(request, all, values);
}

interface Line extends QuickPickItem {
  run?: "send" | "json" | "explain";
  field?: Field;
}

async function review(request: FormRequest, all: readonly Field[], values: Values): Promise<Values | undefined> {
  for (let problem = request.problem; ; problem = undefined) {
    const chosen = await window.showQuickPick(lines(request, all, values, problem), {
      title: request.title,
      placeHolder: `Choose “${request.verb}”${all.length > 0 ? ", or a field to change it" : ""}`,
      ignoreFocusOut: true,
      matchOnDescription: true,
    });
    if (!chosen) {
      return undefined;
    }
    if (chosen.run === "explain") {
      await request.caution?.explain();
      return undefined;
    }
    if (chosen.run === "send") {
      const open = missing(all, values)[0];
      if (!open) {
        return values;
      }
      await change(open, values, request.title);
    } else if (chosen.run === "json") {
      values = (await askJson(values, request.title)) ?? values;
    } else if (chosen.field) {
      await change(chosen.field, values, request.title);
    }
  }
}

function lines(request: FormRequest, all: readonly Field[], values: Values, problem: string | undefined): Line[] {
  const names = new Set(all.map(field => field.name));
  const extra = Object.keys(values).filter(name => !names.has(name));
  const { caution } = request;
  const head: Line[] = [
    ...(caution ? [{ label: `$(warning) ${caution.label}`, detail: caution.detail, run: "explain" as const }] : []),
    { label: `$(play) ${request.verb}`, run: "send", ...(problem && { detail: `$(error) ${problem}` }) },
  ];
  const line = (field: Field): Line => {
    const value = values[field.name];
    const set = value !== undefined;
    return {
      label: `${set ? "$(edit)" : "$(circle-outline)"} ${field.label}`,
      description: set
        ? oneLine(field.kind === "secret" ? "•••" : show(value))
        : field.required
          ? "required"
          : "not set",
      detail: [field.required ? "required" : "optional", field.rule, field.description].filter(Boolean).join(" · "),
      field,
    };
  };
  return [
    ...head,
    { label: "Arguments", kind: QuickPickItemKind.Separator },
    ...all.map(line),
    ...extra.map(name => ({ label: `$(edit) ${name}`, description: oneLine(show(values[name])) })),
    ...(all.length > 0 ? [{ label: "$(json) Edit as JSON…", run: "json" as const }] : []),
  ];
}

function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, " ⏎ ").slice(0, 200);
}

async function change(field: Field, values: Values, title: string): Promise<void> {
  const answer = await askField(field, values[field.name], title);
  if (answer === UNSET) {
    delete values[field.name];
  } else if (answer !== undefined) {
    values[field.name] = answer;
  }
}

/** One value; `UNSET` to leave it out, `undefined` if the user cancelled. */
async function askField(field: Field, current: unknown, title: string): Promise<unknown> {
  if (field.kind === "boolean" || field.kind === "choice") {
    return choose(field, current, title);
  }
  if (field.kind === "choices") {
    return chooseMany(field, current, title);
  }
  const text = await window.showInputBox({
    title,
    prompt: prompt(field),
    value: current === undefined ? "" : field.kind === "json" ? JSON.stringify(current) : show(current),
    password: field.kind === "secret",
    ignoreFocusOut: true,
    validateInput: typed => {
      if (typed === "" && !field.required) {
        return undefined;
      }
      const parsed = parse(field, typed);
      return "problem" in parsed ? parsed.problem : undefined;
    },
  });
  if (text === undefined) {
    return undefined;
  }
  if (text === "" && !field.required) {
    return UNSET;
  }
  const parsed = parse(field, text);
  return "value" in parsed ? parsed.value : undefined;
}

function prompt(field: Field): string {
  const need = field.required ? "required" : "optional, leave empty to omit it";
  return `${field.label}: ${[field.description, field.rule, need].filter(Boolean).join(" · ")}`;
}

async function choose(field: Field, current: unknown, title: string): Promise<unknown> {
  const yesOrNo = [
    { value: true, label: "true" },
    { value: false, label: "false" },
  ];
  const choices = field.kind === "boolean" ? yesOrNo : field.choices;
  const items: (QuickPickItem & { value: unknown })[] = choices.map(({ value, label }) => ({
    label,
    value,
    ...(value === current && { description: "current" }),
  }));
  if (!field.required) {
    items.push({ label: "$(circle-slash) omit it", value: UNSET });
  }
  const options = { title, placeHolder: prompt(field), ignoreFocusOut: true };
  return (await window.showQuickPick(items, options))?.value;
}

async function chooseMany(field: Field, current: unknown, title: string): Promise<unknown> {
  const items = field.choices.map(({ value, label }) => ({
    label,
    value,
    picked: Array.isArray(current) && current.includes(value),
  }));
  const chosen = await window.showQuickPick(items, {
    title,
    placeHolder: prompt(field),
    canPickMany: true,
    ignoreFocusOut: true,
  });
  return chosen?.map(item => item.value);
}

function askJson(values: Values, title: string): Promise<Values | undefined> {
  return new Promise(resolve => {
    const box = window.createInputBox();
    box.title = title;
    box.prompt = "The arguments as one JSON object";
    box.value = JSON.stringify(values);
    box.ignoreFocusOut = true;
    box.buttons = [QuickInputButtons.Back];
    let result: Values | undefined;
    const read = () => {
      try {
        const value: unknown = JSON.parse(box.value);
        const fits = typeof value === "object" && value !== null && !Array.isArray(value);
        result = fits ? (value as Values) : undefined;
        box.validationMessage = fits ? undefined : "Enter a JSON object.";
      } catch (error) {
        result = undefined;
        box.validationMessage = `Not valid JSON: ${error instanceof Error ? error.message : error}`;
      }
    };
    let accepted = false;
    box.onDidChangeValue(read);
    box.onDidTriggerButton(() => box.hide());
    box.onDidAccept(() => {
      read();
      if (result) {
        accepted = true;
        box.hide();
      }
    });
    box.onDidHide(() => {
      box.dispose();
      resolve(accepted ? result : undefined);
    });
    box.show();
  });
}
