#!/bin/sh
# A pipeline of shell commands whose pipes are queues: the largest of the squares of 1 to 1000.
#
#     PRESSURE_URL=redis://localhost:6379 sh examples/shell_pipeline.sh [PREFIX]
#
# Each of the three commands could run on a machine of its own, with the same PRESSURE_URL. The
# queues are called PREFIX-numbers and PREFIX-squares. PYTHON names the interpreter, else python3.

set -eu

pump() {
    "${PYTHON:-python3}" "$(dirname "$0")/pump.py" "$@"
}

prefix=${1:-shell-pipeline}

seq 1 1000 | pump in "$prefix-numbers" &
pump out "$prefix-numbers" | awk '{ print $1 * $1 }' | pump in "$prefix-squares" &
pump out "$prefix-squares" | sort -n | tail -n 1

wait
