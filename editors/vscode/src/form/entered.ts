/** What was entered in a form so far, and what the sidecar says about it. Pure. */

import type { CancellationToken } from "vscode";
import type { CheckedForm, Field, Violation } from "../protocol";

export type Values = Record<string, unknown>;
/** Where a value is: keys of objects and places in lists. */
export type Path = readonly (string | number)[];
export type Check = (values: Values) => Promise<CheckedForm>;

export class Entered {
  /** As typed: the sidecar reads texts, so a number is the text of a number here. */
  values: Values = {};
  checked: CheckedForm = { arguments: {}, problems: [] };

  /** @param token closes the form */
  constructor(
    private readonly check: Check,
    readonly token?: CancellationToken,
  ) {}

  at(path: Path): unknown {
    return path.reduce<unknown>((value, key) => (value as Values | undefined)?.[key], this.values);
  }

  /** Replaces the value at a path; `undefined` removes it. */
  async set(path: Path, value: unknown): Promise<void> {
    this.values = changed(this.values, path, value) as Values;
    this.checked = await this.check(this.values);
  }

  /** What would be wrong with a value at a path. */
  async problemWith(path: Path, value: unknown): Promise<string> {
    const { problems } = await this.check(changed(this.values, path, value) as Values);
    return messages({ problems }, path);
  }

  /** What is wrong at a path or below it. */
  problem(path: Path): string {
    return messages(this.checked, path);
  }

  /** What the user should know about a value. */
  warning(path: Path): string {
    return messages({ problems: this.checked.warnings ?? [] }, path);
  }

  /** What the user should know, but about none of these keys. */
  otherWarning(path: Path, keys: Path): string {
    return this.others(this.checked.warnings ?? [], path, keys);
  }

  /** What is wrong at a path, but at none of these keys or places in it. */
  otherProblem(path: Path, keys: Path): string {
    return this.others(this.checked.problems, path, keys);
  }

  private others(found: readonly Violation[], path: Path, keys: Path): string {
    const inside = keys.map(key => pointer([...path, key]));
    return messages({ problems: found.filter(one => !inside.some(field => isBelow(one.path, field))) }, path);
  }
}

function messages({ problems }: { problems: readonly Violation[] }, path: Path): string {
  const here = pointer(path);
  return problems
    .filter(problem => isBelow(problem.path, here))
    .map(problem => `${problem.path.slice(here.length + 1)}${problem.path === here ? "" : ": "}${problem.message}`)
    .join("; ");
}

function isBelow(path: string, top: string): boolean {
  return path === top || path.startsWith(`${top}/`);
}

/** A path as a JSON pointer. */
function pointer(path: Path): string {
  return path.map(key => `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

function changed(whole: unknown, [key, ...rest]: Path, value: unknown): unknown {
  if (key === undefined) {
    return value;
  }
  const part = changed((whole as Values | undefined)?.[key], rest, value);
  if (typeof key === "number") {
    return ((whole ?? []) as unknown[]).toSpliced(key, 1, ...(part === undefined ? [] : [part]));
  }
  const { [key]: _, ...others } = (whole ?? {}) as Values;
  return part === undefined ? others : { ...(whole as Values), [key]: part };
}

/** The initial values: those given, or else the defaults. */
export function initial(fields: readonly Field[], given: Values = {}): Values {
  const defaults = fields.filter(field => field.default !== undefined).map(field => [field.name, field.default]);
  return { ...Object.fromEntries(defaults), ...given };
}

/** A value on one line, without secrets. */
export function shown(field: Pick<Field, "kind" | "choices" | "fields" | "item"> | undefined, value: unknown): string {
  const { kind = "json", choices = [], fields, item } = field ?? {};
  const title = (one: unknown) => choices.find(choice => same(choice.value, one))?.title ?? shown(undefined, one);
  let text = typeof value === "string" ? value : JSON.stringify(value);
  if (kind === "secret") {
    text = "•••";
  } else if (choices.length > 0) {
    text = [value].flat().map(title).join(", ");
  } else if (fields && isObject(value)) {
    const part = (name: string) =>
      shown(
        fields.find(one => one.name === name),
        value[name],
      );
    text = Object.keys(value)
      .map(name => `${name}: ${part(name)}`)
      .join(", ");
  } else if (item && Array.isArray(value)) {
    text = value.map(one => shown(item, one)).join("; ");
  }
  return text.replace(/\s*\n\s*/g, " ⏎ ").slice(0, 200);
}

export function isObject(value: unknown): value is Values {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Puts a text into the first text field. */
export function withText(fields: readonly Field[], text: string): Values {
  const taker = fields.find(field => field.kind === "text" || field.kind === "multiline");
  return taker && text ? { [taker.name]: text } : {};
}
