import type { PushOptions } from "../outputs/pushing.js";
import type { PatchedFile } from "../patch/git-patch.js";
import type { Spool } from "../spool/spool.js";

/** A file as git is to have it. */
export interface Content {
  readonly path: string;
  /** Undefined for one that is deleted. */
  readonly after: PatchedFile["after"];
  /** In place of its content, which git LFS has. */
  readonly pointer?: string;
  readonly bytes: () => AsyncIterable<Uint8Array>;
}

export function contentsOf(changes: readonly PatchedFile[], spool: Spool): readonly Content[] {
  return changes.map(({ path, after }) => ({
    path,
    after,
    bytes: async function* () {
      if (after !== undefined) yield* spool.read(after);
    },
  }));
}

/** A commit as `git fast-import` reads it. */
export async function* sent(
  ref: string,
  contents: readonly Content[],
  options: PushOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  const text = Buffer.from(options.output.message);
  yield Buffer.from(`commit ${ref}\n${peopleOf(options)}data ${text.length}\n`);
  yield text;
  yield Buffer.from(`\nfrom ${options.base}\n`);
  // A file may become a folder: what is gone goes first.
  for (const { path, after } of contents) if (after === undefined) yield Buffer.from(`D ${quoted(path)}\n`);
  for (const { path, after, pointer, bytes } of contents) {
    if (after === undefined) continue;
    const mode = after.executable ? "100755" : "100644";
    const size = pointer === undefined ? after.size : Buffer.byteLength(pointer);
    yield Buffer.from(`M ${mode} inline ${quoted(path)}\ndata ${size}\n`);
    if (pointer === undefined) yield* bytes();
    else yield Buffer.from(pointer);
    yield Buffer.from("\n");
  }
  yield Buffer.from("done\n");
}

/** The object of a signed commit (gitformat-signature). */
export function commitOf(tree: string, options: PushOptions): Buffer {
  const { base, output, sign } = options;
  const head = `tree ${tree}\nparent ${base}\n${peopleOf(options)}`;
  const body = `\n${output.message}`;
  if (sign === undefined) return Buffer.from(head + body);
  const signature = sign(Buffer.from(head + body)).trimEnd();
  return Buffer.from(`${head}gpgsig ${signature.replaceAll("\n", "\n ")}\n${body}`);
}

function peopleOf({ output: { author }, at }: PushOptions): string {
  const person = `${author.name} <${author.email}> ${Math.floor(at / 1_000)} +0000`;
  return `author ${person}\ncommitter ${person}\n`;
}

/** Control characters and backslashes never come here. */
const quoted = (path: string) => `"${path.replaceAll('"', '\\"')}"`;
