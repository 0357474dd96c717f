package infra_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"google.golang.org/api/cloudbuild/v1"
)

// TestCloudBuild decodes the sample with Cloud Build's types, and compares its commands with those in
// terraform/README.md.
func TestCloudBuild(t *testing.T) {
	sample := text(t, "cloudbuild.yaml")
	var plain any
	if err := yaml.Unmarshal(sample, &plain); err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(plain)
	if err != nil {
		t.Fatal(err)
	}
	var build cloudbuild.Build
	strict := json.NewDecoder(bytes.NewReader(asJSON))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&build); err != nil {
		t.Fatal(err)
	}
	readme, module := string(text(t, "../terraform/README.md")), string(text(t, "../go.mod"))
	goVersion := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(module)[1]
	for _, s := range build.Steps {
		command := s.Script
		if len(s.Args) > 0 {
			command = strings.Join(s.Args, " ")
			dir := filepath.Join("..", strings.TrimPrefix(s.Args[0], "-chdir="))
			for _, arg := range s.Args {
				file, is := strings.CutPrefix(strings.ReplaceAll(arg, "${_ENVIRONMENT}", "dev"), "-var-file=")
				if _, err := os.Stat(filepath.Join(dir, file)); is && err != nil {
					t.Errorf("%s: %v", s.Id, err)
				}
			}
		}
		if strings.HasPrefix(s.Name, "golang:") && s.Name != "golang:"+goVersion {
			t.Errorf("%s runs in %s, but go.mod has %s", s.Id, s.Name, goVersion)
		}
		if strings.HasPrefix(command, "go run ") && !strings.Contains(readme, "    "+command+"\n") {
			t.Errorf("terraform/README.md does not have %q", command)
		}
	}
	for name := range build.Substitutions {
		if !strings.Contains(string(sample), "${"+name+"}") {
			t.Errorf("unused substitution %s", name)
		}
	}
}
