import {
  agent,
  type ClientCapabilities,
  type CreateElicitationResponse,
  client,
} from "@agentclientprotocol/sdk/unstable";
import { expect, it } from "vitest";
import { Editor } from "../src/editor.js";

/** What an editor with these abilities answers to what the agent asks its user. */
async function answered(
  input: object,
  capabilities: ClientCapabilities,
  response: CreateElicitationResponse = { action: "accept", content: { city: "Bern" } },
) {
  const asked: unknown[] = [];
  const door = agent({ name: "door" }).onRequest("session/delete", async ({ client: context, signal }) => {
    const editor = new Editor(context, capabilities);
    return { _meta: { answer: await editor.askInput("s", "ask_1", input, signal) } };
  });
  const connection = client({ name: "editor" })
    .onRequest("elicitation/create", ({ params }) => {
      asked.push(params);
      return response;
    })
    .connect(door);
  const { _meta: meta } = await connection.agent.request("session/delete", { sessionId: "s" });
  connection.close();
  return { answer: meta?.answer, asked };
}

const form = { type: "object", properties: { city: { type: "string" } } };
const declined = { output: "The user declined.", isError: true };

it("asks for what the agent needs, where the editor can", async () => {
  const able = { elicitation: { form: {}, url: {} } };
  expect(await answered({ message: "Where?", form }, able)).toEqual({
    answer: { output: { city: "Bern" } },
    asked: [expect.objectContaining({ mode: "form", message: "Where?", sessionId: "s" })],
  });
  expect(await answered({ message: "Log in", url: "https://x.org" }, able)).toMatchObject({
    answer: { output: {} },
    asked: [{ mode: "url", url: "https://x.org", elicitationId: "ask_1" }],
  });
  expect(await answered({ message: "Where?", form }, able, { action: "decline" })).toMatchObject({
    answer: declined,
  });
  expect(await answered({ message: "Where?", form }, {})).toEqual({ answer: declined, asked: [] });
});
