/**
 * The daemon inside a container: runs commands, keeps sessions, reads and writes files, as the image's user. It needs only
 * Node. The control plane handles multipart bodies and WebSockets.
 */
import { ApiError, sendError } from "../http/api-error.js";
import { sendJson } from "../http/json.js";
import { createServer } from "../http/node-http.js";
import { Routes } from "../http/routes.js";
import { addFileRoutes } from "./file-routes.js";
import { listenOnOtherPorts } from "./other-services.js";
import { otherPorts, toolboxPort } from "./port.js";
import { execute } from "./process/execute.js";
import { openInterpreter, startWorker } from "./process/interpreter.js";
import { addSessionRoutes } from "./process/session-routes.js";
import { Sessions } from "./process/sessions.js";

const home = process.env.HOME ?? "/";
const grace = Number(process.env.LOOPBACK_SESSION_GRACE_MS);
// For the daemon only, not for programs in the sandbox.
delete process.env.LOOPBACK_SESSION_GRACE_MS;

const routes = new Routes();
routes
  .on("GET", "/user-home-dir", ({ response }) => sendJson(response, 200, { dir: home }))
  .on("GET", "/work-dir", ({ response }) => sendJson(response, 200, { dir: process.cwd() }))
  .on("GET", "/version", ({ response }) => sendJson(response, 200, { version: "loopback" }))
  .on("POST", "/process/execute", execute)
  .on("POST", "/process/interpreter/context", openInterpreter);
addSessionRoutes(routes, new Sessions(`${home}/.daytona/sessions`, grace));
addFileRoutes(routes);

const server = createServer(async (request, response) => {
  try {
    const url = new URL(request.url ?? "/", "http://toolbox");
    const route = routes.find(request.method ?? "GET", url);
    if (!route) throw new ApiError(404, "404 page not found");
    await route.handler({ request, response, path: route.path, query: url.searchParams });
  } catch (error) {
    sendError(request, response, error, "DAYTONA_DAEMON");
  }
});
// No time limit for uploads and blocking commands.
server.requestTimeout = 0;
// On every address, like the real daemon's `:2280`: every process inside reaches it too.
server.listen(toolboxPort, "::", () =>
  listenOnOtherPorts(otherPorts, () => process.stdout.write("listening\n")),
);
// A machine may have no Python.
startWorker(process.cwd()).catch(() => {});
