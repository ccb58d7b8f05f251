# Runs inside a jail: puts its own loopback through to the session's unix socket. Each argument is an address and port
# of the host's loopback, answered inside at the same ones, by way of the proxy. In Perl, which every Debian has, and
# without modules, whose loading would take longer than the rest. The jail's program waits until the ports listen: Perl
# runs the first block before it reads on.
#
# The argument "inbound" is no address: the relay then also waits at a second socket until the runner names a port of the
# jail's loopback, which it puts through to that connection.
my ($port, $channel, $inbound, @listeners);

BEGIN {
  ($port, $channel) = (3128, "/run/ambit/channel.sock");
  # Numbers of Linux, the same on x64 and arm64.
  my ($ipv4, $ipv6, $stream) = (2, 10, 1);
  my ($socket_level, $reuse, $tcp, $no_delay) = (1, 2, 6, 1);
  my ($set_flags, $nonblocking) = (4, 04000);

  # A listener, and where its connections go: the proxy is asked for that first. Undefined: to the channel itself.
  $inbound = "/run/ambit/inbound.sock" if grep { $_ eq "inbound" } @ARGV;
  for my $target (undef, grep { $_ ne "inbound" } @ARGV) {
    my ($host, $number) = defined $target ? $target =~ /^\[?([^\]]+?)\]?:(\d+)$/ : ("127.0.0.1", $port) or exit 1;
    my $is_ipv6 = $host =~ /:/;
    # ::1 is the only loopback address of IPv6.
    my $address = $is_ipv6
      ? pack("S n N a16 N", $ipv6, $number, 0, "\0" x 15 . "\1", 0)
      : pack("S n C4 x8", $ipv4, $number, split(/\./, $host));
    socket(my $listener, $is_ipv6 ? $ipv6 : $ipv4, $stream, 0) or exit 1;
    setsockopt($listener, $socket_level, $reuse, 1) or exit 1;
    # Accepted connections have it too: the end of an answer in two pieces would wait for the client's delayed ACK, 40 ms.
    setsockopt($listener, $tcp, $no_delay, 1) or exit 1;
    bind($listener, $address) && listen($listener, 1024) or exit 1;
    # A client that is gone again must not make accept(2) wait.
    fcntl($listener, $set_flags, $nonblocking) or exit 1;
    push @listeners, [$listener, $target];
  }
  # The shell that started this waits for the word, and for the end of this pipe.
  open(my $waiting, ">&=", 4) or exit 1;
  syswrite($waiting, "up\n");
  close $waiting;
}

use strict;

my ($max_answer, $max_chunk) = (32 * 1024, 64 * 1024);
# Numbers of Linux, the same on x64 and arm64.
my ($unix, $ipv4, $ipv6, $stream) = (1, 2, 10, 1);
my ($set_flags, $nonblocking) = (4, 04000);
my ($interrupted, $again) = (4, 11);

$SIG{CHLD} = $SIG{PIPE} = "IGNORE";

my $listening = bits(map { $_->[0] } @listeners);
my $waiting = defined $inbound ? at_socket($inbound) : undef;
while (1) {
  my $ready = $listening;
  vec($ready, fileno $waiting, 1) = 1 if defined $waiting;
  next if select($ready, undef, undef, undef) < 0;
  if (defined $waiting && vec($ready, fileno $waiting, 1)) {
    my $asked = $waiting;
    my $question = "";
    # The runner has closed it: no more connections come in.
    if (!sysread($asked, $question, 2) || length $question < 2) {
      undef $waiting;
      next;
    }
    my $child = fork;
    if (defined $child && $child == 0) {
      close $_->[0] for @listeners;
      let_in($asked, unpack("n", $question));
      exit;
    }
    # At the limit of processes, this one is cut.
    $waiting = at_socket($inbound);
  }
  for my $listener (@listeners) {
    next unless vec($ready, fileno $listener->[0], 1);
    next unless accept(my $client, $listener->[0]);
    my $child = fork;
    # At the limit of processes, this client is cut and the next one may be served.
    next if !defined $child || $child > 0;
    close $_->[0] for @listeners;
    serve($client, $listener->[1]);
    exit;
  }
}

sub serve {
  my ($client, $target) = @_;
  my $server = at_socket($channel) or return;
  my $first = "";
  if (defined $target) {
    $first = tunnel($server, $target);
    return unless defined $first;
  }
  fcntl($_, $set_flags, $nonblocking) or return for ($client, $server);
  join_ends(
    { from => $client, to => $server, held => "", open => 1 },
    { from => $server, to => $client, held => $first, open => 1 },
  );
}

sub at_socket {
  my ($path) = @_;
  socket(my $end, $unix, $stream, 0) or return;
  return connect($end, pack("S a108", $unix, $path)) ? $end : undef;
}

# Tells the runner whether a program of the jail listens on this port, and joins the two.
sub let_in {
  my ($asked, $wanted) = @_;
  for my $address (pack("S n C4 x8", $ipv4, $wanted, 127, 0, 0, 1),
                   pack("S n N a16 N", $ipv6, $wanted, 0, "\0" x 15 . "\1", 0)) {
    socket(my $server, length $address > 16 ? $ipv6 : $ipv4, $stream, 0) or next;
    connect($server, $address) or next;
    setsockopt($server, 6, 1, 1);
    syswrite($asked, "\1") or return;
    fcntl($_, $set_flags, $nonblocking) or return for ($asked, $server);
    join_ends(
      { from => $asked, to => $server, held => "", open => 1 },
      { from => $server, to => $asked, held => "", open => 1 },
    );
    return;
  }
  syswrite($asked, "\0");
}

# Asks the proxy for a destination. What follows its answer already; undefined if it doesn't agree.
sub tunnel {
  my ($server, $target) = @_;
  syswrite($server, "CONNECT $target HTTP/1.1\r\nHost: $target\r\n\r\n") or return;
  my $answer = "";
  while (index($answer, "\r\n\r\n") < 0) {
    return if length $answer >= $max_answer;
    my $count = sysread($server, $answer, $max_chunk, length $answer);
    return if defined $count ? $count == 0 : $! != $interrupted;
  }
  return $answer =~ /^HTTP\/1\.[01] 200 / ? substr($answer, index($answer, "\r\n\r\n") + 4) : undef;
}

# Copies both ways until both have ended. What one side doesn't take is held, one chunk at most, and no more is read.
sub join_ends {
  my @ways = @_;
  while (my @active = grep { $_->{open} || length $_->{held} } @ways) {
    my $readable = bits(map { $_->{from} } grep { !length $_->{held} } @active);
    my $writable = bits(map { $_->{to} } grep { length $_->{held} } @active);
    next if select($readable, $writable, undef, undef) < 0;
    for my $way (@active) {
      my ($from, $to) = @$way{"from", "to"};
      if (!length $way->{held}) {
        next unless vec($readable, fileno $from, 1);
        my $count = sysread($from, $way->{held}, $max_chunk);
        return if !defined $count && $! != $again && $! != $interrupted;
        if (defined $count && $count == 0) {
          $way->{open} = 0;
          shutdown($to, 1);
        }
      } elsif (!vec($writable, fileno $to, 1)) {
        next;
      }
      next unless length $way->{held};
      my $count = syswrite($to, $way->{held});
      return if !defined $count && $! != $again && $! != $interrupted;
      substr($way->{held}, 0, $count) = "" if defined $count;
    }
  }
}

sub bits {
  my $set = "";
  vec($set, fileno $_, 1) = 1 for @_;
  return $set;
}
