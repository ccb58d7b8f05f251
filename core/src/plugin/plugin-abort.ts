import { setMaxListeners } from "node:events";

/** Far more than one run ever has. Not 0 (no limit), which breaks clients that raise the current limit. */
const maxListeners = 10_000;

/** An abort controller for a plugin's work. Its signal may have many listeners (one per open call) without a warning. */
export function newPluginAbort(): AbortController {
  const controller = new AbortController();
  setMaxListeners(maxListeners, controller.signal);
  return controller;
}
