import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { repository } from "./ambit.js";

/** Writes each code block of a page that begins with a comment with a path below `name` to that path. Returns their number. */
export async function writePageCode(page: string, name: string, into: string): Promise<number> {
  let written = 0;
  for (const { code } of await codeBlocks(page)) {
    const path = /^(?:\/\/|#) (\S+)\n/.exec(code)?.[1];
    if (path === undefined || !path.startsWith(`${name}/`)) continue;
    await mkdir(dirname(join(into, path)), { recursive: true });
    await writeFile(join(into, path), code);
    written += 1;
  }
  return written;
}

/** A page's JSON blocks, which can't name their path. */
export async function pageJson(page: string): Promise<readonly unknown[]> {
  const blocks = await codeBlocks(page);
  return blocks.filter(({ language }) => language === "json").map(({ code }) => JSON.parse(code));
}

/** What a plugin's author installs from a registry to build and test it. */
export function toolsOf(manifest: unknown): readonly string[] {
  const { devDependencies = {} }: { devDependencies?: object } = Object(manifest);
  return Object.keys(devDependencies).filter((name) => !name.startsWith("@ambit/"));
}

async function codeBlocks(page: string): Promise<readonly { language: string; code: string }[]> {
  const text = await readFile(join(repository, page), "utf8");
  return Array.from(text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm), ([, language = "", code = ""]) => ({
    language,
    code,
  }));
}
