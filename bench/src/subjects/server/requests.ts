/** A run of the demo agent with this script, in which every tool is allowed. */
export function demoRequest(script: string, more: object = {}): string {
  const messages = [{ role: "user", content: script }];
  return JSON.stringify({ harness: "demo", permissions: { default: "allow" }, messages, ...more });
}

/** A callback tool of a usual size: about 450 bytes, three parameters. */
export function usualTool(index: number, kind = "callback"): object {
  return {
    name: `crm_search_contacts_${index}`,
    kind,
    description: "Searches the contacts of the workspace by name, company or tag, newest first.",
    callRef: `crm.search_contacts.v${index}`,
    permission: "allow",
    inputSchema: {
      type: "object",
      properties: {
        query: { type: "string", description: "Words to look for, in any order." },
        limit: { type: "integer", minimum: 1, maximum: 100 },
        tags: { type: "array", items: { type: "string" } },
      },
      required: ["query"],
    },
  };
}

export const toolCallback = (endpoint: string) => ({ endpoint, authorization: "Bearer bench" });
