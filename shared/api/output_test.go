package api_test

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

type printArgs struct {
	Name string `json:"name"`
}

type printResult struct {
	Name string `json:"name"`
}

// prints gives the assistant a tool whose output print produces.
func (w *env) prints(print func(name string, out io.Writer)) {
	w.loop.Tools["print"] = tool.Define(tool.Def[printArgs, printResult]{Name: "print", Description: "Prints.",
		Execute: func(_ context.Context, c tool.Call, in printArgs) (printResult, error) {
			print(in.Name, c.Output)
			return printResult(in), nil
		}})
}

// asksToPrint makes the model call the tool with each name, and then report success.
func (w *env) asksToPrint(names ...string) {
	var calls []script.Call
	for _, name := range names {
		calls = append(calls, script.Call{Name: "print", Args: printArgs{name}})
	}
	w.model.Then(script.Turn{Calls: calls}, script.Turn{Text: "Printed."})
}

// streamed is a line of a stream.
type streamed struct {
	Type, ActionID, Text string
	Action               struct{ ActionID, Status string }
	Result               struct{ RunID, Status string }
}

func (w *env) stream() (lines []streamed) {
	w.t.Helper()
	a := w.send("POST", "/api/agent/run/stream", "ana", `{"prompt":"print it"}`)
	for _, one := range strings.Split(strings.TrimSpace(string(a.body)), "\n") {
		var l streamed
		if err := json.Unmarshal([]byte(one), &l); err != nil {
			w.t.Fatalf("%s: %v", one, err)
		}
		lines = append(lines, l)
	}
	if last := lines[len(lines)-1]; last.Result.Status != "completed" {
		w.t.Fatalf("%s; want last.Result.Status “completed”", a.body)
	}
	return lines
}

// printed joins the output of each action, in the order of the actions. It checks every piece and its position: an
// action's output comes between its call and its outcome.
func printed(t *testing.T, lines []streamed) (texts []string, pieces int) {
	t.Helper()
	var ids []string
	by, over := map[string]string{}, map[string]bool{}
	for _, l := range lines {
		switch l.Type {
		case "action":
			id := l.Action.ActionID
			if _, known := by[id]; !known {
				by[id], ids = "", append(ids, id)
			}
			over[id] = l.Action.Status == "completed"
		case "output":
			if _, known := by[l.ActionID]; !known || over[l.ActionID] || l.Text == "" || len(l.Text) > 4<<10 {
				t.Errorf("a piece of %d bytes of the action %q: known %t, over %t", len(l.Text), l.ActionID, known,
					over[l.ActionID])
			}
			by[l.ActionID] += l.Text
			pieces++
		}
	}
	for _, id := range ids {
		texts = append(texts, by[id])
	}
	return texts, pieces
}

// TestStreamedOutput has two actions print in pieces. A reader gets each action's text unchanged and in order,
// including hidden characters and split characters. The text is in no document and no log.
func TestStreamedOutput(t *testing.T) {
	w := newEnv(t)
	w.prints(func(name string, out io.Writer) {
		for _, piece := range []string{name + " CANARY one\x1b[31m\u202e\n", "two \xc3", "\xa9\x00", "three \xff\n"} {
			if n, err := io.WriteString(out, piece); n != len(piece) || err != nil {
				t.Errorf("%d bytes of %d, %v", n, len(piece), err)
			}
		}
	})
	w.asksToPrint("a", "b")
	lines := w.stream()
	texts, _ := printed(t, lines)
	if len(texts) != 2 {
		t.Fatalf("%d actions have printed: %q", len(texts), texts)
	}
	for i, name := range []string{"a", "b"} {
		if want := name + " CANARY one\x1b[31m\u202e\ntwo é\x00three \ufffd\n"; texts[i] != want {
			t.Errorf("%q was printed, and %q arrived", want, texts[i])
		}
	}
	docs, err := w.store.Get(context.Background(), document.RunPath(lines[len(lines)-1].Result.RunID))
	if err != nil || strings.Contains(string(docs[0].Data), "CANARY") || strings.Contains(w.logs.String(), "CANARY") {
		t.Errorf("%v: the output is stored or logged", err)
	}
}

// TestOutputLimit has a tool print a megabyte, at once and byte by byte, split in the middle of a character at both
// ends. The reader gets the first 64 KiB in a few pieces, and a note.
func TestOutputLimit(t *testing.T) {
	for _, size := range []int{1 << 20, 1} {
		w := newEnv(t)
		w.prints(func(_ string, out io.Writer) {
			all := []byte("x" + strings.Repeat("é", 1<<19))
			for len(all) > 0 {
				n := min(size, len(all))
				_, _ = out.Write(all[:n])
				all = all[n:]
			}
		})
		w.asksToPrint("a")
		texts, pieces := printed(t, w.stream())
		kept, note, cut := strings.Cut(texts[0], "\n[")
		if !cut || len(kept) < 64<<10-1 || len(kept) > 64<<10 || !utf8.ValidString(kept) ||
			strings.Contains(kept, "\ufffd") || !strings.Contains(note, "More was printed") {
			t.Errorf("in writes of %d: %d bytes, then %.60q", size, len(kept), note)
		}
		if pieces > 40 {
			t.Errorf("in writes of %d: %d pieces", size, pieces)
		}
	}
}

// TestOutputAfterTheCall has a tool print after it has returned: during the run's next call and after the run. That
// output is ignored.
func TestOutputAfterTheCall(t *testing.T) {
	w := newEnv(t)
	var first io.Writer
	w.prints(func(name string, out io.Writer) {
		if name == "a" {
			first = out
		} else if n, err := io.WriteString(first, "late"); n != 4 || err != nil {
			t.Errorf("%d bytes of 4, %v", n, err)
		}
		_, _ = io.WriteString(out, name+" in time")
	})
	w.asksToPrint("a", "b")
	texts, _ := printed(t, w.stream())
	if !slices.Equal(texts, []string{"a in time", "b in time"}) {
		t.Errorf("texts is %q; want %v", texts, []string{"a in time", "b in time"})
	}
	if n, err := io.WriteString(first, "late"); n != 4 || err != nil {
		t.Errorf("%d bytes of 4, %v", n, err)
	}
}

// TestOutputWithoutAReader runs the same tool through POST /run, where no client reads the output.
func TestOutputWithoutAReader(t *testing.T) {
	w := newEnv(t)
	w.prints(func(_ string, out io.Writer) {
		if n, err := io.WriteString(out, strings.Repeat("CANARY ", 1<<17)); n != 7<<17 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
	w.asksToPrint("a")
	a := w.send("POST", "/api/agent/run", "ana", `{"prompt":"print it"}`)
	if a.at("status") != "completed" || strings.Contains(string(a.body), "CANARY") ||
		strings.Contains(w.logs.String(), "CANARY") {
		t.Errorf("%s %s", a.Status, a.body)
	}
}
