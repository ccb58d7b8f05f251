import { fileURLToPath, pathToFileURL } from "node:url";
import { execa } from "execa";
import { type ParseError, parse, printParseErrorCode, stripComments } from "jsonc-parser";

/** JSON that may have comments. @throws SyntaxError, as `JSON.parse` does */
export function parseCommented(text: string): unknown {
  return JSON.parse(stripComments(text, " "));
}

/** Why `parseCommented` refuses a text, with the line of the first fault. */
export function whyNotJson(text: string): string {
  const errors: ParseError[] = [];
  parse(text, errors, { disallowComments: false, allowTrailingComma: false });
  const [first] = errors;
  if (first === undefined) return "is not JSON";
  const before = text.slice(0, first.offset).split("\n");
  const column = (before.at(-1)?.length ?? 0) + 1;
  // "PropertyNameExpected" and the like.
  const fault = printParseErrorCode(first.error).replaceAll(
    /\B[A-Z]/g,
    (letter) => ` ${letter.toLowerCase()}`,
  );
  return `is not JSON: line ${before.length}, column ${column}: ${fault}`;
}

/**
 * Where a module, or one that it imports, doesn't parse: `/opt/clock.mjs:3`. V8 gives the line to no handler of the error, but
 * Node prints it. Nothing of them is executed, unless they parse now.
 */
export async function syntaxErrorPlace(file: string): Promise<string | undefined> {
  const program = `import(${JSON.stringify(pathToFileURL(file).href)})`;
  const args = ["--input-type=module", "--eval", program];
  const options = { env: {}, extendEnv: false, stdin: "ignore", timeout: 10_000, reject: false } as const;
  const { stderr: printed } = await execa(process.execPath, args, options);
  const [, place = "", line] = /^(file:\S+|\/.*):(\d+)\n/m.exec(printed) ?? [];
  if (line === undefined) return undefined;
  return `${place.startsWith("file:") ? fileURLToPath(place) : place}:${line}`;
}
