/*
 * Runs inside a jail: puts the jail's own loopback through to the session's unix socket. Each argument is an address and port of
 * the host's loopback (`127.0.0.1:8080`, `[::1]:8080`), which is answered inside at the same ones, by way of the proxy. With the
 * argument "inbound", the relay also waits at a second socket until the runner names a port of the jail's loopback, and puts
 * that port through to the same connection.
 *
 * Each connection has a process of its own, so that none waits for another. The jail's first program waits until the ports
 * listen: for the word "up" at descriptor 4, and for the end of that pipe.
 */
#include "start.h"

#if defined(__x86_64__)
enum {
  CALL_READ = 0,
  CALL_CLOSE = 3,
  CALL_RT_SIGACTION = 13,
  CALL_SOCKET = 41,
  CALL_CONNECT = 42,
  CALL_SHUTDOWN = 48,
  CALL_BIND = 49,
  CALL_LISTEN = 50,
  CALL_SETSOCKOPT = 54,
  CALL_CLONE = 56,
  CALL_FCNTL = 72,
  CALL_PPOLL = 271,
  CALL_ACCEPT4 = 288
};
#elif defined(__aarch64__)
enum {
  CALL_FCNTL = 25,
  CALL_CLOSE = 57,
  CALL_READ = 63,
  CALL_PPOLL = 73,
  CALL_RT_SIGACTION = 134,
  CALL_SOCKET = 198,
  CALL_BIND = 200,
  CALL_LISTEN = 201,
  CALL_CONNECT = 203,
  CALL_SETSOCKOPT = 208,
  CALL_SHUTDOWN = 210,
  CALL_CLONE = 220,
  CALL_ACCEPT4 = 242
};
#endif

/* Numbers of Linux, the same on both machines. */
enum { UNIX = 1, IPV4 = 2, IPV6 = 10, STREAM = 1, NONBLOCKING = 04000 };
enum { SOCKET_LEVEL = 1, REUSE_ADDRESS = 2, TCP = 6, NO_DELAY = 1, SET_FLAGS = 4, END_OF_WRITING = 1 };
enum { READABLE = 1, WRITABLE = 4 };
enum { CHILD_ENDED = 17, PIPE_BROKEN = 13, IGNORED = 1, SIGNAL_SET_BYTES = 8 };
enum { INTERRUPTED = -4, AGAIN = -11 };

/* `plugins/sandbox-local/src/confined/arguments.ts` has the same port and paths. */
enum { CHANNEL_PORT = 3128 };
#define CHANNEL "/run/ambit/channel.sock"
#define INBOUND "/run/ambit/inbound.sock"

enum { WAITING_STARTER = 4, MAX_LISTENERS = 64, BACKLOG = 1024, CHUNK_BYTES = 65536, MAX_ANSWER_BYTES = 32768 };

struct address {
  long family;
  long bytes;
  /* As the kernel has it, the family at its beginning. */
  unsigned char text[112];
};

struct listener {
  int descriptor;
  /* The destination that the proxy is asked for; NULL where the channel itself answers. */
  const char *target;
};

struct polled {
  int descriptor;
  short events;
  short happened;
};

/* One direction of a connection. What `to` doesn't take is held, one chunk at most, and no more is read meanwhile. */
struct way {
  int from;
  int to;
  int is_open;
  long start;
  long end;
  unsigned char held[CHUNK_BYTES];
};

static long length_of(const char *text) {
  long length = 0;
  while (text[length] != 0) length++;
  return length;
}

static int begins_with(const unsigned char *bytes, const char *text) {
  for (; *text != 0; bytes++, text++)
    if (*bytes != (unsigned char)*text) return 0;
  return 1;
}

static void close_descriptor(int descriptor) { system_call(CALL_CLOSE, descriptor, 0, 0, 0, 0, 0); }

static void append(struct address *address, const char *text, long count) {
  for (long at = 0; at < count; at++) address->text[address->bytes++] = (unsigned char)text[at];
}

static void begin_address(struct address *address, int family) {
  for (long at = 0; at < (long)sizeof address->text; at++) *(volatile unsigned char *)&address->text[at] = 0;
  address->family = family;
  address->text[0] = (unsigned char)family;
  address->bytes = 2;
}

static void set_port(struct address *address, long port) {
  address->text[2] = (unsigned char)(port >> 8);
  address->text[3] = (unsigned char)port;
}

static void ipv4_address(struct address *address, long host, long port) {
  begin_address(address, IPV4);
  set_port(address, port);
  for (int part = 0; part < 4; part++) address->text[4 + part] = (unsigned char)(host >> (24 - 8 * part));
  address->bytes = 16;
}

/* `::1` is the only loopback address of IPv6. */
static void ipv6_address(struct address *address, long port) {
  begin_address(address, IPV6);
  set_port(address, port);
  address->text[8 + 15] = 1;
  address->bytes = 28;
}

/* Reads a number of the target, and the sign after it. -1 for anything else. */
static long number_in(const char **target, char sign) {
  const char *text = *target;
  long number = 0;
  if (*text < '0' || *text > '9') return -1;
  for (; *text >= '0' && *text <= '9'; text++) {
    number = number * 10 + (*text - '0');
    if (number > 65535) return -1;
  }
  if (*text != sign) return -1;
  *target = sign == 0 ? text : text + 1;
  return number;
}

