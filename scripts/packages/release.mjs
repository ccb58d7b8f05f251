/**
 * Publishes every package, each after those that it depends on: `npm run release -- --dry-run` only shows what would be
 * published. The version is the one in the manifests; the changelog must describe it.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "../setup.mjs";
import { pack, publishable } from "./publishable.mjs";

const { values } = parseArgs({ options: { "dry-run": { type: "boolean", default: false } } });
const dryRun = values["dry-run"];

/** @param {string} program @param {readonly string[]} argv */
const run = (program, argv) => execFileSync(program, argv, { cwd: root, encoding: "utf8" });

/** Why nothing should be published now. @param {string} version @returns {string | undefined} */
function obstacle(version) {
  const changelog = readFileSync(join(root, "CHANGELOG.md"), "utf8");
  if (!changelog.includes(`\n## ${version}`)) return `CHANGELOG.md has no section "## ${version}"`;
  if (!dryRun && run("git", ["status", "--porcelain"]) !== "") return "the work tree has uncommitted changes";
  return undefined;
}

const packages = publishable();
const version = packages[0]?.version ?? "";
const reason = obstacle(version);
if (reason !== undefined) {
  console.error(`release: ${reason}`);
  process.exitCode = 1;
} else {
  const folder = mkdtempSync(join(tmpdir(), "ambit-release-"));
  try {
    const archives = pack(packages, folder);
    for (const [index, one] of packages.entries()) {
      const archive = archives[index] ?? "";
      const kilobytes = Math.ceil(statSync(archive).size / 1024);
      console.log(`${dryRun ? "would publish" : "publishing"} ${one.name}@${one.version} (${kilobytes} kB)`);
      if (!dryRun) run("npm", ["publish", archive, "--access", "public"]);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
