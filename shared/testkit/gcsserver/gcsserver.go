// Package gcsserver runs, for tests, an independent server with Cloud Storage's JSON API: fake-gcs-server 1.56.1 (by
// fsouza, BSD). It is a program of its own, because its module needs later releases of libraries that the product pins.
// It keeps its buckets in memory, and checks no credentials.
package gcsserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"google.golang.org/api/option"

	"github.com/countersign-run/countersign/shared/testkit/child"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

const version = "fake-gcs-server-1.56.1"

// Server is a running server.
type Server struct {
	URL string // without a trailing slash
	t   realpart.Owner
}

var answers = realpart.GCSServer.Tried(func(t *realpart.Trial) { start(t).Bucket("trial") })

// Start starts a server for the test, from the directory that GCS_SERVER_DIR names, or from that of .ci/install. If it
// is missing, the test is skipped, or fails if REQUIRE_ALL is 1.
func Start(t realpart.Owner) *Server {
	t.Helper()
	installed(t)
	answers(t)
	return start(t)
}

// installed returns the path of the program.
func installed(t realpart.Owner) string {
	t.Helper()
	realpart.GCSServer.Take(t)
	dir := os.Getenv("GCS_SERVER_DIR")
	if cache, err := os.UserCacheDir(); dir == "" && err == nil {
		dir = filepath.Join(cache, "countersign", version)
	}
	program := filepath.Join(dir, "fake-gcs-server")
	if _, err := os.Stat(program); err != nil {
		realpart.GCSServer.Absent(t, version+" is not installed where GCS_SERVER_DIR says")
	}
	return program
}

func start(t realpart.Owner) *Server {
	t.Helper()
	program, dir := installed(t), t.TempDir()
	return &Server{t: t, URL: child.Serve(t, "/storage/v1/b?project=p", func(port string) *exec.Cmd {
		cmd := exec.Command(program, "-scheme", "http", "-host", "127.0.0.1", "-port", port, "-backend", "memory",
			"-public-host", "127.0.0.1:"+port, "-log-level", "error")
		cmd.Dir = dir
		return cmd
	})}
}

// Bucket creates a bucket, and returns its name.
func (s *Server) Bucket(name string) string {
	s.t.Helper()
	res, err := http.Post(s.URL+"/storage/v1/b?project=p", "application/json",
		strings.NewReader(fmt.Sprintf(`{"name":%q}`, name)))
	if err != nil {
		s.t.Fatalf("create a bucket: %v", err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		s.t.Fatalf("create the bucket %s: %s", name, res.Status)
	}
	return name
}

// Objects returns the names of the objects in a bucket.
func (s *Server) Objects(bucket string) (names []string) {
	s.t.Helper()
	res, err := http.Get(s.URL + "/storage/v1/b/" + bucket + "/o")
	if err != nil {
		s.t.Fatalf("list the bucket %s: %v", bucket, err)
	}
	defer res.Body.Close()
	var list struct{ Items []struct{ Name string } }
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil {
		s.t.Fatalf("list the bucket %s: %v", bucket, err)
	}
	for _, o := range list.Items {
		names = append(names, o.Name)
	}
	return names
}

// Client makes a client use the server, through transport; nil is the default one.
func (s *Server) Client(transport http.RoundTripper) []option.ClientOption {
	return []option.ClientOption{option.WithEndpoint(s.URL + "/storage/v1/"),
		option.WithHTTPClient(&http.Client{Transport: transport})}
}
