#!/usr/bin/perl
# A parameter server over plain sockets: each client gets the weights and answers with a gradient, again and again.
use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;
use Socket;

my ($updates) = @ARGV;
my ($size, $rate, $done) = (2_000, 0.05, 0);
my @weights = (0) x $size;
my %gradient_of;    # what has come of it, in bytes, by client

$| = 1;
$SIG{PIPE} = 'IGNORE';
my $server = IO::Socket::INET->new(LocalPort => 8000, Listen => 16, ReuseAddr => 1) or die "port 8000: $!\n";
my $sockets = IO::Select->new($server);
while ($done < $updates) {
    for my $socket ($sockets->can_read) {
        if ($socket == $server) {
            my $client = $server->accept or next;
            $client->setsockopt(SOL_SOCKET, SO_SNDBUF, 1 << 20);    # nobody waits for a client that is cut off
            $sockets->add($client);
            $gradient_of{$client} = '';
            syswrite $client, pack 'd*', @weights;
            next;
        }
        if (!sysread $socket, $gradient_of{$socket}, 8 * $size, length $gradient_of{$socket}) {
            delete $gradient_of{$socket};
            $sockets->remove($socket);
            close $socket;
            next;
        }
        next if length $gradient_of{$socket} < 8 * $size || $done == $updates;
        my @gradient = unpack 'd*', $gradient_of{$socket};
        $gradient_of{$socket} = '';
        my $loss = 0;
        for my $k (0 .. $size - 1) {
            $weights[$k] -= $rate * $gradient[$k];
            $loss += $gradient[$k]**2 / $size;
        }
        printf "update %d loss=%.6f\n", ++$done, $loss;
        syswrite $socket, pack 'd*', @weights;
    }
}
