import { describe, expect, it } from "vitest";
import { MarkerError, parseMarkers } from "../src/markers.js";

describe("parseMarkers", () => {
  it.each([
    ["no marker", "please do [it] and [[ -f x ]]", []],
    ["say", "a [[say hello there]] b", [{ verb: "say", text: "hello there" }]],
    ["think", "[[think hm]]", [{ verb: "think", text: "hm" }]],
    ["call without input", "[[call add]]", [{ verb: "call", calls: [{ tool: "add", input: {} }] }]],
    ["call", '[[call add {"a":1}]]', [{ verb: "call", calls: [{ tool: "add", input: { a: 1 } }] }]],
    [
      "call whose JSON holds the closing brackets",
      '[[call add {"a":[[1]],"b":"]]"}]] [[hang]]',
      [{ verb: "call", calls: [{ tool: "add", input: { a: [[1]], b: "]]" } }] }, { verb: "hang" }],
    ],
    [
      "call over several lines",
      '[[call add {\n "a": 1\n}]]',
      [{ verb: "call", calls: [{ tool: "add", input: { a: 1 } }] }],
    ],
    ["shell", "[[shell ls -l | wc]]", [{ verb: "call", calls: [{ shell: "ls -l | wc" }] }]],
    [
      "both",
      '[[both call a {"x":1} ;; shell ls]]',
      [{ verb: "call", calls: [{ tool: "a", input: { x: 1 } }, { shell: "ls" }] }],
    ],
    ["slow", "[[slow 3 20]]", [{ verb: "slow", count: 3, pauseMs: 20 }]],
    ["http", "[[http 529]]", [{ verb: "http", status: 529 }]],
    ["drop", "[[drop]]", [{ verb: "drop" }]],
    ["cut", "[[cut]]", [{ verb: "cut", calls: [] }]],
    ["limit in a call", "[[limit call a]]", [{ verb: "limit", calls: [{ tool: "a", input: {} }] }]],
  ])("reads %s", (_name, text, markers) => {
    expect(parseMarkers(text)).toEqual(markers);
  });

  it.each([
    ["an unknown verb", "[[cal add]]", "use say, think, call"],
    ["an empty call", "[[call]]", "write call TOOL"],
    ["an empty shell", "[[shell]]", "write call TOOL"],
    ["input that isn't JSON", "[[call add {a:1}]]", "the input isn't JSON"],
    ["input that isn't an object", "[[call add [1] ]]", "has to be a JSON object"],
    ["a part of both that isn't a call", "[[both call a ;; say b]]", "write call TOOL"],
    ["slow without numbers", "[[slow down]]", "write [[slow COUNT MILLISECONDS]]"],
    ["a status that is no error", "[[http 200]]", "from 400 to 599"],
    ["more than hang takes", "[[hang on]]", "hang takes nothing more"],
    ["no closing", "[[say hello", "no closing ]]"],
  ])("refuses %s", (_name, text, message) => {
    expect(() => parseMarkers(text)).toThrow(MarkerError);
    expect(() => parseMarkers(text)).toThrow(message);
  });
});
