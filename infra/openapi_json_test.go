package infra_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write openapi.yaml as JSON to shared/web/openapi.json")

// TestServedDescription compares the JSON that the function web serves with openapi.yaml.
func TestServedDescription(t *testing.T) {
	const served = "../shared/web/openapi.json"
	var doc map[string]any
	if err := yaml.Unmarshal(text(t, "openapi.yaml"), &doc); err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(doc); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(served, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(text(t, served), want.Bytes()) {
		t.Errorf("%s differs from openapi.yaml: run go test ./infra -run ServedDescription -update", served)
	}
}
