package gemini_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// recordedDir returns the directory of the recorded service responses, which are not part of this repository.
func recordedDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("GEMINI_RECORDED_DIR")
	if dir == "" {
		realpart.Recorded.Absent(t, "GEMINI_RECORDED_DIR is not set")
	}
	return dir
}

// recording is one entry of INDEX.json.
type recording struct {
	Src, File, Kind string
	Status          int
	Req             bool
}

func recordings(t *testing.T, dir string) []recording {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "INDEX.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []recording
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	quoted, err := filepath.Glob(filepath.Join(dir, "errors-quoted", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range quoted {
		var status int
		if _, err := fmt.Sscanf(filepath.Base(f), "%d-", &status); err != nil {
			t.Fatal(err)
		}
		all = append(all, recording{"errors-quoted", "errors-quoted/" + filepath.Base(f), "unary", status, false})
	}
	if len(all) < 100 {
		t.Fatalf("only %d recordings", len(all))
	}
	return all
}

// TestRecorded serves each recorded response to the client and compares the result with that of a second decoder.
func TestRecorded(t *testing.T) {
	dir := recordedDir(t)
	seen := map[string]map[string]int{}
	var served struct {
		status int
		body   []byte
	}
	r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(served.status)
		w.Write(served.body)
	}), nil)
	for _, rec := range recordings(t, dir) {
		t.Run(rec.File, func(t *testing.T) {
			body, err := os.ReadFile(filepath.Join(dir, rec.File))
			if err != nil {
				t.Fatal(err)
			}
			if rec.Kind == "unary" && rec.Status == 200 && bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
				rec.Kind, body = "sse", fromList(t, body)
			}
			served.status, served.body = rec.Status, body
			want := expect(t, rec, body)

			var shown strings.Builder
			var delta func(string)
			if rec.Kind == "sse" {
				delta = func(s string) { shown.WriteString(s) }
			}
			reply, err := r.Generate(context.Background(), model.Request{Contents: hello, Tools: []tool.Spec{weather}},
				delta)
			got := compare(t, want, reply, err, body)
			if reply != nil && delta != nil && shown.String() != reply.Text {
				t.Errorf("shown %q, text %q", shown.String(), reply.Text)
			}
			if seen[got] == nil {
				seen[got] = map[string]int{}
			}
			seen[got][rec.Src]++
		})
	}
	var table strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(seen)) {
		n := 0
		for _, k := range seen[kind] {
			n += k
		}
		fmt.Fprintf(&table, "\n%5d %-20s %v", n, kind, seen[kind])
	}
	t.Log(table.String())
}

// fromList converts the list that streamGenerateContent returns without alt=sse to a stream.
func fromList(t *testing.T, body []byte) []byte {
	var list []json.RawMessage
	if err := json.Unmarshal(body, &list); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, chunk := range list {
		fmt.Fprintf(&out, "data: %s\n\n", chunk)
	}
	return out.Bytes()
}

// expected is a recorded response as the test's own decoder reads it.
type expected struct {
	outcome string // answer, correction, or a fault code
	parts   []json.RawMessage
	text    string
	calls   []model.Call
	picture bool
}

type recordedChunk struct {
	Candidates []struct {
		Content      struct{ Parts []json.RawMessage }
		FinishReason string
	}
	PromptFeedback struct{ BlockReason string }
	Error          *struct{ Code int }
}

func expect(t *testing.T, rec recording, body []byte) expected {
	t.Helper()
	if rec.Status != 200 {
		return expected{outcome: outcomeOfStatus(rec.Status, body)}
	}
	var e expected
	var finish, block string
	candidates := 0
	for _, chunk := range chunksOf(t, rec.Kind, body) {
		if chunk.Error != nil {
			return expected{outcome: outcomeOfStatus(chunk.Error.Code, body)}
		}
		block += chunk.PromptFeedback.BlockReason
		if len(chunk.Candidates) == 0 {
			continue
		}
		candidates++
		if f := chunk.Candidates[0].FinishReason; f != "" {
			finish = f
		}
		for _, p := range chunk.Candidates[0].Content.Parts {
			e.part(t, p)
		}
	}
	e.outcome = e.judge(rec.Kind, finish, block, candidates)
	return e
}

