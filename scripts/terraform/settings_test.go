package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestEnvironmentsHaveTheSameSettings compares the declarations of the settings of all environments, byte for byte:
// what an operator can set in one can be set in each.
func TestEnvironmentsHaveTheSameSettings(t *testing.T) {
	files, err := filepath.Glob("../../terraform/envs/*/settings.tf")
	envs, wrong := filepath.Glob("../../terraform/envs/*/main.tf")
	if err != nil || wrong != nil || len(files) < 2 || len(files) != len(envs) {
		t.Fatalf("%d settings of %d environments: %v %v", len(files), len(envs), err, wrong)
	}
	first, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files[1:] {
		data, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(data, first) {
			t.Errorf("%s is not %s: %v", file, files[0], err)
		}
	}
}
