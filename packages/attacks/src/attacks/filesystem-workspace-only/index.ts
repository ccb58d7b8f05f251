import { kernelAttacks } from "./kernel.js";
import { launchRace } from "./launch-race.js";
import { listAttacks } from "./lists.js";
import { outsideAttacks } from "./outside.js";
import { runnerAttacks } from "./runner.js";

export const filesystemWorkspaceOnly = [
  ...outsideAttacks,
  ...kernelAttacks,
  ...runnerAttacks,
  ...listAttacks,
  launchRace,
] as const;