static int address_of(const char *target, struct address *address) {
  if (*target == '[') {
    if (!begins_with((const unsigned char *)target, "[::1]:")) return 0;
    target += 6;
    const long port = number_in(&target, 0);
    ipv6_address(address, port);
    return port > 0;
  }
  long host = 0;
  for (int part = 0; part < 4; part++) {
    const long number = number_in(&target, part == 3 ? ':' : '.');
    if (number < 0 || number > 255) return 0;
    host = host << 8 | number;
  }
  const long port = number_in(&target, 0);
  ipv4_address(address, host, port);
  return port > 0;
}

static void set_option(int descriptor, int level, int option) {
  const int on = 1;
  system_call(CALL_SETSOCKOPT, descriptor, level, option, (long)&on, sizeof on, 0);
}

static int listen_at(const struct address *address) {
  const int descriptor = (int)system_call(CALL_SOCKET, address->family, STREAM | NONBLOCKING, 0, 0, 0, 0);
  if (descriptor < 0) exit_with(1);
  set_option(descriptor, SOCKET_LEVEL, REUSE_ADDRESS);
  /* Accepted connections have it too: the end of an answer in two pieces would wait for the client's delayed ACK, 40 ms. */
  set_option(descriptor, TCP, NO_DELAY);
  if (system_call(CALL_BIND, descriptor, (long)address->text, address->bytes, 0, 0, 0) < 0) exit_with(1);
  if (system_call(CALL_LISTEN, descriptor, BACKLOG, 0, 0, 0, 0) < 0) exit_with(1);
  return descriptor;
}

/* A blocking connection; below 0 where there is none. */
static int connect_to(const struct address *address) {
  const int descriptor = (int)system_call(CALL_SOCKET, address->family, STREAM, 0, 0, 0, 0);
  if (descriptor < 0) return -1;
  long result;
  do result = system_call(CALL_CONNECT, descriptor, (long)address->text, address->bytes, 0, 0, 0);
  while (result == INTERRUPTED);
  if (result >= 0) return descriptor;
  close_descriptor(descriptor);
  return -1;
}

static int connect_to_socket(const char *path) {
  struct address address;
  begin_address(&address, UNIX);
  append(&address, path, length_of(path));
  address.bytes++;
  return connect_to(&address);
}

static long read_some(int descriptor, void *bytes, long count) {
  long result;
  do result = system_call(CALL_READ, descriptor, (long)bytes, count, 0, 0, 0);
  while (result == INTERRUPTED);
  return result;
}

static long write_some(int descriptor, const void *bytes, long count) {
  long result;
  do result = system_call(CALL_WRITE, descriptor, (long)bytes, count, 0, 0, 0);
  while (result == INTERRUPTED);
  return result;
}

static int write_all(int descriptor, const char *text) {
  for (long left = length_of(text); left > 0;) {
    const long count = write_some(descriptor, text, left);
    if (count < 0) return 0;
    text += count;
    left -= count;
  }
  return 1;
}

/* Copies both ways until both have ended. */
static void join_ends(struct way *ways) {
  for (int each = 0; each < 2; each++)
    system_call(CALL_FCNTL, ways[each].from, SET_FLAGS, NONBLOCKING, 0, 0, 0);
  for (;;) {
    struct polled polled[2];
    int count = 0;
    for (int each = 0; each < 2; each++) {
      const struct way *way = &ways[each];
      const int has_held = way->start < way->end;
      /* A negative descriptor is passed over. */
      polled[each].descriptor = has_held ? way->to : way->is_open ? way->from : -1;
      polled[each].events = has_held ? WRITABLE : READABLE;
      polled[each].happened = 0;
      if (polled[each].descriptor >= 0) count++;
    }
    if (count == 0) return;
    const long ready = system_call(CALL_PPOLL, (long)polled, 2, 0, 0, 0, 0);
    if (ready < 0 && ready != INTERRUPTED) return;
    for (int each = 0; ready > 0 && each < 2; each++) {
      struct way *way = &ways[each];
      if (polled[each].happened == 0) continue;
      if (way->start == way->end) {
        const long length = read_some(way->from, way->held, CHUNK_BYTES);
        if (length == AGAIN) continue;
        if (length < 0) return;
        if (length == 0) {
          way->is_open = 0;
          system_call(CALL_SHUTDOWN, way->to, END_OF_WRITING, 0, 0, 0, 0);
          continue;
        }
        way->start = 0;
        way->end = length;
      }
      const long length = write_some(way->to, way->held + way->start, way->end - way->start);
      if (length < 0 && length != AGAIN) return;
      if (length > 0) way->start += length;
    }
  }
}

static void begin_way(struct way *way, int from, int to) {
  way->from = from;
  way->to = to;
  way->is_open = 1;
  way->start = way->end = 0;
}

