import type { RunRequest } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { modelDestination, modelName } from "../../src/harness/model.js";
import { gemini } from "../../src/profiles/gemini.js";
import { requestOf } from "../support/runs.js";

describe("the model", () => {
  it.each([
    { model: undefined, name: "gemini-2.5-flash" },
    { model: "gemini-2.5-pro", name: "gemini-2.5-pro" },
    { model: "google/gemini-2.5-pro", name: "gemini-2.5-pro" },
    { model: "tuned/own", name: "tuned/own" },
  ])("$model is $name", ({ model, name }) => {
    expect(modelName(gemini, requestOf(model === undefined ? {} : { model }))).toBe(name);
  });

  const connection = (fields: object): RunRequest => requestOf({ modelConnection: fields });
  it.each<{ what: string; request: RunRequest; env: Record<string, string>; host: string }>([
    { what: "its default", request: requestOf(), env: {}, host: "generativelanguage.googleapis.com" },
    {
      what: "the request's endpoint",
      request: connection({ endpoint: { baseUrl: "https://proxy.example:8443/x" } }),
      env: {},
      host: "proxy.example:8443",
    },
    {
      what: "a variable of the request",
      request: connection({ environment: { GOOGLE_GEMINI_BASE_URL: "http://by.variable" } }),
      env: {},
      host: "by.variable",
    },
    {
      what: "a variable of the deployer",
      request: requestOf(),
      env: { GOOGLE_GEMINI_BASE_URL: "http://by.deployer" },
      host: "by.deployer",
    },
  ])("is at $what", ({ request, env, host }) => {
    expect(modelDestination(gemini, request, env)?.host).toBe(host);
  });
});
