// Prints the objects of YAML files as a JSON list, so that a script without a YAML parser can compare them.
//
//	objects FILE...   (- is standard input; a folder is what Kustomize makes of it)
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// documents adds what a file holds; strict refuses a key that stands twice.
func documents(file string, all []any) ([]any, error) {
	in, err := open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	reader := utilyaml.NewYAMLReader(bufio.NewReader(in))
	for {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		var object any
		if err := yaml.UnmarshalStrict(text, &object); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if object != nil {
			all = append(all, object)
		}
	}
}

func open(file string) (io.ReadCloser, error) {
	if file == "-" {
		return os.Stdin, nil
	}
	if info, err := os.Stat(file); err != nil || !info.IsDir() {
		return os.Open(file)
	}
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), file)
	if err != nil {
		return nil, err
	}
	text, err := made.AsYaml()
	return io.NopCloser(bytes.NewReader(text)), err
}

func main() {
	all := []any{}
	for _, file := range os.Args[1:] {
		var err error
		if all, err = documents(file, all); err != nil {
			fmt.Fprintln(os.Stderr, "objects:", err)
			os.Exit(1)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(all); err != nil {
		fmt.Fprintln(os.Stderr, "objects:", err)
		os.Exit(1)
	}
}
