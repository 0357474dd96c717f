package docker_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/podman"
	"github.com/countersign-run/countersign/shared/tools/container"
	engine "github.com/countersign-run/countersign/shared/tools/container/docker"
	"github.com/countersign-run/countersign/shared/tools/container/outlet"
	"github.com/countersign-run/countersign/shared/tools/docker"
)

// commitFiles is a source with the files of one commit.
type commitFiles map[string]string

// Snapshot implements [docker.Source].
func (f commitFiles) Snapshot(context.Context, tool.Call, string, string, string) (s container.Snapshot, err error) {
	for name, content := range f {
		s.Entries = append(s.Entries, container.Entry{Path: name, Content: []byte(content)})
	}
	return s, nil
}

// mirror is the address of the local proxy for the containers.
const mirror = "http://packages.example:8080"

const depsModule, depsVersion = "example.com/greet", "v1.0.0"

// moduleProxy returns a local Go module proxy with one module, and go.mod and go.sum of a module that requires it.
func moduleProxy(t *testing.T) (srv *httptest.Server, files commitFiles) {
	t.Helper()
	mod := "module " + depsModule + "\n\ngo 1.24\n"
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	inModule := map[string]string{depsModule + "@" + depsVersion + "/go.mod": mod,
		depsModule + "@" + depsVersion + "/greet.go": "package greet\n\nconst Hello = 1\n"}
	for name, content := range inModule {
		f, err := w.Create(name)
		if err == nil {
			_, err = f.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	sum, modSum := h1(inModule), h1(map[string]string{"go.mod": mod})
	at := "/" + depsModule + "/@v/" + depsVersion
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case at + ".info":
			fmt.Fprintf(w, `{"Version":%q}`, depsVersion)
		case at + ".mod":
			fmt.Fprint(w, mod)
		case at + ".zip":
			_, _ = w.Write(packed.Bytes())
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	module := "module example.com/web\n\ngo 1.24\n\nrequire " + depsModule + " " + depsVersion + "\n"
	sums := fmt.Sprintf("%s %s %s\n%[1]s %[2]s/go.mod %[4]s\n", depsModule, depsVersion, sum, modSum)
	return srv, commitFiles{"web/go.mod": module, "web/go.sum": sums, "web/package-lock.json": "{}"}
}

// h1 returns the hash of a module's files, as go.sum has it.
func h1(files map[string]string) string {
	all := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(all, "%x  %s\n", sha256.Sum256([]byte(files[name])), name)
	}
	return "h1:" + base64.StdEncoding.EncodeToString(all.Sum(nil))
}

// toolchain is an image with Go's command and the program of infra/images.
const toolchain = "localhost/toolchain:1"

// fetching returns the tools on Podman, with an image that can fetch from the hosts. All hosts are the local proxy. Its
// real address cannot be used, because programs do not send requests for loopback addresses to a proxy.
func fetching(t *testing.T, proxy *httptest.Server, files commitFiles, hosts ...string) *real {
	t.Helper()
	host := podman.Start(t)
	program := filepath.Join(t.TempDir(), "outlet")
	build := exec.Command("go", "build", "-o", program, "../../../infra/images/outlet")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	said, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	goroot := strings.TrimSpace(string(said))
	host.Toolchain(toolchain, map[string]string{"/usr/local/bin/countersign-outlet": program,
		"/usr/local/go/bin/go":  filepath.Join(goroot, "bin", "go"),
		"/usr/local/go/VERSION": filepath.Join(goroot, "VERSION"),
		"/usr/local/go/go.env":  filepath.Join(goroot, "go.env")})
	e, err := engine.Open(engine.Config{Host: host.Host})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() }) // it never fails
	packages := packagesOf(t, hosts...)
	packages.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, proxy.Listener.Addr().String())
	}
	return &real{host: host, tools: docker.New(docker.Options{Engine: e, Images: []string{image, toolchain},
		Checkouts: files, Packages: packages})}
}

func fetchArgs(change map[string]any) map[string]any {
	args := map[string]any{"image": toolchain, "owner": "acme", "repo": "web", "commit": strings.Repeat("0c", 20),
		"path": "web/go.sum"}
	maps.Copy(args, change)
	return args
}

