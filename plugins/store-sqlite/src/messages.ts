import type { Essential, Row, Statement } from "@ambit/sql-store";

/** The worker's start parameters. */
export interface WorkerSettings {
  readonly file: string;
  readonly durability: "process" | "power";
}

export interface WorkerRequest {
  readonly id: number;
  readonly statements: readonly Statement[];
  readonly essential?: Essential | undefined;
}

/** The first one, with the id 0, reports that the database is open, or why it isn't. */
export type Reply =
  | { readonly id: number; readonly rows: readonly (readonly Row[])[] }
  | { readonly id: number; readonly error: string; readonly isFull: boolean };
