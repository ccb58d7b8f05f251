/** A call of a tool, as a client of 2026-07-28 sends it. */
export const callOf = (name: string, given: object, meta: object = {}) => ({
  path: "/mcp",
  headers: {
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": name,
  },
  body: {
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: {
      name,
      arguments: given,
      _meta: {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        ...meta,
      },
    },
  },
});
