package infra_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// copied matches the files that a Dockerfile copies from the repository. built matches the command that builds the
// outlet.
var (
	copied = regexp.MustCompile(`(?m)^COPY ([^-].*) \S+$`)
	built  = regexp.MustCompile(`(?m)^RUN (.* )go build (.*) -o /countersign-outlet (\S+)$`)
)

// TestImagesBuildTheOutlet builds the outlet of each Dockerfile from the files that it copies, with no network and no
// downloaded module.
func TestImagesBuildTheOutlet(t *testing.T) {
	files, err := filepath.Glob("images/*.Dockerfile")
	if err != nil || len(files) != 3 {
		t.Fatalf("%q, %v; want three Dockerfiles", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		for _, line := range copied.FindAllStringSubmatch(string(text), -1) {
			for name := range strings.FieldsSeq(line[1]) {
				to := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
					t.Fatal(err)
				}
				if out, err := exec.Command("cp", "-r", filepath.Join("..", name), to).CombinedOutput(); err != nil {
					t.Fatalf("%s copies %s: %v %s", file, name, err, out)
				}
			}
		}
		run := built.FindStringSubmatch(string(text))
		if run == nil {
			t.Errorf("%s has no command that builds the outlet", file)
			continue
		}
		args := append([]string{"build"}, strings.Fields(run[2])...)
		cmd := exec.Command("go", append(args, "-o", filepath.Join(dir, "outlet"), run[3])...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), append(strings.Fields(run[1]), "GOFLAGS=", "GOMODCACHE="+dir+"/none")...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
}
