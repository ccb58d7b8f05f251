/**
 * The reference for a run: the same agent, driven directly by the ACP SDK, from a process that keeps running like the
 * server. The bench communicates with it by messages.
 */
import { type BegunAgent, beginAgent, type OpenAgent, openAgent } from "./driven-agent.js";
import { type DriverAnswer, driverRequestSchema } from "./driver-messages.js";

const open = new Map<string, OpenAgent>();
const begun = new Map<string, BegunAgent>();

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
  if (request.step === "begin") {
    begun.set(request.agent, await beginAgent(request.subject, request.toolUrl));
    return {};
  }
  if (request.step === "converse") {
    const agent = begun.get(request.agent);
    begun.delete(request.agent);
    if (agent === undefined) throw new Error(`no agent ${request.agent} was begun`);
    const conversing = await agent.converse();
    open.set(request.agent, conversing);
    return { figures: await conversing.prompt(request.script) };
  }
  const agent = open.get(request.agent);
  if (agent === undefined) throw new Error(`there is no agent ${request.agent}`);
  if (request.step === "prompt") return { figures: await agent.prompt(request.script) };
  open.delete(request.agent);
  await agent.close();
  return {};
}

process.on("message", (message: { id: number }) => {
  const answer = (content: Omit<DriverAnswer, "id">) => process.send?.({ id: message.id, ...content });
  perform(message).then(answer, (error: unknown) => answer({ error: String(error) }));
});
process.on("disconnect", () => process.exit());