func (e *expected) part(t *testing.T, raw json.RawMessage) {
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	if len(fields) == 0 || len(fields) == 1 && fields["text"] == "" {
		return
	}
	e.parts = append(e.parts, raw)
	e.picture = e.picture || fields["inlineData"] != nil
	if s, ok := fields["text"].(string); ok && fields["thought"] != true {
		e.text += s
	}
	if c, ok := fields["functionCall"].(map[string]any); ok {
		if c["willContinue"] != nil || c["partialArgs"] != nil || c["name"] == nil {
			e.outcome = string(model.CodeUnreadable)
		}
		args := []byte("{}") // if the arguments are missing
		if given, ok := c["args"]; ok {
			args, _ = json.Marshal(given)
		}
		id, _ := c["id"].(string)
		name, _ := c["name"].(string)
		e.calls = append(e.calls, model.Call{ID: id, Name: name, Args: args})
	}
}

func (e *expected) judge(kind, finish, block string, candidates int) string {
	switch {
	case block != "":
		return string(model.CodeBlocked)
	case candidates == 0:
		return string(model.CodeEmpty)
	case finish == "SAFETY" || finish == "RECITATION" || finish == "MODEL_ARMOR":
		return string(model.CodeBlocked)
	case finish == "MAX_TOKENS" || finish == "" && kind == "sse":
		return string(model.CodeCut)
	case finish != "STOP" && finish != "":
		return "correction"
	case e.outcome != "":
		return e.outcome
	case strings.TrimSpace(e.text) == "" && len(e.calls) == 0 && !e.picture:
		return "correction"
	}
	return "answer"
}

func outcomeOfStatus(status int, body []byte) string {
	switch {
	case status == 429 && bytes.Contains(body, []byte("rpc.QuotaFailure")):
		return string(model.CodeQuota)
	case status == 429 || status >= 499:
		return string(model.CodeOverloaded)
	}
	return string(model.CodeRefused)
}

func chunksOf(t *testing.T, kind string, body []byte) []recordedChunk {
	t.Helper()
	raws := [][]byte{body}
	if kind == "sse" {
		raws = nil
		for _, e := range strings.Split(strings.ReplaceAll(string(body), "\r\n", "\n"), "\n\n") {
			if e = strings.TrimSpace(e); e != "" {
				raws = append(raws, []byte(strings.TrimPrefix(e, "data:")))
			}
		}
	}
	var out []recordedChunk
	for _, raw := range raws {
		var c recordedChunk
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatalf("%v in %.200s", err, raw)
		}
		out = append(out, c)
	}
	return out
}

// compare checks a reply or an error against the expected one, and returns which it was.
func compare(t *testing.T, want expected, reply *model.Reply, err error, body []byte) string {
	t.Helper()
	if err != nil {
		var f *fault.Error
		if !errors.As(err, &f) || f.Class != fault.Model || string(f.Code) != want.outcome {
			t.Errorf("error %v, want %s", err, want.outcome)
			return "wrong"
		}
		noProviderText(t, err, body)
		return want.outcome
	}
	got := "answer"
	if reply.Correction != "" {
		got = "correction"
	}
	if got != want.outcome || reply.Text != want.text {
		t.Errorf("%s with text %.100q, want %s with %.100q", got, reply.Text, want.outcome, want.text)
	}
	if got == "correction" {
		if reply.Content != nil || reply.Calls != nil {
			t.Error("an unusable answer was passed on")
		}
		return got
	}
	var content struct {
		Role  string
		Parts []json.RawMessage
	}
	if err := json.Unmarshal(reply.Content, &content); err != nil || content.Role != "model" {
		t.Fatalf("content %.200s: %v", reply.Content, err)
	}
	pictures := 0
	for i, p := range want.parts {
		var of struct{ InlineData *struct{ Data []byte } }
		if err := json.Unmarshal(p, &of); err != nil || of.InlineData == nil {
			continue
		}
		if pictures == len(reply.Files) || string(reply.Files[pictures].Data) != string(of.InlineData.Data) {
			t.Fatalf("the reply has %d files, and the picture of part %d is not next among them", len(reply.Files), i)
		}
		want.parts[i] = json.RawMessage(fmt.Sprintf(`{"fileData":{"fileUri":"answer:%d","mimeType":%q}}`, pictures,
			reply.Files[pictures].Type))
		pictures++
	}
	for i, p := range want.parts { // an answer with a file loses its white space
		if pictures > 0 {
			var b bytes.Buffer
			_ = json.Compact(&b, p) // the part was decoded
			want.parts[i] = b.Bytes()
		}
	}
	if !slices.EqualFunc(content.Parts, want.parts, slices.Equal) {
		t.Errorf("parts\n%s\nwant\n%s", content.Parts, want.parts)
	}
	if !slices.EqualFunc(reply.Calls, want.calls, sameCall) {
		t.Errorf("calls %s, want %s", reply.Calls, want.calls)
	}
	c, _ := model.NewContents([]model.Message{{Role: model.User, Text: "go"}})
	if err := c.AddModel(reply.Content); err != nil {
		t.Errorf("the content is invalid when it is sent back: %v", err)
	}
	return got
}