/* Asks the proxy for a destination, and holds what already follows its answer. Whether it agrees. */
static int open_tunnel(int server, const char *target, struct way *from_server) {
  const int is_sent = write_all(server, "CONNECT ") && write_all(server, target) &&
                      write_all(server, " HTTP/1.1\r\nHost: ") && write_all(server, target) &&
                      write_all(server, "\r\n\r\n");
  if (!is_sent) return 0;
  const unsigned char *answer = from_server->held;
  for (long length = 0, at = 0; length < MAX_ANSWER_BYTES;) {
    const long count = read_some(server, from_server->held + length, MAX_ANSWER_BYTES - length);
    if (count <= 0) return 0;
    length += count;
    for (; at + 4 <= length; at++) {
      if (!begins_with(answer + at, "\r\n\r\n")) continue;
      from_server->start = at + 4;
      from_server->end = length;
      return begins_with(answer, "HTTP/1.1 200 ") || begins_with(answer, "HTTP/1.0 200 ");
    }
  }
  return 0;
}

/* Puts a client inside through to the channel. */
static void serve(int client, const char *target) {
  struct way ways[2];
  const int server = connect_to_socket(CHANNEL);
  if (server < 0) return;
  begin_way(&ways[0], client, server);
  begin_way(&ways[1], server, client);
  if (target == 0 || open_tunnel(server, target, &ways[1])) join_ends(ways);
}

/* Tells the runner whether a program of the jail listens on this port, and joins the two. */
static void let_in(int runner, long port) {
  struct way ways[2];
  struct address address;
  ipv4_address(&address, 0x7f000001, port);
  int server = connect_to(&address);
  if (server < 0) {
    ipv6_address(&address, port);
    server = connect_to(&address);
  }
  const unsigned char answer = server >= 0;
  if (write_some(runner, &answer, 1) < 1 || server < 0) return;
  set_option(server, TCP, NO_DELAY);
  begin_way(&ways[0], runner, server);
  begin_way(&ways[1], server, runner);
  join_ends(ways);
}

/* The port that the runner names; -1 where it has closed the connection: no more connections come in. */
static long asked_port(int runner) {
  unsigned char port[2];
  for (long length = 0; length < 2;) {
    const long count = read_some(runner, port + length, 2 - length);
    if (count <= 0) return -1;
    length += count;
  }
  return port[0] << 8 | port[1];
}

/* 0 in the new process. At the limit of processes there is none, and the connection is cut; the next one may be served. */
static long new_process(void) { return system_call(CALL_CLONE, CHILD_ENDED, 0, 0, 0, 0, 0); }

static void ignore_signal(int number) {
  const long action[4] = {IGNORED, 0, 0, 0};
  system_call(CALL_RT_SIGACTION, number, (long)action, 0, SIGNAL_SET_BYTES, 0, 0);
}

void begin(long *stack) {
  const long argument_count = stack[0];
  char **arguments = (char **)(stack + 1);
  struct listener listeners[MAX_LISTENERS];
  struct address address;
  int count = 0;
  int is_inbound = 0;
  ignore_signal(CHILD_ENDED);
  ignore_signal(PIPE_BROKEN);
  ipv4_address(&address, 0x7f000001, CHANNEL_PORT);
  listeners[count].target = 0;
  listeners[count++].descriptor = listen_at(&address);
  for (long at = 1; at < argument_count; at++) {
    const char *argument = arguments[at];
    if (begins_with((const unsigned char *)argument, "inbound")) {
      is_inbound = 1;
      continue;
    }
    if (count == MAX_LISTENERS || !address_of(argument, &address)) exit_with(1);
    listeners[count].target = argument;
    listeners[count++].descriptor = listen_at(&address);
  }
  if (!write_all(WAITING_STARTER, "up\n")) exit_with(1);
  close_descriptor(WAITING_STARTER);

  int runner = is_inbound ? connect_to_socket(INBOUND) : -1;
  for (;;) {
    struct polled polled[MAX_LISTENERS + 1];
    for (int each = 0; each <= count; each++) {
      polled[each].descriptor = each < count ? listeners[each].descriptor : runner;
      polled[each].events = READABLE;
      polled[each].happened = 0;
    }
    if (system_call(CALL_PPOLL, (long)polled, count + 1, 0, 0, 0, 0) <= 0) continue;
    if (polled[count].happened != 0) {
      const long port = asked_port(runner);
      if (port >= 0 && new_process() == 0) {
        for (int each = 0; each < count; each++) close_descriptor(listeners[each].descriptor);
        let_in(runner, port);
        exit_with(0);
      }
      close_descriptor(runner);
      runner = port < 0 ? -1 : connect_to_socket(INBOUND);
    }
    for (int each = 0; each < count; each++) {
      if (polled[each].happened == 0) continue;
      const int client = (int)system_call(CALL_ACCEPT4, listeners[each].descriptor, 0, 0, 0, 0, 0);
      if (client < 0) continue;
      if (new_process() == 0) {
        for (int other = 0; other < count; other++) close_descriptor(listeners[other].descriptor);
        if (runner >= 0) close_descriptor(runner);
        serve(client, listeners[each].target);
        exit_with(0);
      }
      close_descriptor(client);
    }
  }
}
