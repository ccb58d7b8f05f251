// node main.ts "say hello"
import { stdin, stdout } from "node:process";
import { createInterface } from "node:readline/promises";
import { DefaultChatTransport, isToolUIPart, readUIMessageStream, type UIMessage } from "ai";

const { AMBIT_URL = "http://127.0.0.1:8765", AMBIT_TOKEN = "" } = process.env;
const headers = { authorization: `Bearer ${AMBIT_TOKEN}` };
const transport = new DefaultChatTransport<UIMessage>({ api: `${AMBIT_URL}/ai-sdk/chat`, headers });
const terminal = createInterface({ input: stdin });
// They may come before their question; the end of the input is a no.
const answerLines = terminal[Symbol.asyncIterator]();
const text = process.argv.slice(2).join("\n");
const said: UIMessage = { id: "said", role: "user", parts: [{ type: "text", text }] };
const chat = { chatId: crypto.randomUUID(), trigger: "submit-message" as const, messageId: undefined };

/** Sends the user's message, or the answers in the assistant's. Returns the assistant's as it is then. */
async function send(answered?: UIMessage): Promise<UIMessage | undefined> {
  const messages = answered === undefined ? [said] : [said, answered];
  const stream = await transport.sendMessages({ ...chat, messages, abortSignal: undefined });
  let message = answered;
  const begun = message === undefined ? {} : { message };
  for await (const next of readUIMessageStream({ ...begun, stream, terminateOnError: true })) message = next;
  return message;
}

let message = await send();
for (;;) {
  const asking = (message?.parts ?? []).filter(isToolUIPart).filter(({ state }) => /requested$/.test(state));
  if (asking.length === 0) break;
  for (const part of asking) {
    stdout.write(`May the agent call ${JSON.stringify(part.input)}? [y/n] `);
    const approved = /^y/i.test((await answerLines.next()).value ?? "");
    const approval = { ...part.approval, approved };
    Object.assign(part, { state: "approval-responded", approval });
  }
  message = await send(message);
}
for (const part of message?.parts ?? []) if (part.type === "text") stdout.write(`${part.text}\n`);
terminal.close();
