import { type FormEvent, useId, useState } from "react";
import { Button, inputClass } from "../parts/basic.js";
import { visibleText } from "../parts/words.js";

type FieldType = "string" | "number" | "integer" | "boolean" | "array";

export interface Field {
  readonly name: string;
  readonly title: string;
  readonly description: string | undefined;
  readonly type: FieldType;
  /** The values that it takes. Undefined: any. */
  readonly choices: readonly { readonly value: string; readonly title: string }[] | undefined;
  readonly required: boolean;
  readonly preset: unknown;
}

type Value = string | number | boolean | readonly string[];

/** Fields and choices of one form. */
const maxFields = 64;
const maxChoices = 200;

type Dictionary = Readonly<Record<string, unknown>>;
const isDictionary = (value: unknown): value is Dictionary =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const textOr = <Other,>(value: unknown, other: Other) => (typeof value === "string" ? value : other);

/** The fields of a form, a flat JSON Schema. Empty without a form; undefined for one that this page can't show. Pure. */
export function fieldsIn(input: unknown): readonly Field[] | undefined {
  const form = isDictionary(input) ? input.form : undefined;
  if (form === undefined) return [];
  if (!isDictionary(form)) return undefined;
  const properties = isDictionary(form.properties) ? Object.entries(form.properties) : [];
  const required = Array.isArray(form.required) ? form.required : [];
  if (properties.length > maxFields) return undefined;
  const fields = properties.map(([name, property]) =>
    isDictionary(property) ? fieldOf(name, property, required.includes(name)) : undefined,
  );
  return fields.every((field) => field !== undefined) ? fields : undefined;
}

const types: readonly string[] = ["string", "number", "integer", "boolean", "array"];
const isType = (value: unknown): value is FieldType => typeof value === "string" && types.includes(value);

function fieldOf(name: string, property: Dictionary, required: boolean): Field | undefined {
  const { type, title, description, default: preset, items } = property;
  if (!isType(type)) return undefined;
  const choices = choicesIn(isDictionary(items) ? items : property);
  if ((type === "array" && choices === undefined) || (choices?.length ?? 0) > maxChoices) return undefined;
  return {
    name,
    title: textOr(title, name),
    description: textOr(description, undefined),
    type,
    choices,
    required,
    preset,
  };
}

function choicesIn({ enum: values, enumNames, oneOf, anyOf }: Dictionary): Field["choices"] {
  const named = Array.isArray(oneOf) ? oneOf : Array.isArray(anyOf) ? anyOf : undefined;
  if (named !== undefined)
    return named.flatMap((choice) =>
      isDictionary(choice) && typeof choice.const === "string"
        ? [{ value: choice.const, title: textOr(choice.title, choice.const) }]
        : [],
    );
  if (!Array.isArray(values)) return undefined;
  const titles = Array.isArray(enumNames) ? enumNames : [];
  return values.map((value, at) => ({ value: String(value), title: textOr(titles[at], String(value)) }));
}

/** The answer that a filled form gives: what is left empty is left out. Pure. */
export function valuesOf(fields: readonly Field[], filled: FormData): Readonly<Record<string, Value>> {
  return Object.fromEntries(
    fields.flatMap(({ name, type }): readonly (readonly [string, Value])[] => {
      const texts = filled.getAll(name).map(String);
      const [text = ""] = texts;
      if (type === "boolean") return [[name, text === "on"]];
      if (type === "array") return [[name, texts]];
      if (text === "") return [];
      return [[name, type === "string" ? text : Number(text)]];
    }),
  );
}

export function AnswerForm({
  fields,
  isBusy,
  onSubmit,
  onDecline,
}: {
  readonly fields: readonly Field[];
  readonly isBusy: boolean;
  readonly onSubmit: (output: unknown) => void;
  readonly onDecline: () => void;
}) {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    onSubmit(valuesOf(fields, new FormData(event.currentTarget)));
  };
  return (
    <form className="max-w-md space-y-3" onSubmit={submit}>
      {fields.map((field) => (
        <FieldInput key={field.name} field={field} />
      ))}
      <div className="flex gap-2">
        <Button look="primary" type="submit" disabled={isBusy}>
          {fields.length === 0 ? "Done" : "Send the answer"}
        </Button>
        <Button className="bg-ground" disabled={isBusy} onClick={onDecline}>
          Decline
        </Button>
      </div>
    </form>
  );
}

function FieldInput({ field }: { readonly field: Field }) {
  const { name, title, description, type, choices, required, preset } = field;
  const id = useId();
  const [isChecked, setIsChecked] = useState(preset === true);
  const presets = Array.isArray(preset) ? preset.map(String) : [];
  const presetText = typeof preset === "string" || typeof preset === "number" ? String(preset) : "";
  const label = (
    <label htmlFor={id} className="block font-medium">
      {visibleText(title)}
      {!required && type !== "boolean" && <span className="font-normal text-muted"> (optional)</span>}
    </label>
  );
  const hint = description !== undefined && (
    <p id={`${id}-hint`} className="text-muted">
      {visibleText(description)}
    </p>
  );
  const common = { id, name, "aria-describedby": description === undefined ? undefined : `${id}-hint` };
  if (type === "boolean")
    return (
      <div>
        <div className="flex items-center gap-2">
          <input
            {...common}
            type="checkbox"
            checked={isChecked}
            onChange={(event) => setIsChecked(event.target.checked)}
          />
          {label}
        </div>
        {hint}
      </div>
    );
  if (type === "array")
    return (
      <fieldset>
        <legend className="font-medium">{visibleText(title)}</legend>
        {hint}
        {choices?.map((choice) => (
          <label key={choice.value} className="flex items-center gap-2">
            <input
              type="checkbox"
              name={name}
              value={choice.value}
              defaultChecked={presets.includes(choice.value)}
            />
            {visibleText(choice.title)}
          </label>
        ))}
      </fieldset>
    );
  return (
    <div className="space-y-1">
      {label}
      {hint}
      {choices === undefined ? (
        <input
          {...common}
          type={type === "string" ? "text" : "number"}
          step={type === "integer" ? 1 : "any"}
          required={required}
          defaultValue={presetText}
          className={inputClass}
        />
      ) : (
        <select {...common} required={required} defaultValue={presetText} className={inputClass}>
          <option value="">{required ? "Choose…" : "Nothing"}</option>
          {choices.map((choice) => (
            <option key={choice.value} value={choice.value}>
              {visibleText(choice.title)}
            </option>
          ))}
        </select>
      )}
    </div>
  );
}
