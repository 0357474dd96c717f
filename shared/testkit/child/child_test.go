package child_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/child"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

// TestMain runs the tests, or the program that they start: a server on the port in CHILD_PORT.
func TestMain(m *testing.M) {
	if port := os.Getenv("CHILD_PORT"); port != "" {
		err := http.ListenAndServe(net.JoinHostPort("127.0.0.1", port), http.HandlerFunc(
			func(w http.ResponseWriter, req *http.Request) { fmt.Fprint(w, req.URL.Path) }))
		fmt.Println(err)
		os.Exit(1)
	}
	leaktest.Main(m)
}

// failing is a test that keeps the message of its failure.
type failing struct {
	*testing.T
	message string
}

func (f *failing) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// run runs do as a test that may fail, and returns the message of its failure.
func run(t *testing.T, do func(child.T)) string {
	f, done := &failing{T: t}, make(chan struct{})
	go func() { defer close(done); do(f) }()
	<-done
	return f.message
}

func TestServe(t *testing.T) {
	var base string
	t.Run("while its test runs", func(t *testing.T) {
		base = child.Serve(t, "/ready", func(port string) *exec.Cmd {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "CHILD_PORT="+port)
			return cmd
		})
		res, err := http.Get(base + "/here")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if body, err := io.ReadAll(res.Body); string(body) != "/here" || err != nil {
			t.Errorf("the program answers %q, %v", body, err)
		}
	})
	http.DefaultClient.CloseIdleConnections()
	if res, err := http.Get(base); err == nil {
		res.Body.Close()
		t.Error("the program serves after its test")
	}
}

// TestServeErrors serves programs that end. Each is started three times, on different ports, and the error has the
// output of the last attempt.
func TestServeErrors(t *testing.T) {
	ports := map[string]bool{}
	message := run(t, func(t child.T) {
		child.Serve(t, "/", func(port string) *exec.Cmd {
			ports[port] = true
			return exec.Command("go", "no-such-command")
		})
	})
	if len(ports) != 3 {
		t.Errorf("%d programs were started; want 3", len(ports))
	}
	for _, part := range []string{"ended before it answered", "no-such-command: unknown"} {
		if !strings.Contains(message, part) {
			t.Errorf("the message is %q; want %q in it", message, part)
		}
	}
	message = run(t, func(t child.T) {
		child.Serve(t, "/", func(string) *exec.Cmd { return exec.Command("/no/such/program") })
	})
	if !strings.Contains(message, "/no/such/program") {
		t.Errorf("without a program, the message is %q", message)
	}
}
