// npm run agents:matrix [-- <agent> …]: the tests of docs/agents.md with the newest version of each agent, and what moved.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { agents, cellsOf, page, pinOf, recordedWith } from "./docs/agents.mjs";

/**
 * @typedef {{ readonly table: string, readonly row: string, readonly agent: string, readonly note: string }} Cell of docs/agents.md
 * @typedef {{ readonly row: string, readonly before: string, readonly now: string }} Move
 */

/**
 * What an agent does otherwise than the page says. Pure.
 *
 * @param {readonly Cell[]} before of the page
 * @param {readonly Cell[]} now as the tests recorded them
 * @param {string} agent
 * @returns {readonly Move[]} `no test recorded it`: the test of that row failed
 */
export function moved(before, now, agent) {
  const keyOf = (/** @type {Cell} */ { table, row }) => `${table}: ${row}`;
  const of = (/** @type {readonly Cell[]} */ cells) =>
    new Map(cells.filter((cell) => cell.agent === agent).map((cell) => [keyOf(cell), cell.note]));
  const [pinned, newest] = [of(before), of(now)];
  return [...new Set([...pinned.keys(), ...newest.keys()])]
    .map((row) => ({
      row,
      before: pinned.get(row) ?? "not on the page",
      now: newest.get(row) ?? "no test recorded it",
    }))
    .filter((move) => move.before !== move.now);
}

/**
 * Its packages at their newest versions, in the form of its pin. An agent that its adapter pins exactly stays.
 *
 * @param {string} id
 */
function newestOf(id) {
  const { dependencies, overrides = {}, ...manifest } = pinOf(id);
  /** @param {Readonly<Record<string, string>>} packages */
  const newest = (packages) =>
    Object.fromEntries(Object.keys(packages).map((name) => [name, npm(["view", name, "version"])]));
  return { ...manifest, dependencies: newest(dependencies), overrides: newest(overrides) };
}

/** @param {readonly string[]} args @param {string} cwd */
function npm(args, cwd = tmpdir()) {
  const { status, stdout, stderr } = spawnSync("npm", args, { cwd, encoding: "utf8" });
  if (status !== 0) throw new Error(`npm ${args.join(" ")} failed:\n${stderr}`);
  return stdout.trim();
}

/** @param {{ readonly dependencies: Record<string, string>, readonly overrides?: Record<string, string> }} pin */
const versions = ({ dependencies, overrides }) =>
  Object.entries({ ...dependencies, ...overrides })
    .map(([name, version]) => `${name.replace(/^.*\//, "")} ${version}`)
    .join(", ");

function main() {
  const asked = process.argv.slice(2);
  const unknown = asked.filter((id) => !agents.includes(id));
  if (unknown.length > 0) {
    console.error(`There is no agent ${unknown.join(", ")}: ${agents.join(", ")}`);
    return 2;
  }
  const chosen = asked.length > 0 ? asked : agents;
  const folder = mkdtempSync(join(tmpdir(), "ambit-agents-matrix-"));
  try {
    const rows = chosen.map((id) => {
      const newest = newestOf(id);
      const isNewer = versions(newest) !== versions(pinOf(id));
      return {
        id,
        pinned: versions(pinOf(id)),
        newest: versions(newest),
        isTried: isNewer || asked.length > 0,
        manifest: newest,
      };
    });
    const tried = rows.filter(({ isTried }) => isTried);
    for (const { id, manifest } of tried) {
      console.error(`Installing ${id}: ${versions(manifest)}`);
      // Where `ambit agents install` puts it, for a process with this XDG_DATA_HOME.
      const place = join(folder, "ambit/agents", id);
      mkdirSync(place, { recursive: true });
      writeFileSync(join(place, "package.json"), JSON.stringify(manifest));
      npm(
        ["install", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--workspaces=false"],
        place,
      );
    }
    const { cells, failed } =
      tried.length === 0
        ? { cells: [], failed: [] }
        : recordedWith({
            XDG_DATA_HOME: folder,
            // Not the pinned ones of this repository, which would be found first.
            AMBIT_AGENTS_FOLDER: join(folder, "ambit"),
            AMBIT_TEST_AGENTS: tried.map(({ id }) => id).join(","),
          });
    const before = cellsOf(readFileSync(page, "utf8"));
    const moves = new Map(tried.map(({ id }) => [id, moved(before, cells, id)]));
    const outcome = (/** @type {string} */ id) => {
      const count = moves.get(id)?.length;
      if (count === undefined) return "pinned: not tried";
      return count === 0 ? "as docs/agents.md says" : `${count} rows moved`;
    };
    console.log("\n| agent | pinned | newest | |\n|---|---|---|---|");
    for (const { id, pinned, newest } of rows)
      console.log(`| ${id} | ${pinned} | ${newest === pinned ? "the same" : newest} | ${outcome(id)} |`);
    for (const [id, of] of moves)
      for (const { row, before: was, now } of of) console.log(`\n${id} · ${row}\n  was ${was}\n  now ${now}`);
    for (const test of failed) console.log(`\nFailed: ${test}`);
    return failed.length > 0 || [...moves.values()].some((of) => of.length > 0) ? 1 : 0;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = main();
