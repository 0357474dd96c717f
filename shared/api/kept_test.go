package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// works gives the assistant a tool with a side effect whose output is stored. print produces the output.
func (w *env) works(approval tool.Approval, print func(ctx context.Context, c tool.Call)) {
	w.loop.Tools["work"] = tool.Define(tool.Def[printArgs, printResult]{Name: "work", Description: "Works.",
		SideEffect: true, Approval: approval, KeepsOutput: true,
		Preview: func(in printArgs) tool.Preview { return tool.Preview{Title: "Work on " + in.Name} },
		Execute: func(ctx context.Context, c tool.Call, in printArgs) (printResult, error) {
			print(ctx, c)
			return printResult(in), nil
		}})
	w.model.Then(script.Turn{Calls: []script.Call{{Name: "work", Args: printArgs{"a"}}}}, script.Turn{Text: "Done."})
}

// keptLine is a stream line with stored output.
type keptLine struct {
	Type, ActionID string
	Seq, Offset    int64
	Data           []byte
	Action         struct{ ActionID, Status string }
	Result         struct{ RunID, Status string }
}

// lines reads a stream. Every piece of output must lie between its action's start and outcome, and start where the
// previous piece ended, or at from.
func (w *env) lines(body io.Reader, from int64) (all []keptLine, printed []byte) {
	w.t.Helper()
	status := map[string]string{}
	dec := json.NewDecoder(body)
	for {
		var l keptLine
		if err := dec.Decode(&l); err == io.EOF {
			return all, printed
		} else if err != nil {
			w.t.Fatal(err)
		}
		switch {
		case l.Action.ActionID != "":
			status[l.Action.ActionID] = l.Action.Status
		case l.Type == "output":
			if status[l.ActionID] != "executing" || l.Offset != from+int64(len(printed)) || len(l.Data) == 0 {
				w.t.Errorf("%d bytes from %d on, of an action that is %q, after %d", len(l.Data), l.Offset,
					status[l.ActionID], len(printed))
			}
			printed = append(printed, l.Data...)
		}
		all = append(all, l)
	}
}

// TestKeptOutput streams a run while its call prints, and reads the output again later: in whole and
// in part, through the events and as bytes.
func TestKeptOutput(t *testing.T) {
	w := newEnv(t)
	const text = "one \x1b[31m\x00\xff\ntwo CANARY\n"
	w.works(tool.NotRequired, func(_ context.Context, c tool.Call) {
		for _, s := range strings.SplitAfter(text, "\n") {
			if n, err := io.WriteString(c.Output, s); n != len(s) || err != nil {
				t.Errorf("%d bytes of %d, %v", n, len(s), err)
			}
		}
	})
	all, printed := w.lines(bytes.NewReader(w.send("POST", "/api/agent/run/stream", "ana", `{"prompt":"x"}`).body), 0)
	if string(printed) != text {
		t.Errorf("%q was printed, and %q arrived", text, printed)
	}
	id, action := all[len(all)-1].Result.RunID, ""
	var last int64
	events := func(query string, from int64) string {
		all, printed := w.lines(bytes.NewReader(w.send("GET", "/api/agent/runs/"+id+"/events"+query, "ana", "").body),
			from)
		last = all[len(all)-1].Seq
		for _, l := range all {
			action += l.ActionID
		}
		return string(printed)
	}
	if got := events("", 0); got != text {
		t.Errorf("the events have %q", got)
	}
	if got := events("?output="+action+":4", 4); got != text[4:] {
		t.Errorf("the events have %q behind the first 4 bytes", got)
	}
	if got := events(fmt.Sprintf("?after=%d", last-1), 0); got != "" {
		t.Errorf("the events have %q after the outcome", got)
	}
	path := "/api/agent/runs/" + id + "/output/" + action[:len(action)/2]
	a := w.send("GET", path, "ana", "")
	if string(a.body) != text || a.Header.Get("Content-Type") != "application/octet-stream" ||
		a.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%d %q %v; want a.body %v, a.Header.Get(\"Content-Type\") “application/octet-stream”, "+
			"a.Header.Get(\"X-Content-Type-Options\") “nosniff”",
			a.StatusCode, a.body, a.Header, text)
	}
	if a := w.send("GET", path+"?from=9", "ana", ""); string(a.body) != text[9:] {
		t.Errorf("from 9 on: %q", a.body)
	}
	if a := w.send("GET", path+"?from=1000000", "ana", ""); a.StatusCode != 200 || len(a.body) != 0 {
		t.Errorf("from its end on: %d %q", a.StatusCode, a.body)
	}
	if strings.Contains(w.logs.String(), "CANARY") {
		t.Error("the output is logged")
	}
}

