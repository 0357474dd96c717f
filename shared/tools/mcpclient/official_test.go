package mcpclient_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/freeport"
	"github.com/countersign-run/countersign/shared/testkit/mcpservers"
	"github.com/countersign-run/countersign/shared/tools/mcpclient"
)

func connect(t *testing.T, cfg mcpclient.Config) *mcpclient.Client {
	t.Helper()
	if cfg.Name == "" {
		cfg.Name = "test"
	}
	c, err := mcpclient.New(cfg)
	return cleanup.Close(t, c, err)
}

func tools(t *testing.T, c *mcpclient.Client, choice mcpclient.Choice) tool.Set {
	t.Helper()
	list, refused, err := c.Tools(t.Context(), choice)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range refused {
		t.Errorf("%s is refused: %v", r.Tool, r.Why)
	}
	return tool.NewSet(list...)
}

// call normalizes, places and carries out a call.
func call(t *testing.T, tl *tool.Tool, args string) (string, error) {
	t.Helper()
	canonical, err := tl.Normalize(json.RawMessage(args))
	if err != nil {
		t.Fatalf("%s %s: %v", tl.Name, args, err)
	}
	in, err := tl.Place(t.Context(), tool.Scope{UID: "u"})
	if err != nil {
		return "", err
	}
	res, err := tl.Execute(t.Context(), tool.Call{ActionID: "action", Args: canonical, Place: in, Attach: named})
	return string(res), err
}

// named returns the name of a file that a run would keep.
func named(data []byte) string {
	if f, ok := attachment.Generated("file", data); ok {
		return f.Name
	}
	return ""
}

// role returns a configuration that runs this program in a role, and a function that reads its log.
func role(t *testing.T, name string) (cfg mcpclient.Config, log func() []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "log")
	return mcpclient.Config{Command: []string{self}, Timeout: await.Most,
			Env: []string{"MCPCLIENT_ROLE=" + name, "LOG=" + file}}, func() []string {
			b, err := os.ReadFile(file)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			return slices.Collect(strings.Lines(string(b)))
		}
}

func TestEverything(t *testing.T) {
	t.Setenv("SECRET_OF_THE_PARENT", "x")
	c := connect(t, mcpclient.Config{Command: mcpservers.Everything(t), Env: []string{"GIVEN=here"},
		Timeout: await.Most})
	set := tools(t, c, mcpclient.Choice{Prefix: "all_", Reads: []string{"echo", "get-tiny-image"},
		Deny: []string{"get-annotated-message"}})
	if len(set) < 10 || set["all_get-annotated-message"] != nil {
		t.Errorf("tools %v", set.Names())
	}
	for name, tl := range set {
		reads := name == "all_echo" || name == "all_get-tiny-image"
		if tl.SideEffect == reads || !tl.Untrusted || reads != (tl.Class == tool.ClassRead) || reads == tl.Placed() ||
			reads != (tl.Approval == tool.NotRequired) {
			t.Errorf("%+v", tl.Spec)
		}
	}
	for _, c := range []struct{ tool, args, want string }{
		{"echo", `{"message":"hello"}`, `{"text":"Echo: hello"}`},
		{"get-tiny-image", `{}`, `{"text":"Here's the image you requested:\nThe image above is the MCP logo.",` +
			`"others":[{"type":"image","mimeType":"image/png","bytes":4033,"file":"file.png"}]}`},
		{"get-structured-content", `{"location":"New York"}`,
			`{"structured":{"temperature":33,"conditions":"Cloudy","humidity":82}}`},
		{"get-resource-links", `{"count":1}`,
			`{"text":"Here are 1 resource links to resources available in this server:",` +
				`"others":[{"type":"resource_link","mimeType":"text/plain","name":"Blob Resource 1",` +
				`"uri":"demo://resource/dynamic/blob/1"}]}`},
	} {
		if got, err := call(t, set["all_"+c.tool], c.args); err != nil || got != c.want {
			t.Errorf("%s: %s %v; want got %v", c.tool, got, err, c.want)
		}
	}
	env, err := call(t, set["all_get-env"], `{}`)
	if err != nil || strings.Contains(env, "SECRET_OF_THE_PARENT") || !strings.Contains(env, "GIVEN") ||
		!strings.Contains(env, "PATH") {
		t.Errorf("the environment is %s %v", env, err)
	}
}

func TestFilesystem(t *testing.T) {
	dir := t.TempDir()
	c := connect(t, mcpclient.Config{Command: mcpservers.Filesystem(t, dir), Timeout: await.Most})
	// The server itself says that write_file is destructive, so the choice that it only reads is not believed.
	set := tools(t, c, mcpclient.Choice{Prefix: "files_", Reads: []string{"read_text_file", "write_file"}})
	if w := set["files_write_file"]; !w.SideEffect || w.Class != tool.ClassDestructive || w.Approval != tool.Required {
		t.Errorf("%+v", w.Spec)
	}
	if g := set["files_get_file_info"]; !g.SideEffect || g.Class != tool.ClassOpaque { // although it has readOnlyHint
		t.Errorf("%+v", g.Spec)
	}
	file := filepath.Join(dir, "a.txt")
	args := fmt.Sprintf(`{"content":"hi","path":%q}`, file)
	if res, err := call(t, set["files_write_file"], args); err != nil || !strings.Contains(res, "Successfully wrote") {
		t.Errorf("%s %v; want res with “Successfully wrote”", res, err)
	}
	res, err := call(t, set["files_read_text_file"], fmt.Sprintf(`{"path":%q}`, file))
	if err != nil || res != `{"text":"hi"}` {
		t.Errorf("%s %v; want res %q", res, err, `{"text":"hi"}`)
	}
	res, err = call(t, set["files_read_text_file"], `{"path":"/etc/hostname"}`)
	if err != nil || !strings.HasPrefix(res, `{"isError":true,"text":"Access denied`) {
		t.Errorf("%s %v; want res that begins with %q", res, err, `{"isError":true,"text":"Access denied`)
	}
	p, err := set["files_write_file"].Preview([]byte(args))
	if err != nil || p.Title != "Call write_file of the server test" || len(p.Fields) != 3 ||
		p.Fields[0].Value != "hi" || !strings.Contains(p.Fields[2].Value, "overwrite") || len(p.Warnings) == 0 {
		t.Errorf("%+v %v", p, err)
	}
}

