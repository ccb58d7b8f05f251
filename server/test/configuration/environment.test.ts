import { describe, expect, it } from "vitest";
import { takeEnvironment } from "../../src/configuration/environment.js";

describe("takeEnvironment", () => {
  it("reads every variable, and removes the token", () => {
    const variables = {
      AMBIT_HOST: "0.0.0.0",
      AMBIT_PORT: "80",
      AMBIT_TOKEN: "secret",
      AMBIT_CONFIG: "a.json",
      AMBIT_DENY_PERMISSIONS: "Bash(rm -rf, sudo:*), write_file",
      AMBIT_LOG_LEVEL: "debug",
      PATH: "/bin",
    };
    const { variables: _left, ...environment } = takeEnvironment(variables);
    expect(environment).toEqual({
      AMBIT_HOST: "0.0.0.0",
      AMBIT_PORT: 80,
      AMBIT_TOKEN: "secret",
      AMBIT_CONFIG: "a.json",
      AMBIT_DENY_PERMISSIONS: ["Bash(rm -rf, sudo:*)", "write_file"],
      AMBIT_LOG_LEVEL: "debug",
    });
    expect(variables).not.toHaveProperty("AMBIT_TOKEN");
  });

  it("treats a blank variable as absent", () => {
    const blank = { AMBIT_HOST: "", AMBIT_PORT: "", AMBIT_CONFIG: "", AMBIT_DENY_PERMISSIONS: "" };
    expect(takeEnvironment(blank)).toEqual({ AMBIT_DENY_PERMISSIONS: [], variables: blank });
  });

  it.each([
    [{ AMBIT_PORT: "http" }, "AMBIT_PORT must be a port: 0 to 65535"],
    [{ AMBIT_PORT: "65536" }, "AMBIT_PORT must be a port: 0 to 65535"],
    [{ AMBIT_TOKEN: "" }, "AMBIT_TOKEN is empty: set a value, or unset it"],
    [{ AMBIT_TOKEN: "x" }, "AMBIT_TOKEN is too short: set a long random value"],
    [{ AMBIT_TOKEN: "two words" }, "AMBIT_TOKEN must be printable ASCII without spaces"],
    [
      { AMBIT_DENY_PERMISSIONS: "Bash(rm *)" },
      "AMBIT_DENY_PERMISSIONS must be a tool's Name, or Name(prefix:*)",
    ],
    [{ AMBIT_LOG_LEVEL: "loud" }, "AMBIT_LOG_LEVEL must be one of debug, info, warn, error, silent"],
  ])("names the variable and the fix: %o", (variables, message) => {
    expect(() => takeEnvironment({ ...variables })).toThrow(message);
  });

  it("never repeats the token, not even an invalid one, and removes that too", () => {
    const variables = { AMBIT_TOKEN: "my secret" };
    let thrown: unknown;
    try {
      takeEnvironment(variables);
    } catch (error) {
      thrown = error;
    }
    expect(String(thrown)).toContain("AMBIT_TOKEN");
    expect(String(thrown)).not.toContain("my secret");
    expect(variables).toEqual({});
  });

  it("denies everything with `true`", () => {
    expect(takeEnvironment({ AMBIT_DENY_PERMISSIONS: "true" }).AMBIT_DENY_PERMISSIONS).toBe(true);
  });

  it("reports a variable that is probably misspelled", () => {
    expect(takeEnvironment({ AMBIT_HSOT: "0.0.0.0" }).notices).toEqual([
      "AMBIT_HSOT has no effect: did you mean AMBIT_HOST?",
    ]);
    expect(takeEnvironment({ AMBIT_SOMETHING_ELSE: "1" }).notices).toBeUndefined();
  });
});
