import { describe, expect, it } from "vitest";
import { type Answer, call, chunksOf, say, shell } from "../src/answer.js";
import { followMarkers, PLAIN_TEXT, scriptFunction } from "../src/script.js";
import type { ModelTurn } from "../src/turn.js";

function turn(lastUserText: string, results: readonly string[] = []): ModelTurn {
  const toolResults = results.map((text, index) => ({ callId: `call-${index}`, text }));
  return { api: "gemini", model: "m", streamed: true, tools: [], lastUserText, toolResults };
}

const twoCalls: Answer = {
  kind: "message",
  calls: [
    { tool: "a", input: {} },
    { tool: "b", input: {} },
  ],
};

describe("followMarkers", () => {
  it.each<[string, ModelTurn, Answer]>([
    ["no marker: the fixed text", turn("hello"), say(PLAIN_TEXT)],
    ["text", turn("[[say hi]]"), say("hi")],
    ["first call", turn("[[call a]] [[call b]]"), call("a")],
    ["second call after one result", turn("[[call a]] [[call b]]", ["1"]), call("b")],
    ["the last result at the end", turn("[[call a]] [[call b]]", ["1", "2"]), say("FINAL: 2")],
    ["a shell command", turn("[[shell ls]]"), shell("ls")],
    ["parallel calls", turn("[[both call a ;; call b]]"), twoCalls],
    ["parallel calls again while a result is missing", turn("[[both call a ;; call b]]", ["1"]), twoCalls],
    ["what follows parallel calls", turn("[[both call a ;; call b]] [[call c]]", ["1", "2"]), call("c")],
    ["text in place of FINAL", turn("[[call a]] [[say done]]", ["1"]), say("done")],
    ["text in the answer with the call", turn("[[say now]] [[call a]]"), { ...call("a"), chunks: ["now"] }],
    [
      "a thought in the answer with the text",
      turn("[[think hm]] [[say hi]]"),
      { ...say("hi"), thought: "hm" },
    ],
    ["an error after a call", turn("[[call a]] [[http 429]]", ["1"]), { kind: "http", status: 429 }],
    ["an error again for the retry", turn("[[http 500]]"), { kind: "http", status: 500 }],
    ["hang", turn("[[hang]]"), { kind: "hang" }],
    ["drop", turn("[[drop]]"), { kind: "drop" }],
    ["a slow text", turn("[[slow 2 5]]"), { kind: "message", chunks: ["tick 1 ", "tick 2 "], pauseMs: 5 }],
  ])("answers with %s", (_name, asked, answer) => {
    expect(followMarkers(asked)).toEqual(answer);
  });

  it("says what is wrong with a marker", () => {
    expect(followMarkers(turn("[[cal a]]"))).toMatchObject({
      chunks: expect.arrayContaining([expect.stringContaining("SCRIPT ERROR: ")]),
    });
  });
});

describe("scriptFunction", () => {
  it("takes a list's entries in order, and fails with a fix after the last", async () => {
    const decide = scriptFunction([say("one"), call("two")]);
    expect(await decide(turn("x"))).toEqual(say("one"));
    expect(await decide(turn("x"))).toEqual(call("two"));
    await expect(decide(turn("x"))).rejects.toThrow("has 2 answers and this is request 3: add an answer");
  });

  it("calls a function for each request, with its number", async () => {
    const decide = scriptFunction((asked, index) => say(`${asked.lastUserText} ${index}`));
    expect(await decide(turn("x"))).toEqual(say("x 0"));
    expect(await decide(turn("x"))).toEqual(say("x 1"));
  });
});

describe("chunksOf", () => {
  it.each(["", " ", "one", " one two  three\nfour five six ", "a b c d e f g h i"])(
    "loses nothing of %j",
    (text) => {
      expect(chunksOf(text).join("")).toBe(text);
      expect(chunksOf(text).length).toBeLessThanOrEqual(4);
    },
  );
});