// TestKilledInTheMiddle kills the official servers during a call: as soon as they have received it, and after it is
// done. A call with an effect is never repeated, and one that reads is repeated once. In both cases a new session is
// made.
func TestKilledInTheMiddle(t *testing.T) {
	everything, dir := mcpservers.Everything(t), t.TempDir()
	file := filepath.Join(dir, "a.txt")
	for name, c := range map[string]struct {
		when         mcpservers.When
		command      []string
		tool, args   string
		after, given string // a call that works afterwards
	}{
		"as it begins": {mcpservers.AsItBegins, everything, "trigger-long-running-operation",
			`{"duration":1,"steps":1}`,
			"echo", `{"message":"hello"}`},
		"when it is done": {mcpservers.WhenItIsDone, mcpservers.Filesystem(t, dir), "write_file",
			fmt.Sprintf(`{"content":"hi","path":%q}`, file), "read_text_file", fmt.Sprintf(`{"path":%q}`, file)},
	} {
		t.Run(name, func(t *testing.T) {
			command, env, calls := mcpservers.Cut(t, c.when, c.command)
			set := tools(t, connect(t, mcpclient.Config{Command: command, Env: env, Timeout: await.Most}),
				mcpclient.Choice{Reads: []string{c.after}})
			res, err := call(t, set[c.tool], c.args)
			if !tool.IsUnanswered(err) || tool.IsTransient(err) {
				t.Fatalf("%s %v", res, err)
			}
			if n := len(calls()); n != 1 {
				t.Errorf("the server was called %d times", n)
			}
			if res, err := call(t, set[c.after], c.given); err != nil || !strings.Contains(res, "h") {
				t.Errorf("afterwards: %s %v", res, err)
			}
			if n := len(calls()); n != 2 {
				t.Errorf("the servers were called %d times", n)
			}
		})
	}
	if b, err := os.ReadFile(file); string(b) != "hi" {
		t.Errorf("the effect whose answer was lost: %q %v", b, err)
	}
	t.Run("what only reads", func(t *testing.T) {
		command, env, calls := mcpservers.Cut(t, mcpservers.AsItBegins, everything)
		set := tools(t, connect(t, mcpclient.Config{Command: command, Env: env, Timeout: await.Most}),
			mcpclient.Choice{Reads: []string{"echo"}})
		res, err := call(t, set["echo"], `{"message":"hello"}`)
		if err != nil || res != `{"text":"Echo: hello"}` || len(calls()) != 2 {
			t.Errorf("%s %v after %d calls", res, err, len(calls()))
		}
	})
}

// TestKilledOverHTTP kills the official server after a call with an effect was sent, and restarts it at the same
// address. There it answers requests of the old session with 400.
func TestKilledOverHTTP(t *testing.T) {
	command, port := mcpservers.EverythingOverHTTP(t), freeport.For(t)
	var cmd *exec.Cmd
	start := func() {
		cmd = exec.Command(command[0], command[1:]...)
		cmd.Env = []string{"PORT=" + port}
		said, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(said)
		for lines.Scan() && !strings.Contains(lines.Text(), "listening") {
		}
		go func() { _, _ = io.Copy(io.Discard, said) }()
	}
	kill := func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()                            // it was killed
		http.DefaultClient.CloseIdleConnections() // an idle connection to the dead server might still be used
	}
	start()
	defer func() { kill() }()
	calls, cut := 0, ""
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Header.Get("Mcp-Session-Id") != "" && r.GetBody != nil && cut != "" {
			body, err := r.GetBody()
			if err != nil {
				return nil, err
			}
			sent, err := io.ReadAll(body)
			if err != nil {
				return nil, err
			}
			if strings.Contains(string(sent), `"tools/call"`) && strings.Contains(string(sent), cut) {
				calls++
				r = r.WithContext(httptrace.WithClientTrace(r.Context(),
					&httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { kill() }}))
			}
		}
		return http.DefaultTransport.RoundTrip(r)
	})}
	c := connect(t, mcpclient.Config{URL: "http://127.0.0.1:" + port + "/mcp", HTTP: client, Deaf: true})
	set := tools(t, c, mcpclient.Choice{Reads: []string{"echo"}})
	cut = "trigger-long-running-operation"
	res, err := call(t, set["trigger-long-running-operation"], `{"duration":60,"steps":1}`)
	if !tool.IsUnanswered(err) || calls != 1 {
		t.Fatalf("%s %v after %d calls", res, err, calls)
	}
	cut = ""
	if _, err := call(t, set["echo"], `{"message":"hello"}`); !tool.IsTransient(err) {
		t.Errorf("without a server: %v", err)
	}
	start()
	if res, err := call(t, set["echo"], `{"message":"hello"}`); err != nil || res != `{"text":"Echo: hello"}` {
		t.Errorf("%s %v; want res %q", res, err, `{"text":"Echo: hello"}`)
	}
	kill()
	start() // the new server does not know the old session
	if res, err := call(t, set["get-sum"], `{"a":1,"b":2}`); err != nil || !strings.Contains(res, "is 3") {
		t.Errorf("%s %v; want res with “is 3”", res, err)
	}
}
