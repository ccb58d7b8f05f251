/** Everything that the deployer must fix in a configuration file, a variable or an argument. */
export class ConfigurationInvalid extends Error {
  override readonly name = "ConfigurationInvalid";

  /** @param where the file or variables that hold the faults; @param problems one line each, with its fix. */
  constructor(
    readonly where: string,
    readonly problems: readonly string[],
    options?: ErrorOptions,
  ) {
    super(`${where}: ${problems.join("; ")}`, options);
  }
}
