/** What set-up says on each kind of system. Pure. Must itself run on any Node with ES modules. */

/**
 * Why neither the demo nor the tests can run on a system; undefined where they can.
 * @param {NodeJS.Platform} platform
 */
export function refusalOn(platform) {
  if (platform !== "win32") return undefined;
  return "Ambit needs Linux. In PowerShell: wsl --install -d Debian, then clone and start Ambit in its shell (wsl -d Debian)";
}

/**
 * What is missing and how it gets there, a line each.
 * @param {NodeJS.Platform} platform
 * @param {readonly { name: string, reason: string }[]} missing by their names in Debian
 */
export function missingLines(platform, missing) {
  if (platform === "darwin")
    return [
      "the sandbox needs Linux, so runs have no boundary on a Mac. In a virtual machine they have one:",
      "  limactl start --name=ambit template://debian && limactl shell ambit   (brew install lima; then clone and start Ambit there)",
    ];
  const names = [...new Set(missing.map(({ name }) => name))];
  return [
    ...missing.map(({ name, reason }) => `${name} is missing (${reason})`),
    "they can't be installed from here; what needs them is skipped, and says so. To install them, as root:",
    `  apt-get install ${names.join(" ")}   (or your system's packages of these names)`,
  ];
}

/**
 * The command that installs a package.
 * @param {NodeJS.Platform} platform
 * @param {string} name in Debian
 */
export const installCommand = (platform, name) =>
  platform === "darwin" ? `brew install ${name}` : `apt-get install ${name}`;
