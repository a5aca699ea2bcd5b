/** The fields of a form from a JSON Schema. Pure. The sidecar validates values; here only obvious mistakes are caught. */

import type { Schema } from "../protocol";

export type Kind = "text" | "secret" | "number" | "integer" | "boolean" | "choice" | "choices" | "json";

export interface Choice {
  value: unknown;
  label: string;
}

export interface Field {
  name: string;
  label: string;
  kind: Kind;
  required: boolean;
  description: string;
  /** A short description of valid values. */
  rule: string;
  choices: Choice[];
  default: unknown;
}

export type Values = Record<string, unknown>;

/** Required fields first, then the others, each in the order of the schema. */
export function fields(schema: Schema): Field[] {
  const properties = Object.entries(schema.properties ?? {});
  const required = new Set(schema.required ?? []);
  const all = properties.map(([name, property]) => field(name, property, required.has(name), schema.password === true));
  return [...all.filter(one => one.required), ...all.filter(one => !one.required)];
}

function field(name: string, schema: Schema, required: boolean, secret: boolean): Field {
  const choices = choicesOf(schema);
  return {
    name,
    label: schema.title ?? name,
    kind: kindOf(schema, choices, secret),
    required,
    description: (schema.description ?? "").replace(/\s+/g, " ").trim(),
    rule: rule(schema, choices),
    choices,
    default: schema.default ?? schema.const,
  };
}

function typeOf(schema: Schema): string | undefined {
  const types = [schema.type ?? []].flat().filter(type => type !== "null");
  return types.length === 1 ? types[0] : undefined;
}

function kindOf(schema: Schema, choices: Choice[], secret: boolean): Kind {
  const type = typeOf(schema);
  if (type === "array") {
    return choices.length > 0 ? "choices" : "json";
  }
  if (choices.length > 0) {
    return "choice";
  }
  switch (type) {
    case "boolean":
    case "number":
    case "integer":
      return type;
    case "string":
      return secret || schema.format === "password" ? "secret" : "text";
    default:
      return "json";
  }
}

function choicesOf(schema: Schema): Choice[] {
  if (typeOf(schema) === "array") {
    return schema.items ? choicesOf(schema.items) : [];
  }
  if (schema.enum) {
    return schema.enum.map((value, place) => ({ value, label: schema.enumNames?.[place] ?? show(value) }));
  }
  const options = schema.oneOf ?? schema.anyOf ?? [];
  if (options.length > 0 && options.every(option => option.const !== undefined)) {
    return options.map(option => ({ value: option.const, label: option.title ?? show(option.const) }));
  }
  return [];
}

function rule(schema: Schema, choices: Choice[]): string {
  const parts = [choices.length > 0 ? "" : [schema.type ?? []].flat().join(" or ")];
  const bound = (value: number | undefined, text: (value: number) => string) => {
    if (value !== undefined) {
      parts.push(text(value));
    }
  };
  bound(schema.minimum, least => `≥ ${least}`);
  bound(schema.maximum, most => `≤ ${most}`);
  bound(schema.minLength, least => `at least ${least} long`);
  bound(schema.maxLength, most => `at most ${most} long`);
  if (schema.pattern) {
    parts.push(`like ${schema.pattern}`);
  }
  if (schema.format && /^(date|time|date-time|email|uri|uuid|hostname|ipv4|ipv6)$/.test(schema.format)) {
    parts.push(schema.format);
  }
  return parts.filter(Boolean).join(", ");
}

/** The initial values: those given, or else the defaults. */
export function initial(all: readonly Field[], given: Values = {}): Values {
  const values: Values = { ...given };
  for (const { name, default: value } of all) {
    if (values[name] === undefined && value !== undefined) {
      values[name] = value;
    }
  }
  return values;
}

/** Required fields that have no value yet. */
export function missing(all: readonly Field[], values: Values): Field[] {
  return all.filter(field => field.required && values[field.name] === undefined);
}

export type Parsed = { value: unknown } | { problem: string };

/** Converts what was typed to the kind of the field. */
export function parse(field: Field, text: string): Parsed {
  switch (field.kind) {
    case "number":
    case "integer": {
      const number = text.trim() === "" ? Number.NaN : Number(text);
      if (Number.isNaN(number) || (field.kind === "integer" && !Number.isInteger(number))) {
        return { problem: field.kind === "integer" ? "Enter a whole number." : "Enter a number." };
      }
      return { value: number };
    }
    case "json":
      try {
        return { value: JSON.parse(text) };
      } catch (error) {
        return { problem: `not JSON: ${error instanceof Error ? error.message : error}` };
      }
    default:
      return { value: text };
  }
}

/** A value on one line. */
export function show(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Puts a text into the first text field. */
export function withText(all: readonly Field[], text: string): Values {
  const taker = all.find(field => field.kind === "text");
  return taker && text ? { [taker.name]: text } : {};
}
