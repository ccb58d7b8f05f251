import { expect, it } from "vitest";
import { ByHand, type ByHandRunOptions } from "../../../src/cli/by-hand/by-hand.js";
import { rootRefused } from "../../../src/cli/by-hand/in-place/in-place.js";

const issue = { path: "modelConnection.credentials", message: "needs a key: give it here" };

const fixFor = (options: ByHandRunOptions, ...issues: readonly (typeof issue)[]) =>
  new ByHand("hi", options, undefined).fixFor({
    code: "request_invalid",
    retryable: false,
    issues: [...issues],
  });

it("names the variable of a key that the request lacks", () => {
  expect(fixFor({ agent: "gemini" }, issue)).toMatch(/from the environment: set GEMINI_API_KEY$/);
  expect(fixFor({ agent: "pi", model: "groq/small" }, issue)).toMatch(/set GROQ_API_KEY$/);
  expect(fixFor({ agent: "pi" }, issue)).toMatch(
    /set ANTHROPIC_API_KEY, .*OPENROUTER_API_KEY, one of these$/,
  );
});

it("has nothing to add to other refusals", () => {
  expect(fixFor({ agent: "gemini" }, { ...issue, path: "harness" })).toBeUndefined();
});

it("says where a setup without a network gets one", () => {
  const failed = { code: "setup_failed", retryable: false } as const;
  const fix = (options: ByHandRunOptions) => new ByHand("hi", options, undefined).fixFor(failed);
  expect(fix({ setup: ["npm ci"] })).toContain("--setup-network names the hosts");
  expect(fix({ setup: ["npm ci"], network: "example.com" })).toBeUndefined();
  expect(fix({ setup: ["npm ci"], setupNetwork: "example.com" })).toBeUndefined();
});

it("says how root gets the folder itself as the workspace", () => {
  const use = { option: "--in-place", command: "ambit run …", instead: "leave --in-place out" };
  expect(rootRefused("/srv/app", 1000, use)).toContain("as the folder's owner: sudo -u '#1000' ambit run");
  expect(rootRefused("/srv/app", 0, use)).toMatch(
    /give \/srv\/app to an ordinary user .*; or leave --in-place out$/,
  );
});
