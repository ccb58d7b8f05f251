import agenta from "@ambit/compat-agenta";
import type { ForeignEnvironment } from "@ambit/core";
import { describe, expect, it } from "vitest";
import {
  foreignValues,
  takeEnvironment,
  withForeignEnvironment,
} from "../../src/configuration/environment.js";

const token = "0123456789abcdef";
const none: ForeignEnvironment = { renamed: {}, moved: {}, others: /^$/ };
const { foreignEnvironment = none } = agenta;
const taken = (variables: NodeJS.ProcessEnv) =>
  withForeignEnvironment(takeEnvironment(variables), foreignEnvironment);
const valuesOf = (variables: NodeJS.ProcessEnv) => foreignValues(variables, foreignEnvironment, []);

describe("the variables of the Agenta runner", () => {
  it("are read as Ambit's, each with a notice, and secrets are removed", () => {
    const variables: NodeJS.ProcessEnv = {
      AGENTA_RUNNER_HOST: "0.0.0.0",
      AGENTA_RUNNER_PORT: "8766",
      AGENTA_RUNNER_TOKEN: token,
      AGENTA_RUNNER_LOG_LEVEL: "debug",
      AGENTA_RUNNER_CONCURRENCY_LIMIT: "7",
      AGENTA_RUNNER_DAYTONA_API_KEY: "dtn-key",
      SANDBOX_AGENT_DENY_PERMISSIONS: "true",
    };
    const { notices = [], variables: _left, ...environment } = taken(variables);
    expect(environment).toEqual({
      AMBIT_HOST: "0.0.0.0",
      AMBIT_PORT: 8766,
      AMBIT_TOKEN: token,
      AMBIT_LOG_LEVEL: "debug",
      AMBIT_CONCURRENT_RUNS: 7,
      AMBIT_DENY_PERMISSIONS: true,
    });
    expect(notices).toContain("AGENTA_RUNNER_TOKEN is read as AMBIT_TOKEN: rename it");
    expect(notices).toHaveLength(7);
    expect(notices.join()).not.toContain(token);
    expect(variables).not.toHaveProperty("AGENTA_RUNNER_TOKEN");
    expect(variables).not.toHaveProperty("AGENTA_RUNNER_DAYTONA_API_KEY");
    expect(variables.DAYTONA_API_KEY).toBe("dtn-key");
  });

  it("have no effect if Ambit's are set, and are removed nevertheless", () => {
    const variables = { AMBIT_TOKEN: token, AGENTA_RUNNER_TOKEN: "another-token-of-16" };
    const { AMBIT_TOKEN, notices } = taken(variables);
    expect(AMBIT_TOKEN).toBe(token);
    expect(notices).toEqual(["AGENTA_RUNNER_TOKEN has no effect where AMBIT_TOKEN is set: unset it"]);
    expect(variables).toEqual({});
  });

  it("count as absent if they are blank, as a compose file passes them", () => {
    const blank = {
      AGENTA_RUNNER_TOKEN: "",
      AGENTA_RUNNER_RUN_TOTAL_TIMEOUT_MS: "",
      AGENTA_RUNNER_PORT: " ",
    };
    expect(valuesOf(blank)).toMatchObject({ variables: {}, notices: [] });
  });

  it.each([
    ["AGENTA_RUNNER_RUN_TOTAL_TIMEOUT_MS", "60000", "set `limits.runTimeoutMs` in the configuration"],
    ["AGENTA_RUNNER_ENABLED_SANDBOX_PROVIDERS", "local", "set the sandboxes among `plugins`"],
    ["AGENTA_RUNNER_DAYTONA_TARGET", "eu", "set `target` of @ambit/sandbox-daytona"],
    ["AGENTA_RUNNER_DEBUG_TOOLS", "1", "no counterpart here"],
  ])("that name a setting of the configuration say so: %s", (name, value, message) => {
    const { notices } = valuesOf({ [name]: value });
    expect(notices).toEqual([expect.stringContaining(message)]);
  });

  it("of other programs are ignored", () => {
    const others = { AGENTA_API_URL: "http://api", PATH: "/bin" };
    expect(valuesOf(others)).toMatchObject({ variables: {}, notices: [] });
  });

  it("are named as they were set if they are invalid", () => {
    const unusable = () => taken({ AGENTA_RUNNER_PORT: "http", AGENTA_RUNNER_TOKEN: "x" });
    expect(unusable).toThrow("AGENTA_RUNNER_PORT must be a port");
    expect(unusable).toThrow("AGENTA_RUNNER_TOKEN is too short");
  });
});
