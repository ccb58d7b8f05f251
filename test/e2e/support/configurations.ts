import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/** Arguments that make the program use one of the configurations next to this file. */
export const bothSandboxes = ["--config", require.resolve("./both-sandboxes.config.mjs")];
export const containers = ["--config", require.resolve("./docker.config.mjs")];
/** Two backends, each with an image of its own. */
export const imageChoice = ["--config", require.resolve("./backends/image-choice.config.mjs")];
/** MCP servers may be on this machine, without TLS. */
export const loopbackTools = ["--config", require.resolve("./loopback-tools.config.json")];
export const noJail = ["--config", require.resolve("./no-jail.config.mjs")];
/** Every name is a server of the test's: see `forge/forge.ts`. */
export const withForge = ["--config", require.resolve("./forge/forge.config.mjs")];
export const ownData = ["--config", require.resolve("./own-data.config.mjs")];
export const observed = ["--config", require.resolve("./observed.config.mjs")];
export const unconfined = ["--config", require.resolve("./unconfined.config.mjs")];
export const keptEvidence = ["--config", require.resolve("./kept-evidence.config.json")];
/** Runs end at once when the server shuts down. */
export const noPatience = ["--config", require.resolve("./no-patience.config.json")];
export const shortLimits = ["--config", require.resolve("./short-limits.config.json")];
/** Every agent of `prewarm/agent.mjs` is started ahead. PREWARM_TARGET is the one address that they may connect to. */
export const prewarmed = ["--config", require.resolve("./prewarm/prewarm.config.mjs")];
/** An agent that comes with Ambit is started ahead: PREWARM_AGENTS; in containers of PREWARM_DOCKER's engine, if that is set. */
/** Every plugin, and the doors for chats with a request of their own. */
export const chatDoors = ["--config", require.resolve("./doors.config.mjs")];
export const prewarmedAgents = ["--config", require.resolve("./prewarm/agents.config.mjs")];
