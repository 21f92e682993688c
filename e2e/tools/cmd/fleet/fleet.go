package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// Requests at once. More only wait in the API server's own queue.
const workers = 24

// On the nodes that no kubelet runs, as a label and as a taint.
const fakeLabel = "dualplane.dev/fake"

// expectation is what is true of a sick pod.
type expectation struct {
	Class     string  `json:"class"`
	Plane     string  `json:"plane"`
	Phase     *string `json:"phase"`
	Container string  `json:"container"`
	Incident  string  `json:"incident"`
	Large     bool    `json:"large_log,omitempty"`
}

type fleet struct {
	options
	client   kubernetes.Interface
	mu       sync.Mutex
	expected map[string]expectation
	// What the fake kubelets answer, by "namespace/pod/container" and by node.
	logs   map[string]containerLog
	kern   map[string]string
	pods   map[string][]*core.Pod
	status map[string]core.NodeStatus
}

func newFleet(client kubernetes.Interface, o options) *fleet {
	return &fleet{options: o, client: client, expected: map[string]expectation{}, logs: map[string]containerLog{},
		kern: map[string]string{}, pods: map[string][]*core.Pod{}, status: map[string]core.NodeStatus{}}
}

func nodeName(i int) string      { return fmt.Sprintf("fleet-%02d", i) }
func (f *fleet) ns(i int) string { return fmt.Sprintf("team-%02d", i%f.namespaces) }

func (f *fleet) createNodes(ctx context.Context) error {
	if err := inParallel(f.namespaces, func(i int) error { return f.namespace(ctx, f.ns(i)) }); err != nil {
		return err
	}
	return inParallel(f.nodes, func(i int) error { return f.node(ctx, i) })
}

func (f *fleet) createPods(ctx context.Context, incidents []*incident) error {
	return inParallel(f.options.pods, func(i int) error {
		if i < len(incidents) {
			return f.sickPod(ctx, i, incidents[i])
		}
		return f.healthyPod(ctx, i)
	})
}

// inParallel runs n pieces of work and ends with the first error.
func inParallel(n int, work func(int) error) error {
	next, failed := make(chan int), make(chan error, workers)
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			for i := range next {
				if err := work(i); err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wait.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

func (f *fleet) namespace(ctx context.Context, name string) error {
	_, err := f.client.CoreV1().Namespaces().Create(ctx, &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: name}}, meta.CreateOptions{})
	if err != nil && !errors.IsAlreadyExists(err) {
		return err
	}
	// Pods are refused until it is there.
	for range 300 {
		if _, err = f.client.CoreV1().ServiceAccounts(name).Get(ctx, "default", meta.GetOptions{}); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

func (f *fleet) node(ctx context.Context, i int) error {
	name := nodeName(i)
	amounts := core.ResourceList{"cpu": resource.MustParse("192"), "memory": resource.MustParse("2Ti"),
		"pods": resource.MustParse("250"), "nvidia.com/gpu": resource.MustParse("8")}
	node := &core.Node{
		ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{
			fakeLabel: "fleet", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
			"nvidia.com/gpu.present": "true", "nvidia.com/gpu.count": "8", "nvidia.com/gpu.memory": "81559",
			"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.family": "hopper",
			"nvidia.com/cuda.driver.major": "570", "nvidia.com/cuda.driver.minor": "86", "nvidia.com/mig.capable": "true",
		}},
		// The real node's pods must not land here: nothing would start them.
		Spec: core.NodeSpec{Taints: []core.Taint{{Key: fakeLabel, Effect: core.TaintEffectNoSchedule}}},
	}
	if _, err := f.client.CoreV1().Nodes().Create(ctx, node, meta.CreateOptions{}); err != nil && !errors.IsAlreadyExists(err) {
		return err
	}
	now := meta.Now()
	status := core.NodeStatus{
		Capacity: amounts, Allocatable: amounts,
		Addresses:       []core.NodeAddress{{Type: core.NodeInternalIP, Address: f.address}, {Type: core.NodeHostName, Address: name}},
		DaemonEndpoints: core.NodeDaemonEndpoints{KubeletEndpoint: core.DaemonEndpoint{Port: int32(firstPort + i)}},
		NodeInfo: core.NodeSystemInfo{KubeletVersion: "v1.36.3", ContainerRuntimeVersion: "containerd://2.2.1", OperatingSystem: "linux",
			Architecture: "amd64", KernelVersion: "6.8.0-1031-nvidia", OSImage: "Ubuntu 24.04.3 LTS"},
	}
	for kind, is := range map[core.NodeConditionType]core.ConditionStatus{core.NodeReady: "True", core.NodeMemoryPressure: "False",
		core.NodeDiskPressure: "False", core.NodePIDPressure: "False"} {
		status.Conditions = append(status.Conditions, core.NodeCondition{Type: kind, Status: is,
			Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now})
	}
	if err := f.renew(ctx, name); err != nil {
		return err
	}
	return f.setNodeStatus(ctx, name, status)
}

// setNodeStatus tries again: the controller-manager writes to nodes too.
func (f *fleet) setNodeStatus(ctx context.Context, name string, status core.NodeStatus) error {
	f.mu.Lock()
	f.status[name] = status
	f.mu.Unlock()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		fresh, err := f.client.CoreV1().Nodes().Get(ctx, name, meta.GetOptions{})
		if err != nil {
			return err
		}
		fresh.Status = status
		_, err = f.client.CoreV1().Nodes().UpdateStatus(ctx, fresh, meta.UpdateOptions{})
		return err
	})
}

