/**
 * The reference for a run: the same agent, driven directly by the ACP SDK, from a process that keeps running like the
 * server. The bench communicates with it by messages.
 */
import { type OpenAgent, openAgent } from "./driven-agent.js";
import { type DriverAnswer, driverRequestSchema } from "./driver-messages.js";

const open = new Map<string, OpenAgent>();

async function perform(message: unknown): Promise<Omit<DriverAnswer, "id">> {
  const request = driverRequestSchema.parse(message);
  if (request.step === "run") {
    const agent = await openAgent(request.subject, request.toolUrl);
    try {
      return { figures: await agent.prompt(request.script) };
    } finally {
      await agent.close();
    }
  }
  if (request.step === "open") {
    open.set(request.agent, await openAgent(request.subject, request.toolUrl));
    return {};
  }
  const agent = open.get(request.agent);
  if (agent === undefined) throw new Error(`there is no agent ${request.agent}`);
  return { figures: await agent.prompt(request.script) };
}

process.on("message", (message: { id: number }) => {
  const answer = (content: Omit<DriverAnswer, "id">) => process.send?.({ id: message.id, ...content });
  perform(message).then(answer, (error: unknown) => answer({ error: String(error) }));
});
process.on("disconnect", () => process.exit());
