import type { Store } from "@ambit/durable/store";
import { tallyRows } from "./counts.js";
import type { Database } from "./database.js";
import { deliveryRows } from "./deliveries.js";
import { claimRows, questionRows } from "./questions.js";
import { replicaRows } from "./replicas.js";
import { retentionRows } from "./retention.js";
import { quotaRows, runRows } from "./runs.js";
import { sessionRows } from "./sessions.js";

/** A store over a database whose schema is up to date. */
export function sqlStore(database: Database): Store {
  return {
    ...runRows(database),
    ...quotaRows(database),
    ...questionRows(database),
    ...claimRows(database),
    ...sessionRows(database),
    ...replicaRows(database),
    ...deliveryRows(database),
    ...tallyRows(database),
    ...retentionRows(database),
    close: () => database.close(),
  };
}