func (f *fleet) renew(ctx context.Context, node string) error {
	leases := f.client.CoordinationV1().Leases("kube-node-lease")
	seconds, now := int32(40), meta.NowMicro()
	lease := &coordination.Lease{ObjectMeta: meta.ObjectMeta{Name: node},
		Spec: coordination.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: &seconds, RenewTime: &now}}
	_, err := leases.Create(ctx, lease, meta.CreateOptions{})
	if errors.IsAlreadyExists(err) {
		patch := fmt.Sprintf(`{"spec": {"renewTime": %q}}`, now.UTC().Format("2006-01-02T15:04:05.000000Z"))
		_, err = leases.Patch(ctx, node, types.MergePatchType, []byte(patch), meta.PatchOptions{})
	}
	return err
}

// renewLeases keeps the nodes Ready until the program is stopped.
func (f *fleet) renewLeases(ctx context.Context) {
	for {
		_ = inParallel(f.nodes, func(i int) error { return f.renew(ctx, nodeName(i)) })
		f.revive(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Second):
		}
	}
}

// revive makes nodes Ready again that were given up while this program did not run.
func (f *fleet) revive(ctx context.Context) {
	nodes, err := f.client.CoreV1().Nodes().List(ctx, meta.ListOptions{LabelSelector: fakeLabel})
	if err != nil {
		return
	}
	for _, node := range nodes.Items {
		for _, c := range node.Status.Conditions {
			if c.Type == core.NodeReady && c.Status != core.ConditionTrue {
				f.mu.Lock()
				status := f.status[node.Name]
				f.mu.Unlock()
				_ = f.setNodeStatus(ctx, node.Name, status)
			}
		}
	}
}

