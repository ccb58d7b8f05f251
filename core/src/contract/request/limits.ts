/** What one request may carry. A request beyond a limit is refused by the field's path. */
export const limits = {
  /** The most bytes of a request body (16 MiB). */
  bodyBytes: 16 * 1024 * 1024,
  /** The most levels of nested lists and objects, anywhere in a request. */
  depth: 100,
  tools: 1_000,
  mcpServers: 64,
  messages: 10_000,
  harnessFiles: 1_000,
  skills: 256,
  allowlist: 1_000,
  sources: 16,
  sourceFiles: 10_000,
  sparsePaths: 256,
  imageCharacters: 512,
  setupCommands: 32,
  setupInputs: 64,
  /** The most characters of a command, or of a variable's value. */
  setupCharacters: 32_768,
  pullRequestLabels: 100,
  ports: 8,
  outputGlobs: 64,
  outputFiles: 10_000,
  outputBytes: 1_073_741_824,
  permissionRules: 1_000,
  credentials: 32,
  credentialHosts: 32,
  credentialPaths: 64,
  credentialCharacters: 4_096,
  /** The most entries of any other list, and keys of any object that the contract defines. */
  entries: 10_000,
} as const;
