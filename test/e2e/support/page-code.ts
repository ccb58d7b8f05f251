import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { repository } from "./ambit.js";

/** Writes each of a page's blocks of code that begins with its own path below `name` to that path; how many. */
export async function writePageCode(page: string, name: string, into: string): Promise<number> {
  const text = await readFile(join(repository, page), "utf8");
  let written = 0;
  for (const [, code = ""] of text.matchAll(/^```\w+\n([\s\S]*?)^```$/gm)) {
    const path = /^(?:\/\/|#) (\S+)\n/.exec(code)?.[1];
    if (path === undefined || !path.startsWith(`${name}/`)) continue;
    await mkdir(dirname(join(into, path)), { recursive: true });
    await writeFile(join(into, path), code);
    written += 1;
  }
  return written;
}
