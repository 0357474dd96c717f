package app_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/remote"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// jumps adds hosts for a user whose deployment permits the servers.
type jumps struct {
	t    *testing.T
	call func(method, path, body string) (status int, answer string)
}

func onJumps(t *testing.T, permitted ...*sshd.Server) jumps {
	t.Helper()
	var addresses []string
	for _, s := range permitted {
		addresses = append(addresses, s.Addr)
	}
	w := deploy(t, "TERMINAL=on", "TERMINAL_HOSTS="+strings.Join(addresses, ","))
	return jumps{t, func(method, path, body string) (int, string) {
		a := w.call(method, "/api/agent/hosts"+path, body)
		return a.HTTP, string(a.Body)
	}}
}

// add adds the server as a host behind another one, and returns its ID.
func (j jumps) add(s *sshd.Server, name, jump string) string {
	j.t.Helper()
	var keys []terminal.HostKey
	for _, k := range s.HostKeys() {
		keys = append(keys, remote.HostKey(k))
	}
	body := map[string]any{"name": name, "host": "127.0.0.1", "port": s.Port, "username": s.User, "hostKeys": keys,
		"auth": map[string]string{"kind": "privateKey", "privateKey": string(s.Key)}}
	if jump != "" {
		body["jump"] = jump
	}
	raw, err := json.Marshal(body)
	if err != nil {
		j.t.Fatal(err)
	}
	status, answer := j.call("POST", "", string(raw))
	var h struct{ HostID, Jump string }
	if err := json.Unmarshal([]byte(answer), &h); err != nil || status != 200 || h.Jump != jump {
		j.t.Fatalf("adding %s answered %d %s, %v", name, status, answer, err)
	}
	return h.HostID
}

func (j jumps) want(status int, says, method, path, body string) {
	j.t.Helper()
	if got, answer := j.call(method, path, body); got != status || !strings.Contains(answer, says) {
		j.t.Errorf("%s %s answered %d %s, want %d %q", method, path, got, answer, status, says)
	}
}

// TestJumpTwoHosts logs in to a host through two others. Each has keys and a login of its own, and only the first is
// connected to from here. A jump host cannot be deleted while a host is behind it.
func TestJumpTwoHosts(t *testing.T) {
	first, second, last := sshd.Start(t, sshd.Options{}), sshd.Start(t, sshd.Options{}), sshd.Start(t, sshd.Options{})
	j := onJumps(t, first, second, last)
	a := j.add(first, "first", "")
	b := j.add(second, "second", a)
	c := j.add(last, "last", b)
	j.want(200, "Linux", "POST", "/"+c+"/check", "")
	for s, logins := range map[*sshd.Server]int{first: 1, second: 1, last: 1} {
		if n := strings.Count(s.Log(), "Accepted publickey"); n != logins {
			t.Errorf("%d logins:\n%s", n, s.Log())
		}
	}
	scan, err := json.Marshal(map[string]any{"host": "127.0.0.1", "port": last.Port, "jump": b})
	if err != nil {
		t.Fatal(err)
	}
	j.want(200, ssh.FingerprintSHA256(last.HostKeys()[0]), "POST", "/scan", string(scan))
	j.want(409, "host_in_use", "DELETE", "/"+b, "")
	j.want(200, "", "DELETE", "/"+c, "")
	j.want(200, "", "DELETE", "/"+b, "")
}

// TestJumpRefused names the field for an unknown jump host, and for too many of them.
func TestJumpRefused(t *testing.T) {
	s := sshd.Start(t, sshd.Options{})
	j := onJumps(t, s)
	j.want(400, `"field":"jump"`, "POST", "/scan", `{"host":"10.0.0.7","jump":"aaaaaaaaaaaaaaaaaaaaaaaaaa"}`)
	last := ""
	for range terminal.MaxJumps + 1 {
		last = j.add(s, "web", last)
	}
	status, answer := j.call("POST", "", `{"name":"x","host":"web.example.com","username":"ana","jump":"`+last+
		`","auth":{"kind":"generated"},"hostKeys":[`+inJSON(t, remote.HostKey(s.HostKeys()[0]))+`]}`)
	if status != 400 || !strings.Contains(answer, `"field":"jump"`) {
		t.Errorf("%d %s; want status 400, answer with %q", status, answer, `"field":"jump"`)
	}
}

