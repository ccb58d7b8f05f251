// node main.ts "run ls"
import { stdin, stdout } from "node:process";
import { createInterface } from "node:readline/promises";
import { HttpAgent, type ResumeEntry, type RunFinishedOutcome } from "@ag-ui/client";

const { AMBIT_URL = "http://127.0.0.1:8765", AMBIT_TOKEN = "" } = process.env;
const headers = { authorization: `Bearer ${AMBIT_TOKEN}` };
const agent = new HttpAgent({ url: `${AMBIT_URL}/ag-ui/run`, threadId: crypto.randomUUID(), headers });
const terminal = createInterface({ input: stdin });
// They may come before their question; the end of the input is a no.
const answerLines = terminal[Symbol.asyncIterator]();

/** Sends the messages that are new, or the answers. Returns how the run has ended. */
async function send(resume?: ResumeEntry[]): Promise<RunFinishedOutcome | undefined> {
  let outcome: RunFinishedOutcome | undefined;
  await agent.runAgent(resume === undefined ? {} : { resume }, {
    onTextMessageContentEvent: ({ event }) => void stdout.write(event.delta),
    onTextMessageEndEvent: () => void stdout.write("\n"),
    onToolCallResultEvent: ({ event }) => void stdout.write(`${event.content}\n`),
    onRunErrorEvent: ({ event }) => void stdout.write(`${event.message}\n`),
    onRunFinishedEvent: ({ event }) => {
      outcome = event.outcome;
    },
  });
  return outcome;
}

agent.addMessage({ id: "said", role: "user", content: process.argv.slice(2).join("\n") });
let outcome = await send();
while (outcome?.type === "interrupt") {
  const answers: ResumeEntry[] = [];
  for (const { id, message, metadata } of outcome.interrupts) {
    stdout.write(`${message} ${JSON.stringify(metadata?.input)} [y/n] `);
    const approved = /^y/i.test((await answerLines.next()).value ?? "");
    answers.push({ interruptId: id, status: "resolved", payload: { approved } });
  }
  outcome = await send(answers);
}
terminal.close();
