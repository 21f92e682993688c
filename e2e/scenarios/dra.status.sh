#!/usr/bin/env bash
# The statuses that a driver, the scheduler and a kubelet would write for dra.yaml.
set -euo pipefail
uid=$(kubectl -n serving get pod dra -o 'jsonpath={.metadata.uid}')
now=$(date -u +%FT%TZ)
kubectl patch node dra-node-1 --subresource=status --type=merge -p "$(cat <<JSON
{"status": {"capacity": {"cpu": "128", "memory": "1Ti", "pods": "110"}, "allocatable": {"cpu": "128", "memory": "1Ti", "pods": "110"},
 "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": "$now", "lastTransitionTime": "$now"}]}}
JSON
)"
kubectl -n serving patch resourceclaim dra-gpu --subresource=status --type=merge -p "$(cat <<JSON
{"status": {"allocation": {"devices": {"results": [{"request": "gpu", "driver": "gpu.nvidia.com", "pool": "dra-node-1", "device": "gpu-0"}]},
  "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["dra-node-1"]}]}]}},
 "reservedFor": [{"resource": "pods", "name": "dra", "uid": "$uid"}]}}
JSON
)"
kubectl -n serving patch pod dra --subresource=status --type=merge -p "$(cat <<JSON
{"status": {"phase": "Running", "startTime": "$now", "hostIP": "203.0.113.9", "podIP": "203.0.113.10",
 "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady", "lastTransitionTime": "$now"},
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": "$now"}],
 "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "dra-gpu"}],
 "containerStatuses": [{"name": "vllm", "image": "docker.io/vllm/vllm-openai:v0.11.0", "imageID": "", "ready": false, "restartCount": 1,
   "started": false, "containerID": "containerd://d7a1000000000000000000000000000000000000000000000000000000000001",
   "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed container=vllm pod=dra_serving($uid)"}},
   "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "startedAt": "$now", "finishedAt": "$now",
     "containerID": "containerd://d7a1000000000000000000000000000000000000000000000000000000000000"}},
   "allocatedResourcesStatus": [{"name": "claim:gpu", "resources": [{"resourceID": "gpu.nvidia.com/gpu=gpu-0", "health": "Unknown"}]}]}]}}
JSON
)"