// TestJumpHostChanged changes the keys of a jump host, and what it permits. The host behind it is not reached, and the
// error names the jump host.
func TestJumpHostChanged(t *testing.T) {
	jump, last := sshd.Start(t, sshd.Options{}), sshd.Start(t, sshd.Options{})
	closed := sshd.Start(t, sshd.Options{Config: []string{"AllowTcpForwarding no"}})
	j := onJumps(t, jump, last, closed)
	behind := j.add(last, "last", j.add(jump, "bastion", ""))
	j.want(424, "jump host shut", "POST", "/"+j.add(last, "last", j.add(closed, "shut", ""))+"/check", "")
	jump.NewHostKeys()
	jump.Kill()
	jump.Restart()
	j.want(409, "jump host bastion", "POST", "/"+behind+"/check", "")
	if log := last.Log(); strings.Contains(log, "Accepted") {
		t.Errorf("it was reached:\n%s", log)
	}
}

// TestJumpAddressList refuses an address behind a jump host that the operator has not permitted.
func TestJumpAddressList(t *testing.T) {
	jump, last := sshd.Start(t, sshd.Options{}), sshd.Start(t, sshd.Options{})
	j := onJumps(t, jump)
	j.want(403, "host_forbidden", "POST", "/"+j.add(last, "last", j.add(jump, "bastion", ""))+"/check", "")
	if log := jump.Log() + last.Log(); strings.Contains(log, "Accepted") {
		t.Errorf("a host was reached:\n%s", log)
	}
}

// TestJumpCommand runs a command on a host behind another one. The jump host's server is killed while the command runs:
// the command continues, and its output arrives through the next connection.
func TestJumpCommand(t *testing.T) {
	gate, srv := sshd.Start(t, sshd.Options{}), sshd.Start(t, sshd.Options{})
	w := deploy(t, "TERMINAL=on", "TERMINAL_HOSTS="+gate.Addr+","+srv.Addr)
	h := &onHost{proved: w, srv: gate}
	jump, _ := h.addHost("ana", map[string]any{"name": "gate"})
	h.srv = srv
	h.host, h.terminal = h.addHost("ana", map[string]any{"jump": jump})
	m := &commands{lines: []string{"echo begun >> witness; until [ -e go ]; do sleep 0.1; done; " +
		"echo over >> witness; cat witness"}}
	h.SetModel(m.turn)
	asked := h.askOn("Do it.")
	if len(asked.Approvals) != 1 || !strings.Contains(string(asked.Body), "through "+gate.User+"@gate") {
		t.Fatalf("%s", asked.Body)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := h.as("ana").Decide(t.Context(), asked.Approvals[0], "approve_once", nil)
		h.deliver()
		answered <- err
	}()
	await.That(t, "the command has begun", func() bool { return h.witness() == "begun\n" })
	gate.Kill()
	gate.Restart()
	if err := os.WriteFile(filepath.Join(srv.Home, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	var got testkit.Answer
	await.That(t, "the run is over", func() bool {
		got = h.run(asked)
		return got.Status == "completed"
	})
	if h.witness() != "begun\nover\n" || !strings.Contains(h.steps(got), "begun\nover") {
		t.Errorf("%q: %s; want h.witness() %q, h.steps(got) with %q",
			h.witness(), h.steps(got), "begun\nover\n", "begun\nover")
	}
	if n := strings.Count(gate.Log(), "Accepted publickey"); n < 2 {
		t.Errorf("the gate was used by %d logins:\n%s", n, gate.Log())
	}
}
