/**
 * Node's HTTP server, without an import: that would read every property of the module, one of which loads an HTTP client.
 * It takes longer than the rest of a container's daemon, which is started for each sandbox.
 */
export const { createServer, STATUS_CODES } = process.getBuiltinModule("node:http");