func sameCall(a, b model.Call) bool {
	var x, y any
	return a.ID == b.ID && a.Name == b.Name && json.Unmarshal(a.Args, &x) == nil && json.Unmarshal(b.Args, &y) == nil &&
		fmt.Sprint(x) == fmt.Sprint(y)
}

var messages = regexp.MustCompile(`"(?:message|finishMessage|blockReasonMessage|text)": *"((?:[^"\\]|\\.)*)"`)

// noProviderText checks that no error in the chain repeats a sentence of the body.
func noProviderText(t *testing.T, err error, body []byte) {
	t.Helper()
	for ; err != nil; err = errors.Unwrap(err) {
		for _, m := range messages.FindAllSubmatch(body, -1) {
			if len(m[1]) > 12 && strings.Contains(err.Error(), string(m[1][:12])) {
				t.Errorf("the error %q repeats the provider's %.60q", err, m[1])
			}
		}
	}
}

// TestRecordedRequests builds every recorded conversation with Contents, and checks that the fake accepts what the
// service accepted.
func TestRecordedRequests(t *testing.T) {
	dir := recordedDir(t)
	counts := map[string]int{}
	for _, rec := range recordings(t, dir) {
		if !rec.Req {
			continue
		}
		file := filepath.Join(dir,
			regexp.MustCompile(`\.\d+\.(json|sse\.txt)$`).ReplaceAllString(rec.File, ".request.json"))
		data, err := os.ReadFile(file)
		if err != nil {
			continue // some files in INDEX.json do not exist
		}
		var req struct{ Contents []json.RawMessage }
		if err := json.Unmarshal(data, &req); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		counts["requests"]++
		if len(req.Contents) > 1 {
			counts["conversations"]++
		}
		for _, raw := range req.Contents {
			if !bytes.Contains(raw, []byte(`"role": "model"`)) && !bytes.Contains(raw, []byte(`"role":"model"`)) {
				continue
			}
			counts["model contents"]++
			c, _ := model.NewContents([]model.Message{{Role: model.User, Text: "go"}})
			if err := c.AddModel(raw); err != nil {
				t.Errorf("%s: %v in %.300s", rec.File, err, raw)
			} else if !bytes.Equal(c.JSON()[1], raw) {
				t.Errorf("%s: a model content was changed", rec.File)
			}
		}
		_, refusal := fakegemini.Check(req.Contents, fakegemini.Gemini2)
		c, err := model.Load(req.Contents)
		switch {
		case refusal == nil && err != nil && !bytes.Contains(data, []byte(`function_call`)):
			t.Errorf("%s: the fake accepts the conversation, but Contents does not: %v", rec.File, errors.Unwrap(err))
		case err == nil && !slices.EqualFunc(c.JSON(), req.Contents, slices.Equal):
			t.Errorf("%s: the conversation was changed", rec.File)
		case err == nil:
			counts["carried whole"]++
		}
		if refusal != nil && rec.Status == 200 {
			counts["the fake is stricter: "+regexp.MustCompile(`\[\d+\]|'.*'|".*"`).ReplaceAllString(refusal.Error(),
				"")]++
		}
	}
	if counts["model contents"] < 50 {
		t.Errorf("only %d model contents were found", counts["model contents"])
	}
	var table strings.Builder
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&table, "\n%5d %s", counts[k], k)
	}
	t.Log(table.String())
}
