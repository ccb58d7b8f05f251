import type { RefusedProgram } from "./program.js";

/** What a jail refuses by design, and what to do instead. */
export const refused: readonly RefusedProgram[] = [
  {
    name: "set-user-id and set-group-id",
    does: "`chmod g+s`, `git init --shared`",
    needs: ["chmod"],
    script: `mkdir d; chmod g+s d 2>&1; git init -q --shared r 2>&1`,
    prints: /Operation not permitted/,
    instead: "leave the bit out: all of a session has one user and one group. `git init` without `--shared`",
  },
  {
    name: "strace, gdb",
    does: "look into another process (ptrace)",
    needs: ["strace"],
    script: `strace -e none true 2>&1`,
    prints: /Operation not permitted|PTRACE/,
    instead: "log, or run it outside. With it a program could look into the jail's own processes",
  },
  {
    name: "LeakSanitizer",
    does: "looks into its own process (ptrace)",
    needs: ["gcc"],
    has: "echo 'int main(void){return 0;}' | gcc -fsanitize=leak -x c - -o /dev/null",
    script: `echo 'int main(){return 0;}' > a.c; gcc -fsanitize=leak a.c -o a && LSAN_OPTIONS=detect_leaks=1 ./a 2>&1`,
    prints: /LeakSanitizer has encountered a fatal error/,
    instead: "off by default (`ASAN_OPTIONS`, `LSAN_OPTIONS`: `detect_leaks=0`); the other sanitizers work",
  },
  {
    name: "unshare, bwrap, Chromium's sandbox, rootless containers",
    does: "make their own namespaces",
    needs: ["unshare"],
    script: `unshare -Ur true 2>&1`,
    prints: /Operation not permitted|No space left/,
    instead: "start browsers with `--no-sandbox`: the jail is the sandbox. Build images elsewhere",
  },
  {
    name: "ping",
    does: "raw and ICMP sockets",
    needs: ["python3"],
    script: `python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)' 2>&1`,
    prints: /PermissionError/,
    instead: "ask the service itself, over the proxy",
  },
  {
    name: "sudo, su, mount",
    does: "gain rights",
    needs: ["mount"],
    script: `mount -t tmpfs none /mnt 2>&1; grep NoNewPrivs /proc/self/status`,
    prints: /(must be superuser|permission denied)[\s\S]*NoNewPrivs:\s*1/i,
    instead: "install what a run needs on the host, or list it in `readOnlyMounts`",
  },
];
