import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { delimiter, dirname } from "node:path";
import type { Command, Sandbox } from "@ambit/core/plugin";

/**
 * Reads the program and its wish from stdin, and leaves the rest of it to the program: no file of it is in the sandbox, where
 * the agent could change it.
 */
const loader = `const fs=require("fs"),wait=new Int32Array(new SharedArrayBuffer(4)),module={exports:{}};
function take(count){const all=Buffer.alloc(count);let at=0;while(at<count){let n;
try{n=fs.readSync(0,all,at,count-at)}catch(e){if(e.code!=="EAGAIN")throw e;Atomics.wait(wait,0,0,1);continue}
if(n===0)throw new Error("stdin ended early");at+=n}return all.toString()}
function line(){let text="";for(;;){const one=take(1);if(one==="\\n")return text;text+=one}}
const lengths=line().split(" ").map(Number);
require("vm").runInThisContext("(function(require,module,exports){"+take(lengths[0])+"\\n})")(require,module,module.exports);
module.exports.main(take(lengths[1]))`;

/** A program of Ambit that runs inside sandboxes. */
export type InsideProgram = "#collector" | "#snapshots";

const require = createRequire(import.meta.url);
const programs = new Map<InsideProgram, Promise<Buffer>>();

/** What the program's process gets on stdin first. @param wish travels as JSON, which may name every file of a workspace */
export async function stdinOf(name: InsideProgram, wish: object): Promise<readonly Buffer[]> {
  const program = programs.get(name) ?? readFile(require.resolve(name));
  programs.set(name, program);
  const text = await program;
  const asked = Buffer.from(JSON.stringify(wish));
  return [Buffer.from(`${text.length} ${asked.length}\n`), text, asked];
}

/** The program's process: the agent's user, with none of its variables. */
export function commandOf({ image }: Pick<Sandbox, "image">, signal: AbortSignal): Command {
  return { argv: ["node", "-e", loader], env: { PATH: searchPathOf({ image }) }, role: "agent", signal };
}

/** `PATH` for programs of Ambit's own, and for those that a request names. */
export function searchPathOf({ image }: Pick<Sandbox, "image">): string {
  return image?.searchPath ?? ["/usr/local/bin:/usr/bin:/bin", dirname(process.execPath)].join(delimiter);
}
