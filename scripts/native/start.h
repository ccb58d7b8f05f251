/*
 * How every program here begins, and calls the kernel. There is no C library: the programs need nothing of the file system
 * that they run in, and make no system call that their source doesn't name.
 */

/* Called with the stack as the kernel leaves it: the number of arguments, the arguments, NULL, the environment, NULL. */
void begin(long *stack) __attribute__((noreturn, used));

#if defined(__x86_64__)

enum { CALL_WRITE = 1, CALL_EXECVE = 59, CALL_EXIT = 60 };

__asm__(".globl _start\n_start:\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall begin\n");

static inline long system_call(long number, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

#elif defined(__aarch64__)

enum { CALL_WRITE = 64, CALL_EXECVE = 221, CALL_EXIT = 93 };

__asm__(".globl _start\n_start:\n\tmov x0, sp\n\tb begin\n");

static inline long system_call(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc #0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  return x0;
}

#endif

static void exit_with(long code) __attribute__((noreturn));
static void exit_with(long code) {
  system_call(CALL_EXIT, code, 0, 0, 0, 0, 0);
  __builtin_trap(); /* A filter refuses even that. */
}

enum { STANDARD_OUTPUT = 1 };
