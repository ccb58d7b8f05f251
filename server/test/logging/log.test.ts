import { describe, expect, it } from "vitest";
import { LogRedaction, readableLine, withoutSecrets } from "../../src/logging/log.js";
import { printable } from "../../src/logging/printable.js";

describe("LogRedaction", () => {
  it("redacts secrets in lines, as they are and as in JSON, until they are revealed", () => {
    const redaction = new LogRedaction();
    const secret = 'pa"ss\\word';
    const line = JSON.stringify({ plain: "tok-12345", quoted: secret });
    redaction.hide(["tok-12345"]);
    const reveal = redaction.hide([secret]);
    expect(redaction.line(line)).toBe('{"plain":"[redacted]","quoted":"[redacted]"}');
    reveal();
    expect(redaction.line(line)).toContain('pa\\"ss');
    expect(redaction.line(line)).not.toContain("tok-12345");
  });

  it("keeps a secret of two runs hidden until both have ended", () => {
    const redaction = new LogRedaction();
    const [one, other] = [redaction.hide(["shared"]), redaction.hide(["shared"])];
    one();
    one();
    expect(redaction.line("shared")).toBe("[redacted]");
    other();
    expect(redaction.line("shared")).toBe("shared");
  });
});

describe("fields of an entry", () => {
  it("are redacted that a schema marks as secret, or that are named like one, at any level but in what isn't theirs", () => {
    const error = new Error("x");
    expect(
      withoutSecrets({
        error,
        plugin: "p",
        request: { headers: { a: "1" }, call: { authorization: "2", url: "https://x" }, list: [1] },
        apiKey: "3",
        accessToken: "4",
        tokens: 5,
      }),
    ).toEqual({
      error,
      plugin: "p",
      request: {
        headers: "[redacted]",
        call: { authorization: "[redacted]", url: "https://x" },
        list: [1],
      },
      apiKey: "[redacted]",
      accessToken: "[redacted]",
      tokens: 5,
    });
  });
});

describe("readable output", () => {
  it("shows an error by its message", () => {
    const record = {
      time: "2026-01-02T03:04:05.678Z",
      level: "warn",
      msg: "oh",
      error: { type: "E", message: "m" },
    };
    expect(stripped(readableLine(JSON.stringify(record)))).toBe("03:04:05 warn oh error=E: m");
  });

  it("is one line, whatever others name", () => {
    const sessionId = "s\n03:04:06 error forged\tx";
    const record = { time: "2026-01-02T03:04:05.678Z", level: "info", msg: `no ${sessionId}`, sessionId };
    expect(printable(sessionId).split("\n")).toHaveLength(2);
    expect(stripped(readableLine(JSON.stringify(record)))).toBe(
      "03:04:05 info no s␊03:04:06 error forged␉x sessionId=s␊03:04:06 error forged␉x",
    );
  });

  it.each([
    ["\u001b]0;title\u0007", "␛]0;title␇"],
    ["\u001b[2J", "␛[2J"],
    ["a\r\nb\tc", "a␍\nb\tc"],
    ["\u009b31m", "\u{fffd}31m"],
    ["abc\u202exyz", "abc\u{fffd}xyz"],
    ["ü 漢 🎉", "ü 漢 🎉"],
  ])("can't be steered by %j", (text, shown) => {
    expect(printable(text)).toBe(shown);
  });
});

function stripped(text: string): string {
  return text.replaceAll(new RegExp(`${String.fromCharCode(27)}\\[\\d+m`, "g"), "");
}
