package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
)

// incident is a folder of evidence, as far as a cluster can show it.
type incident struct {
	slug              string
	truth             truth
	pod               *core.Pod
	podText           string
	previous, current string
	kernel, events    string
	container         string
	died              time.Time
}

type truth struct {
	Class string  `json:"class"`
	Plane string  `json:"plane"`
	Phase *string `json:"phase"`
}

// What a cluster can show. A folder with other evidence (a metrics dump, a cgroup's files) is left out: its
// label may rest on it.
var shown = []string{"pod.json", "events.json", "kernel.log", "previous.log", "current.log", "node.json", "truth.json", "expected.txt"}

// Logs as a container wrote them; some folders hold them as Docker or CRI wrapped them.
var wrapped = regexp.MustCompile(`^(\{"|\d{4}-\d\d-\d\dT\S+ (stdout|stderr) [FP] )`)

func read(dir, name string) string {
	text, _ := os.ReadFile(filepath.Join(dir, name))
	return string(text)
}

// loadIncidents takes n incidents, as evenly over the classes as they come.
func loadIncidents(root string, n int) ([]*incident, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	byClass := map[string][]*incident{}
	for _, entry := range entries {
		if i := loadIncident(filepath.Join(root, entry.Name())); i != nil {
			byClass[i.truth.Class] = append(byClass[i.truth.Class], i)
		}
	}
	var classes []string
	for class := range byClass {
		classes = append(classes, class)
	}
	slices.Sort(classes)
	var out []*incident
	for round := 0; len(out) < n; round++ {
		before := len(out)
		for _, class := range classes {
			if round < len(byClass[class]) && len(out) < n {
				out = append(out, byClass[class][round])
			}
		}
		if len(out) == before {
			break
		}
	}
	return out, nil
}

func loadIncident(dir string) *incident {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, f := range files {
		if !slices.Contains(shown, f.Name()) {
			return nil
		}
	}
	i := &incident{
		slug: filepath.Base(dir), podText: read(dir, "pod.json"), previous: read(dir, "previous.log"),
		current: read(dir, "current.log"), kernel: read(dir, "kernel.log"), events: read(dir, "events.json"),
	}
	if json.Unmarshal([]byte(read(dir, "truth.json")), &i.truth) != nil || wrapped.MatchString(i.previous) {
		return nil
	}
	// kubectl's own sentence about a log that is gone: the fake kubelet says it in its own words.
	if strings.HasPrefix(i.previous, "Error from server") || strings.HasPrefix(i.previous, "unable to retrieve") {
		i.previous = ""
	}
	if i.podText == "" {
		// A log alone is of an engine that ended by itself. A kill would need its kernel record's pod.
		if i.previous == "" || i.truth.Plane != "gpu" || i.kernel != "" || i.events != "" {
			return nil
		}
		i.podText = plainPod(i.slug, lastTime(i.previous))
	}
	i.pod = &core.Pod{}
	if json.Unmarshal([]byte(i.podText), i.pod) != nil || i.pod.Kind != "Pod" || len(i.pod.Spec.Containers) == 0 ||
		i.pod.DeletionTimestamp != nil || len(i.pod.Status.ContainerStatuses) == 0 {
		return nil
	}
	i.container, i.died = death(i.pod)
	return i
}

// death says which container ended, and when: an OOM kill before a SIGKILL before any other code.
func death(pod *core.Pod) (string, time.Time) {
	best, name, at := -1, pod.Status.ContainerStatuses[0].Name, time.Time{}
	if pod.Status.StartTime != nil {
		at = pod.Status.StartTime.Time
	}
	for _, c := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		for _, t := range []*core.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if t == nil {
				continue
			}
			weight := 0
			switch {
			case t.Reason == "OOMKilled":
				weight = 3
			case t.ExitCode == 137 || t.ExitCode == 135:
				weight = 2
			case t.ExitCode != 0:
				weight = 1
			}
			if weight > best {
				best, name = weight, c.Name
				if !t.FinishedAt.IsZero() {
					at = t.FinishedAt.Time
				}
			}
		}
	}
	return name, at
}

// engine images by the first word of a folder's name.
var images = map[string]string{
	"vllm": "vllm/vllm-openai:v0.11.0", "sglang": "lmsysorg/sglang:v0.5.4", "llama": "ghcr.io/ggml-org/llama.cpp:server-cuda",
	"tgi": "ghcr.io/huggingface/text-generation-inference:3.3.4", "ollama": "ollama/ollama:0.12.6",
	"pytorch": "registry.local/serving/torch:2.8", "triton": "nvcr.io/nvidia/tritonserver:25.09-py3",
	"tensorrt": "nvcr.io/nvidia/tensorrt-llm/release:1.0.0", "ray": "rayproject/ray-llm:2.49.0", "unknown": "registry.local/serving/llm:1",
}

// plainPod is the pod of an engine that ended by itself at that moment and waits for its next start.
func plainPod(slug string, died time.Time) string {
	image := images[strings.SplitN(slug, "-", 2)[0]]
	if image == "" {
		image = images["unknown"]
	}
	before := func(d time.Duration) string { return died.Add(-d).Format(time.RFC3339) }
	const id = "containerd://aaaaaaaaaaaaaaaa1b2c3d4e1b2c3d4e1b2c3d4e1b2c3d4e1b2c3d4e1b2c3d4e"
	return `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "llm-7c5b84d9f6-x2lqm"},
 "spec": {"nodeName": "gpu-07", "containers": [{"name": "server", "image": "` + image + `",
   "resources": {"limits": {"memory": "64Gi", "nvidia.com/gpu": "1"}}}]},
 "status": {"phase": "Running", "startTime": "` + before(9*time.Hour) + `", "containerStatuses": [{"name": "server",
   "image": "` + image + `", "imageID": "", "ready": false, "started": false, "restartCount": 2, "containerID": "` + id + `",
   "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 20s restarting failed container=server"}},
   "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "startedAt": "` + before(8*time.Hour) + `",
     "finishedAt": "` + before(0) + `", "containerID": "` + id + `"}}}]}}`
}
