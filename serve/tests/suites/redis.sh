#!/bin/sh
# Runs Redis's own tests (tests/unit/*.tcl of a checkout of Redis 7.0) against this server, in
# external mode, and prints a line for each file.
#
#   cargo build --release -p nearpm-serve
#   serve/tests/suites/redis.sh CHECKOUT [unit/type/string ...]
#
# It needs tclsh (Debian: tcl). Nothing of the checkout is built. What is left out: tests of DEBUG,
# replication, Lua, clusters, saved files, of more memory than a small machine has, and of how Redis
# encodes values. One thread: some tests send commands on several connections and take it for
# granted that they are run in the order in which they were sent.
set -eu
checkout=${1:?usage: redis.sh CHECKOUT [FILE ...]}
shift
here=$(cd "$(dirname "$0")/../../.." && pwd)
server=${NEARPM_SERVE:-$here/target/release/nearpm-serve}
files=${*:-unit/type/string unit/type/incr unit/bitops unit/bitfield unit/keyspace unit/expire unit/type/list unit/type/list-2 unit/type/list-3
    unit/type/set unit/type/hash unit/type/zset unit/sort unit/scan unit/protocol unit/multi unit/pubsub unit/dump unit/slowlog unit/introspection
    unit/info unit/other unit/querybuf unit/quit}
folder=$(mktemp -d)
"$server" redis --pool "$folder/pool" --bytes 256M --max-value 64M --survives process-crash --threads 1 --listen 127.0.0.1:0 >"$folder/ready" &
pid=$!
trap 'kill $pid; rm -r "$folder"' EXIT
while ! grep -q ready "$folder/ready"; do sleep 0.1; done
port=$(sed 's/.*://' "$folder/ready")
echo "| file | passed | failed |"
echo "|---|---:|---:|"
cd "$checkout"
for file in $files; do
    timeout 300 ./runtest --host 127.0.0.1 --port "$port" --singledb --ignore-encoding --ignore-digest --durable --clients 1 --single "$file" \
        --tags "-needs:debug -needs:repl -needs:save -needs:reset -large-memory -cluster -scripting" >"$folder/out" 2>&1 || true
    count() { sed 's/\x1b\[[0-9;]*m//g' "$folder/out" | grep -a -c "^\[$1\]" || true; }
    echo "| \`$file\` | $(count ok) | $(count err) |"
    sed 's/\x1b\[[0-9;]*m//g' "$folder/out" | grep -a '^\[err\]' >&2 || true
    kill -0 $pid
done