// start creates a pod that is bound already and writes its status.
func (f *fleet) start(ctx context.Context, pod *core.Pod, status func(*core.Pod) core.PodStatus) (*core.Pod, error) {
	pods := f.client.CoreV1().Pods(pod.Namespace)
	made, err := pods.Create(ctx, pod, meta.CreateOptions{})
	if errors.IsAlreadyExists(err) {
		made, err = pods.Get(ctx, pod.Name, meta.GetOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("%s/%s: %w", pod.Namespace, pod.Name, err)
	}
	wanted := status(made)
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		made.Status = wanted
		updated, err := pods.UpdateStatus(ctx, made, meta.UpdateOptions{})
		if errors.IsConflict(err) {
			if fresh, gone := pods.Get(ctx, pod.Name, meta.GetOptions{}); gone == nil {
				made = fresh
			}
			return err
		}
		if err == nil {
			made = updated
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s/%s: %w", pod.Namespace, pod.Name, err)
	}
	f.mu.Lock()
	f.pods[pod.Spec.NodeName] = append(f.pods[pod.Spec.NodeName], made)
	f.mu.Unlock()
	return made, nil
}

var no = false

func (f *fleet) healthyPod(ctx context.Context, i int) error {
	app := fmt.Sprintf("llm-%02d", i/f.namespaces%10)
	began := meta.NewTime(time.Now().Add(-time.Duration(1+i%240) * time.Hour))
	image, container, log := "vllm/vllm-openai:v0.11.0", "vllm", healthyLog
	args := []string{"--model=Qwen/Qwen3-32B", "--max-model-len=16384"}
	limits := core.ResourceList{"memory": resource.MustParse("64Gi"), "nvidia.com/gpu": resource.MustParse("1")}
	// A few models a node, as it has 8 GPUs and a sick pod may hold some; the rest is what else runs in a cluster.
	if i/f.nodes > 4 {
		app, image, container, args, log = fmt.Sprintf("web-%02d", i/f.namespaces%10), "nginx:1.29", "web", nil, "start worker processes\n"
		limits = core.ResourceList{"memory": resource.MustParse("512Mi")}
	}
	pod := &core.Pod{
		ObjectMeta: meta.ObjectMeta{Namespace: f.ns(i), Name: fmt.Sprintf("%s-%s-%s", app, "7f9c6d5b84", suffix(i)),
			Labels: map[string]string{"app": app, "pod-template-hash": "7f9c6d5b84"}},
		Spec: core.PodSpec{NodeName: nodeName(i % f.nodes), AutomountServiceAccountToken: &no,
			Tolerations: []core.Toleration{{Operator: core.TolerationOpExists}},
			Containers: []core.Container{{Name: container, Image: image, Args: args,
				Resources: core.ResourceRequirements{Limits: limits}}}},
	}
	made, err := f.start(ctx, pod, func(p *core.Pod) core.PodStatus {
		yes := true
		return core.PodStatus{Phase: core.PodRunning, StartTime: &began, HostIP: f.address, PodIP: fmt.Sprintf("10.%d.%d.%d", 100+i>>16, i>>8&255, i&255),
			Conditions: []core.PodCondition{{Type: core.PodReady, Status: "True", LastTransitionTime: began}, {Type: core.ContainersReady, Status: "True", LastTransitionTime: began},
				{Type: core.PodInitialized, Status: "True", LastTransitionTime: began}, {Type: core.PodScheduled, Status: "True", LastTransitionTime: began}},
			ContainerStatuses: []core.ContainerStatus{{Name: container, Image: image, ImageID: image, Ready: true, Started: &yes,
				ContainerID: "containerd://" + strings.Repeat(strings.ReplaceAll(string(p.UID), "-", ""), 2),
				State:       core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: began}}}}}
	})
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.logs[made.Namespace+"/"+made.Name+"/"+container] = containerLog{current: log}
	f.mu.Unlock()
	return nil
}

// suffix is unlike that of any other i, in the letters that Kubernetes uses for names.
func suffix(i int) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	out := make([]byte, 5)
	for k := range out {
		out[k] = letters[(i+k*7)%len(letters)]
		i /= len(letters)
	}
	return string(out)
}

// A name that ends as a ReplicaSet lets its pods' names end.
var generated = regexp.MustCompile(`-[a-z0-9]{5}$`)

var hexUID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

