import { readdir, readFile } from "node:fs/promises";
import { expect, it } from "vitest";

const bundle = new URL("../dist/bundle/", import.meta.url);

/** The files that are loaded with these: an `import()` isn't followed. */
async function withStaticImports(entries: readonly string[]): Promise<ReadonlySet<string>> {
  const files = new Set(entries);
  for (const file of files) {
    const text = await readFile(new URL(file, bundle), "utf8");
    for (const [, name = ""] of text.matchAll(/\b(?:from|import)"\.\/([\w.-]+\.js)"/g)) files.add(name);
  }
  return files;
}

async function sourcesOf(file: string): Promise<readonly string[]> {
  return JSON.parse(await readFile(new URL(`${file}.map`, bundle), "utf8")).sources;
}

it("a server loads only what it needs before its first request", async () => {
  const files = (await readdir(bundle)).filter((name) => name.endsWith(".js"));
  const isEntry = await Promise.all(
    files.map(
      async (name) =>
        /^(ambit|serve-\w+)\.js$/.test(name) ||
        (await sourcesOf(name)).some((source) => /\/plugins\/[^/]+\/src\/index\.ts$/.test(source)),
    ),
  );
  const loaded = await withStaticImports(files.filter((_, index) => isEntry[index]));
  const sources = (await Promise.all([...loaded].map(sourcesOf))).flat();
  const packages = new Set(
    sources.flatMap((source) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source)?.[1] ?? []),
  );
  expect(packages).toContain("hono");
  const later = [
    "@agentclientprotocol/sdk",
    "@modelcontextprotocol/client",
    "ajv",
    "diff",
    "dockerode",
    "jose",
    "kysely",
    "tar-stream",
    "yauzl",
  ];
  expect(later.filter((name) => packages.has(name))).toEqual([]);
});