// TestOutputOfOthers requests outputs that do not exist for the user. All answers are the same.
func TestOutputOfOthers(t *testing.T) {
	w := newEnv(t)
	w.works(tool.NotRequired, func(_ context.Context, c tool.Call) { _, _ = io.WriteString(c.Output, "CANARY") })
	a := w.send("POST", "/api/agent/run", "ana", `{"prompt":"x"}`)
	id, action := a.at("runId"), a.at("actions", "0", "actionId")
	w.wants("hi")
	mailed := w.send("POST", "/api/agent/run", "ana", `{"prompt":"mail"}`)
	var first string
	for name, c := range map[string]struct{ uid, run, action string }{
		"another user's": {"ben", id, action}, "no run": {"ana", "no-such-run-00001", action},
		"no action":        {"ana", id, "no-such-action-001"},
		"a tool without":   {"ana", mailed.at("runId"), mailed.at("actions", "0", "actionId")},
		"of another's run": {"ana", mailed.at("runId"), action},
	} {
		a := w.send("GET", "/api/agent/runs/"+c.run+"/output/"+c.action, c.uid, "")
		body := string(a.body)
		if at := strings.Index(body, `,"requestId"`); at > 0 {
			body = body[:at]
		}
		if first == "" {
			first = body
		}
		if a.StatusCode != 404 || body != first {
			t.Errorf("%s: %d %s; want a.StatusCode 404, body %v", name, a.StatusCode, a.body, first)
		}
	}
	path := "/api/agent/runs/" + id
	for query, field := range map[string]string{"/output/" + action + "?from=-1": "from",
		"/output/" + action + "?from=1048577": "from", "/output/" + action + "?from=x": "from", "/output/x": "actionId",
		"/events?output=x": "output", "/events?output=" + action + ":-1": "output",
		"/events?output=" + action + ":1&output=" + action + ":2": "output",
		"/events?" + strings.Repeat("output="+action+":1&", 17):   "output"} {
		if a := w.send("GET", path+query, "ana", ""); a.StatusCode != 400 || a.at("error", "field") != field {
			t.Errorf("%s: %d %s; want a.StatusCode 400, a.at(\"error\", \"field\") %v",
				query, a.StatusCode, a.body, field)
		}
	}
}

// TestOutputOfOtherProcess reads the output of a call before, during and after its execution in another process: live,
// through the events and as bytes. A cancellation and a decision do not conflict with writes of the output.
func TestOutputOfOtherProcess(t *testing.T) {
	w := newEnv(t)
	steps := make(chan string)
	w.works(tool.Required, func(_ context.Context, c tool.Call) {
		for s := range steps {
			_, _ = io.WriteString(c.Output, s)
		}
	})
	a := w.send("POST", "/api/agent/run", "ana", `{"prompt":"x"}`)
	id, action := a.at("runId"), a.at("actions", "0", "actionId")
	get := func(path string) io.ReadCloser {
		t.Helper()
		req, err := http.NewRequest("GET", w.url+"/api/agent/runs/"+id+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+w.token("ana"))
		res, err := http.DefaultClient.Do(req)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%v %v; want res.StatusCode 200", res, err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		return res.Body
	}
	octets, events := get("/output/"+action), get("/events")
	approval := a.at("actions", "0", "approvalId")
	if a := w.send("POST", "/api/agent/approvals/resolve", "ana",
		fmt.Sprintf(`{"approvalId":%q,"decision":"approve_once"}`, approval)); a.StatusCode != 200 {
		t.Fatalf("%s; want a.StatusCode 200", a.body)
	}
	moved := make(chan error)
	go func() {
		_, err := w.loop.Resume(context.Background(), w.queued[0], nil)
		moved <- err
	}()
	var got []byte
	read := func(want string) {
		t.Helper()
		for len(got) < len(want) {
			b := make([]byte, 64)
			n, err := octets.Read(b)
			if got = append(got, b[:n]...); err != nil {
				t.Fatalf("%q, %v", got, err)
			}
		}
		if string(got) != want {
			t.Fatalf("%q, want %q", got, want)
		}
	}
	steps <- "one\n"
	read("one\n") // while the call runs
	steps <- "two\n"
	read("one\ntwo\n")
	middle := get("/output/" + action + "?from=4")
	steps <- "three\n"
	close(steps)
	if err := <-moved; err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(octets)
	if got = append(got, rest...); err != nil || string(got) != "one\ntwo\nthree\n" {
		t.Errorf("%q, %v; want got %q", got, err, "one\ntwo\nthree\n")
	}
	if b, err := io.ReadAll(middle); err != nil || string(b) != "two\nthree\n" {
		t.Errorf("from 4 on: %q, %v", b, err)
	}
	if _, printed := w.lines(events, 0); string(printed) != "one\ntwo\nthree\n" {
		t.Errorf("the events have %q", printed)
	}
}

