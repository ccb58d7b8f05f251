import { smallLimits } from "../stage/boundaries.js";
import { programAttack } from "./program-attack.js";

const limit = smallLimits.diskMb;
/** Bounded: unguarded it briefly takes no more than this from the disk. */
const much = limit * 2;

export const resourcesDisk = [
  programAttack({
    id: "resources.disk/one-file",
    title: `write ${much} MiB into the workspace with a limit of ${limit}`,
    alone: true,
    parameters: ({ sandbox }) => ({ much, workspace: sandbox.workspace }),
    program: `
def fill():
    path = os.path.join(P["workspace"], "fill")
    try:
        with open(path, "wb", buffering=0) as file:
            for _ in range(P["much"]):
                file.write(os.urandom(1 << 20))
            os.fsync(file.fileno())
        return "%d MiB were written" % P["much"]
    finally:
        os.unlink(path)
attempt("write", fill)`,
  }),
  programAttack({
    id: "resources.disk/many-files",
    title: "exceed it with many small files",
    alone: true,
    parameters: ({ sandbox }) => ({ much, workspace: sandbox.workspace }),
    program: `
def fill():
    made = []
    try:
        for number in range(P["much"] * 4):
            path = os.path.join(P["workspace"], "fill-%d" % number)
            made.append(path)
            with open(path, "wb") as file:
                file.write(os.urandom(1 << 18))
        return "%d files were written" % len(made)
    finally:
        for path in made:
            if os.path.exists(path):
                os.unlink(path)
attempt("write", fill)`,
  }),
  programAttack({
    id: "resources.disk/removed-file",
    title: "exceed it with an unlinked file",
    alone: true,
    parameters: ({ sandbox }) => ({ much, workspace: sandbox.workspace }),
    program: `
def fill():
    path = os.path.join(P["workspace"], "fill")
    with open(path, "wb", buffering=0) as file:
        os.unlink(path)
        for _ in range(P["much"]):
            file.write(os.urandom(1 << 20))
        return "%d MiB were written" % P["much"]
attempt("write", fill)`,
  }),
  programAttack({
    id: "resources.disk/reserved",
    title: "exceed it by allocating without writing",
    alone: true,
    parameters: ({ sandbox }) => ({ much, workspace: sandbox.workspace }),
    program: `
def reserve():
    path = os.path.join(P["workspace"], "fill")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, P["much"] << 20)
        return "%d MiB were reserved" % P["much"]
    finally:
        os.close(descriptor)
        os.unlink(path)
attempt("fallocate", reserve)`,
  }),
] as const;