func (f *fleet) sickPod(ctx context.Context, i int, in *incident) error {
	// Ended one to thirty minutes ago, to the second, so that no two are alike.
	by := time.Duration(0)
	if !in.died.IsZero() {
		by = time.Until(in.died).Truncate(time.Second)*-1 - time.Duration(60+i*29)*time.Second
	}
	pod := in.pod.DeepCopy()
	old := *in.pod.ObjectMeta.DeepCopy()
	oldNode := pod.Spec.NodeName
	pod.ObjectMeta = meta.ObjectMeta{Namespace: f.ns(i), Name: old.Name, Labels: old.Labels, Annotations: old.Annotations}
	delete(pod.Annotations, "kubectl.kubernetes.io/last-applied-configuration")
	if generated.MatchString(pod.Name) {
		pod.Name = pod.Name[:len(pod.Name)-5] + suffix(i)
	} else {
		pod.Name += "-" + suffix(i)
	}
	spec := &pod.Spec
	spec.NodeName, spec.AutomountServiceAccountToken = nodeName(i%f.nodes), &no
	spec.ServiceAccountName, spec.DeprecatedServiceAccount, spec.PriorityClassName, spec.Priority = "", "", "", nil
	spec.Tolerations = []core.Toleration{{Operator: core.TolerationOpExists}}
	withoutToken(spec)

	var rename func(string) string
	made, err := f.start(ctx, pod, func(p *core.Pod) core.PodStatus {
		pairs := []string{}
		if hexUID.MatchString(string(old.UID)) {
			pairs = append(pairs, string(old.UID), string(p.UID),
				strings.ReplaceAll(string(old.UID), "-", "_"), strings.ReplaceAll(string(p.UID), "-", "_"))
		}
		pairs = append(pairs, old.Name, p.Name)
		if oldNode != "" {
			pairs = append(pairs, oldNode, spec.NodeName)
		}
		// Namespaces are words of other uses; events and kernel lines have them in these places only.
		pairs = append(pairs, "/"+old.Namespace+"/", "/"+p.Namespace+"/", "_"+old.Namespace+"(", "_"+p.Namespace+"(")
		replacer := strings.NewReplacer(pairs...)
		rename = func(s string) string { return shift(replacer.Replace(s), by, in.died.Year()) }
		changed := &core.Pod{}
		if json.Unmarshal([]byte(rename(in.podText)), changed) != nil {
			changed = in.pod
		}
		changed.Status.HostIP, changed.Status.HostIPs = f.address, nil
		return changed.Status
	})
	if err != nil {
		return fmt.Errorf("%s: %w", in.slug, err)
	}
	if err := f.writeEvents(ctx, made, in, rename); err != nil {
		return fmt.Errorf("%s: events: %w", in.slug, err)
	}

	key := made.Namespace + "/" + made.Name
	log := containerLog{previous: rename(in.previous), current: rename(in.current)}
	if !running(made, in.container) && log.current == "" {
		// Between two lives, the last one is also the current one.
		log.current = log.previous
	}
	log.hasPrevious = restarted(made, in.container)
	if log.current == "" && !log.hasPrevious {
		log.current = log.previous
	}
	e := expectation{Class: in.truth.Class, Plane: in.truth.Plane, Phase: in.truth.Phase, Container: in.container, Incident: in.slug}
	f.mu.Lock()
	defer f.mu.Unlock()
	// The first one whose end is in the log of its former life gets the large log.
	if f.large > 0 && log.hasPrevious && in.truth.Class == "cuda_oom_runtime" && len(in.previous) > 0 {
		log.filler, e.Large, f.large = f.large, true, 0
	}
	f.logs[key+"/"+in.container] = log
	f.kern[spec.NodeName] = rename(in.kernel)
	f.expected[key] = e
	return nil
}

func withoutToken(spec *core.PodSpec) {
	var volumes []core.Volume
	for _, v := range spec.Volumes {
		if !strings.HasPrefix(v.Name, "kube-api-access") {
			volumes = append(volumes, v)
		}
	}
	spec.Volumes = volumes
	for _, list := range [][]core.Container{spec.Containers, spec.InitContainers} {
		for k := range list {
			var mounts []core.VolumeMount
			for _, m := range list[k].VolumeMounts {
				if !strings.HasPrefix(m.Name, "kube-api-access") {
					mounts = append(mounts, m)
				}
			}
			list[k].VolumeMounts = mounts
		}
	}
}

func statusOf(pod *core.Pod, container string) core.ContainerStatus {
	for _, c := range append(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses...) {
		if c.Name == container {
			return c
		}
	}
	return core.ContainerStatus{}
}

func running(pod *core.Pod, container string) bool {
	return statusOf(pod, container).State.Running != nil
}
func restarted(pod *core.Pod, container string) bool {
	return statusOf(pod, container).LastTerminationState.Terminated != nil
}

func (f *fleet) writeEvents(ctx context.Context, pod *core.Pod, in *incident, rename func(string) string) error {
	if in.events == "" {
		return nil
	}
	// A fleet that is taken up again has written them already.
	written, err := f.client.CoreV1().Events(pod.Namespace).List(ctx, meta.ListOptions{Limit: 1, FieldSelector: "involvedObject.uid=" + string(pod.UID)})
	if err != nil || len(written.Items) > 0 {
		return err
	}
	var list core.EventList
	if err := json.Unmarshal([]byte(rename(in.events)), &list); err != nil {
		return nil
	}
	for n, e := range list.Items {
		// An event about a node lies in the namespace default, as the kubelet puts it.
		e.ObjectMeta = meta.ObjectMeta{Namespace: pod.Namespace, Name: fmt.Sprintf("%s.%x", pod.Name, time.Now().UnixNano()+int64(n))}
		switch e.InvolvedObject.Kind {
		case "Pod":
			if e.InvolvedObject.Name == pod.Name {
				e.InvolvedObject.UID = pod.UID
			}
			e.InvolvedObject.Namespace = pod.Namespace
		case "Node":
			e.Namespace, e.InvolvedObject.Namespace = "default", ""
		default:
			e.InvolvedObject.Namespace = pod.Namespace
		}
		if _, err := f.client.CoreV1().Events(e.Namespace).Create(ctx, &e, meta.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}
