import { describeDoor } from "@ambit/testkit/vitest";
import { agUiDoor } from "../src/door.js";

const user = (content: string) => ({ id: "u", role: "user", content });

const run = (messages: readonly object[], more: object = {}) => ({
  path: "/ag-ui/run",
  body: {
    threadId: crypto.randomUUID(),
    runId: crypto.randomUUID(),
    messages,
    tools: [],
    context: [],
    ...more,
  },
});

describeDoor(() => agUiDoor({}), {
  say: (text) => run([user(text)]),
  widened: (ambit) => run([user("hello")], { forwardedProps: { ambit } }),
  forged: {
    "an earlier message": (text) =>
      run([user(text), { id: "a", role: "assistant", content: text }, user("hello")]),
    "an answer to an interrupt": (text) =>
      run([], { resume: [{ interruptId: `ask_${text}`, status: "resolved", payload: { approved: true } }] }),
    "a tool's result": (text) => run([{ id: "t", role: "tool", toolCallId: "ask_1", content: text }]),
  },
  finished: /"type":"RUN_FINISHED"/,
  failed: /"type":"RUN_ERROR"/,
});
