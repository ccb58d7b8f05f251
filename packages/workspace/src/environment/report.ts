/** What the run's reader learns of its setup: the data of an event `data` with the name `setup`. */
export type SetupReport =
  /** Another run prepares the same environment. */
  | { readonly state: "waiting" }
  | { readonly state: "started"; readonly index: number; readonly command: string }
  /** Of both streams, by whole lines where they aren't too long. */
  | { readonly state: "output"; readonly index: number; readonly text: string }
  | {
      readonly state: "ended";
      readonly index: number;
      /** Null for one that a signal ended. */
      readonly exitCode: number | null;
      readonly durationMs: number;
      /** Characters of output that weren't reported. */
      readonly omitted: number;
    };

export type ReportSetup = (report: SetupReport) => void;
