import type { MutantCase } from "./mutants.js";

const capability = "secrets.hidden";

/** The local sandbox without one check of the credential broker. */
export const credentialMutants: readonly MutantCase[] = [
  mutant("value in place of its placeholder", "credential-inside", [
    "credentials/bound.js",
    "placeholder: placeholderFor(secret),",
    "placeholder: secret,",
  ]),
  mutant("responses passed unchanged", "credential-echo", [
    "proxy/credentials/forward.js",
    "const passed = replacer.push(chunk);",
    "const passed = chunk;",
  ]),
  mutant("values in hex passed unchanged", "credential-echo", [
    "replacements.js",
    "return pairedForms(value, fitted).map(",
    'return pairedForms(value, fitted).filter(({ form }) => form !== Buffer.from(value).toString("hex")).map(',
  ]),
  mutant("compressed responses passed unchanged", "credential-echo", [
    "proxy/credentials/forward.js",
    'const isCoded = coding !== "" && coding !== "identity";',
    "const isCoded = false;",
  ]),
  mutant("headers of responses passed unchanged", "credential-echo", [
    "proxy/credentials/forward.js",
    'responseHeaders(incoming).map((text) => replaceIn(text, known, "latin1"))',
    "responseHeaders(incoming)",
  ]),
  mutant("credential for any opened host", "credential-other-host", [
    "credentials/judge.js",
    "if (!isBoundTo(credential, target))",
    "if (false)",
  ]),
  mutant("credential in any header", "credential-other-header", [
    "credentials/judge.js",
    "const replaced = replaceIn(name, value, credential);",
    "const replaced = value.replace(credential.placeholder, credential.value);",
  ]),
  mutant("credential in a repeated header", "credential-other-header", [
    "credentials/judge.js",
    "if (isTwice)",
    "if (false)",
  ]),
  mutant("methods, paths and access not enforced", "credential-limits", [
    "credentials/judge.js",
    "const limits = judgeLimits(request, credential);",
    "const limits = { needsBody: false };",
  ]),
  mutant("ambiguous paths allowed", "credential-limits", [
    "credentials/limits.js",
    "return !areAmbiguous(",
    "return true || !areAmbiguous(",
  ]),
  mutant("headers that change the method allowed", "credential-limits", [
    "credentials/limits.js",
    "if (header !== undefined)",
    "if (false)",
  ]),
  mutant("underscores in headers not read as dashes", "credential-limits", [
    "credentials/limits.js",
    '.replaceAll(/(?!^)_/g, "-")',
    "",
  ]),
  mutant("parameters that change the method allowed", "credential-limits", [
    "credentials/limits.js",
    "if (parameters.test(",
    "if (false && parameters.test(",
  ]),
  mutant("access not enforced", "credential-limits", [
    "credentials/judge.js",
    'if (reading === "writes")',
    "if (false)",
  ]),
  mutant(
    "authority that can be exported, and lies in the trust store",
    "credential-authority",
    [
      "credentials/authority.js",
      "subtle.generateKey(algorithm, false,",
      "subtle.generateKey(algorithm, true,",
    ],
    [
      "credentials/authority.js",
      "return new SessionAuthority(issuer, keys.privateKey, leafKeys, leafKey);",
      `const own = x509.PemConverter.encode(await subtle.exportKey("pkcs8", keys.privateKey), "PRIVATE KEY");
        const made = new SessionAuthority(issuer, keys.privateKey, leafKeys, leafKey);
        return Object.assign(made, { certificate: made.certificate + own + "\\n" });`,
    ],
  ),
  mutant("values named in decisions", "credential-logs", [
    "proxy/credentials/credential-proxy.js",
    "credentialsFor(target).map(({ name }) => name)",
    "credentialsFor(target).map(({ value }) => value)",
  ]),
  mutant("servers not verified", "credential-impostor", [
    "credentials/upstream.js",
    "rejectUnauthorized: true",
    "rejectUnauthorized: false",
  ]),
];

function mutant(
  name: string,
  attack: string,
  ...patches: readonly (readonly [string, string, string])[]
): MutantCase {
  return {
    name,
    patches: patches.map(([file, find, replace]) => ({ of: "egress", file, find, replace })),
    capability,
    caughtBy: [`${capability}/${attack}`],
  };
}
