type Spec = Readonly<Record<string, unknown>>;

const anything = { type: "object", properties: {}, additionalProperties: true };

/** A callback tool of `startPlatform`. */
export function callbackTool(name: string, more: Spec = {}): Spec {
  return { name, callRef: `ref__${name}`, permission: "allow", inputSchema: anything, ...more };
}

export function pythonTool(name: string, code: string, more: Spec = {}): Spec {
  return { name, kind: "code", runtime: "python", code, permission: "allow", inputSchema: anything, ...more };
}

export function nodeTool(name: string, code: string, more: Spec = {}): Spec {
  return { name, kind: "code", runtime: "node", code, permission: "allow", inputSchema: anything, ...more };
}

/** The user executes it: its call is parked. */
export function clientTool(name: string, more: Spec = {}): Spec {
  return { name, kind: "client", inputSchema: anything, ...more };
}
