import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/**
 * Where agents are looked for before the folder that `ambit agents install` puts them into: the repository's root, in whose
 * `node_modules` npm installed those of every test run. `AMBIT_AGENTS_FOLDER`: another one.
 */
export const folder =
  process.env.AMBIT_AGENTS_FOLDER ??
  require.resolve("@agentclientprotocol/codex-acp/package.json").split("/node_modules/")[0] ??
  "";
