import { expect, it } from "vitest";
import { openSessionBroker } from "../../src/credentials/broker.js";

it.for([
  ["a run", undefined],
  ["a probe, whose own authority replaces all others", []],
] as const)("%s learns which file of authorities can't be read, and the fix", async ([_of, trusted]) => {
  const secrets = [{ name: "KEY", value: "value-of-the-test", hosts: ["api.example"] }];
  const options = { plugin: "sandbox-local", trustedAuthorities: ["/nonexistent/authority.pem"], trusted };
  await expect(openSessionBroker({ secrets }, options)).rejects.toThrow(
    "sandbox-local's trustedAuthorities names /nonexistent/authority.pem, which can't be read (ENOENT): correct the path",
  );
  // Without a credential, no file is needed.
  expect(await openSessionBroker({}, options)).toBeUndefined();
});
