/**
 * CopilotKit's runtime between a front end and the AG-UI door: `node runtime.mjs DOOR_URL`, with the door's token in AMBIT_TOKEN,
 * run where its packages are. Prints its own URL once it listens.
 */
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const from = createRequire(`${process.cwd()}/`);
/** @param {string} name */
const load = (name) => import(pathToFileURL(from.resolve(name)).href);
const { CopilotRuntime, InMemoryAgentRunner } = await load("@copilotkit/runtime/v2");
const { createCopilotNodeListener } = await load("@copilotkit/runtime/v2/node");
const { HttpAgent } = await load("@ag-ui/client");

const headers = { authorization: `Bearer ${process.env.AMBIT_TOKEN}` };
const runtime = new CopilotRuntime({
  agents: { coder: new HttpAgent({ url: process.argv[2], headers }) },
  runner: new InMemoryAgentRunner(),
});
const server = createServer(createCopilotNodeListener({ runtime, basePath: "/api/copilotkit" }));
server.listen(0, "127.0.0.1", () => {
  const { port } = Object(server.address());
  console.log(`http://127.0.0.1:${port}/api/copilotkit`);
});