// approvedFetch returns a completed call, and the text of its card.
func (r *real) approvedFetch(t *testing.T, change map[string]any) (tool.Call, string) {
	t.Helper()
	c, err := r.prepared(t, docker.FetchDependencies, fetchArgs(change))
	if err == nil {
		c.Args, err = r.tools[docker.FetchDependencies].Complete(t.Context(), c)
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.tools[docker.FetchDependencies].Preview(c.Args)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range p.Fields {
		fmt.Fprintf(&b, "%s: %s\n", f.Label, f.Value)
	}
	return c, b.String()
}

// TestFetchedDependencies makes Go's command install a module from a local proxy, in a container without a network. A
// later container has the module, read-only.
func TestFetchedDependencies(t *testing.T) {
	srv, files := moduleProxy(t)
	r := fetching(t, srv, files, "go="+mirror)
	fetch := r.tools[docker.FetchDependencies]
	c, card := r.approvedFetch(t, nil)
	for _, want := range []string{"Lock file: web/go.sum", "SHA-256 of web/go.sum: " + sumOf(files["web/go.sum"]),
		"SHA-256 of web/go.mod: " + sumOf(files["web/go.mod"]), "go mod download", "alone: go=" + mirror,
		"Volume: countersign-deps-"} {
		if !strings.Contains(card, want) {
			t.Errorf("the card lacks %q: %s", want, card)
		}
	}
	var got docker.Fetched
	for try := range 2 { // the second attempt finds everything installed
		raw, err := fetch.Execute(t.Context(), c)
		if err == nil {
			err = json.Unmarshal(raw, &got)
		}
		if err != nil || got.Volume == "" || len(got.Refused) > 0 ||
			strings.Contains(got.Output, "before") != (try == 1) {
			t.Fatalf("try %d: %+v, %v: %s", try, got, err, tool.PartialResult(err))
		}
	}
	if n := r.host.Containers(); n != 0 {
		t.Errorf("%d containers are left", n)
	}
	id := must[docker.Created](t, r, docker.Create, map[string]any{"options": map[string]any{"image": toolchain,
		"memory": 256, "dependencies": got.Volume, "checkout": map[string]any{"owner": "acme", "repo": "web",
			"commit": strings.Repeat("0c", 20)}}}).ID
	ran := must[docker.Result](t, r, docker.Script, script(id, "cat /deps/go/example.com/greet@v1.0.0/greet.go\n"+
		"echo x 2>/dev/null >/deps/x || echo read-only; ls /sys/class/net; env | grep -c GOPROXY=off\n"+
		"cd web; go mod verify; go list -f {{.Dir}} -m example.com/greet"))
	if !strings.HasPrefix(ran.Stdout, "package greet\n\nconst Hello = 1\nread-only\nlo\n1\nall modules verified\n"+
		"/deps/go/example.com/greet@v1.0.0\n") {
		t.Errorf("the container has %+v", ran)
	}
	n, err := fetch.Dispose(t.Context(), c)
	if err != nil || n != 2 || r.host.Volumes() != 0 || r.host.Containers() != 0 {
		t.Errorf("%d were removed, %v; %d volumes are left", n, err, r.host.Volumes())
	}
}

// TestFetchOtherHosts makes the installer use a host that the operator does not allow, and files that differ from the
// lock file.
func TestFetchOtherHosts(t *testing.T) {
	srv, files := moduleProxy(t)
	r := fetching(t, srv, files, "go=http://other.example/none", "registry.npmjs.org")
	fetch := r.tools[docker.FetchDependencies]
	c, _ := r.approvedFetch(t, nil)
	if raw, err := fetch.Execute(t.Context(), c); !fault.Is(err, fault.Tool, docker.CodeExit) {
		t.Errorf("a registry that does not answer: %s, %v", raw, err)
	}
	other := docker.New(docker.Options{Engine: nil, Images: []string{image, toolchain}, Checkouts: files,
		Packages: packagesOf(t, "go="+mirror)})[docker.FetchDependencies]
	if raw, err := other.Execute(t.Context(), c); err == nil {
		t.Errorf("without an engine: %s", raw)
	}
	files["web/go.sum"] = strings.Replace(files["web/go.sum"], "h1:", "h1:A", 1)
	if raw, err := fetch.Execute(t.Context(), c); !fault.Is(err, fault.Policy, fault.CodeIntegrity) {
		t.Errorf("another lock file than the approved one: %s, %v", raw, err)
	}
	if r.host.Volumes() != 0 || r.host.Containers() != 0 {
		t.Errorf("%d volumes and %d containers are left", r.host.Volumes(), r.host.Containers())
	}
	if c, _ := r.approvedFetch(t, map[string]any{"image": image}); true {
		if raw, err := fetch.Execute(t.Context(), c); !fault.Is(err, fault.Tool, "no_outlet") {
			t.Errorf("an image without the program: %s, %v", raw, err)
		}
	}
	_, err := r.do(t, docker.Create, map[string]any{"options": map[string]any{"image": image,
		"dependencies": "countersign-deps-" + strings.Repeat("0", 32)}})
	if err == nil || fault.As(err).Class != fault.Validation {
		t.Errorf("another volume: %v", err)
	}
}

func packagesOf(t *testing.T, hosts ...string) outlet.Hosts {
	t.Helper()
	h, err := outlet.Parse(hosts)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestFetchRefusedHosts makes the installer use its own registry, which the operator does not allow.
func TestFetchRefusedHosts(t *testing.T) {
	srv, files := moduleProxy(t)
	r := fetching(t, srv, files, "registry.npmjs.org")
	c, _ := r.approvedFetch(t, nil)
	_, err := r.tools[docker.FetchDependencies].Execute(t.Context(), c)
	var got docker.Fetched
	if !fault.Is(err, fault.Tool, docker.CodeExit) || json.Unmarshal(tool.PartialResult(err), &got) != nil ||
		!reflect.DeepEqual(got.Refused, []string{"proxy.golang.org:443"}) {
		t.Errorf("%+v, %v; want error %v %v, no error from json.Unmarshal, got.Refused %v",
			got, err, fault.Tool, docker.CodeExit, []string{"proxy.golang.org:443"})
	}
	if r.host.Volumes() != 0 || r.host.Containers() != 0 {
		t.Errorf("%d volumes and %d containers are left", r.host.Volumes(), r.host.Containers())
	}
}
