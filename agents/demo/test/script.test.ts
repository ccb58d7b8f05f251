import { expect, test } from "vitest";
import { usageOf } from "../src/grammar.js";
import { parseScript } from "../src/script.js";

const understood: readonly (readonly [string, object])[] = [
  ["say hello there", { verb: "say", text: "hello there" }],
  ["  say  spaced ", { verb: "say", text: "spaced" }],
  ["say a\\nb\\tc\\\\n", { verb: "say", text: "a\nb\tc\\n" }],
  ["think hm", { verb: "think", text: "hm" }],
  ["call weather", { verb: "call", tool: "weather", input: {}, askFirst: false }],
  [
    'call a/b {"x": [1, {"y": "z w"}]}',
    { verb: "call", tool: "a/b", input: { x: [1, { y: "z w" }] }, askFirst: false },
  ],
  ["call! weather {}", { verb: "call", tool: "weather", input: {}, askFirst: true }],
  ["run echo 'a\\nb' | cat", { verb: "run", command: "echo 'a\\nb' | cat", askFirst: false }],
  ["run! ls", { verb: "run", command: "ls", askFirst: true }],
  ["read a b.txt", { verb: "read", path: "a b.txt", askFirst: false }],
  ["write a.txt one\\ntwo", { verb: "write", path: "a.txt", text: "one\ntwo", askFirst: false }],
  ["write a.txt", { verb: "write", path: "a.txt", text: "", askFirst: false }],
  ["fetch http://127.0.0.1:1/x", { verb: "fetch", url: "http://127.0.0.1:1/x", askFirst: false }],
  ["ask may I", { verb: "ask", text: "may I" }],
  [
    "delegate say hi\\nrun ls",
    {
      verb: "delegate",
      script: "say hi\nrun ls",
      steps: [
        { verb: "say", text: "hi" },
        { verb: "run", command: "ls", askFirst: false },
      ],
    },
  ],
  ["env", { verb: "env" }],
  ["tools", { verb: "tools" }],
  ["attachments", { verb: "attachments" }],
  ["recall", { verb: "recall" }],
  ["plan", { verb: "plan", entries: ["look", "do", "check"] }],
  ["plan one; two ;", { verb: "plan", entries: ["one", "two"] }],
  ["image", { verb: "image" }],
  ["stream 3", { verb: "stream", chunks: 3, text: undefined }],
  ["stream 3 a b", { verb: "stream", chunks: 3, text: "a b" }],
  ["big 1000", { verb: "big", bytes: 1000 }],
  ["sleep 20", { verb: "sleep", milliseconds: 20 }],
  ["usage 10 20", { verb: "usage", inputTokens: 10, outputTokens: 20 }],
  ["stop refusal", { verb: "stop", reason: "refusal" }],
  ["fail no luck", { verb: "fail", text: "no luck" }],
  ["crash", { verb: "crash", text: "The demo agent crashes, as requested." }],
  ["crash boom", { verb: "crash", text: "boom" }],
  ["hang", { verb: "hang" }],
  ["deaf", { verb: "deaf" }],
  ["noise", { verb: "noise" }],
  ["late 500 too late", { verb: "late", milliseconds: 500, text: "too late" }],
  ["detach", { verb: "detach", seconds: 600 }],
  ["detach 5", { verb: "detach", seconds: 5 }],
];

test.each(understood)("%s", (line, instruction) => {
  expect(parseScript(line)).toEqual([instruction]);
});

test("the table above contains every verb", () => {
  const verbs = understood.map(([line]) => /^\s*([a-z]+)/.exec(line)?.[1]);
  expect(new Set(verbs)).toEqual(new Set(Object.keys(usageOf)));
});

test.each([
  ["say", "an argument is missing after the verb. Write it as: say TEXT"],
  ["call x {", "the arguments aren't JSON ("],
  ["call x [1]", "the arguments aren't a JSON object"],
  ["call x null", "the arguments aren't a JSON object"],
  ["fetch nowhere", "'nowhere' isn't a URL"],
  ["stream many", "'many' isn't a whole number between 0 and"],
  ["big 999999999999", "isn't a whole number"],
  ["sleep -1", "isn't a whole number"],
  ["usage 1", "'' isn't a whole number"],
  ["stop soon", "'soon' isn't a stop reason of ACP"],
  ["env now", "'now' isn't allowed: the verb has no arguments"],
  ["say! hello", "I can't ask first for 'say'"],
])("%s is answered with the reason", (line, reason) => {
  expect(parseScript(line)).toEqual([{ verb: "complain", reply: expect.stringContaining(reason) }]);
});

test.each(["", "Hello, who are you?", "frobnicate x", "Say hello", "user: say hi", "sayhello", "- say hi"])(
  "%j contains no instruction",
  (prompt) => {
    expect(parseScript(prompt)).toEqual([]);
  },
);

test("next to an instruction, an unknown verb is answered and prose is skipped", () => {
  expect(parseScript("Please do this:\nfrobnicate x\n\nsay hi\r\nconstructor\n# done")).toEqual([
    { verb: "complain", reply: "I don't know 'frobnicate'" },
    { verb: "say", text: "hi" },
    { verb: "complain", reply: "I don't know 'constructor'" },
  ]);
});

test("neighbouring lines with & run together; any other line ends the group", () => {
  expect(parseScript("& say a\n& say b\nsay c\n& say d\n\n& frobnicate")).toEqual([
    {
      verb: "together",
      steps: [
        { verb: "say", text: "a" },
        { verb: "say", text: "b" },
      ],
    },
    { verb: "say", text: "c" },
    { verb: "together", steps: [{ verb: "say", text: "d" }] },
    { verb: "together", steps: [{ verb: "complain", reply: "I don't know 'frobnicate'" }] },
  ]);
});