// TestKeptOutputLimit prints 2 MiB and checks that 1 MiB is stored, ending with a note.
func TestKeptOutputLimit(t *testing.T) {
	w := newEnv(t)
	all := []byte(strings.Repeat("0123456789abcdef", 1<<17))
	w.works(tool.NotRequired, func(_ context.Context, c tool.Call) {
		for at := 0; at < len(all); at += 100_000 {
			_, _ = c.Output.Write(all[at:min(at+100_000, len(all))])
		}
	})
	lines, printed := w.lines(bytes.NewReader(w.send("POST", "/api/agent/run/stream", "ana", `{"prompt":"x"}`).body), 0)
	note := []byte("\n[More was printed than can be shown.]\n")
	if n := len(printed) - len(note); len(printed) != 1<<20 || !bytes.Equal(printed[:n], all[:n]) ||
		!bytes.Equal(printed[n:], note) {
		t.Errorf("%d bytes, which end in %q", len(printed), printed[max(0, len(printed)-60):])
	}
	id, action := lines[len(lines)-1].Result.RunID, lines[len(lines)-2].Action.ActionID
	for _, l := range lines {
		if l.ActionID != "" {
			action = l.ActionID
		}
	}
	if a := w.send("GET", "/api/agent/runs/"+id+"/output/"+action, "ana", ""); !bytes.Equal(a.body, printed) {
		t.Errorf("%d bytes are kept", len(a.body))
	}
}

// TestStreamOfRunMovedElsewhere streams a run that another function advances. Its actions, their output and its result
// arrive as if this process moved it. A request with an Idempotency-Key behaves the same.
func TestStreamOfRunMovedElsewhere(t *testing.T) {
	for _, key := range []string{"", "once"} {
		w := newEnv(t)
		const text = "one\ntwo\nthree\n"
		w.works(tool.NotRequired, func(_ context.Context, c tool.Call) {
			for _, s := range strings.SplitAfter(text, "\n") {
				_, _ = io.WriteString(c.Output, s)
			}
		})
		its := *w.loop.Agents[run.Assistant]
		its.Name, its.Worker = "mover", "resume-mover"
		w.loop.Agents["mover"] = &its
		other := loop.New(w.loop.Env) // the function that advances the agent's runs
		other.Function, w.loop.Function = "resume-mover", "stream"
		moved := make(chan error, 1)
		w.onResume = func(m queue.Message) {
			go func() { _, err := other.Resume(context.Background(), m, nil); moved <- err }()
		}
		header := func(r *http.Request) {
			if key != "" {
				r.Header.Set("Idempotency-Key", key)
			}
		}
		a := w.send("POST", "/api/agent/run/stream", "ana", `{"prompt":"x","agent":"mover"}`, header)
		if err := <-moved; err != nil {
			t.Fatal(err)
		}
		all, printed := w.lines(bytes.NewReader(a.body), 0)
		if last := all[len(all)-1]; string(printed) != text || last.Result.Status != "completed" {
			t.Errorf("%q was printed, and the stream is %s", printed, a.body)
		}
	}
}
