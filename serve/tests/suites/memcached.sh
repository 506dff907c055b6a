#!/bin/bash
# memcached's own tests (t/*.t) that use a server that runs already: ours, and stock memcached for
# comparison.
#
#   serve/tests/suites/memcached.sh CHECKOUT [SERVER]
#
# CHECKOUT is a clone of memcached at the version whose protocol is served (git checkout 1.6.18);
# nothing is built there. SERVER is nearpm-serve [target/release/nearpm-serve]. It prints a line for
# each test: what stock memcached makes of it, and what ours does.
set -u
checkout=$(realpath "$1"); ours=$(realpath "${2:-target/release/nearpm-serve}"); stock=$(command -v memcached)
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
# Tests of options that a running server does not have, and of protocols and parts that ours has
# not: it is told so in docs/serve.md.
own='proxy|binary|extstore|.*-extstore|error-ext|chunked-ext|ssl|sasl|daemonize|unixsocket|udp|watcher|dash-M|restart|00-startup|slab|lru|maxconns|idle-timeout|conn-limits|shutdown|misbehave|stress|ascii-auth|64bit|dyn-maxbytes|refhang'
# The programs that the tests ask for what they can do.
for name in memcached memcached-debug; do ln -sf "$stock" "$checkout/$name"; done
: >"$checkout/sizes"; chmod +x "$checkout/sizes"

free_port() { perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(Listen=>1,LocalAddr=>"127.0.0.1")->sockport'; }

# Runs one test on a server that is started for it: PASS, SKIP, or how many of its assertions
# failed.
run() {
    local kind=$1 test=$2 port pid status; port=$(free_port)
    if [ "$kind" = stock ]; then "$stock" -u root -U 0 -l 127.0.0.1 -p "$port" >/dev/null 2>&1 & else
        rm -f "$work/pool"
        "$ours" memcached --pool "$work/pool" --bytes 256M --survives process-crash --memory-limit 64M --listen "127.0.0.1:$port" >/dev/null 2>&1 &
    fi
    pid=$!
    for _ in $(seq 100); do (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break; sleep 0.05; done
    (cd "$checkout" && T_MEMD_USE_DAEMON="127.0.0.1:$port" timeout 200 perl "t/$test" >"$work/$kind.log" 2>&1); status=$?
    kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null
    local failed; failed=$(grep -c '^not ok' "$work/$kind.log")
    if grep -q '^1\.\.0' "$work/$kind.log"; then echo SKIP
    elif [ "$status" = 0 ]; then echo PASS
    elif [ "$status" = 124 ]; then echo "TIMEOUT"
    else echo "FAIL ($failed of $(grep -cE '^(not )?ok' "$work/$kind.log"))"; fi
}

printf '%-24s %-18s %s\n' test stock ours
for path in "$checkout"/t/*.t; do
    test=$(basename "$path")
    if echo "$test" | grep -qE "^($own)"; then
        printf '%-24s %s\n' "$test" "starts a server of its own"; continue
    fi
    grep -q new_memcached "$path" || { printf '%-24s %s\n' "$test" "needs no server"; continue; }
    theirs=$(run stock "$test"); mine=$(run ours "$test")
    printf '%-24s %-18s %s\n' "$test" "$theirs" "$mine"
    if [ "$theirs" = PASS ] && [ "$mine" != PASS ]; then grep -E -A4 '^(not ok|#)' "$work/ours.log" | head -12 | sed 's/^/    /'; fi
done
