import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/** The folder whose `node_modules` npm has put the agents into: the repository's root. */
export const [folder = ""] = require
  .resolve("@agentclientprotocol/codex-acp/package.json")
  .split("/node_modules/");
