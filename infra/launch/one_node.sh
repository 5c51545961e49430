set -euo pipefail
cd {{ repository }}
export PATH="$PWD/.venv/bin:$PATH"
{% if gpus %}

# gpu[0], gpu[1] ... are the GPUs that a scheduler has given this script, or else all.
IFS=, read -r -a gpu <<<"${CUDA_VISIBLE_DEVICES:-{{ range(per_node) | join(",") }}}"
if [ "${#gpu[@]}" -lt {{ per_node }} ]; then
  echo "this script needs {{ per_node }} GPUs, and CUDA_VISIBLE_DEVICES gives it ${#gpu[@]}" >&2
  exit 2
fi
export CUDA_VISIBLE_DEVICES="{{ visible(0, ranks) }}"  # for the ranks
{% endif %}

# Commands run in the background, since bash handles a signal only after a command in the foreground has ended.
running=()
run() {
  "$@" &
  running=("$!")
  local code=0
  wait "${running[0]}" || code=$?
  running=()
  return "$code"
}

# However this script ends, it ends what it started: first politely, and after a minute by force.
servers=()
end_all() {
  local process second
  for process in "$@"; do kill "$process" 2>/dev/null || true; done
  for process in "$@"; do
    for ((second = 0; second < 60; second++)); do
      kill -0 "$process" 2>/dev/null || break
      sleep 1
    done
    kill -9 "$process" 2>/dev/null || true
  done
}
trap 'end_all "${running[@]}" "${servers[@]}"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
{% if servers %}

logs={{ folder }}/logs
ports=()
serve() {  # HOST PORT{{ " GPUS" if gpus }}
  : >"$logs/server-$2.out"  # nothing of an earlier attempt
  {{ 'CUDA_VISIBLE_DEVICES="$3" ' if gpus }}python -m skillpress.models.engines.serve \
    --model {{ folder }}/models/base --host "$1" --port "$2" --longest {{ servers[0].longest }} \
    --dtype {{ servers[0].dtype }} --slots {{ servers[0].slots }} --cache-gib {{ servers[0].cache_gib }} \
    --gpus {{ servers[0].gpus if gpus else 1 }} --wait {{ wait }} --log "$logs/server-$2.log" \
    >>"$logs/server-$2.out" 2>&1 &
  servers+=("$!")
  ports+=("$2")
}

start_servers() {
  mkdir -p "$logs"
{% for server in servers %}
  serve {{ server.host }} {{ server.port }}{{ ' "' ~ visible(ranks + loop.index0 * server.gpus, server.gpus) ~ '"' if gpus }}
{% endfor %}
  local until=$((SECONDS + {{ wait + 60 }})) number out
  for number in "${!servers[@]}"; do
    out=$logs/server-${ports[number]}.out
    until grep -q '^ready: ' "$out"; do
      if ! kill -0 "${servers[number]}" 2>/dev/null || ((SECONDS > until)); then
        echo "the server on port ${ports[number]} did not come; its log is $logs/server-${ports[number]}.log" >&2
        tail -n 3 "$out" >&2
        return 2
      fi
      sleep 1
    done
    tail -n 1 "$out"
  done
}

end_servers() {
  end_all "${servers[@]}"
  servers=() ports=()
}

# The servers begin with the policy that training starts from.
run python -m skillpress.pipeline.reproduce {{ options }}--stages prepare_policy
{% endif %}

# The experiment starts its ranks itself. If one is lost, the next attempt goes on from the last checkpoint{{ ", with
# new servers" if servers }}. Exit code 2 is a mistake that another attempt would repeat.
for attempt in 1 2 3; do
  code=0
{% if servers %}
  start_servers || code=$?
  if [ "$code" -eq 0 ]; then
    run python -m skillpress.pipeline.reproduce {{ options }}|| code=$?
  fi
  end_servers
{% else %}
  run python -m skillpress.pipeline.reproduce {{ options }}|| code=$?
{% endif %}
  if [ "$code" -eq 0 ] || [ "$code" -eq 2 ]; then break; fi
  echo "attempt $attempt ended with exit code $code" >&2
done
exit "$code"
