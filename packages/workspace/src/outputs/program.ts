import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { delimiter, dirname } from "node:path";
import type { Command, Sandbox } from "@ambit/core/plugin";
import type { Wish } from "../inside/wish.js";

/** Reads the program and its input from stdin: no file of it is in the sandbox, where the agent could change it. */
const loader = `const fs=require("fs"),parts=[],one=Buffer.alloc(65536);
for(;;){let n;try{n=fs.readSync(0,one,0,one.length)}catch(e){
if(e.code==="EAGAIN"){Atomics.wait(new Int32Array(new SharedArrayBuffer(4)),0,0,2);continue}
if(e.code==="EOF")break;throw e}
if(n===0)break;parts.push(Buffer.from(one.subarray(0,n)))}
const all=Buffer.concat(parts),at=all.indexOf(10),end=at+1+Number(all.subarray(0,at)),module={exports:{}};
require("vm").runInThisContext("(function(require,module,exports){"+all.subarray(at+1,end)+"\\n})")(require,module,module.exports);
module.exports.main(all.subarray(end).toString())`;

const require = createRequire(import.meta.url);

let program: Promise<Buffer> | undefined;

/** What the program's process gets on stdin. */
export async function stdinOf(wish: Wish): Promise<Buffer> {
  program ??= readFile(require.resolve("#collector"));
  const text = await program;
  return Buffer.concat([Buffer.from(`${text.length}\n`), text, Buffer.from(JSON.stringify(wish))]);
}

/** The process that reads the workspace, as the agent's user and with none of its variables. */
export function commandOf({ image }: Pick<Sandbox, "image">, signal: AbortSignal): Command {
  const path =
    image?.searchPath ?? ["/usr/local/bin:/usr/bin:/bin", dirname(process.execPath)].join(delimiter);
  return { argv: ["node", "-e", loader], env: { PATH: path }, role: "agent", signal };
}
