// Fleet makes a cluster of thousands of pods out of recorded incidents.
//
// It creates fake nodes and pods by way of the API, writes their statuses and events as a kubelet would, and
// then stays: it renews the nodes' leases and answers as their kubelet (logs, stats, metrics, kern.log).
// Most pods are healthy. The others are folders of testdata/incidents; what a verdict on each must say is
// written to a JSON file, which nothing but tests may read.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

type options struct {
	kubeconfig, incidents, expect, pki, address string
	pods, nodes, namespaces, sick               int
	large                                       int64
}

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "")
	flag.StringVar(&o.incidents, "incidents", "testdata/incidents", "folder of labelled incidents")
	flag.StringVar(&o.expect, "expect", "fleet.json", "file that gets what is true of each sick pod")
	flag.StringVar(&o.pki, "pki", "", "folder with kubelet-server.{crt,key} and ca.crt")
	flag.StringVar(&o.address, "address", "10.244.0.1", "where the fake kubelets listen, from port 20000 on")
	flag.IntVar(&o.pods, "pods", 5000, "")
	flag.IntVar(&o.nodes, "nodes", 64, "")
	flag.IntVar(&o.namespaces, "namespaces", 20, "")
	flag.IntVar(&o.sick, "sick", 60, "at most one a node, so that a node's kernel log speaks of one")
	flag.Int64Var(&o.large, "large", 200<<20, "bytes of log of one of the sick pods")
	flag.Parse()

	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	check(err)
	config.QPS, config.Burst = 2000, 2000
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	check(err)

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	began := time.Now()
	incidents, err := loadIncidents(o.incidents, min(o.sick, o.nodes))
	check(err)
	f := newFleet(client, o)
	check(f.createNodes(ctx))
	// From here on, or the first nodes would be given up before the last pods are there.
	go f.renewLeases(ctx)
	check(f.createPods(ctx, incidents))
	check(f.listen(ctx))
	check(writeJSON(o.expect, f.expected))
	log.Printf("%d pods on %d nodes, %d of them sick, after %s", o.pods, o.nodes, len(f.expected), time.Since(began).Round(time.Second))
	<-ctx.Done()
}

func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	// Its being there says that the fleet is complete.
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
