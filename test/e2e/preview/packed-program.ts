import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { execa } from "execa";
import { onTestFinished } from "vitest";
import { z } from "zod";
import { emptyFolder, repository } from "../support/ambit.js";

const manifestSchema = z.object({
  dependencies: z.record(z.string(), z.string()).default({}),
  optionalDependencies: z.record(z.string(), z.string()).default({}),
});

/**
 * One of this repository's npm packages with all that it depends on, as a source that a sandbox without a network can have: an
 * archive at a URL on loopback.
 */
export async function packedProgram(name: string) {
  const file = join(await emptyFolder(), "packed.tar.gz");
  const names = await withDependencies(name);
  await execa("tar", ["--create", "--gzip", "--file", file, ...names.map((one) => `node_modules/${one}`)], {
    cwd: repository,
  });
  const archive = await readFile(file);
  const server = createServer((_request, response) => void response.end(archive));
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void server.close());
  const { port }: Pick<AddressInfo, "port"> = Object(server.address());
  const sha256 = createHash("sha256").update(archive).digest("hex");
  return {
    type: "archive",
    url: `http://127.0.0.1:${port}/packed.tar.gz`,
    sha256,
    format: "tar.gz",
  } as const;
}

async function withDependencies(name: string): Promise<readonly string[]> {
  const found = new Set<string>();
  const waiting = [name];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const file = join(repository, "node_modules", next, "package.json");
    // An optional one for another machine isn't there.
    if (found.has(next) || !existsSync(file)) continue;
    found.add(next);
    const manifest = manifestSchema.parse(JSON.parse(await readFile(file, "utf8")));
    waiting.push(...Object.keys(manifest.dependencies), ...Object.keys(manifest.optionalDependencies));
  }
  return [...found];
}
