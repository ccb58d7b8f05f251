import type { Capability } from "@ambit/core/plugin";
import type { Patch } from "./gate-variant.js";

/** A gate without one of its guards, and the kit's attack that must notice. */
export interface GateMutant {
  readonly name: string;
  readonly patches: readonly Patch[];
  readonly capability: Capability;
  readonly caughtBy: string;
}

const mutant = (
  name: string,
  [capability, caughtBy]: readonly [Capability, string],
  ...patches: readonly (readonly [string, string, string])[]
): GateMutant => ({
  name,
  patches: patches.map(([file, find, replace]) => ({ file, find, replace })),
  capability,
  caughtBy,
});

export const gateMutants: readonly GateMutant[] = [
  mutant(
    "a name's addresses aren't checked",
    ["network.allow-host", "name-to-loopback"],
    ["decide.js", "if (complaint !== undefined)", "if (complaint === 0)"],
  ),
  mutant(
    "a name is resolved again when it is dialled",
    ["network.allow-host", "changing-address"],
    [
      "proxy/gate.js",
      "return { decision, addresses };",
      'return { decision, addresses: target.kind === "address" ? addresses : await this.#resolve(target.host) };',
    ],
  ),
  mutant(
    "a range opens every port",
    ["network.allow-cidr", "other-port"],
    [
      "decide.js",
      "return rule.port === undefined || rule.port === port;",
      'return rule.kind === "range" || rule.port === undefined || rule.port === port;',
    ],
  ),
  mutant(
    "ranges aren't checked",
    ["network.allow-cidr", "other-address"],
    [
      "decide.js",
      'return target.kind === "address" && contains(parsedRange(rule), ipaddr.parse(target.host));',
      'return target.kind === "address";',
    ],
    // Where a private address must be listed, the same is asked a second time.
    ["decide.js", "if (complaint !== undefined)", "if (complaint === 0)"],
  ),
  mutant(
    "the name inside a tunnel isn't compared",
    ["network.allow-host", "server-name"],
    [
      "proxy/tunnel/first-flight.js",
      "return judgeServerName(target, hello.serverName);",
      'return { verdict: "pass" };',
    ],
  ),
  mutant(
    "a credential goes to any opened host",
    ["secrets.hidden", "credential-other-host"],
    ["credentials/judge.js", "if (!isBoundTo(credential, target))", "if (false)"],
  ),
  mutant(
    "servers aren't verified",
    ["secrets.hidden", "credential-impostor"],
    ["credentials/upstream.js", "rejectUnauthorized: true", "rejectUnauthorized: false"],
  ),
  mutant(
    "responses pass unchanged",
    ["secrets.hidden", "credential-echo"],
    ["proxy/credentials/forward.js", "const passed = replacer.push(chunk);", "const passed = chunk;"],
  ),
];
