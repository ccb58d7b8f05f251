import { execFile } from "node:child_process";
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
 * "line 3: " for a module that doesn't parse; "" when the fault lies in another file. V8 gives the line to no handler
 * of the error, but Node prints it.
 */
export async function syntaxErrorLine(file: string): Promise<string> {
  const printed = await new Promise<string>((resolve) => {
    execFile(process.execPath, ["--check", file], { env: {}, timeout: 10_000 }, (_error, _stdout, stderr) =>
      resolve(stderr),
    );
  });
  const line = /^.*:(\d+)\n/.exec(printed)?.[1];
  return line === undefined ? "" : `line ${line}: `;
}
