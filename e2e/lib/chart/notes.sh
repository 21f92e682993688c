# The commands that the chart's notes tell, and what the agent answers through them.
# shellcheck shell=bash

# $1: what to find in a line of the notes. Their commands are run as they stand.
note() { helm get notes $RELEASE -n $NAMESPACE | sed -n 's/^    //p' | grep -F -- "$1"; }
run_note() { PATH="$(kube_dir):$PATH" bash -c "$(note "$1")"; }

incidents() { curl -fsS -m 5 localhost:10980/incidents; }
# Ids of deaths that have a verdict.
verdicts() {
    incidents | python3 -c 'import json, sys
print("\n".join(i["id"] for i in json.load(sys.stdin) if i["kind"] == "death" and "class" in i))'
}
first_class() {
    incidents | python3 -c 'import json, sys
print(next("{pod} {class} ({plane})".format(**i) for i in json.load(sys.stdin) if "class" in i))'
}
a_verdict() { answered && [ -n "$(verdicts)" ]; }

# The notes' command. It ends where there is no pod, or where nothing listens in it yet: then it is begun again.
answered() {
    incidents && return
    kill -0 "${FORWARD:-}" 2>/dev/null && return 1
    PATH="$(kube_dir):$PATH" setsid bash -c "$(note port-forward)" >"$WORK/forward.log" 2>&1 &
    FORWARD=$!
    return 1
}
forward() {
    stop_forward
    until_true 60 "port-forward" answered
}
stop_forward() {
    [ -z "${FORWARD:-}" ] || kill -- "-$FORWARD" 2>/dev/null
    FORWARD=
}
