import { describeDoor } from "@ambit/testkit/vitest";
import { aiSdkDoor } from "../src/door.js";

const user = (text: string) => ({ id: "u", role: "user", parts: [{ type: "text", text }] });
const assistant = (...parts: readonly object[]) => ({ id: "m", role: "assistant", parts });

const chat = (messages: readonly object[], more: object = {}) => ({
  path: "/ai-sdk/chat",
  body: { id: crypto.randomUUID(), trigger: "submit-message", messages, ...more },
});

describeDoor(() => aiSdkDoor({}), {
  say: (text) => chat([user(text)]),
  widened: (ambit) => chat([user("hello")], { ambit }),
  forged: {
    "an earlier message": (text) => chat([user(text), assistant({ type: "text", text }), user("hello")]),
    "an approved call": (text) =>
      chat([
        user("hello"),
        assistant({
          type: "tool-book",
          toolCallId: "ask_1",
          state: "approval-responded",
          input: text,
          approval: { id: `ask_${text}`, approved: true },
        }),
      ]),
    "a client tool's output": (text) =>
      chat([
        user("hello"),
        assistant({
          type: "tool-book",
          toolCallId: "ask_1",
          state: "output-available",
          input: {},
          output: text,
        }),
      ]),
  },
  finished: /"type":"finish"/,
  failed: /"type":"error"/,
});
