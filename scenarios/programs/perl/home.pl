#!/usr/bin/perl
# A client of hub.pl: its gradient leads to weights of 1.
use strict;
use warnings;
use IO::Socket::INET;

my ($hub, $size) = (@ARGV, 2_000);
my $server = IO::Socket::INET->new(PeerAddr => $hub, PeerPort => 8000) or die "$hub: $!\n";
$server->autoflush(1);
$SIG{PIPE} = 'IGNORE';    # the hub ends when it has what it wants
while ((read($server, my $weights, 8 * $size) // 0) == 8 * $size) {
    print $server pack 'd*', map { $_ - 1 } unpack 'd*', $weights;
}
