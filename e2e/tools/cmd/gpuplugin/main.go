// Gpuplugin advertises two made-up GPUs of the resource nvidia.com/gpu to the kubelet of this machine.
//
// It does what NVIDIA's plugin does as far as Kubernetes sees it: ids are GPU UUIDs, a pod gets them in
// NVIDIA_VISIBLE_DEVICES. No device file is handed out, since there is none.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const resource = "nvidia.com/gpu"

// A file next to the socket with ids in it: these are reported unhealthy, as after an Xid.
const unhealthyFile = "dualplane-e2e-unhealthy"

type plugin struct {
	api.UnimplementedDevicePluginServer
	ids []string
}

func (p plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{GetPreferredAllocationAvailable: true}, nil
}

// The first ones that are free: without a wish the kubelet takes any, and a test could name none.
func (p plugin) GetPreferredAllocation(_ context.Context, r *api.PreferredAllocationRequest) (*api.PreferredAllocationResponse, error) {
	out := &api.PreferredAllocationResponse{}
	for _, container := range r.ContainerRequests {
		free := slices.Clone(container.AvailableDeviceIDs)
		slices.SortFunc(free, func(a, b string) int { return slices.Index(p.ids, a) - slices.Index(p.ids, b) })
		out.ContainerResponses = append(out.ContainerResponses, &api.ContainerPreferredAllocationResponse{
			DeviceIDs: free[:min(int(container.AllocationSize), len(free))],
		})
	}
	return out, nil
}

func (p plugin) devices() []*api.Device {
	sick, _ := os.ReadFile(filepath.Join(api.DevicePluginPath, unhealthyFile))
	var out []*api.Device
	for _, id := range p.ids {
		health := api.Healthy
		if strings.Contains(string(sick), id) {
			health = api.Unhealthy
		}
		out = append(out, &api.Device{ID: id, Health: health})
	}
	return out
}

func (p plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	for {
		if err := stream.Send(&api.ListAndWatchResponse{Devices: p.devices()}); err != nil {
			return err
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

func (p plugin) Allocate(_ context.Context, r *api.AllocateRequest) (*api.AllocateResponse, error) {
	out := &api.AllocateResponse{}
	for _, container := range r.ContainerRequests {
		out.ContainerResponses = append(out.ContainerResponses, &api.ContainerAllocateResponse{
			Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(container.DevicesIds, ",")},
		})
	}
	return out, nil
}

// serve registers and answers until the kubelet's socket is another one: a restarted kubelet forgets.
func serve(p plugin) error {
	socket := filepath.Join(api.DevicePluginPath, "dualplane-e2e.sock")
	_ = os.Remove(socket)
	before, err := os.Stat(api.KubeletSocket)
	if err != nil {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, p)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	kubelet, err := grpc.NewClient("unix://"+api.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer kubelet.Close()
	_, err = api.NewRegistrationClient(kubelet).Register(context.Background(), &api.RegisterRequest{
		Version: api.Version, Endpoint: filepath.Base(socket), ResourceName: resource,
	})
	if err != nil {
		return err
	}
	log.Printf("registered %s: %s", resource, strings.Join(p.ids, " "))
	for {
		time.Sleep(time.Second)
		now, err := os.Stat(api.KubeletSocket)
		if err != nil || !os.SameFile(before, now) || !now.ModTime().Equal(before.ModTime()) {
			return err
		}
	}
}

func main() {
	ids := flag.String("ids", "GPU-5fd4f087-86f3-7a43-b711-4771313afc50,GPU-9c1b0f7e-2d3a-4e5f-8a6b-7c8d9e0f1a2b", "")
	flag.Parse()
	for {
		if err := serve(plugin{ids: strings.Split(*ids, ",")}); err != nil {
			log.Print(err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}
